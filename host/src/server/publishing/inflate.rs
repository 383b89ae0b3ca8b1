//! Reads data that is compressed with zlib (RFC 1950 and RFC 1951). A serving belljar links no library for that, and a list of parts
//! is small: this one is short, not fast.

/// The lengths and distances of the symbols that copy: the base and the extra bits.
const LENGTHS: [(usize, u32); 29] = [
    (3, 0),
    (4, 0),
    (5, 0),
    (6, 0),
    (7, 0),
    (8, 0),
    (9, 0),
    (10, 0),
    (11, 1),
    (13, 1),
    (15, 1),
    (17, 1),
    (19, 2),
    (23, 2),
    (27, 2),
    (31, 2),
    (35, 3),
    (43, 3),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 4),
    (115, 4),
    (131, 5),
    (163, 5),
    (195, 5),
    (227, 5),
    (258, 0),
];
const DISTANCES: [(usize, u32); 30] = [
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 1),
    (7, 1),
    (9, 2),
    (13, 2),
    (17, 3),
    (25, 3),
    (33, 4),
    (49, 4),
    (65, 5),
    (97, 5),
    (129, 6),
    (193, 6),
    (257, 7),
    (385, 7),
    (513, 8),
    (769, 8),
    (1025, 9),
    (1537, 9),
    (2049, 10),
    (3073, 10),
    (4097, 11),
    (6145, 11),
    (8193, 12),
    (12289, 12),
    (16385, 13),
    (24577, 13),
];

/// The order in which the lengths of the codes for lengths are written.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The longest code.
const LONGEST: usize = 15;

/// The data without compression. `None` if it is damaged, or has more than `max` bytes.
pub(super) fn inflate(zlib: &[u8], max: usize) -> Option<Vec<u8>> {
    let [method, flags, deflated @ .., _, _, _, _] = zlib else { return None };
    // Deflate, without a dictionary.
    if method & 0x0f != 8 || flags & 0x20 != 0 || (u16::from(*method) << 8 | u16::from(*flags)) % 31 != 0 {
        return None;
    }
    let mut bits = Bits { bytes: deflated, at: 0 };
    let mut out = Vec::new();
    loop {
        let is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => bits.stored(&mut out, max)?,
            1 => bits.codes(&mut out, &fixed()?, max)?,
            2 => {
                let codes = bits.dynamic()?;
                bits.codes(&mut out, &codes, max)?;
            }
            _ => return None,
        }
        if is_last {
            break;
        }
    }
    let sum = zlib.last_chunk::<4>().map(|sum| u32::from_be_bytes(*sum));
    (sum == Some(adler32(&out))).then_some(out)
}

/// The check of the whole data.
fn adler32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65521;
        high = (high + low) % 65521;
    }
    high << 16 | low
}

/// Bits, the lowest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    /// The next bit.
    at: usize,
}

/// A code of Huffman: how many codes have each length, and the symbols in the order of their codes.
struct Code {
    counts: [usize; LONGEST + 1],
    symbols: Vec<usize>,
}

impl Code {
    /// The code with these lengths. `None` if more codes have a length than there are.
    fn new(lengths: &[usize]) -> Option<Self> {
        let mut counts = [0; LONGEST + 1];
        for length in lengths {
            *counts.get_mut(*length)? += 1;
        }
        let mut left = 1_usize;
        for count in counts.get(1..)? {
            left = (left << 1).checked_sub(*count)?;
        }
        let mut symbols: Vec<usize> = (0..lengths.len()).filter(|at| lengths.get(*at) != Some(&0)).collect();
        symbols.sort_by_key(|at| lengths.get(*at));
        if let Some(none) = counts.first_mut() {
            *none = 0;
        }
        Some(Self { counts, symbols })
    }
}

