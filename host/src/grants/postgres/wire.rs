//! The framing of PostgreSQL's protocol (version 3): a tag, a length that counts itself, a body.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest message that is kept as a whole. Rows may be longer: they are passed on in pieces.
pub(super) const MAX_MESSAGE: usize = 256 << 10;

/// The longest first message of a guest. PostgreSQL has the same limit.
const MAX_STARTUP: usize = 10_000;

/// The bytes of a tag and a length.
const HEADER: usize = 5;

/// Tags of messages. A server and a client may use the same letter for different messages.
pub(super) mod tag {
    pub(in super::super) const AUTHENTICATION: u8 = b'R';
    pub(in super::super) const BIND: u8 = b'B';
    pub(in super::super) const BIND_COMPLETE: u8 = b'2';
    pub(in super::super) const CLOSE: u8 = b'C';
    pub(in super::super) const CLOSE_COMPLETE: u8 = b'3';
    pub(in super::super) const COMMAND_COMPLETE: u8 = b'C';
    pub(in super::super) const COPY_BOTH: u8 = b'W';
    pub(in super::super) const COPY_DATA: u8 = b'd';
    pub(in super::super) const COPY_DONE: u8 = b'c';
    pub(in super::super) const COPY_FAIL: u8 = b'f';
    pub(in super::super) const COPY_IN: u8 = b'G';
    pub(in super::super) const COPY_OUT: u8 = b'H';
    pub(in super::super) const DATA_ROW: u8 = b'D';
    pub(in super::super) const DESCRIBE: u8 = b'D';
    pub(in super::super) const EMPTY_QUERY: u8 = b'I';
    pub(in super::super) const ERROR: u8 = b'E';
    pub(in super::super) const EXECUTE: u8 = b'E';
    pub(in super::super) const FLUSH: u8 = b'H';
    pub(in super::super) const KEY_DATA: u8 = b'K';
    pub(in super::super) const NEGOTIATE_VERSION: u8 = b'v';
    pub(in super::super) const NO_DATA: u8 = b'n';
    pub(in super::super) const NOTICE: u8 = b'N';
    pub(in super::super) const NOTIFICATION: u8 = b'A';
    pub(in super::super) const PARAMETER_DESCRIPTION: u8 = b't';
    pub(in super::super) const PARAMETER_STATUS: u8 = b'S';
    pub(in super::super) const PARSE: u8 = b'P';
    pub(in super::super) const PARSE_COMPLETE: u8 = b'1';
    pub(in super::super) const PORTAL_SUSPENDED: u8 = b's';
    pub(in super::super) const QUERY: u8 = b'Q';
    pub(in super::super) const READY: u8 = b'Z';
    pub(in super::super) const ROW_DESCRIPTION: u8 = b'T';
    pub(in super::super) const SYNC: u8 = b'S';
    pub(in super::super) const TERMINATE: u8 = b'X';
}

/// Why bytes are not messages, or why there are no more.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    /// The other side ended the connection.
    #[error("it ended the connection")]
    Ended,
    /// The connection failed.
    #[error("the connection failed ({0})")]
    Io(#[from] io::Error),
    /// The length of a message is impossible.
    #[error("it sent a message of an impossible length")]
    Length,
    /// A message is longer than belljar keeps.
    #[error("it sent a message of more than {} KiB", MAX_MESSAGE / 1024)]
    TooLong,
}

/// A message, with its tag and its length as they were received.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WireMessage {
    pub(super) tag: u8,
    /// Tag, length and body.
    bytes: Bytes,
}

impl WireMessage {
    /// The body.
    pub(super) fn body(&self) -> &[u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }

    /// The whole message.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a connection delivers next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WirePiece {
    /// A whole message.
    Message(WireMessage),
    /// A piece of a row, with its header if it is the first.
    Row(Bytes),
}

/// Cuts received bytes into messages.
#[derive(Default)]
pub(super) struct Framing {
    received: BytesMut,
    /// The rest of a row that is passed on in pieces.
    rest_of_row: usize,
    /// True for messages of a server: a message of the tag `D` is a row then.
    has_rows: bool,
}

impl Framing {
    /// The framing of a server's messages.
    pub(super) fn of_server() -> Self {
        Self { has_rows: true, ..Self::default() }
    }

