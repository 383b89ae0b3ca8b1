//! The protocol of Redis, version 3: requests as lists of words, replies as bytes.

/// A request: the name of a command, and its arguments.
pub(crate) type Words = Vec<Vec<u8>>;

/// A reply, or a message that nobody asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Status(&'static str),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    Push(Vec<Reply>),
}

/// The bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Reply {
    /// A text.
    pub(crate) fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Bulk(text.as_ref().to_vec())
    }

    /// A list of texts.
    pub(crate) fn texts<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::Array(texts.into_iter().map(Self::text).collect())
    }

    /// The number of values in it.
    pub(crate) fn elements(&self) -> u64 {
        match self {
            Self::Array(items) => items.len() as u64,
            _ => 1,
        }
    }

    /// The bytes that are sent.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    fn write(&self, out: &mut Vec<u8>) {
        let line = |out: &mut Vec<u8>, kind: char, text: &str| {
            out.extend_from_slice(format!("{kind}{text}\r\n").as_bytes());
        };
        match self {
            Self::Status(text) => line(out, '+', text),
            Self::Error(text) => line(out, '-', text),
            Self::Integer(number) => line(out, ':', &number.to_string()),
            Self::Null => line(out, '_', ""),
            Self::Bulk(bytes) => {
                line(out, '$', &bytes.len().to_string());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::Array(items) | Self::Push(items) => {
                let kind = if matches!(self, Self::Array(_)) { '*' } else { '>' };
                line(out, kind, &items.len().to_string());
                items.iter().for_each(|item| item.write(out));
            }
            Self::Map(pairs) => {
                line(out, '%', &pairs.len().to_string());
                pairs.iter().for_each(|(key, value)| [key, value].into_iter().for_each(|item| item.write(out)));
            }
        }
    }
}

/// A request as bytes.
#[cfg(test)]
pub(crate) fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    Reply::texts(words).encode()
}

/// The first request in `bytes`, and its length. `None` if it is not whole.
///
/// # Errors
/// If it is no list of texts.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Words, usize)>, Malformed> {
    let mut at = 0;
    let Some(count) = number(bytes, &mut at, b'*')? else { return Ok(None) };
    let mut words = Vec::with_capacity(count.min(1024));
    for _ in 0..count {
        let Some(length) = number(bytes, &mut at, b'$')? else { return Ok(None) };
        let Some(word) = bytes.get(at..at + length) else { return Ok(None) };
        if bytes.len() < at + length + 2 {
            return Ok(None);
        }
        words.push(word.to_vec());
        at += length + 2;
    }
    Ok(Some((words, at)))
}

/// The number in the line at `at`, which begins with `kind`. Moves `at` behind the line.
fn number(bytes: &[u8], at: &mut usize, kind: u8) -> Result<Option<usize>, Malformed> {
    let rest = bytes.get(*at..).unwrap_or_default();
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line = rest.get(..end).unwrap_or_default();
    let digits = line.strip_prefix(&[kind]).and_then(|line| line.strip_suffix(b"\r")).ok_or(Malformed)?;
    let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    *at += end + 1;
    digits.parse().map(Some).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_parsed_when_they_are_whole() {
        let words = vec![b"SET".to_vec(), b"a\r\nb".to_vec(), Vec::new()];
        let bytes = encode(&words);
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), Ok(None));
        }
        assert_eq!(parse(&bytes), Ok(Some((words, bytes.len()))));
        assert_eq!(parse(b"PING\r\n"), Err(Malformed));
    }
}
