//! How a world may begin. All begin without a phase; what they differ in is named.

/// How a world begins, and how much may disturb it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice by itself")]
pub(super) struct Start {
    pub(super) replicas: i32,
    pub(super) keda: bool,
    pub(super) cannot_be_probed: bool,
    pub(super) pre_stop: u8,
    pub(super) stuck_node: bool,
    pub(super) punctual: bool,
    pub(super) busy_status: bool,
    pub(super) disturbances: u8,
}

impl Start {
    pub(super) fn awake() -> Self {
        Self {
            replicas: 1,
            keda: false,
            cannot_be_probed: false,
            pre_stop: 2,
            stuck_node: false,
            punctual: false,
            busy_status: false,
            disturbances: 0,
        }
    }

    pub(super) fn at_zero() -> Self {
        Self {
            replicas: 0,
            ..Self::awake()
        }
    }

    pub(super) fn with_keda(self) -> Self {
        Self { keda: true, ..self }
    }

    pub(super) fn without_probe(self) -> Self {
        Self {
            cannot_be_probed: true,
            ..self
        }
    }

    pub(super) fn with_pods_that_end_at_once(self) -> Self {
        Self {
            pre_stop: 0,
            ..self
        }
    }

    /// The node from which the operator probes never learns of our slice.
    pub(super) fn with_a_stuck_node(self) -> Self {
        Self {
            stuck_node: true,
            ..self
        }
    }

    /// The operator does all that it has to do before a second passes, and resolvers know from the
    /// beginning: far fewer states, for more disturbances.
    pub(super) fn with_a_punctual_operator(self) -> Self {
        Self {
            punctual: true,
            ..self
        }
    }

    /// The statuses of target and autoscaler are written every second.
    pub(super) fn with_a_busy_status(self) -> Self {
        Self {
            busy_status: true,
            ..self
        }
    }

    pub(super) fn disturbed(self, disturbances: u8) -> Self {
        Self {
            disturbances,
            ..self
        }
    }
}
