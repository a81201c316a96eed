//! The Deployment to apply for a watch: the user's spec whole, with pod labels that its selector finds, and a required
//! node affinity that keeps off unfit nodes. Never `replicas`: whoever scales it later is left alone.
