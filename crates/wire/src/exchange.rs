//! A request's life, phase by phase: **accept → identify → admit → hold → pick → connect → forward → finish**.
//!
//! Most requests are for a backend that is awake with nobody waiting: they are picked an endpoint for at once, and hold
//! is never entered. All others, and those whose endpoint failed, take a place in the backend's line ([`held`]) and
//! come to pick, connect and forward when it is their turn, as often as it takes and their time lasts.
//!
//! What is decided is decided elsewhere, by functions of values: who may wait and who goes next in [`crate::hold`], which
//! endpoint in [`crate::endpoint`], whether to send again in [`crate::retry`].

use std::{convert::Infallible, future::Future, sync::Arc, time::Instant};

use http::{
    HeaderValue, Method, Request, Response, StatusCode, Version, header::CONNECTION, request,
};
use http_body::Body;
use hyper::{body::Incoming, upgrade::OnUpgrade};

use crate::{
    answer::{Answer, Manner},
    backend::Backend,
    body::{Outbound, Outgoing},
    client::{ClientConnection, Order},
    endpoint::Picked,
    finish::{Busy, Finish},
    headers,
    life::Stage,
    replay::Replay,
    retry::{self, Verdict},
    shard::{Arrival, Instead, Led, Shard},
    tunnel,
    upstream::{
        Cause, Failure,
        http1::{Http1, Http1Body},
    },
    usage::InUse,
};

mod held;

/// Takes a request to its answer.
///
/// What needs no waiting is done before the future is made, which so holds what is needed and nothing twice: there is one
/// of these for each request that waits.
pub(crate) fn exchange(
    shard: &Arc<Shard>,
    connection: &Arc<ClientConnection>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Outgoing>, Infallible>> + Send + use<> {
    // Accept.
    let busy = Busy::new(connection);
    let (head, body) = request.into_parts();
    let method = head.method.clone();
    let is_http2 = head.version == Version::HTTP_2;
    let manner = Manner::of(&method, &head.headers);
    let began = Instant::now();

    // Identify.
    let max_head = shard.shared.settings.max_head;
    let unfit = unwelcome(connection)
        .or_else(|| headers::too_long(&head, max_head))
        .or_else(|| headers::ambiguous(&head));
    // Who knows where the next request of such a client would begin. And who is not welcome is not to send another.
    let is_last = unfit.is_some() && (!is_http2 || !connection.is_welcome);
    let identified = match unfit {
        Some(answer) => Err(Instead::Answer(answer)),
        None => identify(shard, connection, &head),
    };
    let mut identified =
        identified.map(|led| Exchange::new(shard, connection, led, head, body, began));

    let life = Arc::clone(&shard.shared.life);
    async move {
        let mut response = match &mut identified {
            Ok(exchange) => {
                let answered = exchange.run().await;
                answered.unwrap_or_else(|answer| manner.render(&answer))
            }
            Err(Instead::Answer(answer)) => manner.render(answer),
            Err(Instead::Fixed(status, body)) => manner.fixed(*status, std::mem::take(body)),
        };

        // Finish.
        let (backend, in_use) = match identified {
            Ok(exchange) => (Some(exchange.backend), exchange.in_use),
            Err(_) => (None, None),
        };
        let is_switched = backend
            .as_ref()
            .is_some_and(|backend| backend.is_switched());
        if is_last || is_switched || life.stage() >= Stage::Leaving {
            ask_to_move_on(&mut response, busy.connection(), is_http2);
        }
        let finish = Finish {
            backend,
            method,
            status: response.status(),
            began,
            in_use,
            busy,
        };
        Ok(response.map(|body| body.with_finish(finish)))
    }
}

/// What is answered to a client whose address is not served, whatever it asks for.
fn unwelcome(connection: &ClientConnection) -> Option<Answer> {
    (!connection.is_welcome).then(|| {
        Answer::new(
            StatusCode::FORBIDDEN,
            "source_not_allowed",
            "requests from this address are not served here; see --allow-from of the resolver, and what address it sees",
        )
    })
}

/// Says what a request is for, or what to answer.
fn identify(
    shard: &Shard,
    connection: &ClientConnection,
    head: &request::Parts,
) -> Result<Led, Instead> {
    if head.method == Method::CONNECT {
        return Err(Instead::Answer(Answer::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "connect_not_allowed",
            "this is no forward proxy: CONNECT is not served here",
        )));
    }
    let arrival = Arrival {
        port: connection.port,
        peer: connection.peer,
        head,
    };
    let led = shard.shared.site.identify(&arrival)?;
    if headers::is_loop(&head.headers, &led.backend.name) {
        let message = format!(
            "a request for {} has come here again and again: one of its endpoints sends it back to the Service; \
             look at the Service's selector and at proxies among its pods",
            led.backend.name.display
        );
        let answer = Answer::new(StatusCode::LOOP_DETECTED, "loop", message);
        return Err(Instead::Answer(answer));
    }
    Ok(led)
}

