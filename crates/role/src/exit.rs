//! How a process ends. The numbers are part of the command line's contract: scripts test them.

use std::process::ExitCode;

/// The ways in which a `weir` process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It did what it was asked to do.
    Success = 0,
    /// It could not; the reason is on standard error.
    Failure = 1,
    /// It was asked for something that does not exist; nothing was done.
    Usage = 2,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
