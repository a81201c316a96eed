//! What the benchmarks with thousands of objects share: a network of their own ([`network`]), the definitions that the
//! program brings itself ([`definitions`]), objects made by many hands ([`hands`]), a way to the API server that counts what
//! is written ([`api`]), and the operator as a process ([`operator`]).

pub(super) mod api;
pub(super) mod definitions;
pub(super) mod hands;
pub(super) mod network;
pub(super) mod operator;

/// Where the operator is, and what belongs to it.
pub(super) const NAMESPACE: &str = "bench";
