//! Hold's objects: operators that put targets to sleep and wake them, resolvers that hold what comes meanwhile.
//!
//! - [`part`]: the two of them, and what their objects are called;
//! - [`rights`]: what each may do, and nothing more;
//! - [`pods`]: how both run; [`operator`] and [`resolver`]: what each is told;
//! - [`network`]: Services, budgets for disruptions, and who may talk to whom.

mod network;
mod operator;
mod part;
mod pods;
mod resolver;
mod rights;
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

/// All that hold needs, in an order in which it can be applied.
pub fn objects(options: &Options) -> Vec<Object> {
    let mut all = vec![namespace(options)];
    if options.crds {
        all.push(Kind::ElastiService.crd().into());
    }
    all.extend(Part::ALL.map(|part| account(part, options)));
    all.extend(rights::objects(options));
    all.extend(Part::ALL.map(|part| network::service(part, options).into()));
    all.push(pods::deployment(Part::Operator, options, vec![operator::command(options)]).into());
    all.push(pods::deployment(Part::Resolver, options, resolver::commands(options)).into());
    all.extend(
        Part::ALL
            .iter()
            .filter_map(|part| network::disruption_budget(*part, options))
            .map(Object::from),
    );
    all.extend(Part::ALL.map(|part| network::policy(part, options).into()));
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
