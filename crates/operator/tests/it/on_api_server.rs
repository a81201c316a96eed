//! What needs a real API server.
