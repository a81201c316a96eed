//! How kubelets are asked, for triggers of the type `network`.

use std::path::PathBuf;

use clap::{ArgAction, Args, builder::BoolishValueParser};

/// What Kubernetes puts into each pod: the cluster's authority, and the token of the pod's own ServiceAccount.
const OWN_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const OWN_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Flags about kubelets.
#[derive(Args, Clone, Debug)]
pub struct KubeletArgs {
    /// The port of the kubelets, for triggers of the type network; without it what each Node says, or 10250
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Triggers")]
    pub kubelet_port: Option<u16>,

    /// Trust kubelets whose certificate is signed by one of these (PEM); without it by the cluster's own authority
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "kubelet_insecure_tls",
        help_heading = "Triggers"
    )]
    pub kubelet_ca_file: Option<PathBuf>,

    /// Do not look at the certificates of kubelets, which may have signed them themselves: who can pass for a node then gets the operator's token
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new(), action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", help_heading = "Triggers")]
    pub kubelet_insecure_tls: bool,

    /// The token for kubelets; it is read again and again, as tokens of ServiceAccounts change
    #[arg(long, value_name = "FILE", default_value = OWN_TOKEN, help_heading = "Triggers")]
    pub kubelet_token_file: PathBuf,
}

/// How kubelets are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletSettings {
    /// On this port; none: where their Nodes say.
    pub port: Option<u16>,
    /// Whom to believe.
    pub trust: Trust,
    /// A file with a token.
    pub token: PathBuf,
}

/// Whom to believe that they are a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whom these have signed for.
    Authorities(PathBuf),
    /// Anybody.
    Anybody,
}

impl KubeletSettings {
    /// What was typed, as it is meant.
    pub(super) fn new(args: KubeletArgs) -> Self {
        let KubeletArgs {
            kubelet_port,
            kubelet_ca_file,
            kubelet_insecure_tls,
            kubelet_token_file,
        } = args;
        Self {
            port: kubelet_port,
            trust: if kubelet_insecure_tls {
                Trust::Anybody
            } else {
                Trust::Authorities(kubelet_ca_file.unwrap_or_else(|| OWN_CA.into()))
            },
            token: kubelet_token_file,
        }
    }

    /// What is to be said of it once.
    pub(super) fn note(&self) -> Option<String> {
        (self.trust == Trust::Anybody).then(|| {
            "the certificates of kubelets are not looked at, since --kubelet-insecure-tls is set: who can pass for a node gets the operator's token"
                .to_owned()
        })
    }
}
