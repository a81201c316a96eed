//! The one TLS implementation of the process.
//!
//! Several of our dependencies can bring a provider of their own, and rustls panics at the first
//! connection when it finds two and none was chosen. So `main` chooses, as its first statement.

mod anybody;

pub use anybody::believing_anybody;

/// Make aws-lc-rs the provider of the whole process. Calling it again changes nothing.
pub fn install_provider() {
    // An error means that a provider is in place already: ours, since `cargo deny` bans the others.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_provider_is_in_place_after_the_first_call_and_the_second() {
        super::install_provider();
        super::install_provider();
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }
}
