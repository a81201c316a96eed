//! The programs the lab runs: which they are, where they lie, whether they are built.
//!
//! Each [`Tool`] is one Go module at one version, with the programs that we need of it. [`build`] makes
//! them; [`go`] finds the Go toolchain; [`replace`] knows what a wrapper module must take over. A new tool
//! is a new row here and nothing else.

use std::{fmt, path::PathBuf, time::Duration};

use crate::cache::Cache;

pub mod build;
pub mod crds;
pub mod go;
pub mod replace;

/// One Go module, and the programs built from it.
#[derive(Debug)]
pub struct Tool {
    /// What people call it.
    pub name: &'static str,
    /// The Go module's path.
    pub module: &'static str,
    /// The module's version.
    pub version: &'static str,
    /// The main packages that we build.
    pub packages: &'static [Package],
    /// Flags for the linker, beside those that strip the program.
    pub ldflags: &'static str,
    /// How long a first build takes on two cores, to tell people what they are in for.
    pub usual_build: Duration,
}

/// A main package of a [`Tool`].
#[derive(Debug)]
pub struct Package {
    /// Its path below the module; empty for the module's root.
    pub path: &'static str,
    /// The name of the program.
    pub program: &'static str,
}

/// kube-apiserver, kube-controller-manager and kubectl.
pub const KUBERNETES: Tool = Tool {
    name: "kubernetes",
    module: "k8s.io/kubernetes",
    version: "v1.34.4",
    packages: &[
        Package {
            path: "cmd/kube-apiserver",
            program: "kube-apiserver",
        },
        Package {
            path: "cmd/kube-controller-manager",
            program: "kube-controller-manager",
        },
        Package {
            path: "cmd/kubectl",
            program: "kubectl",
        },
    ],
    ldflags: "-X k8s.io/component-base/version.gitVersion=v1.34.4 \
              -X k8s.io/component-base/version.gitMajor=1 \
              -X k8s.io/component-base/version.gitMinor=34",
    usual_build: Duration::from_mins(7),
};

/// kube-scheduler, kubelet and kube-proxy: what nodes need beside [`KUBERNETES`].
///
/// A row of its own, so that whoever runs tests without nodes does not wait for these.
pub const KUBERNETES_NODE: Tool = Tool {
    name: "kubernetes-node",
    module: KUBERNETES.module,
    version: KUBERNETES.version,
    packages: &[
        Package {
            path: "cmd/kube-scheduler",
            program: "kube-scheduler",
        },
        Package {
            path: "cmd/kubelet",
            program: "kubelet",
        },
        Package {
            path: "cmd/kube-proxy",
            program: "kube-proxy",
        },
    ],
    ldflags: KUBERNETES.ldflags,
    usual_build: Duration::from_mins(1),
};

/// What the API server stores things in.
pub const ETCD: Tool = Tool {
    name: "etcd",
    module: "go.etcd.io/etcd/server/v3",
    version: "v3.6.5",
    packages: &[Package {
        path: "",
        program: "etcd",
    }],
    ldflags: "",
    usual_build: Duration::from_mins(1),
};

/// What pods ask for names.
pub const COREDNS: Tool = Tool {
    name: "coredns",
    module: "github.com/coredns/coredns",
    version: "v1.14.7",
    packages: &[Package {
        path: "",
        program: "coredns",
    }],
    ldflags: "",
    usual_build: Duration::from_secs(210),
};

/// KEDA's operator.
pub const KEDA: Tool = Tool {
    name: "keda",
    module: "github.com/kedacore/keda/v2",
    version: "v2.20.2",
    packages: &[Package {
        path: "cmd/operator",
        program: "keda-operator",
    }],
    ldflags: "",
    usual_build: Duration::from_secs(400),
};

/// KEDA's metrics adapter, which few tests need: those that scale above 1.
pub const KEDA_ADAPTER: Tool = Tool {
    name: "keda-adapter",
    module: KEDA.module,
    version: KEDA.version,
    packages: &[Package {
        path: "cmd/adapter",
        program: "keda-adapter",
    }],
    ldflags: "",
    usual_build: Duration::from_mins(1),
};

/// The controller of Argo Rollouts.
pub const ROLLOUTS: Tool = Tool {
    name: "argo-rollouts",
    module: "github.com/argoproj/argo-rollouts",
    version: "v1.9.2",
    packages: &[Package {
        path: "cmd/rollouts-controller",
        program: "rollouts-controller",
    }],
    ldflags: "",
    usual_build: Duration::from_secs(270),
};

/// What tells Prometheus about a node.
pub const NODE_EXPORTER: Tool = Tool {
    name: "node-exporter",
    module: "github.com/prometheus/node_exporter",
    version: "v1.10.2",
    packages: &[Package {
        path: "",
        program: "node_exporter",
    }],
    ldflags: "",
    usual_build: Duration::from_secs(30),
};

