//! What a watch's status says of its nodes, in the forms that the original's readers know; in large clusters only the
//! worst of them, and not with every reading.

/// Up to so many nodes all of them are in the status.
pub const WHOLE_UP_TO: usize = 200;
/// Above that, so many of the worst.
pub const WORST: usize = 50;
