//! Whom to believe: the authorities in a file with certificates, which sign for exporters, or for kubelets.

use rustls::{
    RootCertStore,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject},
    },
};

/// The authorities in a file; an error where there is none.
pub(crate) fn authorities(file: &[u8]) -> Result<RootCertStore, pem::Error> {
    let found: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(file).collect();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found?);
    if added == 0 {
        return Err(pem::Error::NoItemsFound);
    }
    Ok(roots)
}