/// Clients that stay on a connection would never find the way to the pods, or to our successor.
fn ask_to_move_on(
    response: &mut Response<Outgoing>,
    connection: &ClientConnection,
    is_http2: bool,
) {
    if is_http2 {
        connection.order(Order::Close);
    } else if !is_upgrade(response) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
}

fn is_upgrade<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}

/// A request whose backend is known.
struct Exchange {
    shard: Arc<Shard>,
    backend: Arc<Backend>,
    in_use: Option<InUse>,
    began: Instant,
    is_idempotent: bool,
    is_http2: bool,
    /// The client's side of an upgrade that it wants.
    upgrade: Option<OnUpgrade>,
    message: Option<Message>,
}

/// What is to be sent.
struct Message {
    head: request::Parts,
    body: Source,
}

/// Where the body of a request comes from.
enum Source {
    /// It has none.
    Empty,
    /// The client sends it, and it can be read once.
    Stream(Incoming),
    /// It was read while the request waited.
    Replay(Arc<Replay>),
}

/// A connection to an endpoint.
enum Connected {
    Http1(Box<Http1>),
    Http2,
}

impl Exchange {
    fn new(
        shard: &Arc<Shard>,
        connection: &ClientConnection,
        led: Led,
        mut head: request::Parts,
        body: Incoming,
        began: Instant,
    ) -> Self {
        let Led { backend, is_use } = led;
        let wants_upgrade = headers::wants_upgrade(&head);
        let upgrade = head.extensions.remove::<OnUpgrade>();
        headers::prepare_request(&mut head, &connection.address, &backend.name, wants_upgrade);
        let body = if body.is_end_stream() {
            Source::Empty
        } else {
            Source::Stream(body)
        };
        Self {
            shard: Arc::clone(shard),
            in_use: is_use.then(|| InUse::new(&backend)),
            backend,
            began,
            is_idempotent: retry::is_idempotent(&head.method),
            is_http2: head.version == Version::HTTP_2,
            upgrade: upgrade.filter(|_| wants_upgrade),
            message: Some(Message { head, body }),
        }
    }

    /// Admit, and the way to an endpoint: at once if one is ready and nobody waits, else through the line.
    async fn run(&mut self) -> Result<Response<Outgoing>, Answer> {
        // Both boxed, so that those who wait need no room for what they do not do yet.
        if let Some(picked) = self.backend.pick_unless_others_wait()
            && let Some(answered) = Box::pin(self.at_once(picked)).await
        {
            return answered;
        }
        Box::pin(held::hold(self)).await
    }

    /// Without waiting. None: it did not go well, but may be tried again.
    async fn at_once(&mut self, picked: Picked) -> Option<Result<Response<Outgoing>, Answer>> {
        let cause = match self.attempt(picked).await {
            Ok(response) => return Some(Ok(response)),
            Err(cause) => cause,
        };
        if self.message.is_none() {
            return Some(Err(self.failed()));
        }
        self.backend.observer.retried(cause.as_str());
        None
    }

    /// Connect, forward. What can be sent again is in `message` when it fails.
    async fn attempt(&mut self, picked: Picked) -> Result<Response<Outgoing>, Cause> {
        let connected = match self.connect(&picked).await {
            Ok(connected) => connected,
            Err(cause) => {
                self.backend.failed(&picked, cause);
                return Err(cause);
            }
        };
        self.forward(picked, connected).await
    }

    /// A connection that is there already.
    fn kept(&self, picked: &Picked) -> Option<Connected> {
        if self.is_http2 {
            // Many requests share one; it is made when the first is sent.
            return Some(Connected::Http2);
        }
        if self.upgrade.is_some() {
            return None;
        }
        let kept = self.shard.pool.take(picked.address())?;
        Some(Connected::Http1(kept))
    }

    async fn connect(&self, picked: &Picked) -> Result<Connected, Cause> {
        if let Some(kept) = self.kept(picked) {
            return Ok(kept);
        }
        // Boxed, as most find one that was kept: the future of every request need not have room for this.
        let patience = self.shard.shared.settings.connect_time;
        let new = Http1::connect(picked.address(), patience, self.upgrade.is_some());
        let new = Box::pin(new).await?;
        picked.endpoint().is_reached();
        Ok(Connected::Http1(Box::new(new)))
    }

