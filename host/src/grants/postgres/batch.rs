//! One batch of statements: what the server may answer, and what of that the guest gets.

use bytes::BytesMut;

use super::login::READ_ONLY;
use super::wire::{WirePiece, tag, text};

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The guest ended it.
    Guest,
    /// The guest sent something that the grant does not allow. Holds its name.
    Refused(String),
    /// The session is no longer read-only.
    LeftReadOnly,
    /// The guest does not keep to the protocol. Holds what was expected.
    Guests(String),
    /// The server does not keep to the protocol, or ended the connection. Holds what it did.
    Servers(String),
}

/// The state of the current batch.
pub(super) struct Batch {
    pub(super) is_read_only: bool,
    /// True from the end of a batch until the server is ready.
    pub(super) is_waiting: bool,
    /// True while the server answers a simple query that was sent as a prepared statement.
    pub(super) is_translated: bool,
}

impl Batch {
    pub(super) fn new(is_read_only: bool) -> Self {
        Self { is_read_only, is_waiting: false, is_translated: false }
    }

    /// Takes a piece of the server's answer, and adds what the guest gets to `out`.
    ///
    /// # Errors
    /// If the connection must end.
    pub(super) fn take(&mut self, piece: WirePiece, out: &mut BytesMut) -> Result<(), End> {
        let message = match piece {
            WirePiece::Row(bytes) => {
                out.extend_from_slice(&bytes);
                return Ok(());
            }
            WirePiece::Message(message) => message,
        };
        match message.tag {
            // The guest of a simple query does not know these.
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::NO_DATA if self.is_translated => return Ok(()),
            // No read-only statement listens.
            tag::NOTIFICATION if self.is_read_only => return Ok(()),
            tag::READY => {
                if self.is_read_only && !self.is_waiting {
                    return Err(End::Servers("it sent an answer to no question".to_owned()));
                }
                (self.is_waiting, self.is_translated) = (false, false);
            }
            tag::PARAMETER_STATUS => {
                let mut body = message.body();
                let name = text(&mut body);
                if self.is_read_only && name == Some(READ_ONLY) && text(&mut body) != Some("on") {
                    return Err(End::LeftReadOnly);
                }
            }
            tag::PARSE_COMPLETE
            | tag::BIND_COMPLETE
            | tag::CLOSE_COMPLETE
            | tag::COMMAND_COMPLETE
            | tag::EMPTY_QUERY
            | tag::ERROR
            | tag::NO_DATA
            | tag::NOTICE
            | tag::PARAMETER_DESCRIPTION
            | tag::PORTAL_SUSPENDED
            | tag::ROW_DESCRIPTION => {}
            tag::NOTIFICATION | tag::COPY_IN | tag::COPY_OUT | tag::COPY_BOTH | tag::COPY_DATA | tag::COPY_DONE
                if !self.is_read_only => {}
            other => return Err(End::Servers(format!("it sent a message of the kind {:?}", char::from(other)))),
        }
        out.extend_from_slice(message.bytes());
        Ok(())
    }
}
