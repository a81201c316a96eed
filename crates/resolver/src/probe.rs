//! Answers that are given while no endpoint is ready, without waking (`probeResponse`).

/// The rules of one service, in their order; the first that matches wins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeRules {}
