//! Reads what an exporter says, as it comes: an answer of some megabytes is never held, and two thousand may come at a time.
//! Those of [`super::exporters`] that are longer than a node has need of are read a few at a time: hundreds that send
//! without end would take the processor from all who are honest, and these would be measured late.

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::yield_now,
};
use weir_place::exposition::{ExpositionError, Reader, Scrape};

/// An answer up to here is read as it comes. An interface takes some 32 lines in the two collectors that are asked for:
/// that is room for a hundred interfaces, and few nodes have more.
const USUAL: usize = 256 << 10;
/// Longer answers that are read at a time. One that has nothing more to read for a moment gives its turn away.
const LONG_AT_A_TIME: usize = 8;

/// Whose turn it is among long answers.
#[derive(Debug)]
pub struct Turns(Semaphore);

/// Why an answer was not read to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadError<E> {
    /// It broke off.
    Body(E),
    /// It says nothing of use.
    Content(ExpositionError),
}

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(LONG_AT_A_TIME))
    }
}

impl Turns {
    /// Reads one answer.
    pub async fn read<B>(&self, mut body: B) -> Result<Scrape, ReadError<B::Error>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut reader = Reader::default();
        let mut length = 0;
        let mut turn: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = next(&mut body, &mut turn).await {
            let frame = frame.map_err(ReadError::Body)?;
            let Some(piece) = frame.data_ref() else {
                continue;
            };
            length += piece.len();
            if length > USUAL && turn.is_none() {
                // Nobody closes it, so that there is always a turn to be had.
                turn = self.0.acquire().await.ok();
            }
            reader.feed(piece).map_err(ReadError::Content)?;
            if turn.is_some() {
                // There is always more of one that has no end: all others first.
                yield_now().await;
            }
        }
        reader.finish().map_err(ReadError::Content)
    }
}

/// The next piece. Whoever has to wait for it waits without a turn.
async fn next<B>(
    body: &mut B,
    turn: &mut Option<SemaphorePermit<'_>>,
) -> Option<Result<Frame<Bytes>, B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    if turn.is_some() {
        if let Some(frame) = body.frame().now_or_never() {
            return frame;
        }
        *turn = None;
    }
    body.frame().await
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::pin};

    use futures_util::{future::join_all, stream};
    use http_body_util::StreamBody;
    use tokio::sync::mpsc;

    use super::*;

    type Pieces = mpsc::Sender<Result<Frame<Bytes>, Infallible>>;

    const COUNTER: &str = "node_network_transmit_bytes_total{device=\"eth0\"} 7\n";

    fn answer() -> (Pieces, impl Body<Data = Bytes, Error = Infallible> + Unpin) {
        let (pieces, mut body) = mpsc::channel(2);
        let body = stream::poll_fn(move |context| body.poll_recv(context));
        (pieces, StreamBody::new(body))
    }

    fn say(pieces: &Pieces, text: &str) {
        let piece = Frame::data(Bytes::from(text.to_owned()));
        pieces.try_send(Ok(piece)).unwrap();
    }

    /// Comments, as long as what is read without waiting for a turn.
    fn usual() -> String {
        let mut text = format!("#{}\n", "x".repeat(98)).repeat(USUAL / 100);
        text.push_str(&"\n".repeat(USUAL - text.len()));
        text
    }

    /// One that is long and stalls keeps nobody from being read.
    #[tokio::test]
    async fn a_long_answer_that_stalls_gives_its_turn_away() {
        let turns = Turns::default();
        let mut stalled = Vec::new();
        let mut waiting = Vec::new();
        for _ in 0..LONG_AT_A_TIME * 3 {
            let (pieces, body) = answer();
            say(&pieces, &usual());
            say(&pieces, COUNTER);
            stalled.push(pieces);
            waiting.push(turns.read(body));
        }
        let mut waiting = pin!(join_all(waiting));
        // A few looks at each: it is read, stands back, and finds nothing more.
        for _ in 0..stalled.len() * 4 {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        assert_eq!(turns.0.available_permits(), LONG_AT_A_TIME);

        let (pieces, body) = answer();
        say(&pieces, &usual());
        say(&pieces, COUNTER);
        drop(pieces);
        let long = turns.read(body).await;
        assert!(long.unwrap().interfaces.contains_key("eth0"));

        drop(stalled);
        let all = waiting.await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
    }

    /// Of those that always have more to be read only a few are, and what is not long waits for none of them.
    #[tokio::test]
    async fn what_has_no_end_is_read_a_few_at_a_time_and_others_at_once() {
        let turns = Turns::default();
        let flood = || {
            let piece = Bytes::from(usual());
            let piece = move || Ok::<_, Infallible>(Frame::data(piece.clone()));
            turns.read(StreamBody::new(stream::repeat_with(piece)))
        };
        let mut floods = pin!(join_all((0..LONG_AT_A_TIME * 3).map(|_| flood())));
        assert!(floods.as_mut().now_or_never().is_none());
        assert_eq!(turns.0.available_permits(), 0, "some are being read");

        let (pieces, body) = answer();
        say(&pieces, &usual()[COUNTER.len()..]);
        say(&pieces, COUNTER);
        drop(pieces);
        let short = turns
            .read(body)
            .now_or_never()
            .expect("it waits for nobody");
        assert!(short.unwrap().interfaces.contains_key("eth0"));

        let all = floods.await;
        let is_too_long = |read: &Result<_, _>| matches!(read, Err(ReadError::Content(_)));
        assert!(all.iter().all(is_too_long), "{all:?}");
        assert_eq!(turns.0.available_permits(), LONG_AT_A_TIME);
    }

    #[test]
    fn one_that_is_given_up_makes_room() {
        let turns = Turns::default();
        for _ in 0..LONG_AT_A_TIME * 3 {
            let (pieces, body) = answer();
            say(&pieces, &usual());
            say(&pieces, COUNTER);
            assert!(turns.read(body).now_or_never().is_none());
        }
        assert_eq!(turns.0.available_permits(), LONG_AT_A_TIME);
    }
}
