//! Tests of the core as its callers meet it.
