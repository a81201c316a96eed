//! What was read of a connection before an endpoint was there, so that it can be told to one, and to another if that fails.

use bytes::Bytes;

use crate::blocks::Blocks;

/// Bytes in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pieces: Vec<Bytes>,
    /// What came since `pieces` were last asked for.
    open: Blocks,
    length: usize,
}

impl Kept {
    pub(super) fn new(first: &[u8]) -> Self {
        let mut kept = Self::default();
        if !first.is_empty() {
            kept.push(first);
        }
        kept
    }

    /// Keeps a copy. Returns how much memory was taken for it.
    pub(super) fn push(&mut self, piece: &[u8]) -> usize {
        self.length += piece.len();
        self.open.push(piece)
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// All of it.
    pub(super) fn pieces(&mut self) -> Vec<Bytes> {
        let open = std::mem::take(&mut self.open);
        self.pieces.extend(open.into_pieces());
        self.pieces.clone()
    }

    /// It is not needed any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_given_as_often_as_wanted_and_more_can_come() {
        let mut kept = Kept::new(b"one");
        assert_eq!(kept.pieces().concat(), b"one");
        kept.push(b" two");
        kept.push(b" six");
        for _ in 0..2 {
            assert_eq!(kept.pieces().concat(), b"one two six");
        }
        assert_eq!(kept.length(), 11);
        kept.forget();
        assert_eq!((kept.length(), kept.pieces().len()), (0, 0));
        assert!(Kept::new(b"").pieces().is_empty());
    }
}
