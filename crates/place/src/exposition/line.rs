//! One line of the text format: a name, labels in braces, a value; behind it maybe a timestamp and an exemplar. Values of
//! labels are quoted and may hold anything, so the line is walked byte by byte and never split at commas or braces.

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// Value of the label `device`.
    pub(super) device: String,
    /// The number as it stands, whatever it is.
    pub(super) value: f64,
}

/// Longer lines are not read: no honest one comes near.
pub(super) const LINE_LIMIT: usize = 16 << 10;

/// Reads a line that has a `device`; none if it is not one, or is broken.
pub(super) fn parse(line: &[u8]) -> Option<Sample> {
    if line.len() > LINE_LIMIT {
        return None;
    }
    let mut cursor = Cursor(line);
    cursor.skip_spaces();
    cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':');
    cursor.skip_spaces();
    let device = cursor.labels()?;
    let value = cursor.word()?;
    // A timestamp and an exemplar may follow. Neither matters, but what is no timestamp means that this is no sample.
    match cursor.word() {
        Some(b"#") | None => {}
        Some(timestamp) => {
            number(timestamp)?;
            if !matches!(cursor.word(), None | Some(b"#")) {
                return None;
            }
        }
    }
    Some(Sample {
        device,
        value: number(value)?,
    })
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !wanted(*byte));
        let (taken, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        taken
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        let rest = self.0.strip_prefix(&[wanted])?;
        self.0 = rest;
        Some(())
    }

    /// What stands up to the next space; none at the end.
    fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_spaces();
        let word = self.take_while(|byte| !byte.is_ascii_whitespace());
        (!word.is_empty()).then_some(word)
    }

    /// All labels in their braces; gives `device`, which must be there once.
    fn labels(&mut self) -> Option<String> {
        self.take(b'{')?;
        let mut device = None;
        loop {
            self.skip_spaces();
            if self.take(b'}').is_some() {
                return device;
            }
            let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            self.skip_spaces();
            self.take(b'=')?;
            self.skip_spaces();
            let value = self.quoted()?;
            if name == b"device" && device.replace(value).is_some() {
                return None;
            }
            self.skip_spaces();
            // The last label may have a comma behind it as well.
            if self.take(b',').is_none() && !self.0.starts_with(b"}") {
                return None;
            }
        }
    }

    /// A text in quotes. Only `\\`, `\"` and `\n` are escapes; another backslash stands for itself.
    fn quoted(&mut self) -> Option<String> {
        self.take(b'"')?;
        let mut text = Vec::new();
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            match byte {
                b'"' => return String::from_utf8(text).ok(),
                b'\\' => {
                    let (escaped, rest) = self.0.split_first()?;
                    self.0 = rest;
                    match escaped {
                        b'\\' | b'"' => text.push(*escaped),
                        b'n' => text.push(b'\n'),
                        _ => text.extend([b'\\', *escaped]),
                    }
                }
                _ => text.push(*byte),
            }
        }
    }
}

/// A number as Go prints it: also `NaN`, `+Inf`, `-Inf`.
fn number(word: &[u8]) -> Option<f64> {
    str::from_utf8(word).ok()?.parse().ok()
}
