//! The two parts of hold, and what their objects are called and carry.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
pub(crate) use weir_api::hold::names::install::{COMPONENT_LABEL, NAME_LABEL, PRODUCT};
use weir_api::hold::names::install::{OPERATOR, RESOLVER, RESOLVER_COMPONENT};

use crate::Options;

/// A part of hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Puts targets to sleep and wakes them.
    Operator,
    /// Holds requests meanwhile.
    Resolver,
}

impl Part {
    /// Those that are installed; what else the operator does needs no resolvers.
    pub(super) fn of(options: &Options) -> &'static [Self] {
        if options.hold {
            &[Self::Operator, Self::Resolver]
        } else {
            &[Self::Operator]
        }
    }

    /// What its objects are called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Operator => OPERATOR,
            Self::Resolver => RESOLVER,
        }
    }

    /// The role that its pods run.
    pub(super) const fn role(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Resolver => RESOLVER_COMPONENT,
        }
    }

    pub(super) const fn replicas(self, options: &Options) -> u16 {
        match self {
            Self::Operator => options.operator_replicas,
            Self::Resolver => options.resolver_replicas,
        }
    }

    /// What its objects carry, and its pods are found by.
    pub(super) fn labels(self) -> BTreeMap<String, String> {
        [(NAME_LABEL, PRODUCT), (COMPONENT_LABEL, self.role())]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }

    pub(super) fn selector(self) -> LabelSelector {
        LabelSelector {
            match_labels: Some(self.labels()),
            ..LabelSelector::default()
        }
    }

    /// Of an object in our namespace.
    pub(super) fn metadata(self, options: &Options) -> ObjectMeta {
        ObjectMeta {
            namespace: Some(options.namespace.clone()),
            ..self.cluster_metadata()
        }
    }

    /// Of an object without a namespace.
    pub(super) fn cluster_metadata(self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name().to_owned()),
            labels: Some(self.labels()),
            ..ObjectMeta::default()
        }
    }
}
