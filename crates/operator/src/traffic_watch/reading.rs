//! Reads what an exporter says, as it comes: an answer of some megabytes is never held, and two thousand may come at a time.
//! Those of [`super::exporters`] that are longer than a node has need of are read a few at a time: hundreds that send
//! without end would take the processor from all who are honest, and these would be measured late.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::yield_now,
};
use weir_place::exposition::{ExpositionError, Reader, Scrape};

/// An answer up to here is read as it comes. An interface takes some 32 lines in the two collectors that are asked for:
/// that is room for a hundred interfaces, and few nodes have more.
const USUAL: usize = 256 << 10;
/// Longer answers that are read at a time. One that says nothing more meanwhile keeps its turn until it is given up.
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
        while let Some(frame) = body.frame().await {
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

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::pin};

    use futures_util::{FutureExt, future::join_all, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
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

    #[tokio::test]
    async fn long_answers_are_read_a_few_at_a_time_and_others_at_once() {
        let turns = Turns::default();
        let mut long = Vec::new();
        let mut reading = Vec::new();
        for _ in 0..LONG_AT_A_TIME * 3 {
            let (pieces, body) = answer();
            say(&pieces, &usual());
            say(&pieces, COUNTER);
            long.push(pieces);
            reading.push(turns.read(body));
        }
        let mut reading = pin!(join_all(reading));
        assert!(reading.as_mut().now_or_never().is_none());
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

        drop(long);
        let all = reading.await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
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
