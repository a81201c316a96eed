//! `weir resolver`: what was typed, as settings of hold's data plane; and the runtime that it starts on.

use std::{env, io};

use thiserror::Error;
use weir_resolver::role::{self, RoleError};
use weir_resolver::settings::{ResolverArgs, Settings, SettingsError};

#[derive(Debug, Error)]
pub(crate) enum ResolverCommandError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Role(#[from] RoleError),
}

pub(crate) fn run(args: ResolverArgs) -> Result<(), ResolverCommandError> {
    let settings = Settings::new(args, &|name| env::var(name).ok())?;
    // One thread here: the role starts one more for each share of the requests, each with a runtime of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ResolverCommandError::Runtime)?;
    Ok(runtime.block_on(role::run(settings))?)
}
