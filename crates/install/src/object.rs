//! One object of any kind that we install; written as Kubernetes reads it, with its kind.

use k8s_openapi::{
    Metadata, Resource,
    api::{
        admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
        apps::v1::{DaemonSet, Deployment},
        core::v1::{Namespace, Service, ServiceAccount},
        networking::v1::NetworkPolicy,
        policy::v1::PodDisruptionBudget,
        rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;

/// Makes the variants, the way into each of them, and what can be asked of all.
macro_rules! kinds {
    ($($kind:ident),* $(,)?) => {
        /// An object to install.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        #[allow(missing_docs, reason = "they say it themselves")]
        pub enum Object {
            $($kind(Box<$kind>),)*
        }

        $(impl From<$kind> for Object {
            fn from(object: $kind) -> Self {
                Self::$kind(Box::new(object))
            }
        })*

        impl Object {
            /// Its kind, as manifests spell it.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $kind::KIND,)*
                }
            }

            /// Its metadata.
            pub fn metadata(&self) -> &ObjectMeta {
                match self {
                    $(Self::$kind(object) => object.metadata(),)*
                }
            }
        }
    };
}

kinds!(
    Namespace,
    CustomResourceDefinition,
    ServiceAccount,
    ClusterRole,
    ClusterRoleBinding,
    Role,
    RoleBinding,
    Service,
    Deployment,
    DaemonSet,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    PodDisruptionBudget,
    NetworkPolicy,
);
