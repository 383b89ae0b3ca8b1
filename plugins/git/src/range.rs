//! Reads a range of bytes of an object of any size in constant memory: decompresses a complete object as a stream, and
//! follows a chain of deltas only for the bytes of the range.

use std::io::Read;

use belljar_guest::{Error, Result};
use gix_hash::oid;

use crate::objects::Objects;
use crate::pack::Form;

/// The most compressed data that one read goes through, counted decompressed, in bytes. More exceeds the fuel of a call.
const MAX_PASSED: u64 = 192 * 1024 * 1024;

/// The longest chain of deltas.
const MAX_CHAIN: usize = 4096;

/// The most pieces of which a range consists. Each is an instruction of a delta.
const MAX_PIECES: usize = 1_000_000;

/// Bytes of one object that belong at a place of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The offset in the object.
    pub(crate) from: u64,
    /// The offset in the result.
    pub(crate) to: usize,
    pub(crate) length: usize,
}

/// The bytes of an object from `start` to `end`, which is excluded. The object must have that many.
pub(crate) fn read(objects: &Objects, id: &oid, start: u64, end: u64) -> Result<Vec<u8>> {
    let length = usize::try_from(end.saturating_sub(start)).map_err(Error::failed)?;
    let mut result = vec![0; length];
    if length == 0 {
        return Ok(result);
    }
    let damaged =
        || Error::failed(format_args!("the object {id} is damaged: it cannot be decompressed; run  git fsck"));
    let mut pieces = vec![Piece { from: start, to: 0, length }];
    let mut passed = 0;
    let Some((mut pack, mut offset)) = objects.packed(id)? else {
        let (.., stream) = objects.loose_stream(id)?.ok_or_else(|| objects.missing(id))?;
        check_passed(end, start)?;
        return fill(stream, pieces, &mut result).map(|()| result).ok_or_else(damaged);
    };
    for _ in 0..MAX_CHAIN {
        let of = objects.pack(pack)?;
        let entry = of.entry(offset)?;
        let stream = of.stream(&entry)?;
        match entry.form {
            Form::Whole(_) => {
                passed += pieces.iter().map(|piece| piece.from + piece.length as u64).max().unwrap_or_default();
                check_passed(passed, start)?;
                fill(stream, pieces, &mut result).ok_or_else(damaged)?;
                return Ok(result);
            }
            Form::Offset(base) => offset = base,
            Form::Reference(base) => {
                (pack, offset) = objects.packed(&base)?.ok_or_else(|| of.damaged("a delta in it has no base"))?;
            }
        }
        passed += entry.size;
        check_passed(passed, start)?;
        pieces = through(stream, pieces, &mut result)
            .ok_or_else(|| of.damaged("a delta in it does not match its base, or is cut into too many pieces"))?;
        if pieces.is_empty() {
            return Ok(result);
        }
    }
    Err(objects.pack(pack)?.damaged("its deltas form a cycle"))
}

/// The data of an object as a stream, if it is not stored as a delta. `passed` is the number of bytes that all passes read.
pub(crate) fn stream<'a>(objects: &'a Objects, id: &oid, passed: u64) -> Result<Option<Box<dyn Read + 'a>>> {
    let Some((pack, offset)) = objects.packed(id)? else {
        let (.., stream) = objects.loose_stream(id)?.ok_or_else(|| objects.missing(id))?;
        check_passed(passed, 0)?;
        return Ok(Some(Box::new(stream)));
    };
    let of = objects.pack(pack)?;
    let entry = of.entry(offset)?;
    if !matches!(entry.form, Form::Whole(_)) {
        return Ok(None);
    }
    check_passed(passed, 0)?;
    Ok(Some(Box::new(of.stream(&entry)?)))
}

fn check_passed(passed: u64, start: u64) -> Result<()> {
    if passed <= MAX_PASSED {
        return Ok(());
    }
    Err(Error::failed(format_args!(
        "the byte {start} of this file is behind {passed} bytes of compressed data; one read goes through {MAX_PASSED} at \
         most; check the file out with  git cat-file blob"
    )))
}

