//! What a container may do: nothing that it does not need, and none of ours needs any of it.

use k8s_openapi::api::core::v1::{Capabilities, SecurityContext};

/// As the *restricted* level demands of a container.
pub(crate) fn no_rights() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            ..Capabilities::default()
        }),
        ..SecurityContext::default()
    }
}