/// The codes of a block without codes of its own: for bytes and lengths, and for distances.
fn fixed() -> Option<(Code, Code)> {
    let lengths: Vec<usize> = (0..288)
        .map(|symbol| match symbol {
            144..=255 => 9,
            256..=279 => 7,
            _ => 8,
        })
        .collect();
    Some((Code::new(&lengths)?, Code::new(&[5; 30])?))
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<usize> {
        let mut out = 0;
        for bit in 0..count {
            let byte = usize::from(*self.bytes.get(self.at / 8)?);
            out |= (byte >> (self.at % 8) & 1) << bit;
            self.at += 1;
        }
        Some(out)
    }

    fn symbol(&mut self, code: &Code) -> Option<usize> {
        let (mut value, mut first, mut index) = (0_usize, 0_usize, 0_usize);
        for count in code.counts.get(1..)? {
            value |= self.take(1)?;
            if let Some(at) = value.checked_sub(first).filter(|at| at < count) {
                return code.symbols.get(index + at).copied();
            }
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        None
    }

    fn stored(&mut self, out: &mut Vec<u8>, max: usize) -> Option<()> {
        let start = self.at.div_ceil(8);
        let [low, high, not_low, not_high, rest @ ..] = self.bytes.get(start..)? else { return None };
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        if (low ^ not_low, high ^ not_high) != (0xff, 0xff) || out.len() + length > max {
            return None;
        }
        out.extend_from_slice(rest.get(..length)?);
        self.at = (start + 4 + length) * 8;
        Some(())
    }

    /// The codes that stand in front of a block.
    fn dynamic(&mut self) -> Option<(Code, Code)> {
        let (bytes, distances, count) = (self.take(5)? + 257, self.take(5)? + 1, self.take(4)? + 4);
        let mut lengths = [0; 19];
        for at in ORDER.iter().take(count) {
            *lengths.get_mut(*at)? = self.take(3)?;
        }
        let code = Code::new(&lengths)?;
        let mut lengths: Vec<usize> = Vec::new();
        while lengths.len() < bytes + distances {
            let (length, times) = match self.symbol(&code)? {
                length @ 0..=15 => (length, 1),
                16 => (*lengths.last()?, 3 + self.take(2)?),
                17 => (0, 3 + self.take(3)?),
                _ => (0, 11 + self.take(7)?),
            };
            lengths.extend(std::iter::repeat_n(length, times));
        }
        if lengths.len() > bytes + distances {
            return None;
        }
        Some((Code::new(lengths.get(..bytes)?)?, Code::new(lengths.get(bytes..)?)?))
    }

    fn codes(&mut self, out: &mut Vec<u8>, (bytes, distances): &(Code, Code), max: usize) -> Option<()> {
        loop {
            let symbol = self.symbol(bytes)?;
            if symbol == 256 {
                return Some(());
            }
            if let Ok(byte) = u8::try_from(symbol) {
                out.push(byte);
            } else {
                let (base, extra) = *LENGTHS.get(symbol.checked_sub(257)?)?;
                let length = base + self.take(extra)?;
                let (base, extra) = *DISTANCES.get(self.symbol(distances)?)?;
                let distance = base + self.take(extra)?;
                for _ in 0..length {
                    out.push(*out.get(out.len().checked_sub(distance)?)?);
                }
            }
            if out.len() > max {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGES: &str = r#"{"packages":[{"name":"tides","version":"1.0.0"}]}"#;

    /// Texts, and what zlib makes of them: stored, with fixed codes, and with codes of their own.
    fn samples() -> Vec<(&'static str, String)> {
        let packages = |times: usize| PACKAGES.repeat(times);
        let dynamic = (0..60).map(|at| format!("serde{at} = {}, ", at * at * 7919 % 1000)).collect();
        vec![
            (
                "7801013100ceff7b227061636b61676573223a5b7b226e616d65223a227469646573222c2276657273696f6e223a22312e302e30227d5d7d9c9c0fc3",
                packages(1),
            ),
            (
                "7801ab562a484cce4e4c4f2d56b28aae56ca4bcc4d55b2522ac94c010ae82895a5161567e6e701450cf50cf40c946a636bab69ae0100e2d02f47",
                packages(3),
            ),
            (
                "78daab562a484cce4e4c4f2d56b28aae56ca4bcc4d55b2522ac94c010ae82895a5161567e6e701450cf50cf40c946a636bab47358c6a18d530aa6154c3a886510df4d200009b3f766f",
                packages(40),
            ),
            (
                "7801ab562a484cce4e4c4f2d56b28aae56ca4bcc4d55b2522ac94c010ae82895a5161567e6e701450cf50cf40c946a636bab49d500003d961f85",
                packages(2),
            ),
            (
                "78da55d2cb6dc4300c04d0565cc01ecc9f3e8774936d20db3f100d571cc1370f0452cf143fefbfdff77dfd5cf7ebfae05bd6f794b993aed47adbc956d22e3bf94afdf69d02753d766a2b8d3aea2b58550d9c48759c2bb9d56d02c8bc498145264f8131ab52b16c5b7d051cd1ba53e0e9f40840da780a524cd602d5839d6746ce00aa46954a4e81a750f559b50a95447556a8cceb5e85caa8d2549d53a8e6a985ca4f67a806ef35a8842acb59d16c50f187ccd2588d2d511c863d47655f5425988453b691a59572507c2007c9497290061fd7353b55ade732712d3c9f8f2be3cf75f2964fc053a0ce1ea6894bea40053738800aa242726b78aa794fd50650cece01d4382bfe44055093e4e8f9bbac1dc96067a8308b7f9f96e4fe",
                dynamic,
            ),
        ]
    }

    fn bytes(hex: &str) -> Vec<u8> {
        data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap()
    }

    #[test]
    fn what_zlib_wrote_is_read() {
        for (hex, text) in samples() {
            assert_eq!(inflate(&bytes(hex), 1 << 20).as_deref(), Some(text.as_bytes()), "{hex}");
            assert_eq!(inflate(&bytes(hex), text.len() - 1), None, "the bound");
        }
    }

    #[test]
    fn damage_is_no_panic() {
        for (hex, _) in samples() {
            let good = bytes(hex);
            for at in 0..good.len() {
                for bit in 0..8 {
                    let mut bad = good.clone();
                    bad[at] ^= 1 << bit;
                    let read = inflate(&bad, 1 << 16);
                    assert!(read.is_none() || read == inflate(&good, 1 << 16), "{at} {bit}");
                }
                assert_eq!(inflate(&good[..at], 1 << 16), None);
            }
        }
    }
}
