//! The silent connection through a Service, by which a cut-over is seen to work.

use std::net::{IpAddr, SocketAddr};

use crate::resolvers::Resolvers;

/// Opens silent connections to a port of a Service, by its cluster IPs, and says which resolver one of them reached.
///
/// While pods are endpoints as well, all may land on pods: then nobody is named, and the caller tries again.
pub async fn probe(resolvers: &Resolvers, to: &[SocketAddr]) -> Option<IpAddr> {
    resolvers.saw(*to.first()?).await
}
