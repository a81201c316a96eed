//! The operator's parts on a real API server.

mod resolvers;
