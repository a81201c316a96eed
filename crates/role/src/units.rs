//! How sizes and durations are typed.

use std::{fmt, time::Duration};

use weir_api::form::go_duration::GoDuration;

/// A duration as it is typed; shown in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}s", self.0.as_secs_f64())
    }
}

/// `64MiB`, `1Mi`, `10k`, or plain bytes.
pub fn size(text: &str) -> Result<usize, String> {
    let refuse =
        || format!("`{text}` is not a size; write bytes, or a number with KiB, MiB or GiB");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: usize = number.parse().map_err(|_| refuse())?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let factor: usize = match unit.strip_suffix('b').unwrap_or(&unit) {
        "" => 1,
        "k" => 1000,
        "ki" => 1 << 10,
        "m" => 1_000_000,
        "mi" => 1 << 20,
        "g" => 1_000_000_000,
        "gi" => 1 << 30,
        _ => return Err(refuse()),
    };
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("`{text}` is more than this machine can address"))
}

/// `10`, which are seconds as the peers have them, or `500ms`, `2m`, `1m30s`.
pub fn duration(text: &str) -> Result<Span, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let span = if is_number {
        let seconds = text.parse().map_err(|_| format!("`{text}` is too long"))?;
        Duration::from_secs(seconds)
    } else {
        GoDuration::parse(text)
            .and_then(GoDuration::to_std)
            .map_err(|error| error.to_string())?
    };
    // A timer cannot be set further ahead, and nobody waits as long.
    if span > LONGEST {
        return Err(format!(
            "`{text}` is too long; at most 8760h, a year, is possible"
        ));
    }
    Ok(Span(span))
}

const LONGEST: Duration = Duration::from_hours(8760);

/// A duration above zero.
pub fn positive(text: &str) -> Result<Span, String> {
    match duration(text)? {
        Span(Duration::ZERO) => Err("must be above zero".to_owned()),
        span => Ok(span),
    }
}

/// A number above zero.
pub fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a whole number above zero")),
        Ok(count) => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("1024", 1024),
            ("12B", 12),
            ("64MiB", 64 << 20),
            ("1Mi", 1 << 20),
            ("1 mib", 1 << 20),
            ("2k", 2000),
            ("2KB", 2000),
            ("2KiB", 2048),
            ("1M", 1_000_000),
            ("1G", 1_000_000_000),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1.5MiB",
            "1TiB",
            "1x",
            "1bb",
            "18446744073709551616",
        ] {
            assert!(size(text).unwrap_err().contains("write bytes"), "{text}");
        }
        assert!(
            size("18446744073709551615Gi")
                .unwrap_err()
                .contains("address")
        );
    }

    #[test]
    fn durations() {
        for (text, millis) in [
            ("10", 10_000),
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("0", 0),
        ] {
            assert_eq!(
                duration(text),
                Ok(Span(Duration::from_millis(millis))),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "10x",
            "-1s",
            "1d",
            "99999999999999999999",
            "9000h",
            "31536001",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(positive("0").is_err() && positive("0ms").is_err());
    }

    proptest! {
        #[test]
        fn nothing_panics(text in ".{0,30}") {
            let _ = (size(&text), duration(&text), count(&text));
        }
    }
}
