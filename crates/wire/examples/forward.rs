//! The smallest proxy that can be made of this crate: `forward PORT ENDPOINT...` listens on loopback and forwards all that
//! comes to the endpoints. With `-` for an endpoint there is none, and requests wait.

use std::{env, error::Error, net::SocketAddr, sync::Arc, time::Duration};

use http::HeaderValue;
use weir_wire::{
    PoolLimits,
    backend::{Backend, BackendName, Finished, Observer},
    client::Patience,
    hold::{Limits, Owner, Room},
    life::Life,
    listen::Wire,
    shard::{Arrival, Instead, Led, Settings, Site},
    waiting::WaitingRoom,
};

struct OneBackend(Arc<Backend>);

impl Site for OneBackend {
    fn identify(&self, _: &Arrival<'_>) -> Result<Led, Instead> {
        Ok(Led {
            backend: Arc::clone(&self.0),
            is_use: false,
        })
    }
}

struct Nobody;

impl Observer for Nobody {
    fn waits(&self, _: usize) {}
    fn first_byte(&self, _: Duration) {}
    fn finished(&self, _: &Finished<'_>) {}
    fn refused(&self, _: &'static str) {}
    fn retried(&self, _: &'static str) {}
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let port: u16 = arguments.next().ok_or("a port, then endpoints")?.parse()?;
    let endpoints: Vec<SocketAddr> = arguments.filter_map(|it| it.parse().ok()).collect();
    let room = Room {
        requests: 20_000,
        bytes: 256 << 20,
    };
    let room = WaitingRoom::new(Limits {
        total: room,
        each: room,
    });
    let name = BackendName {
        display: "the backend".into(),
        via: HeaderValue::from_static("1.1 backend.weir"),
        host: HeaderValue::from_static("backend"),
        owner: Owner(0),
    };
    let backend = Backend::new(name, room, Box::new(Nobody));
    backend.set_endpoints(&endpoints);
    let settings = Settings {
        shards: 1,
        max_connections: 12_000,
        max_head: 64 * 1024,
        patience: Patience {
            head: Duration::from_secs(10),
            silent: Duration::from_mins(1),
            idle: Duration::from_mins(10),
        },
        hold_time: Duration::from_mins(10),
        max_replay: 1 << 20,
        connect_time: Duration::from_secs(1),
        pool: PoolLimits {
            idle: 1024,
            idle_per_endpoint: 256,
            idle_for: Duration::from_secs(30),
        },
        http2: true,
        share_ports: false,
    };
    let site = Arc::new(OneBackend(backend));
    let wire = Wire::start(
        [127, 0, 0, 1].into(),
        settings,
        site,
        Arc::new(Life::default()),
    )?;
    wire.open(port)?;
    tokio::signal::ctrl_c().await?;
    wire.leave(Duration::from_secs(1), Duration::from_secs(10))
        .await;
    Ok(())
}