    /// The next piece among the received bytes. `None`: more bytes are needed.
    ///
    /// # Errors
    /// If the bytes are not messages.
    pub(super) fn next(&mut self) -> Result<Option<WirePiece>, WireError> {
        if self.rest_of_row > 0 {
            let now = self.rest_of_row.min(self.received.len());
            self.rest_of_row -= now;
            return Ok((now > 0).then(|| WirePiece::Row(self.received.split_to(now).freeze())));
        }
        let Some((&tag, length)) =
            self.received.split_first_chunk::<HEADER>().map(|([tag, length @ ..], _)| (tag, length))
        else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| WireError::Length)?;
        if length < HEADER - 1 || length > i32::MAX as usize {
            return Err(WireError::Length);
        }
        let total = length + 1;
        if self.has_rows && tag == tag::DATA_ROW {
            let now = total.min(self.received.len());
            self.rest_of_row = total - now;
            return Ok(Some(WirePiece::Row(self.received.split_to(now).freeze())));
        }
        if length > MAX_MESSAGE {
            return Err(WireError::TooLong);
        }
        if self.received.len() < total {
            self.received.reserve(total - self.received.len());
            return Ok(None);
        }
        Ok(Some(WirePiece::Message(WireMessage { tag, bytes: self.received.split_to(total).freeze() })))
    }

    /// The next piece from `stream`. Dropping the future loses no bytes.
    ///
    /// # Errors
    /// If the bytes are not messages, or if there are no more.
    pub(super) async fn receive(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<WirePiece, WireError> {
        loop {
            if let Some(piece) = self.next()? {
                return Ok(piece);
            }
            self.fill(stream).await?;
        }
    }

    /// The next message from `stream`, while no rows are expected.
    ///
    /// # Errors
    /// As [`Framing::receive`].
    pub(super) async fn message(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<WireMessage, WireError> {
        match self.receive(stream).await? {
            WirePiece::Message(message) => Ok(message),
            WirePiece::Row(_) => Err(WireError::Length),
        }
    }

    /// The body of a guest's first messages, which have no tag.
    ///
    /// # Errors
    /// As [`Framing::receive`].
    pub(super) async fn untagged(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, WireError> {
        loop {
            if let Some((length, _)) = self.received.split_first_chunk::<4>() {
                let total = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| WireError::Length)?;
                if !(8..=MAX_STARTUP).contains(&total) {
                    return Err(WireError::Length);
                }
                if self.received.len() >= total {
                    let mut whole = self.received.split_to(total).freeze();
                    whole.advance(4);
                    return Ok(whole);
                }
            }
            self.fill(stream).await?;
        }
    }

    async fn fill(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), WireError> {
        self.received.reserve(8 << 10);
        match stream.read_buf(&mut self.received).await? {
            0 => Err(WireError::Ended),
            _ => Ok(()),
        }
    }
}

/// Splits a text with a final zero byte off `body`. `None`: there is none, or it is not UTF-8.
pub(super) fn text<'a>(body: &mut &'a [u8]) -> Option<&'a str> {
    let at = memchr::memchr(0, body)?;
    let (text, rest) = body.split_at_checked(at)?;
    *body = rest.get(1..)?;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(has_rows: bool, bytes: &[u8]) -> Framing {
        Framing { received: bytes.into(), rest_of_row: 0, has_rows }
    }

    #[test]
    fn messages_are_cut_wherever_they_arrive_in_pieces() {
        let all = b"Z\0\0\0\x05IS\0\0\0\x06a\0D\0\0\0\x081234S\0\0\0\x04";
        for at in 0..all.len() {
            let mut framing = framing(true, &all[..at]);
            let mut out = Vec::new();
            let mut tags = Vec::new();
            for more in [&b""[..], &all[at..]] {
                framing.received.extend_from_slice(more);
                while let Some(piece) = framing.next().unwrap() {
                    match piece {
                        WirePiece::Message(message) => {
                            tags.push(message.tag);
                            out.extend_from_slice(message.bytes());
                        }
                        WirePiece::Row(bytes) => out.extend_from_slice(&bytes),
                    }
                }
            }
            assert_eq!((&out[..], &tags[..]), (&all[..], &b"ZSS"[..]), "{at}");
        }
    }

    #[test]
    fn impossible_lengths_are_refused() {
        for wrong in [&b"Z\0\0\0\x03"[..], b"Z\xff\xff\xff\xff", b"Z\x80\0\0\0", b"Z\0\0\0\0"] {
            assert!(matches!(framing(true, wrong).next(), Err(WireError::Length)), "{wrong:?}");
        }
        assert!(matches!(framing(true, b"S\0\x10\0\0").next(), Err(WireError::TooLong)));
        assert!(matches!(framing(false, b"D\0\x10\0\0").next(), Err(WireError::TooLong)));
        assert_eq!(framing(false, b"D\0\0\0").next().unwrap(), None);
    }

    #[test]
    fn texts_end_with_a_zero_byte() {
        let mut body = &b"a\0bc\0\xff\0d"[..];
        assert_eq!(text(&mut body), Some("a"));
        assert_eq!(text(&mut body), Some("bc"));
        assert_eq!(text(&mut body), None);
        assert_eq!(text(&mut body), None);
    }
}
