//! What can be chosen about an installation. What is wrong is told before anything is printed.

use thiserror::Error;
use weir_api::{
    dns::{NameError, check_dns_label},
    form::cidr::Cidr,
};

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "choices that have nothing to do with each other"
)]
pub struct Options {
    /// Where everything is put.
    pub namespace: String,
    /// What all roles run.
    pub image: String,
    /// Only these namespaces are watched, with Roles instead of ClusterRoles; empty: all.
    pub watch_namespaces: Vec<String>,
    /// Where an operator of KubeElasti may still run, whose end is waited for.
    pub peer_namespaces: Vec<String>,
    /// How many operators.
    pub operator_replicas: u16,
    /// How many resolvers.
    pub resolver_replicas: u16,
    /// Whether each of their pods has two, on the same ports.
    pub resolver_siblings: bool,
    /// Whether resolvers may wake what sleeps by themselves when no operator answers.
    pub resolver_may_scale: bool,
    /// The resolvers serve only clients with such addresses; empty: all.
    pub allow_from: Vec<Cidr>,
    /// Whether the definitions of the resources are among the objects.
    pub crds: bool,
    /// Whether the certificates of kubelets are not looked at.
    pub kubelet_insecure_tls: bool,
    /// Whether hold is installed.
    pub hold: bool,
    /// How place is installed; none: not at all.
    pub place: Option<PlaceOptions>,
}

/// What can be chosen about place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceOptions {
    /// Where the exporters are put: a namespace of their own, since they use the hosts' network.
    pub exporter_namespace: String,
    /// What they run.
    pub exporter_image: String,
    /// Where they listen, on each node's own address.
    pub exporter_port: u16,
    /// Whether the operator may taint nodes.
    pub allow_taints: bool,
    /// Exporters of somebody else, which are asked instead; none: ours are installed.
    pub exporter_service: Option<ExporterService>,
}

/// Exporters that are there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExporterService {
    /// The namespace of their Service.
    pub namespace: String,
    /// Its name, and maybe a port behind a colon.
    pub name_and_port: String,
    /// Whether they are asked with TLS and the operator's own token.
    pub https: bool,
}

impl ExporterService {
    /// What was typed, if it names a Service and its namespace.
    pub fn parse(text: &str, https: bool) -> Result<Self, OptionsError> {
        let odd = || OptionsError::ExporterService(text.to_owned());
        let (namespace, name_and_port) = text.split_once('/').ok_or_else(odd)?;
        let name = name_and_port.split(':').next().unwrap_or_default();
        for part in [namespace, name] {
            check_dns_label(part).map_err(|_| odd())?;
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name_and_port: name_and_port.to_owned(),
            https,
        })
    }
}

/// Why a choice cannot be.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum OptionsError {
    /// No namespace can be called so.
    #[error("`{0}` cannot be the name of a namespace; use small letters, digits and hyphens")]
    Namespace(String, #[source] NameError),
    /// Nothing to run.
    #[error("no image is named; give one such as registry.example/weir:1")]
    NoImage,
    /// Nodes belong to all.
    #[error(
        "place labels nodes, which belong to the whole cluster; it cannot be installed for some namespaces"
    )]
    PlaceInSomeNamespaces,
    /// Pods in it may use the host's network, and the operator must not.
    #[error("`{0}` is the namespace of Weir itself; give the exporters one of their own")]
    SharedNamespace(String),
    /// No Service can be called so.
    #[error("`{0}` names no Service; use the form namespace/name or namespace/name:port")]
    ExporterService(String),
    /// Nobody to do the work.
    #[error("there must be one {0} at least; two let one of them fail")]
    NoReplicas(&'static str),
}

impl Options {
    /// Says what is wrong, if anything is.
    pub fn check(&self) -> Result<(), OptionsError> {
        let watched = self.watch_namespaces.iter();
        for namespace in watched
            .chain(&self.peer_namespaces)
            .chain([&self.namespace])
        {
            check_dns_label(namespace)
                .map_err(|error| OptionsError::Namespace(namespace.clone(), error))?;
        }
        if self.image.trim().is_empty() {
            return Err(OptionsError::NoImage);
        }
        if let Some(place) = &self.place {
            self.check_place(place)?;
        }
        for (replicas, whose) in [
            (self.operator_replicas, "operator"),
            (self.resolver_replicas, "resolver"),
        ] {
            if replicas == 0 {
                return Err(OptionsError::NoReplicas(whose));
            }
        }
        Ok(())
    }

