//! The log of this process and, for a role with `SENTRY_DSN` in its environment, who else hears of errors.

use std::error::Error;

use weir_role::log::LogArgs;

/// Who hears of errors besides the log, until the end of the process.
pub(crate) struct Reports {
    #[cfg(feature = "sentry")]
    sentry: Option<weir_role::sentry::Sentry>,
}

#[cfg(feature = "sentry")]
impl Reports {
    /// Sets the log up.
    pub(crate) fn start(log: &LogArgs, role: Option<&str>) -> Result<Self, Box<dyn Error>> {
        use weir_role::sentry::Sentry;

        let begin = |role| {
            let release = env!("CARGO_PKG_VERSION");
            Sentry::of_environment(role, release, |name| std::env::var(name).ok())
        };
        let sentry = role.map(begin).transpose()?.flatten();
        log.init(sentry.as_ref().map(Sentry::layer))?;
        Ok(Self { sentry })
    }

    /// Tells why the process ends.
    pub(crate) fn tell_end(&self, error: &dyn Error) {
        if let Some(sentry) = &self.sentry {
            sentry.tell_end(&crate::explain(error));
        }
    }
}

#[cfg(not(feature = "sentry"))]
impl Reports {
    /// Sets the log up.
    pub(crate) fn start(log: &LogArgs, role: Option<&str>) -> Result<Self, Box<dyn Error>> {
        use weir_api::hold::names::environment::SENTRY_DSN;

        log.init(None::<tracing_subscriber::layer::Identity>)?;
        if role.is_some() && std::env::var_os(SENTRY_DSN).is_some_and(|dsn| !dsn.is_empty()) {
            tracing::warn!(
                "{SENTRY_DSN} is set, but this weir was built without the feature `sentry`"
            );
        }
        Ok(Self {})
    }

    /// Nobody hears of it.
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn tell_end(&self, _: &dyn Error) {}
}
