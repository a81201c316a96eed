//! The annotation with a node's load, for schedulers that score by node metadata: in steps, and not often, since each
//! write of a Node reaches everybody who watches nodes.
