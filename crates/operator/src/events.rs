//! Kubernetes Events: what a user reads in `kubectl describe`.
