//! Applies deltas of packed objects (<https://git-scm.com/docs/pack-format#_deltified_representation>).

/// The header of a delta: the size of the base, the size of the result, and the position of the first instruction.
pub(crate) fn sizes(delta: &[u8]) -> Option<(u64, u64, usize)> {
    let mut at = 0;
    let base = size(delta, &mut at)?;
    let result = size(delta, &mut at)?;
    Some((base, result, at))
}

/// Applies `delta` to `base`. `None` if the delta is malformed, belongs to another base, or gives more than `most` bytes.
pub(crate) fn apply(base: &[u8], delta: &[u8], most: u64) -> Option<Vec<u8>> {
    let (base_size, result_size, mut at) = sizes(delta)?;
    if base_size != base.len() as u64 || result_size > most {
        return None;
    }
    let result_size = usize::try_from(result_size).ok()?;
    let mut result = Vec::with_capacity(result_size);
    while let Some(instruction) = delta.get(at) {
        at += 1;
        let piece = if instruction & 0x80 == 0 {
            // Insert the following bytes. Length 0 is reserved.
            let length = usize::from(*instruction);
            let piece = delta.get(at..at + length).filter(|piece| !piece.is_empty())?;
            at += length;
            piece
        } else {
            let mut fields = [0usize; 2];
            for bit in 0..7 {
                if instruction & (1 << bit) != 0 {
                    let field = fields.get_mut(usize::from(bit >= 4))?;
                    let place = if bit >= 4 { bit - 4 } else { bit };
                    *field |= usize::from(*delta.get(at)?) << (8 * place);
                    at += 1;
                }
            }
            let [offset, length] = fields;
            let length = if length == 0 { 0x10000 } else { length };
            base.get(offset..offset.checked_add(length)?)?
        };
        if result.len() + piece.len() > result_size {
            return None;
        }
        result.extend_from_slice(piece);
    }
    (result.len() == result_size).then_some(result)
}

fn size(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_inserts() {
        let base = b"0123456789";
        // "456" from the base, "x", and "01".
        let delta = [10, 6, 0x80 | 0x01 | 0x10, 4, 3, 1, b'x', 0x80 | 0x10, 2];
        assert_eq!(apply(base, &delta, 100).as_deref(), Some(&b"456x01"[..]));
    }

    #[test]
    fn malformed_deltas_are_refused() {
        let base = b"0123456789";
        for wrong in [
            &[9, 3, 0x90, 3][..],    // for a base of another size
            &[10, 3, 0x91, 8, 3],    // copies beyond the end of the base
            &[10, 2, 0x90, 3],       // gives more than the header says
            &[10, 4, 0x90, 3],       // gives less than the header says
            &[10, 1, 0],             // a reserved instruction
            &[10, 3, 3, b'a'],       // truncated
            &[10, 0xff, 0xff, 0x7f], // above the limit
            &[0x80; 12],
            &[],
        ] {
            assert_eq!(apply(base, wrong, 100), None, "{wrong:?}");
        }
        // The longest copy of one instruction, and the limit of the result.
        let base = vec![7; 0x10000];
        let delta = [0x80, 0x80, 4, 0x80, 0x80, 8, 0x80, 0x80];
        assert_eq!(apply(&base, &delta, 1 << 20).map(|result| result.len()), Some(0x20000));
        assert_eq!(apply(&base, &delta, 0x1ffff), None);
    }
}
