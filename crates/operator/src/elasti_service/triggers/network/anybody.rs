//! TLS without a look at the certificate, where a user has asked for just that (`--kubelet-insecure-tls`): many kubelets have
//! a certificate that they have signed themselves. What is sent is still sealed, but nobody knows for whom.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{
        WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// Believes anybody who has the key of the certificate that they show, whatever it is.
#[derive(Debug)]
pub(super) struct Anybody {
    algorithms: WebPkiSupportedAlgorithms,
}

impl Anybody {
    /// A client that believes anybody.
    pub(super) fn config() -> ClientConfig {
        let anybody = Self {
            algorithms: aws_lc_rs::default_provider().signature_verification_algorithms,
        };
        ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(anybody))
            .with_no_client_auth()
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
