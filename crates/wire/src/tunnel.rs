//! A connection on which something else than HTTP is spoken by now (WebSocket): bytes in both directions until one side
//! ends, counted as open all the while.

use std::sync::Arc;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;

use crate::{
    endpoint::Picked,
    life::{Life, Open, Stage},
    upstream::http1::Http1,
};

/// Carries bytes between a client and an endpoint that have agreed on an upgrade.
pub(crate) async fn carry(
    client: OnUpgrade,
    endpoint: Box<Http1>,
    agreed: OnUpgrade,
    picked: Picked,
    life: Arc<Life>,
) {
    let counted = Counted::new(life);
    let (client, endpoint) = tokio::join!(client, endpoint.upgraded(agreed));
    let (Ok(client), Ok(endpoint)) = (client, endpoint) else {
        return;
    };
    let mut client = TokioIo::new(client);
    let mut endpoint = TokioIo::new(endpoint);
    tokio::select! {
        // How it ends is the affair of the two; nothing is to be said to either.
        _ = copy_bidirectional(&mut client, &mut endpoint) => {}
        () = counted.0.reaches(Stage::Refusing) => {
            tracing::info!(endpoint = %picked.address(), "a tunnel was cut, as this process ends");
        }
    }
}

struct Counted(Arc<Life>);

impl Counted {
    fn new(life: Arc<Life>) -> Self {
        life.begins(Open::Tunnel);
        Self(life)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.ends(Open::Tunnel);
    }
}