    fn check_place(&self, place: &PlaceOptions) -> Result<(), OptionsError> {
        let namespace = &place.exporter_namespace;
        check_dns_label(namespace)
            .map_err(|error| OptionsError::Namespace(namespace.clone(), error))?;
        if !self.watch_namespaces.is_empty() {
            return Err(OptionsError::PlaceInSomeNamespaces);
        }
        if *namespace == self.namespace {
            return Err(OptionsError::SharedNamespace(namespace.clone()));
        }
        if place.exporter_image.trim().is_empty() {
            return Err(OptionsError::NoImage);
        }
        Ok(())
    }

    /// The namespaces that are watched, each once, with our own as both roles add it; none: all are.
    pub(crate) fn watched(&self) -> Option<Vec<&str>> {
        if self.watch_namespaces.is_empty() {
            return None;
        }
        let own = [&self.namespace];
        let mut all: Vec<&str> = self
            .watch_namespaces
            .iter()
            .chain(own)
            .map(|it| &**it)
            .collect();
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    /// Where the older operator may run, each namespace once, without our own: there the operator looks anyway.
    pub(crate) fn peers(&self) -> Vec<&str> {
        let others = self.peer_namespaces.iter();
        let mut all: Vec<&str> = others
            .filter(|namespace| **namespace != self.namespace)
            .map(|it| &**it)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{hold::tests::options, place::tests::place_options};

    #[test]
    fn what_cannot_be_is_told() {
        assert_eq!(options().check(), Ok(()));
        let wrong = |change: fn(&mut Options)| {
            let mut options = options();
            change(&mut options);
            options.check().unwrap_err().to_string()
        };
        assert!(wrong(|it| it.namespace = "Weir".into()).contains("`Weir`"));
        assert!(wrong(|it| it.watch_namespaces = vec!["a b".into()]).contains("`a b`"));
        assert!(wrong(|it| it.peer_namespaces = vec!["a/b".into()]).contains("`a/b`"));
        assert!(wrong(|it| it.image = " ".into()).contains("image"));
        assert!(wrong(|it| it.resolver_replicas = 0).contains("one resolver"));
    }

    #[test]
    fn place_needs_all_namespaces_and_one_for_its_exporters() {
        let wrong = |change: fn(&mut Options, &mut PlaceOptions)| {
            let mut options = options();
            let mut place = place_options();
            change(&mut options, &mut place);
            options.place = Some(place);
            options.check()
        };
        assert_eq!(wrong(|_, _| {}), Ok(()));
        let some = wrong(|it, _| it.watch_namespaces = vec!["shop".into()]);
        assert_eq!(some, Err(OptionsError::PlaceInSomeNamespaces));
        let shared = wrong(|it, place| place.exporter_namespace.clone_from(&it.namespace));
        assert_eq!(shared, Err(OptionsError::SharedNamespace("weir".into())));
        let odd = wrong(|_, place| place.exporter_namespace = "A".into());
        assert!(matches!(odd, Err(OptionsError::Namespace(..))));
    }

    #[test]
    fn exporters_of_others_are_named_with_their_namespace() {
        let found = ExporterService::parse("monitoring/node-exporter:https", true).unwrap();
        assert_eq!(found.namespace, "monitoring");
        assert_eq!(found.name_and_port, "node-exporter:https");
        for text in ["node-exporter", "a/", "A/b", "a/b/c"] {
            let odd = ExporterService::parse(text, false).unwrap_err();
            assert_eq!(odd, OptionsError::ExporterService(text.to_owned()));
        }
    }

    #[test]
    fn watched_namespaces_are_named_once_with_our_own() {
        let mut options = options();
        assert_eq!(options.watched(), None);
        options.watch_namespaces = ["shop", "weir", "shop"].map(str::to_owned).to_vec();
        assert_eq!(options.watched(), Some(vec!["shop", "weir"]));
    }
}
