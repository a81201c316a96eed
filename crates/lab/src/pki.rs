//! The certificates and keys of one control plane, and the kubeconfigs that name them.
//!
//! Everything is made anew at each start and goes with the state directory: nothing here is worth keeping,
//! and nothing here may be used for anything but tests. [`crate::control_plane`] refers to the files by name.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Where certificates go, below the state directory.
const DIRECTORY: &str = "pki";

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
struct Subject<'a> {
    file: &'a str,
    name: &'a str,
    /// The group, in Kubernetes' reading of a certificate.
    group: Option<&'a str>,
}

/// The file `name` in the pki directory of this state directory.
pub fn file(state_directory: &Path, name: &str) -> PathBuf {
    state_directory.join(DIRECTORY).join(name)
}

/// The kubeconfig of cluster-admin.
pub fn admin_kubeconfig(state_directory: &Path) -> PathBuf {
    state_directory.join("admin.kubeconfig")
}

/// The kubeconfig of the controller manager.
pub fn controller_manager_kubeconfig(state_directory: &Path) -> PathBuf {
    state_directory.join("kube-controller-manager.kubeconfig")
}

/// Makes all certificates, keys and kubeconfigs for an API server on this port.
pub fn write(state_directory: &Path, api_server_port: u16) -> Result<(), PkiError> {
    let directory = state_directory.join(DIRECTORY);
    fs::create_dir_all(&directory).map_err(|source| PkiError::Write {
        path: directory,
        source,
    })?;

    let authority = authority(state_directory)?;
    for subject in [
        Subject {
            file: "kube-apiserver",
            name: "kube-apiserver",
            group: None,
        },
        Subject {
            file: "admin",
            name: "admin",
            group: Some("system:masters"),
        },
        Subject {
            file: "kube-controller-manager",
            name: "system:kube-controller-manager",
            group: None,
        },
        // With this one the API server speaks to aggregated API servers.
        Subject {
            file: "front-proxy",
            name: "front-proxy",
            group: None,
        },
    ] {
        certificate(state_directory, &authority, &subject)?;
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

    for (path, user) in [
        (admin_kubeconfig(state_directory), "admin"),
        (
            controller_manager_kubeconfig(state_directory),
            "kube-controller-manager",
        ),
    ] {
        save(&path, &kubeconfig(state_directory, user, api_server_port))?;
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
    subject: &Subject<'_>,
) -> Result<(), PkiError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec![
        "localhost".to_owned(),
        "kubernetes".to_owned(),
        "kubernetes.default.svc".to_owned(),
    ])?;
    params
        .subject_alt_names
        .push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(group) = subject.group {
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
    }
    params
        .distinguished_name
        .push(DnType::CommonName, subject.name);
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
fn kubeconfig(state_directory: &Path, user: &str, port: u16) -> String {
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "weir-lab",
        "contexts": [{"name": "weir-lab", "context": {"cluster": "weir-lab", "user": user}}],
        "clusters": [{"name": "weir-lab", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
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
