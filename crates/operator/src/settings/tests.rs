//! What was typed, and what it means.
