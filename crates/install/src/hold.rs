//! Hold's objects: operators that put targets to sleep and wake them, resolvers that hold what comes meanwhile.
//!
//! - [`part`]: the two of them, and what their objects are called;
//! - [`rights`]: what each may do, and nothing more;
//! - [`pods`]: how both run; [`operator`] and [`resolver`]: what each is told;
//! - [`network`]: Services, budgets for disruptions, and who may talk to whom.

mod network;
mod operator;
pub(crate) mod part;
mod pods;
mod resolver;
pub(crate) mod rights;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Namespace, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use weir_api::crd::Kind;

use self::part::Part;
use crate::{Object, Options};

/// All that hold needs, in an order in which it can be applied. Without hold it is the operator alone, for whatever else
/// it does.
pub fn objects(options: &Options) -> Vec<Object> {
    let parts = Part::of(options);
    let each = || parts.iter().copied();
    let mut all = vec![namespace(options)];
    if options.crds && options.hold {
        all.push(Kind::ElastiService.crd().into());
    }
    all.extend(each().map(|part| account(part, options)));
    all.extend(rights::objects(options));
    all.extend(each().map(|part| network::service(part, options).into()));
    all.extend(each().map(|part| {
        let commands = match part {
            Part::Operator => vec![operator::command(options)],
            Part::Resolver => resolver::commands(options),
        };
        Object::from(pods::deployment(part, options, commands))
    }));
    all.extend(
        each()
            .filter_map(|part| network::disruption_budget(part, options))
            .map(Object::from),
    );
    all.extend(each().map(|part| network::policy(part, options).into()));
    all
}

/// Pods with more rights than ours need are not let in.
fn namespace(options: &Options) -> Object {
    let levels = ["enforce", "audit", "warn"]
        .map(|mode| format!("pod-security.kubernetes.io/{mode}"))
        .map(|label| (label, "restricted".to_owned()));
    let mut labels = BTreeMap::from(levels);
    labels.insert(part::NAME_LABEL.to_owned(), part::PRODUCT.to_owned());
    Object::from(Namespace {
        metadata: ObjectMeta {
            name: Some(options.namespace.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    })
}

/// Its token is for our pods alone, which ask for it.
fn account(part: Part, options: &Options) -> Object {
    Object::from(ServiceAccount {
        metadata: part.metadata(options),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    })
}
