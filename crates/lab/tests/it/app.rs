//! The lab's server: each thing that it can do, as a client sees it.

mod ends;
mod grpc;
mod http;
mod traffic;
mod tunnels;

use weir_lab::app::{App, Settings};

async fn start(settings: Settings) -> App {
    App::start(settings).await.unwrap()
}
