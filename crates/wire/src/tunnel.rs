//! A connection on which something else than HTTP is spoken by now (WebSocket): bytes in both directions until the
//! endpoint ends, counted as open all the while.

use std::{io, sync::Arc};

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWriteExt, copy, split};

use crate::{
    endpoint::Picked,
    life::{Life, Open, Stage},
    upstream::http1::Http1,
    usage::InUse,
};

/// Carries bytes between a client and an endpoint that have agreed on an upgrade.
pub(crate) async fn carry(
    client: OnUpgrade,
    endpoint: Box<Http1>,
    agreed: OnUpgrade,
    picked: Picked,
    life: Arc<Life>,
    in_use: Option<InUse>,
) {
    let counted = Counted::new(life, in_use);
    let (client, endpoint) = tokio::join!(client, endpoint.upgraded(agreed));
    let (Ok(client), Ok(endpoint)) = (client, endpoint) else {
        return;
    };
    let (mut from_client, mut to_client) = split(TokioIo::new(client));
    let (mut from_endpoint, mut to_endpoint) = split(TokioIo::new(endpoint));
    let up = async {
        copy(&mut from_client, &mut to_endpoint).await?;
        to_endpoint.shutdown().await?;
        // A client that has said all may still listen.
        std::future::pending::<io::Result<()>>().await
    };
    let down = async {
        copy(&mut from_endpoint, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::select! {
        // How it ends is the affair of the two; nothing is to be said to either.
        _ = up => {}
        // When the endpoint has said all, nobody is there to talk to.
        _ = down => {}
        () = counted.life.reaches(Stage::Refusing) => {
            tracing::info!(endpoint = %picked.address(), "a tunnel was cut, as this process ends");
        }
    }
}

struct Counted {
    life: Arc<Life>,
    #[allow(dead_code, reason = "it counts until it is dropped")]
    in_use: Option<InUse>,
}

impl Counted {
    fn new(life: Arc<Life>, in_use: Option<InUse>) -> Self {
        life.begins(Open::Tunnel);
        Self { life, in_use }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.life.ends(Open::Tunnel);
    }
}
