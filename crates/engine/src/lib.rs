//! The decision engine: what stands around the pure core of `weir-carbon`. So far that is [`simulate`], which
//! plays policies against traces; schedules, forecast providers and feedback come beside it.

pub mod simulate;
