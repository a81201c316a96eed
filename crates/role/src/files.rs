//! The limit of open files: a connection is one, and the usual soft limit of 1,024 is not for servers.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, which everybody may. Says how many files may be open.
pub fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let mut limit = current;
    if current != maximum {
        let wanted = Rlimit {
            current: maximum,
            maximum,
        };
        match setrlimit(Resource::Nofile, wanted) {
            Ok(()) => limit = maximum,
            Err(error) => tracing::warn!(%error, "the limit of open files stays as it is"),
        }
    }
    limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}
