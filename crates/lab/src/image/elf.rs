//! Reads from a program or library which others it needs: the interpreter and the names in its dynamic section.
//!
//! Only what [`super::program`] asks for, and only 64-bit little-endian files, which is all that we run on.

/// What an ELF file says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// As container runtimes call it: `amd64`, `arm64`.
    pub architecture: &'static str,
    /// The loader of a dynamic program; libraries and static programs name none.
    pub interpreter: Option<String>,
    /// The libraries it needs, by name.
    pub needed: Vec<String>,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ElfError {
    /// Another kind of file.
    #[error("it is no 64-bit little-endian ELF file: images are made from Linux programs")]
    NotElf,
    /// Another machine.
    #[error("it is built for machine {0}, and images are made for x86-64 and aarch64")]
    Machine(u16),
    /// It points outside of itself.
    #[error("it is cut short or damaged: build it again")]
    Damaged,
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Elf {
    /// Reads the file's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, ElfError> {
        // Magic, 64 bits, little-endian.
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return Err(ElfError::NotElf);
        }
        let architecture = match u16::from_le_bytes(array(bytes, 18)?) {
            62 => "amd64",
            183 => "arm64",
            other => return Err(ElfError::Machine(other)),
        };
        let mut elf = Self {
            architecture,
            ..Self::default()
        };
        let segments = segments(bytes)?;
        for segment in &segments {
            match segment.kind {
                PT_INTERP => elf.interpreter = Some(string(bytes, segment.offset)?),
                PT_DYNAMIC => elf.needed = needed(bytes, segment, &segments)?,
                _ => {}
            }
        }
        Ok(elf)
    }
}

fn segments(bytes: &[u8]) -> Result<Vec<Segment>, ElfError> {
    let table = u64::from_le_bytes(array(bytes, 32)?);
    let entry = u64::from(u16::from_le_bytes(array(bytes, 54)?));
    let count = u64::from(u16::from_le_bytes(array(bytes, 56)?));
    (0..count)
        .map(|index| {
            let at = table.checked_add(index * entry).ok_or(ElfError::Damaged)?;
            let long = |field: u64| long(bytes, at.checked_add(field).ok_or(ElfError::Damaged)?);
            Ok(Segment {
                kind: u32::from_le_bytes(array(bytes, at)?),
                offset: long(8)?,
                address: long(16)?,
                size: long(32)?,
            })
        })
        .collect()
}

fn needed(bytes: &[u8], dynamic: &Segment, segments: &[Segment]) -> Result<Vec<String>, ElfError> {
    let mut names = Vec::new();
    let mut strings = None;
    for index in 0..dynamic.size / 16 {
        let at = dynamic.offset.checked_add(index * 16);
        let at = at.ok_or(ElfError::Damaged)?;
        let value = long(bytes, at.saturating_add(8))?;
        match long(bytes, at)? {
            DT_NULL => break,
            DT_NEEDED => names.push(value),
            DT_STRTAB => strings = Some(value),
            _ => {}
        }
    }
    if names.is_empty() {
        return Ok(Vec::new());
    }
    // The table of strings is named by where it lies in memory, not in the file.
    let strings = strings.ok_or(ElfError::Damaged)?;
    let home = segments
        .iter()
        .find(|s| s.kind == PT_LOAD && s.address <= strings && strings - s.address < s.size)
        .ok_or(ElfError::Damaged)?;
    let start = home.offset.checked_add(strings - home.address);
    let start = start.ok_or(ElfError::Damaged)?;
    names
        .into_iter()
        .map(|name| string(bytes, start.checked_add(name).ok_or(ElfError::Damaged)?))
        .collect()
}

fn long(bytes: &[u8], at: u64) -> Result<u64, ElfError> {
    array(bytes, at).map(u64::from_le_bytes)
}

fn array<const N: usize>(bytes: &[u8], at: u64) -> Result<[u8; N], ElfError> {
    let found = tail(bytes, at)?.first_chunk();
    found.copied().ok_or(ElfError::Damaged)
}

/// The text up to the next zero.
fn string(bytes: &[u8], at: u64) -> Result<String, ElfError> {
    let tail = tail(bytes, at)?;
    let end = tail.iter().position(|byte| *byte == 0);
    let text = &tail[..end.ok_or(ElfError::Damaged)?];
    String::from_utf8(text.to_vec()).map_err(|_| ElfError::Damaged)
}

fn tail(bytes: &[u8], at: u64) -> Result<&[u8], ElfError> {
    let at = usize::try_from(at).map_err(|_| ElfError::Damaged)?;
    bytes.get(at..).ok_or(ElfError::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn this_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn this_program_needs_a_loader_and_the_c_library() {
        let elf = Elf::parse(&this_program()).unwrap();
        assert!(elf.interpreter.unwrap().contains("/ld-linux"));
        assert!(
            elf.needed.contains(&"libc.so.6".to_owned()),
            "{:?}",
            elf.needed
        );
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert_eq!(Elf::parse(b"#!/bin/sh\n"), Err(ElfError::NotElf));
        assert_eq!(Elf::parse(b""), Err(ElfError::NotElf));
        let cut = &this_program()[..100];
        assert_eq!(Elf::parse(cut), Err(ElfError::Damaged));
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(
            length in 6_usize..2048,
            changes in prop::collection::vec((6_usize..2048, any::<u8>()), 0..40),
        ) {
            use std::sync::LazyLock;
            static HEAD: LazyLock<Vec<u8>> = LazyLock::new(|| this_program()[..2048].to_vec());
            let mut bytes = HEAD[..length].to_vec();
            for (at, byte) in changes {
                if let Some(old) = bytes.get_mut(at) {
                    *old = byte;
                }
            }
            let _ = Elf::parse(&bytes);
        }
    }
}
