//! What hold's own parts are called where they are installed as we print them.

/// The namespace.
pub const NAMESPACE: &str = "weir";
/// The operator's Deployment, Service, ServiceAccount and roles; its Lease as well.
pub const OPERATOR: &str = "weir-operator";
/// The resolvers' Deployment, Service, ServiceAccount and roles.
pub const RESOLVER: &str = "weir-resolver";
