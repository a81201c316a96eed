//! Endpoints to which no connection goes through, as when a policy of the network drops what comes. See [`Deaf`].

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
};
use weir_lab::deaf::Deaf;
use weir_wire::sniff::Spoken;

use crate::bed::{Bed, Note, Plan, in_time, is_so};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
/// From now on it accepts, and answers whatever it is asked.
fn serve(deaf: Deaf) -> JoinSet<()> {
    let listener = deaf.hear();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            connections.spawn(async move {
                let mut some = [0; 1024];
                if stream.read(&mut some).await.is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(OK).await;
                }
            });
        }
    });
    server
}

fn impatient(plan: &mut Plan) {
    plan.settings.connect_time = Duration::from_millis(50);
}

fn silent(bed: &Bed) -> Vec<SocketAddr> {
    let silent = bed.main.backend.silent().into_iter();
    silent.map(|(address, _)| address).collect()
}

/// Both ways to an endpoint: a request's, and that of what is passed through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_is_silent_until_a_connection_goes_through() {
    for spoken in [Spoken::Http, Spoken::Tcp] {
        let deaf = Deaf::start().await.unwrap();
        let bed = Bed::planned(impatient);
        bed.speaks(&bed.main, spoken);
        bed.main.backend.set_endpoints(&[deaf.address]);
        let mut client = bed.main.client().await;
        client.get("/").await;
        is_so("it is tried again and again", || {
            match bed.main.notes.count(&Note::Retried("connect_timeout")) {
                0..3 => Err(bed.main.notes.all()),
                _ => Ok(()),
            }
        })
        .await;
        assert_eq!(bed.main.notes.count(&Note::FallsSilent), 1, "{spoken:?}");
        assert_eq!(silent(&bed), [deaf.address]);

        let _server = serve(deaf);
        assert_eq!(client.answer().await.status, 200);
        assert_eq!(silent(&bed), []);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_more_requests_for_it_learns_whether_it_can_be_reached_again() {
    let deaf = Deaf::start().await.unwrap();
    let bed = Bed::planned(impatient);
    let address = deaf.address;
    bed.main.backend.set_endpoints(&[address]);
    let mut client = bed.main.client().await;
    client.get("/").await;
    bed.main.notes.has(&Note::FallsSilent, 1).await;
    drop(client);
    bed.holds_nothing("the client has gone").await;
    let again = || {
        bed.main
            .backend
            .try_again(address, Duration::from_millis(50))
    };
    again().await;
    assert_eq!(silent(&bed), [address]);

    let _server = serve(deaf);
    in_time("a connection goes through", async {
        while !silent(&bed).is_empty() {
            again().await;
        }
    })
    .await;
    assert_eq!(bed.main.notes.count(&Note::FallsSilent), 1);
    // One that is no endpoint any more is nobody's.
    bed.main.backend.set_endpoints(&[]);
    again().await;
    assert_eq!(silent(&bed), []);
}

/// Somebody is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_refuses_is_not_silent() {
    let nowhere = crate::endpoint::Endpoint::nowhere();
    let bed = Bed::planned(impatient);
    bed.main.backend.set_endpoints(&[nowhere]);
    let mut client = bed.main.client().await;
    client.get("/").await;
    is_so("it is refused", || {
        match bed.main.notes.count(&Note::Retried("refused")) {
            0..3 => Err(bed.main.notes.all()),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(bed.main.notes.count(&Note::FallsSilent), 0);
    assert_eq!(silent(&bed), []);
}
