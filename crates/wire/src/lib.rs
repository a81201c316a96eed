//! The HTTP data plane: listen, hold, forward, retry, drain. It knows no Kubernetes; what a target is and how it
//! is woken is said by whoever stands on it.
