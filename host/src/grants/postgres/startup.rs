//! The beginning of a guest's connection: what it asks for before its first statement.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::wire::{Framing, WireError, text};

/// The codes of first messages that are no start (PostgreSQL 55.2).
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// The major version of the protocol.
const VERSION: u32 = 3;

/// How many times a guest may ask for encryption before it starts.
const MAX_REQUESTS: usize = 2;

/// The session settings that a guest may choose when it connects. belljar sets the others.
const SETTINGS: [&str; 10] = [
    "application_name",
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "datestyle",
    "extra_float_digits",
    "intervalstyle",
    "lc_messages",
    "search_path",
    "timezone",
];

/// Why a guest's connection does not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// The connection failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The guest does not speak version 3 of the protocol.
    #[error("expected PostgreSQL's protocol, version 3")]
    Version,
    /// The first message is malformed.
    #[error("the first message is malformed")]
    Malformed,
    /// The guest asks for another database. Holds the granted one.
    #[error("this connection is to the database \"{0}\"; ask for this one, or for none")]
    Database(String),
    /// The guest asks for replication.
    #[error("this connection is not for replication")]
    Replication,
}

/// What a guest asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The session settings, with names in lower case.
    pub(super) settings: Vec<(String, String)>,
    /// True if the guest speaks a later minor version than 3.0, and must be told.
    pub(super) is_newer: bool,
}

/// Receives what the guest asks for. Answers that there is no encryption: belljar itself is the other side.
///
/// # Errors
/// If the guest does not start a session, or asks for another database than `database`.
pub(super) async fn receive(
    guest: &mut (impl AsyncRead + AsyncWrite + Unpin),
    framing: &mut Framing,
    database: &str,
) -> Result<Start, StartError> {
    for _ in 0..=MAX_REQUESTS {
        let message = framing.untagged(guest).await?;
        let (code, parameters) = message.split_first_chunk::<4>().ok_or(StartError::Malformed)?;
        match u32::from_be_bytes(*code) {
            TLS | GSS => {
                guest.write_all(b"N").await.map_err(WireError::Io)?;
                guest.flush().await.map_err(WireError::Io)?;
            }
            CANCEL => return Err(WireError::Ended.into()),
            version if version >> 16 == VERSION => {
                let start = parse(&message.slice_ref(parameters), database)?;
                return Ok(Start { is_newer: version & 0xffff > 0, ..start });
            }
            _ => return Err(StartError::Version),
        }
    }
    Err(StartError::Malformed)
}

/// Parses the parameters: names and values, and a zero byte.
fn parse(parameters: &Bytes, database: &str) -> Result<Start, StartError> {
    let mut rest = parameters.as_ref();
    let mut settings = Vec::new();
    while rest != [0] {
        let name = text(&mut rest).ok_or(StartError::Malformed)?.to_ascii_lowercase();
        let value = text(&mut rest).ok_or(StartError::Malformed)?;
        match name.as_str() {
            "database" if value != database => return Err(StartError::Database(database.to_owned())),
            "replication" if !["false", "off", "no", "0"].contains(&value) => return Err(StartError::Replication),
            known if SETTINGS.contains(&known) => settings.push((name, value.to_owned())),
            // The user is the granted one. Other settings could change how the connection is held.
            _ => {}
        }
    }
    Ok(Start { settings, is_newer: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(parameters: &'static [u8]) -> Result<Vec<(String, String)>, String> {
        parse(&Bytes::from_static(parameters), "shop").map(|start| start.settings).map_err(|error| error.to_string())
    }

    #[test]
    fn only_harmless_settings_are_taken() {
        let all = b"user\0anyone\0database\0shop\0TimeZone\0UTC\0options\0-c default_transaction_read_only=off\0default_transaction_read_only\0off\0statement_timeout\x000\0\0";
        assert_eq!(settings(all).unwrap(), [("timezone".to_owned(), "UTC".to_owned())]);
        assert_eq!(settings(b"\0").unwrap(), []);
    }

    #[test]
    fn malformed_starts_are_refused() {
        for wrong in [&b""[..], b"user", b"user\0", b"user\0a\0", b"user\0a\0\0x", b"\xff\0a\0\0"] {
            assert_eq!(settings(wrong).unwrap_err(), "the first message is malformed", "{wrong:?}");
        }
        assert!(settings(b"database\0other\0\0").unwrap_err().contains("\"shop\""));
        assert!(settings(b"replication\0database\0\0").unwrap_err().contains("replication"));
    }
}
