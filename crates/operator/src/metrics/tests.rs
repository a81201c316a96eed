//! What is counted, as Prometheus reads it.
