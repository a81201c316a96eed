//! What must be installed on the machine beside what the lab builds: by programs, and by Debian's packages of them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{ClusterError, containerd};
use crate::server::is_in_path;

/// One package of Debian, and how to see that what it holds is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// A program of it.
    program: &'static str,
}

/// What nodes need.
pub const FOR_NODES: &[Package] = &[
    package("containerd", "containerd"),
    package("runc", "runc"),
    package("containernetworking-plugins", containerd::CNI_PROGRAMS[0]),
    package("nftables", "nft"),
    package("iptables", "iptables"),
    package("conntrack", "conntrack"),
    package("iproute2", "ip"),
    package("util-linux", "nsenter"),
];
/// What the add-on of this name needs.
pub const PROMETHEUS: &[Package] = &[package("prometheus", "prometheus")];
/// What the add-on of this name needs.
pub const RABBITMQ: &[Package] = &[package(
    "rabbitmq-server",
    "/usr/lib/rabbitmq/bin/rabbitmq-server",
)];

/// To look at pages as a user does.
pub const BROWSER: &[Package] = &[package("chromium", "chromium")];

/// Debian has each version of PostgreSQL's programs in a directory of its own below this one.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
/// A database and its client.
pub const POSTGRES: &[Package] = &[package("postgresql", POSTGRES_VERSIONS)];

const fn package(name: &'static str, program: &'static str) -> Package {
    Package { name, program }
}

impl Package {
    fn is_installed(&self) -> bool {
        if self.program == containerd::CNI_PROGRAMS[0] {
            return containerd::cni_programs().is_some();
        }
        if self.program == POSTGRES_VERSIONS {
            return postgres_programs().is_some();
        }
        // Root's programs are not always in the path.
        is_in_path(self.program)
            || Path::new("/usr/sbin").join(self.program).is_file()
            || Path::new("/sbin").join(self.program).is_file()
    }
}

/// Where PostgreSQL's programs are on this machine, those of the server among them; of several versions the last.
pub fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten();
    let programs = versions.flatten().map(|version| version.path().join("bin"));
    programs
        .filter(|programs| {
            let has = |program: &str| programs.join(program).is_file();
            has("postgres") && has("initdb") && has("psql")
        })
        .max()
}

/// Those that are not installed.
pub fn missing(wanted: &[Package]) -> Vec<Package> {
    let absent = |package: &&Package| !package.is_installed();
    wanted.iter().filter(absent).copied().collect()
}

/// Installs packages by apt. Where there is none, the error says what to install by other means.
pub fn install(packages: &[Package]) -> Result<(), ClusterError> {
    let names: Vec<&str> = packages.iter().map(|package| package.name).collect();
    let not_installed = |why: &str| ClusterError::Packages {
        names: names.join(" "),
        why: why.to_owned(),
    };
    if !is_in_path("apt-get") {
        return Err(not_installed("and there is no apt-get here"));
    }
    let apt = |arguments: &[&str]| {
        Command::new("apt-get")
            // Others may be installing just now.
            .args(["-qq", "-o", "DPkg::Lock::Timeout=300"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let install = [&["install", "--yes", "--no-install-recommends"], &names[..]].concat();
    // Lists may be old or missing altogether; with good ones this is a second.
    if (apt(&["update"]) && apt(&install)) || missing(packages).is_empty() {
        return Ok(());
    }
    Err(not_installed("and apt-get could not install them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_missing() {
        let shell = package("dash", "sh");
        let nothing = package("nothing", "no-such-program");
        assert_eq!(missing(&[shell, nothing]), [nothing]);
    }
}