    async fn forward(
        &mut self,
        picked: Picked,
        connected: Connected,
    ) -> Result<Response<Outgoing>, Cause> {
        let Some(message) = self.message.take() else {
            return Err(Cause::ClientGone);
        };
        // What it takes to send it once more stays with us until there is an answer.
        let (request, spare) = message.into_request(self.is_idempotent);
        self.message = spare;
        let outcome = match connected {
            Connected::Http1(mut connection) => match connection.exchange(request).await {
                Ok(response) if self.upgrade.is_none() && is_upgrade(&response) => {
                    // To something that nobody asked for.
                    let failure = Failure {
                        cause: Cause::Garbled,
                        unsent: None,
                    };
                    Err((failure, picked))
                }
                Ok(response) => Ok(self.answer_http1(response, connection, picked)),
                Err(failure) => Err((failure, picked)),
            },
            Connected::Http2 => {
                let patience = self.shard.shared.settings.connect_time;
                // Boxed, so that what speaks HTTP/1.1 needs no room for it.
                let answer = Box::pin(self.shard.http2.exchange(picked, patience, request));
                answer.await.map(|response| {
                    let (mut head, body) = response.into_parts();
                    body.picked().works();
                    headers::prepare_response(&mut head, false);
                    Response::from_parts(head, Outgoing::http2(body))
                })
            }
        };
        outcome.map_err(|(failure, picked)| {
            let Failure { cause, unsent } = failure;
            self.backend.failed(&picked, cause);
            let is_unsent = unsent.is_some();
            if let Some(unsent) = unsent {
                self.message = Some(Message::from_request(*unsent));
            }
            let is_whole = self.message.as_ref().is_some_and(Message::is_whole);
            if retry::decide(cause, is_unsent, self.is_idempotent, is_whole) == Verdict::GiveUp {
                self.message = None;
            }
            cause
        })
    }

    fn answer_http1(
        &mut self,
        mut response: Response<Incoming>,
        connection: Box<Http1>,
        picked: Picked,
    ) -> Response<Outgoing> {
        picked.works();
        let is_upgrade = is_upgrade(&response);
        let agreed = is_upgrade.then(|| hyper::upgrade::on(&mut response));
        let (mut head, body) = response.into_parts();
        headers::prepare_response(&mut head, is_upgrade);
        if let (Some(agreed), Some(client)) = (agreed, self.upgrade.take()) {
            let life = Arc::clone(&self.shard.shared.life);
            let in_use = self.in_use.as_ref().map(InUse::also);
            tokio::spawn(tunnel::carry(
                client, connection, agreed, picked, life, in_use,
            ));
            return Response::from_parts(head, Outgoing::full(bytes::Bytes::new()));
        }
        let pool = Arc::clone(&self.shard.pool);
        let body = Http1Body::new(body, connection, pool, picked);
        Response::from_parts(head, Outgoing::http1(body))
    }

    /// What a client is told when its request cannot be sent again.
    fn failed(&self) -> Answer {
        let message = format!(
            "an endpoint of {} ended the connection before it answered; the request may have been carried out",
            self.backend.name.display
        );
        Answer::new(StatusCode::BAD_GATEWAY, "endpoint_failed", message)
    }
}

impl Message {
    /// The request to be sent, and what it takes to send it once more, if that may become necessary and is possible.
    fn into_request(self, may_be_repeated: bool) -> (Request<Outbound>, Option<Self>) {
        let Self { head, body } = self;
        let spare = match &body {
            Source::Empty if may_be_repeated => Some(Source::Empty),
            Source::Replay(replay) if may_be_repeated => Some(Source::Replay(Arc::clone(replay))),
            _ => None,
        };
        let spare = spare.map(|body| Self {
            head: head.clone(),
            body,
        });
        let body = match body {
            Source::Empty => Outbound::Empty,
            Source::Stream(body) => Outbound::Stream(body),
            Source::Replay(replay) => Outbound::Replay(replay.body()),
        };
        (Request::from_parts(head, body), spare)
    }

    /// The way back, of a request of which nothing was sent.
    fn from_request(request: Request<Outbound>) -> Self {
        let (head, body) = request.into_parts();
        let body = match body {
            Outbound::Empty => Source::Empty,
            Outbound::Stream(body) => Source::Stream(body),
            Outbound::Replay(body) => Source::Replay(body.into_replay()),
        };
        Self { head, body }
    }

    /// Whether all of it can be sent.
    fn is_whole(&self) -> bool {
        match &self.body {
            Source::Empty | Source::Stream(_) => true,
            Source::Replay(replay) => replay.can_be_sent(),
        }
    }
}
