//! What an exporter said, as far as it matters here: bytes sent and received and the speed of each interface, from the
//! text format of Prometheus. Tolerant, since one odd line must not lose a node, and bounded, since what answers on a
//! node's port may be anything. What becomes of the numbers is up to [`crate::history`]; lines are taken apart in
//! `line`.

mod line;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use thiserror::Error;
use weir_api::place::names::{RECEIVE_BYTES, SPEED_BYTES, TRANSMIT_BYTES};

use self::line::{LINE_LIMIT, Sample};

/// The most bytes that an answer may have; the caller stops reading there.
pub const BODY_LIMIT: usize = 8 << 20;
/// The most interfaces that are read; what comes behind them is left out and counted.
pub const INTERFACES_LIMIT: usize = 4096;
/// The longest name of an interface that is read, in bytes; Linux has 15 characters.
pub const NAME_LIMIT: usize = 64;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    /// By name of the interface.
    pub interfaces: BTreeMap<String, Counters>,
    /// Lines about interfaces that could not be used.
    pub bad_lines: usize,
    /// Lines about interfaces above [`INTERFACES_LIMIT`].
    pub left_out: usize,
}

/// One interface.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Bytes sent since some start.
    pub transmit: Option<u64>,
    /// Bytes received since some start.
    pub receive: Option<u64>,
    /// Bytes per second as the interface reports them, finite; below zero where it has none.
    pub speed: Option<f64>,
}

/// Why an answer says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExpositionError {
    /// Longer than [`BODY_LIMIT`].
    #[error(
        "the answer is longer than {BODY_LIMIT} bytes; ask for the collectors netdev and netclass alone"
    )]
    TooLong,
    /// A page for people.
    #[error("the answer is a web page; check the path and the port of the exporter")]
    WebPage,
    /// No counter of any interface.
    #[error("the answer has no network counters; switch the exporter's netdev collector on")]
    NoCounters,
}

/// The three series that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    Transmit,
    Receive,
    Speed,
}

/// What was said of one interface so far.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    transmit: Value,
    receive: Value,
    speed: Value,
}

#[derive(Clone, Copy, Debug, Default)]
enum Value {
    #[default]
    Untold,
    Told(f64),
    /// And then something else.
    Contradicted,
}

/// Reads an answer piece by piece, as it comes, and keeps only what matters of it: an answer of any length takes little
/// memory.
///
/// Two lines that say different things of one interface cancel each other: which of them is about this node cannot be
/// told. A last line without its end was cut off, maybe within a number, and is left out.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    interfaces: BTreeMap<String, Said>,
    bad_lines: usize,
    left_out: usize,
    /// A line whose end has not come yet; of one that is too long only the beginning.
    begun: Vec<u8>,
    bytes: usize,
    has_begun: bool,
}

/// Reads a whole answer.
pub fn read(body: &[u8]) -> Result<Scrape, ExpositionError> {
    let mut reader = Reader::default();
    reader.feed(body)?;
    reader.finish()
}

impl Reader {
    /// The next piece. After an error more of the answer does not help.
    pub fn feed(&mut self, piece: &[u8]) -> Result<(), ExpositionError> {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > BODY_LIMIT {
            return Err(ExpositionError::TooLong);
        }
        if !self.has_begun
            && let Some(first) = piece.trim_ascii_start().first()
        {
            self.has_begun = true;
            if *first == b'<' {
                return Err(ExpositionError::WebPage);
            }
        }
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(end) if self.begun.is_empty() => self.line(end),
                Some(end) => {
                    let mut line = std::mem::take(&mut self.begun);
                    extend(&mut line, end);
                    self.line(&line);
                    line.clear();
                    self.begun = line;
                }
                None => extend(&mut self.begun, line),
            }
        }
        Ok(())
    }

    /// What was read, at the end of the answer.
    pub fn finish(self) -> Result<Scrape, ExpositionError> {
        let interfaces = self.interfaces.into_iter();
        let scrape = Scrape {
            interfaces: interfaces.map(|(name, said)| (name, said.into())).collect(),
            bad_lines: self.bad_lines,
            left_out: self.left_out,
        };
        let counts = |counters: &Counters| counters.transmit.or(counters.receive).is_some();
        if scrape.interfaces.values().any(counts) {
            Ok(scrape)
        } else {
            Err(ExpositionError::NoCounters)
        }
    }

    fn line(&mut self, line: &[u8]) {
        let Some(series) = series_of(line) else {
            return;
        };
        match line::parse(line) {
            Some(Sample { device, value }) if is_usable(series, &device, value) => {
                let has_room = self.interfaces.len() < INTERFACES_LIMIT;
                if !has_room && !self.interfaces.contains_key(&device) {
                    self.left_out += 1;
                    return;
                }
                let said = self.interfaces.entry(device).or_default();
                if !said.of(series).agrees_with(value) {
                    self.bad_lines += 1;
                }
            }
            _ => self.bad_lines += 1,
        }
    }
}

impl Said {
    const fn of(&mut self, series: Series) -> &mut Value {
        match series {
            Series::Transmit => &mut self.transmit,
            Series::Receive => &mut self.receive,
            Series::Speed => &mut self.speed,
        }
    }
}

impl Value {
    /// Takes in what is said now; false if something else was said before.
    fn agrees_with(&mut self, value: f64) -> bool {
        *self = match *self {
            Self::Untold => Self::Told(value),
            // The very same number again, not one near it.
            Self::Told(before) if before.to_bits() == value.to_bits() => return true,
            Self::Told(_) | Self::Contradicted => Self::Contradicted,
        };
        matches!(self, Self::Told(_))
    }

    const fn told(self) -> Option<f64> {
        match self {
            Self::Told(value) => Some(value),
            Self::Untold | Self::Contradicted => None,
        }
    }
}

impl From<Said> for Counters {
    fn from(said: Said) -> Self {
        Self {
            transmit: said.transmit.told().map(whole),
            receive: said.receive.told().map(whole),
            speed: said.speed.told(),
        }
    }
}

/// Of a line that is longer than any that is read one byte more is kept, so that it is seen to be.
fn extend(line: &mut Vec<u8>, more: &[u8]) {
    let room = (LINE_LIMIT + 1).saturating_sub(line.len());
    line.extend_from_slice(more.get(..room).unwrap_or(more));
}

/// The series that a line belongs to, by its name alone.
fn series_of(line: &[u8]) -> Option<Series> {
    let line = line.trim_ascii_start();
    [
        (TRANSMIT_BYTES, Series::Transmit),
        (RECEIVE_BYTES, Series::Receive),
        (SPEED_BYTES, Series::Speed),
    ]
    .into_iter()
    .find_map(|(name, series)| {
        let rest = line.strip_prefix(name.as_bytes())?;
        let next = rest.first().copied();
        let ends = next.is_none_or(|byte| byte == b'{' || byte.is_ascii_whitespace());
        ends.then_some(series)
    })
}

/// Counters are never below zero, and none counts to more than signed 64 bits, which is what a status can hold.
fn is_usable(series: Series, device: &str, value: f64) -> bool {
    const MOST: f64 = 9e18;
    let has_name = !device.is_empty() && device.len() <= NAME_LIMIT;
    let is_number = match series {
        Series::Transmit | Series::Receive => (0.0..=MOST).contains(&value),
        Series::Speed => value.is_finite(),
    };
    has_name && is_number
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked by `is_usable`: between 0 and 9·10^18"
)]
fn whole(value: f64) -> u64 {
    value as u64
}
