//! The operator's ports: wake signals from resolvers, metrics, health.
