//! What can be set: flags and the peers' environment variables in, one typed value out.
