//! `weir operator`: what was typed, as settings of the controllers; and the runtime that they start on.

use std::{env, io};

use thiserror::Error;
use weir_operator::{
    role::{self, RoleError},
    settings::{OperatorArgs, Settings, SettingsError},
};

#[derive(Debug, Error)]
pub(crate) enum OperatorCommandError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    #[error(transparent)]
    Role(#[from] RoleError),
}

pub(crate) fn run(args: OperatorArgs) -> Result<(), OperatorCommandError> {
    let settings = Settings::new(args, &|name| env::var(name).ok())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(OperatorCommandError::Runtime)?;
    Ok(runtime.block_on(role::run(settings))?)
}
