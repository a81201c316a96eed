//! Bytes that are kept, copied into blocks: a single piece takes a block of just its size, many small ones share.
//!
//! A block of its own for each piece would cost a body that comes byte by byte sixty times what is counted for it.

use std::mem;

use bytes::Bytes;

/// The smallest and the largest block that is made for more than what is at hand.
const SMALLEST: usize = 64;
const LARGEST: usize = 64 * 1024;

/// What was kept so far.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    full: Vec<Bytes>,
    /// Where small pieces are added. It never grows: when it is full the next block begins.
    open: Vec<u8>,
    length: usize,
}

impl Blocks {
    /// Keeps a copy. Returns how much memory was taken for it: more than its length if a block was begun, less if there
    /// was room in the last.
    pub(crate) fn push(&mut self, piece: &[u8]) -> usize {
        let room = self.open.capacity() - self.open.len();
        let (fits, rest) = piece.split_at(room.min(piece.len()));
        self.open.extend_from_slice(fits);
        let is_first = self.length == 0;
        self.length += piece.len();
        if rest.is_empty() {
            return 0;
        }
        // An eighth more than what is there: few blocks, and little that stays empty.
        let ahead = (self.length / 8).clamp(SMALLEST, LARGEST);
        let size = if is_first {
            rest.len()
        } else {
            rest.len().max(ahead)
        };
        let full = mem::replace(&mut self.open, Vec::with_capacity(size));
        if !full.is_empty() {
            self.full.push(full.into());
        }
        self.open.extend_from_slice(rest);
        size
    }

    /// How many bytes were kept.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// All of it, in order.
    pub(crate) fn into_pieces(mut self) -> Vec<Bytes> {
        if !self.open.is_empty() {
            self.full.push(self.open.into());
        }
        self.full
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_piece_takes_what_it_is_long() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.push(b"0123456789"), 10);
        assert_eq!(blocks.into_pieces(), ["0123456789"]);
    }

    #[test]
    fn a_mebibyte_in_single_bytes_takes_few_blocks() {
        let mut blocks = Blocks::default();
        let taken: usize = (0..1 << 20).map(|_| blocks.push(b"x")).sum();
        assert!(taken < (1 << 20) + LARGEST + 1, "{taken}");
        assert!(blocks.into_pieces().len() < 100);
    }

    proptest! {
        #[test]
        fn all_is_kept_in_order_and_all_that_is_taken_is_told(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..100),
        ) {
            let mut blocks = Blocks::default();
            let mut taken = 0;
            for piece in &pieces {
                taken += blocks.push(piece);
                prop_assert!(taken >= blocks.length());
                prop_assert!(taken <= blocks.length() + (blocks.length() / 8).max(SMALLEST));
            }
            let expected = pieces.concat();
            prop_assert_eq!(blocks.length(), expected.len());
            prop_assert_eq!(blocks.into_pieces().concat(), expected);
        }
    }
}