/// All that a control plane needs.
pub const CONTROL_PLANE: &[&Tool] = &[&ETCD, &KUBERNETES];
/// All that a cluster with nodes needs, without add-ons.
pub const CLUSTER: &[&Tool] = &[&ETCD, &KUBERNETES, &KUBERNETES_NODE];

/// Every tool there is.
pub const ALL: &[&Tool] = &[
    &ETCD,
    &KUBERNETES,
    &KUBERNETES_NODE,
    &COREDNS,
    &KEDA,
    &KEDA_ADAPTER,
    &ROLLOUTS,
    &NODE_EXPORTER,
];

impl Tool {
    /// Where this version's programs lie once they are built.
    pub fn directory(&self, cache: &Cache) -> PathBuf {
        cache
            .tools()
            .join(format!("{}-{}", self.name, self.version))
    }

    /// Are all programs there, and were they built by the recipe that this table holds now?
    pub fn is_built(&self, cache: &Cache) -> bool {
        let directory = self.directory(cache);
        std::fs::read_to_string(self.stamp(cache)).is_ok_and(|stamp| stamp == self.recipe())
            && self
                .packages
                .iter()
                .all(|package| directory.join(package.program).is_file())
    }

    /// Bytes on disk of all programs that are there.
    pub fn size(&self, cache: &Cache) -> u64 {
        let directory = self.directory(cache);
        let bytes =
            |package: &Package| std::fs::metadata(directory.join(package.program)).map(|m| m.len());
        self.packages
            .iter()
            .filter_map(|package| bytes(package).ok())
            .sum()
    }

    /// The file that is written last: without it nothing counts as built.
    fn stamp(&self, cache: &Cache) -> PathBuf {
        self.directory(cache).join("recipe")
    }

    /// Everything the programs depend on, as text, so that a changed row is built anew.
    fn recipe(&self) -> String {
        format!("{self:#?}\n")
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

impl Package {
    fn import_path(&self, module: &str) -> String {
        if self.path.is_empty() {
            module.to_owned()
        } else {
            format!("{module}/{}", self.path)
        }
    }
}

/// Where each program of the control plane lies.
#[derive(Clone, Debug)]
pub struct Programs {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub kube_apiserver: PathBuf,
    /// kube-controller-manager.
    pub kube_controller_manager: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
}

impl Programs {
    /// The programs in this cache, built or not.
    pub fn of(cache: &Cache) -> Self {
        let kubernetes = KUBERNETES.directory(cache);
        Self {
            etcd: ETCD.directory(cache).join("etcd"),
            kube_apiserver: kubernetes.join("kube-apiserver"),
            kube_controller_manager: kubernetes.join("kube-controller-manager"),
            kubectl: kubernetes.join("kubectl"),
        }
    }
}

/// Where each program lies that only clusters with nodes need.
#[derive(Clone, Debug)]
pub struct NodePrograms {
    /// kube-scheduler.
    pub kube_scheduler: PathBuf,
    /// kubelet.
    pub kubelet: PathBuf,
    /// kube-proxy.
    pub kube_proxy: PathBuf,
}

impl NodePrograms {
    /// The programs in this cache, built or not.
    pub fn of(cache: &Cache) -> Self {
        let directory = KUBERNETES_NODE.directory(cache);
        Self {
            kube_scheduler: directory.join("kube-scheduler"),
            kubelet: directory.join("kubelet"),
            kube_proxy: directory.join("kube-proxy"),
        }
    }
}

/// The tools of this list that are not built.
pub fn missing(tools: &[&'static Tool], cache: &Cache) -> Vec<&'static Tool> {
    tools
        .iter()
        .copied()
        .filter(|tool| !tool.is_built(cache))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_counts_as_built_only_with_all_programs_and_the_stamp_of_this_recipe() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        let directory = ETCD.directory(&cache);
        std::fs::create_dir_all(&directory).unwrap();
        assert!(!ETCD.is_built(&cache));

        std::fs::write(directory.join("etcd"), "program").unwrap();
        assert!(
            !ETCD.is_built(&cache),
            "a program without a stamp may be half a build"
        );

        std::fs::write(ETCD.stamp(&cache), "another recipe").unwrap();
        assert!(!ETCD.is_built(&cache));

        std::fs::write(ETCD.stamp(&cache), ETCD.recipe()).unwrap();
        assert!(ETCD.is_built(&cache));
        assert_eq!(ETCD.size(&cache), 7);

        std::fs::remove_file(directory.join("etcd")).unwrap();
        assert!(!ETCD.is_built(&cache));
    }

    #[test]
    fn the_module_root_is_a_package_too() {
        assert_eq!(
            ETCD.packages[0].import_path(ETCD.module),
            "go.etcd.io/etcd/server/v3"
        );
        assert_eq!(
            KUBERNETES.packages[2].import_path(KUBERNETES.module),
            "k8s.io/kubernetes/cmd/kubectl"
        );
    }
}
