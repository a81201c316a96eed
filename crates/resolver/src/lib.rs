//! Hold's data plane. [`view`] says what is known of each service; everything else makes it, shows it or acts on it.

pub mod probe;
pub mod view;
