//! ClusterRoles for people who write TrafficWatches, and for those who look at them.

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, PolicyRule},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use weir_api::place::names::{EDITOR_ROLE, GROUP, PLURAL, VIEWER_ROLE};

use crate::{
    Object,
    hold::{
        part::{NAME_LABEL, PRODUCT},
        rights::rule,
    },
};

pub(super) fn objects() -> [Object; 2] {
    let status = format!("{PLURAL}/status");
    let read = &["get", "list", "watch"];
    let write = &[
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    [
        role(
            EDITOR_ROLE,
            vec![
                rule(GROUP, &[PLURAL], write),
                rule(GROUP, &[&status], &["get"]),
            ],
        ),
        role(
            VIEWER_ROLE,
            vec![
                rule(GROUP, &[PLURAL], read),
                rule(GROUP, &[&status], &["get"]),
            ],
        ),
    ]
}

fn role(name: &str, rules: Vec<PolicyRule>) -> Object {
    let label = (NAME_LABEL.to_owned(), PRODUCT.to_owned());
    Object::from(ClusterRole {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([label].into()),
            ..ObjectMeta::default()
        },
        rules: Some(rules),
        ..ClusterRole::default()
    })
}
