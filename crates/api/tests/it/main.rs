//! Tests of the three resources as users meet them: through their schemas, and, under
//! `on_api_server`, through a real API server.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod constraint;
mod edit;
mod on_api_server;
mod schema;
mod table;