/// Copies pieces out of a stream.
fn fill(mut stream: impl Read, mut pieces: Vec<Piece>, result: &mut [u8]) -> Option<()> {
    pieces.sort_by_key(|piece| piece.from);
    let end = pieces.iter().map(|piece| piece.from + piece.length as u64).max()?;
    let mut buffer = vec![0; 32 * 1024];
    let (mut at, mut first) = (0u64, 0);
    while at < end {
        let got = stream.read(&mut buffer).ok().filter(|got| *got > 0)?;
        let until = at + got as u64;
        for piece in pieces.get(first..)?.iter().take_while(|piece| piece.from < until) {
            let (from, to) = (piece.from.max(at), (piece.from + piece.length as u64).min(until));
            if from < to {
                let source = buffer.get(usize::try_from(from - at).ok()?..usize::try_from(to - at).ok()?)?;
                let place = piece.to + usize::try_from(from - piece.from).ok()?;
                result.get_mut(place..place + source.len())?.copy_from_slice(source);
            }
        }
        // Pieces are sorted by their begin only, so an ended one may follow one that goes on.
        while pieces.get(first).is_some_and(|piece| piece.from + piece.length as u64 <= until) {
            first += 1;
        }
        at = until;
    }
    Some(())
}

/// Follows pieces of the result of a delta to pieces of its base. Copies the bytes that the delta itself contains.
pub(crate) fn through(mut delta: impl Read, mut pieces: Vec<Piece>, result: &mut [u8]) -> Option<Vec<Piece>> {
    let mut buffered = std::io::BufReader::with_capacity(16 * 1024, &mut delta);
    let mut byte = || {
        let mut one = [0];
        buffered.read_exact(&mut one).ok().map(|()| one.map(u64::from))
    };
    let mut size = || {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let [one] = byte()?;
            value |= (one & 0x7f) << shift;
            if one & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    };
    let (base, total) = (size()?, size()?);
    pieces.sort_by_key(|piece| piece.from);
    let end = pieces.iter().map(|piece| piece.from + piece.length as u64).max()?;
    (end <= total).then_some(())?;
    let (mut at, mut first, mut below) = (0u64, 0, Vec::new());
    let mut literal = [0; 128];
    while at < end {
        let mut one = [0];
        buffered.read_exact(&mut one).ok()?;
        let [instruction] = one;
        let (source, length) = if instruction & 0x80 == 0 {
            let length = usize::from(instruction);
            buffered.read_exact(literal.get_mut(..length).filter(|bytes| !bytes.is_empty())?).ok()?;
            (None, u64::from(instruction))
        } else {
            let mut fields = [0u64; 2];
            for bit in (0..7u32).filter(|bit| instruction & (1 << bit) != 0) {
                buffered.read_exact(&mut one).ok()?;
                let [value] = one;
                *fields.get_mut(usize::from(bit >= 4))? |=
                    u64::from(value) << (8 * if bit >= 4 { bit - 4 } else { bit });
            }
            let [offset, length] = fields;
            let length = if length == 0 { 0x10000 } else { length };
            (offset + length <= base).then_some((Some(offset), length))?
        };
        let until = at + length;
        for piece in pieces.get(first..)?.iter().take_while(|piece| piece.from < until) {
            let (from, to) = (piece.from.max(at), (piece.from + piece.length as u64).min(until));
            if from >= to {
                continue;
            }
            let place = piece.to + usize::try_from(from - piece.from).ok()?;
            let count = usize::try_from(to - from).ok()?;
            match source {
                Some(offset) => below.push(Piece { from: offset + (from - at), to: place, length: count }),
                None => {
                    let skipped = usize::try_from(from - at).ok()?;
                    let bytes = literal.get(skipped..skipped + count)?;
                    result.get_mut(place..place + count)?.copy_from_slice(bytes);
                }
            }
        }
        while pieces.get(first).is_some_and(|piece| piece.from + piece.length as u64 <= until) {
            first += 1;
        }
        (below.len() <= MAX_PIECES).then_some(())?;
        at = until;
    }
    Some(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_a_delta_has_the_bytes_of_the_whole_result() {
        let base = b"0123456789";
        // "456" from the base, "xyz", "0123" and "89".
        let delta = [10, 12, 0x91, 4, 3, 3, b'x', b'y', b'z', 0x90, 4, 0x91, 8, 2];
        let whole = crate::delta::apply(base, &delta, 100).unwrap();
        for start in 0..whole.len() {
            for end in start + 1..=whole.len() {
                let mut result = vec![0; end - start];
                let piece = Piece { from: start as u64, to: 0, length: end - start };
                let below = through(&delta[..], vec![piece], &mut result).unwrap();
                if !below.is_empty() {
                    fill(&base[..], below, &mut result).unwrap();
                }
                assert_eq!(result, whole[start..end], "{start} {end}");
            }
        }
        let piece = Piece { from: 0, to: 0, length: 13 };
        assert_eq!(through(&delta[..], vec![piece], &mut [0; 13]), None);
    }
}
