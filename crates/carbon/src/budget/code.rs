//! Account and lender as short strings that fit a status, and back, exactly.
//!
//! What is restored is what was written: whoever restores an *account* must be sure that nothing was
//! spent after writing (an orderly stop); a decider that died starts with an empty one, and its credit
//! is lost, which the bound allows. The *lender* is written before a lease leaves it, so a restart
//! neither loses nor doubles anything.

use std::collections::BTreeMap;
use std::fmt::Write;

use thiserror::Error;

use super::{Account, Lease, Lender, Windows};

/// Why a string is no account or lender.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodeError {
    /// Another kind or a later version.
    #[error("`{0}` is not a budget of this version; remove it from the status to begin at zero")]
    Kind(String),
    /// A field that is not there or is no number.
    #[error("the field {0} of the budget is missing or damaged; remove it to begin at zero")]
    Field(&'static str),
}

impl Account {
    /// `a1 <length> <anchor> <since> <balance> [<lease> <amount> <until>]`
    pub fn encode(&self) -> String {
        let Self {
            windows,
            since,
            balance,
            lease,
        } = self;
        let (length, anchor) = windows.parts();
        let mut text = format!("a1 {length} {anchor} {since} {balance}");
        if let Some(Lease {
            id, amount, until, ..
        }) = lease
        {
            // Writing to a string cannot fail.
            let _ = write!(text, " {id} {amount} {until}");
        }
        text
    }

    /// Reads what [`Account::encode`] wrote.
    pub fn decode(text: &str) -> Result<Self, CodeError> {
        let mut fields = Fields::of(text, "a1")?;
        let windows = Windows::from_parts(fields.number("length")?, fields.number("anchor")?);
        let since = fields.number("since")?;
        let balance = fields.number("balance")?;
        let lease = match fields.rest.clone().next() {
            None => None,
            Some(_) => Some(Lease {
                id: fields.number("lease")?,
                window: since,
                amount: fields.number("amount")?,
                until: fields.number("until")?,
            }),
        };
        Ok(Self {
            windows,
            since,
            balance,
            lease,
        })
    }
}

impl Lender {
    /// `l1 <length> <anchor> <since> <pool> <next> <decider>=<number>… <lease>:<amount>…`
    pub fn encode(&self) -> String {
        let Self {
            windows,
            since,
            pool,
            next_lease,
            seen,
            lent,
        } = self;
        let (length, anchor) = windows.parts();
        let mut text = format!("l1 {length} {anchor} {since} {pool} {next_lease}");
        for (decider, number) in seen {
            let _ = write!(text, " {}={number}", escape(decider));
        }
        for (lease, amount) in lent {
            let _ = write!(text, " {lease}:{amount}");
        }
        text
    }

    /// Reads what [`Lender::encode`] wrote.
    pub fn decode(text: &str) -> Result<Self, CodeError> {
        let mut fields = Fields::of(text, "l1")?;
        let windows = Windows::from_parts(fields.number("length")?, fields.number("anchor")?);
        let (since, pool) = (fields.number("since")?, fields.number("pool")?);
        let next_lease = fields.number("next")?;
        let (mut seen, mut lent) = (BTreeMap::new(), BTreeMap::new());
        for word in fields.rest {
            if let Some((decider, number)) = word.rsplit_once('=') {
                let number = number.parse().map_err(|_| CodeError::Field("decider"))?;
                seen.insert(unescape(decider), number);
            } else {
                let pair = word.split_once(':').ok_or(CodeError::Field("lease"))?;
                let id = pair.0.parse().map_err(|_| CodeError::Field("lease"))?;
                let amount = pair.1.parse().map_err(|_| CodeError::Field("lease"))?;
                lent.insert(id, amount);
            }
        }
        Ok(Self {
            windows,
            since,
            pool,
            next_lease,
            seen,
            lent,
        })
    }
}

/// What would end a word is written as `%` and two digits: two deciders must never become one, or a surrender that is
/// repeated could count twice.
fn escape(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_whitespace() || c == '=' || c == '%' {
            let _ = write!(text, "%{:02x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

/// What is no such code stays as it is.
fn unescape(word: &str) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let code = after
            .get(..2)
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        if let Some(code) = code.filter(u8::is_ascii) {
            text.push(char::from(code));
            rest = after.get(2..).unwrap_or_default();
        } else {
            text.push('%');
            rest = after;
        }
    }
    text.push_str(rest);
    text
}

struct Fields<'a> {
    rest: std::str::SplitAsciiWhitespace<'a>,
}

impl<'a> Fields<'a> {
    fn of(text: &'a str, kind: &str) -> Result<Self, CodeError> {
        let mut rest = text.split_ascii_whitespace();
        match rest.next() {
            Some(first) if first == kind => Ok(Self { rest }),
            other => Err(CodeError::Kind(other.unwrap_or_default().to_owned())),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, name: &'static str) -> Result<T, CodeError> {
        let word = self.rest.next().ok_or(CodeError::Field(name))?;
        word.parse().map_err(|_| CodeError::Field(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_stay_apart() {
        let windows = Windows::new(3_600).unwrap();
        let mut lender = Lender::new(windows, 0);
        for (number, name) in ["a b", "a_b", "a=b", "a%20b", "a%", "", "é=\t"]
            .iter()
            .enumerate()
        {
            assert!(lender.surrendered(name, 7 - number as u64, 0, 10), "{name}");
        }
        let mut back = Lender::decode(&lender.encode()).unwrap();
        assert_eq!(back, lender);
        assert!(
            !back.surrendered("a b", 7, 0, 10),
            "seen before the restart"
        );
    }
}
