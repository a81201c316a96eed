//! The odd forms in which people write values: a Go duration, a cron line, a percentage in a label.
//!
//! One file per form; each gives a type or a function that takes the text, and an error whose
//! message says what would be right. `resource` keeps such values as the text that the user wrote,
//! `validate` calls these parsers to refuse bad ones, and the roles call them again to get the
//! value. Where a schema rule has to say the same, the pattern is a constant here, and a test holds
//! parser and pattern together.

pub mod bandwidth;
pub mod carbon_target;
pub mod cidr;
pub mod cron;
pub mod decimal;
pub mod glob;
pub mod go_duration;
pub mod header;
pub mod precision;
pub mod quantity;
pub mod threshold;
pub mod workload_kind;
