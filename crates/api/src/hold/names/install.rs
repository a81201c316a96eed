//! What hold's own parts are called where they are installed as we print them.

/// Label: the product. Pods are found by this and the next.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Label: the part of it.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Value of [`NAME_LABEL`].
pub const PRODUCT: &str = "weir";
/// Value of [`COMPONENT_LABEL`] on the resolvers.
pub const RESOLVER_COMPONENT: &str = "resolver";

/// The namespace.
pub const NAMESPACE: &str = "weir";
/// The operator's Deployment, Service, ServiceAccount and roles; its Lease as well.
pub const OPERATOR: &str = "weir-operator";
/// The resolvers' Deployment, Service, ServiceAccount and roles.
pub const RESOLVER: &str = "weir-resolver";
