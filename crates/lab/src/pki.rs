//! The certificates and keys of one control plane, and the kubeconfigs that name them.
//!
//! Everything is made anew at each start and goes with the state directory: nothing here is worth keeping,
//! and nothing here may be used for anything but tests. [`crate::control_plane`] refers to the files by name.

use std::{
    fs, io, iter,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Where certificates go, below the state directory.
const DIRECTORY: &str = "pki";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The cryptography failed.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// A file could not be written.
    #[error("cannot write {path}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Who a certificate is for.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What its files are called, without their endings.
    pub file: String,
    /// The user, in Kubernetes' reading of a certificate.
    pub name: String,
    /// The group, in the same reading.
    pub group: Option<String>,
    /// Where it serves, beside 127.0.0.1.
    pub addresses: Vec<Ipv4Addr>,
}

impl Subject {
    /// A certificate for a user of this name, in files of the name `file`.
    pub fn new(file: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            name: name.into(),
            group: None,
            addresses: Vec::new(),
        }
    }

    /// The same, in a group.
    #[must_use]
    pub fn in_group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// The same, for a server at this address.
    #[must_use]
    pub fn at(mut self, address: Ipv4Addr) -> Self {
        self.addresses.push(address);
        self
    }
}

/// The file `name` in the pki directory of this state directory.
pub fn file(state_directory: &Path, name: &str) -> PathBuf {
    state_directory.join(DIRECTORY).join(name)
}

/// The kubeconfig of cluster-admin.
pub fn admin_kubeconfig(state_directory: &Path) -> PathBuf {
    kubeconfig_of(state_directory, "admin")
}

/// The kubeconfig of the controller manager.
pub fn controller_manager_kubeconfig(state_directory: &Path) -> PathBuf {
    kubeconfig_of(state_directory, CONTROLLER_MANAGER)
}

/// The kubeconfig of the user whose certificate has this name.
pub fn kubeconfig_of(state_directory: &Path, user: &str) -> PathBuf {
    state_directory.join(format!("{user}.kubeconfig"))
}

/// Those that every control plane needs.
pub fn control_plane_subjects() -> Vec<Subject> {
    vec![
        Subject::new("kube-apiserver", "kube-apiserver"),
        Subject::new("admin", "admin").in_group("system:masters"),
        Subject::new(CONTROLLER_MANAGER, "system:kube-controller-manager"),
        // With this one the API server speaks to aggregated API servers.
        Subject::new("front-proxy", "front-proxy"),
    ]
}

/// Makes all certificates, keys and kubeconfigs for an API server on this port of 127.0.0.1.
pub fn write(state_directory: &Path, api_server_port: u16) -> Result<(), PkiError> {
    let url = format!("https://127.0.0.1:{api_server_port}");
    let users = ["admin", CONTROLLER_MANAGER];
    write_all(state_directory, &control_plane_subjects(), &users, &url)
}

/// Makes these certificates under a new authority, a key for service accounts, and kubeconfigs for `users`.
pub fn write_all(
    state_directory: &Path,
    subjects: &[Subject],
    users: &[&str],
    url: &str,
) -> Result<(), PkiError> {
    let directory = state_directory.join(DIRECTORY);
    fs::create_dir_all(&directory).map_err(|source| PkiError::Write {
        path: directory,
        source,
    })?;

    let authority = authority(state_directory)?;
    for subject in subjects {
        certificate(state_directory, &authority, subject)?;
    }

    let signs_tokens = KeyPair::generate()?;
    save(
        &file(state_directory, "service-accounts.key"),
        &signs_tokens.serialize_pem(),
    )?;
    save(
        &file(state_directory, "service-accounts.pub"),
        &signs_tokens.public_key_pem(),
    )?;
    for user in users {
        save(
            &kubeconfig_of(state_directory, user),
            &kubeconfig(state_directory, user, url),
        )?;
    }
    Ok(())
}

fn authority(state_directory: &Path) -> Result<Issuer<'static, KeyPair>, PkiError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "weir-lab");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    save(
        &file(state_directory, "ca.crt"),
        &params.self_signed(&key)?.pem(),
    )?;
    save(&file(state_directory, "ca.key"), &key.serialize_pem())?;
    Ok(Issuer::new(params, key))
}

fn certificate(
    state_directory: &Path,
    authority: &Issuer<'_, KeyPair>,
    subject: &Subject,
) -> Result<(), PkiError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec![
        "localhost".to_owned(),
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
        "kubernetes.default.svc.cluster.local".to_owned(),
    ])?;
    for address in iter::once(&Ipv4Addr::LOCALHOST).chain(&subject.addresses) {
        let address = SanType::IpAddress(IpAddr::V4(*address));
        params.subject_alt_names.push(address);
    }
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(group) = &subject.group {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group.as_str());
    }
    params
        .distinguished_name
        .push(DnType::CommonName, subject.name.as_str());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let certificate = params.signed_by(&key, authority)?;
    save(
        &file(state_directory, &format!("{}.crt", subject.file)),
        &certificate.pem(),
    )?;
    save(
        &file(state_directory, &format!("{}.key", subject.file)),
        &key.serialize_pem(),
    )
}

/// JSON, which is YAML as well, so that no path needs quoting rules of ours.
fn kubeconfig(state_directory: &Path, user: &str, url: &str) -> String {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "weir-lab",
        "contexts": [{"name": "weir-lab", "context": {"cluster": "weir-lab", "user": user}}],
        "clusters": [{"name": "weir-lab", "cluster": {
            "server": url,
            "certificate-authority": file(state_directory, "ca.crt"),
        }}],
        "users": [{"name": user, "user": {
            "client-certificate": file(state_directory, &format!("{user}.crt")),
            "client-key": file(state_directory, &format!("{user}.key")),
        }}],
    })
    .to_string()
}

fn save(path: &Path, content: &str) -> Result<(), PkiError> {
    fs::write(path, content).map_err(|source| PkiError::Write {
        path: path.to_owned(),
        source,
    })
}
