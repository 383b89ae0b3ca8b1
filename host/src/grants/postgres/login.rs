//! The login at the server: SCRAM-SHA-256 (RFC 5802, RFC 7677), and the session that begins with it.

use bytes::{Buf, BufMut, BytesMut};
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use tokio::io::AsyncWriteExt;
use zeroize::Zeroizing;

use super::error_response::sqlstate;
use super::wire::{Framing, WireError, WireMessage, tag, text};
use crate::grants::network::ByteStream;

/// The setting that makes transactions read-only unless they say otherwise. PostgreSQL 14 and later report it.
pub(super) const READ_ONLY: &str = "default_transaction_read_only";

/// The most messages of a server before the session is ready.
const MAX_MESSAGES: usize = 200;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginError {
    /// The connection failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The server refuses. Holds its SQLSTATE.
    #[error("{}", refusal(.0))]
    Refused(String),
    /// The server wants another proof than SCRAM-SHA-256. Holds its name.
    #[error(
        "the server asks for {0}, and belljar logs in with SCRAM-SHA-256 only; use scram-sha-256 in its pg_hba.conf and set the password again"
    )]
    Method(&'static str),
    /// The server did not prove that it knows the password, or its messages make no sense.
    #[error("the server does not prove that it knows the password")]
    NotProven,
    /// The server sends something else than a login needs.
    #[error("the server does not keep to PostgreSQL's protocol")]
    Protocol,
    /// The server does not hold the session read-only, or does not say so.
    #[error(
        "the server does not say that the session is read-only; expected PostgreSQL 14 or later, without a pooler in between"
    )]
    NotReadOnly,
}

/// What an SQLSTATE of a refused login means.
fn refusal(code: &str) -> String {
    let why = match code {
        "28P01" => "the password or the user is wrong",
        "28000" => "no entry of pg_hba.conf lets the user in, or the user may not log in",
        "3D000" => "there is no such database",
        "42501" => "the user may not connect to the database",
        "53300" => "it has too many connections",
        "57P03" => "it is starting or shutting down",
        _ => return format!("the server refuses the login (SQLSTATE {code})"),
    };
    format!("the server refuses the login: {why}")
}

impl LoginError {
    /// The SQLSTATE that the guest gets.
    pub(super) fn sqlstate(&self) -> &str {
        match self {
            Self::Refused(code) => code,
            Self::Wire(_) => "08006",
            Self::Method(_) | Self::NotProven => "28000",
            Self::Protocol => "08P01",
            Self::NotReadOnly => "25006",
        }
    }
}

/// What the operator granted.
pub(super) struct DatabaseLogin {
    pub(super) user: String,
    pub(super) database: String,
    pub(super) password: Zeroizing<String>,
    pub(super) is_read_only: bool,
}

/// A session.
pub(super) struct DatabaseSession {
    /// The settings that the server reported, with their values.
    pub(super) settings: Vec<(String, String)>,
    /// With this key, another connection can cancel a statement.
    pub(super) key: Option<(i32, i32)>,
}

/// Logs in. `settings`: those of the session, by name. `is_read_only`: the server must say that the session is.
///
/// # Errors
/// If the server does not let the user in, or does not behave.
pub(super) async fn log_in(
    server: &mut Box<dyn ByteStream>,
    framing: &mut Framing,
    credentials: &DatabaseLogin,
    settings: &[(String, String)],
    is_read_only: bool,
) -> Result<DatabaseSession, LoginError> {
    let mut out = BytesMut::new();
    let own = [("user", credentials.user.as_str()), ("database", credentials.database.as_str())];
    let parameters = own.into_iter().chain(settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    frontend::startup_message(parameters, &mut out).map_err(WireError::Io)?;
    send(server, &mut out).await?;
    authenticate(server, framing, credentials).await?;
    let session = begin(server, framing).await?;
    let reported = session.settings.iter().find(|(name, _)| name == READ_ONLY).map(|(_, value)| value.as_str());
    if is_read_only && reported != Some("on") {
        return Err(LoginError::NotReadOnly);
    }
    Ok(session)
}

async fn send(server: &mut Box<dyn ByteStream>, out: &mut BytesMut) -> Result<(), WireError> {
    server.write_all_buf(out).await?;
    server.flush().await?;
    Ok(())
}

/// The next message that is not a notice. An error ends the login.
async fn next(server: &mut Box<dyn ByteStream>, framing: &mut Framing) -> Result<WireMessage, LoginError> {
    for _ in 0..MAX_MESSAGES {
        let message = framing.message(server).await?;
        match message.tag {
            tag::NOTICE | tag::NEGOTIATE_VERSION => {}
            tag::ERROR => {
                let code = sqlstate(message.body()).ok_or(LoginError::Protocol)?;
                return Err(LoginError::Refused(code.to_owned()));
            }
            _ => return Ok(message),
        }
    }
    Err(LoginError::Protocol)
}

/// The body of an authentication message of this kind (PostgreSQL 55.7).
fn authentication(message: &WireMessage, kind: u32) -> Result<&[u8], LoginError> {
    let mut body = message.body();
    if message.tag != tag::AUTHENTICATION || body.len() < 4 {
        return Err(LoginError::Protocol);
    }
    let found = body.get_u32();
    if found == kind {
        return Ok(body);
    }
    Err(match found {
        0 => LoginError::Method("no password"),
        3 => LoginError::Method("the password itself"),
        5 => LoginError::Method("MD5"),
        2 | 7 | 9 => LoginError::Method("Kerberos"),
        10..=12 => LoginError::Protocol,
        _ => LoginError::Method("an unknown proof"),
    })
}

async fn authenticate(
    server: &mut Box<dyn ByteStream>,
    framing: &mut Framing,
    credentials: &DatabaseLogin,
) -> Result<(), LoginError> {
    const SASL: u32 = 10;
    const SASL_CONTINUE: u32 = 11;
    const SASL_FINAL: u32 = 12;
    const OK: u32 = 0;
    let message = next(server, framing).await?;
    let mut mechanisms = authentication(&message, SASL)?;
    let mut is_offered = false;
    while mechanisms != [0] {
        let name = text(&mut mechanisms).ok_or(LoginError::Protocol)?;
        is_offered |= name == SCRAM_SHA_256;
    }
    if !is_offered {
        return Err(LoginError::Method("an unknown proof"));
    }
    let mut scram = ScramSha256::new(credentials.password.as_bytes(), ChannelBinding::unsupported());
    let mut out = BytesMut::new();
    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), &mut out).map_err(WireError::Io)?;
    send(server, &mut out).await?;
    let message = next(server, framing).await?;
    let challenge = authentication(&message, SASL_CONTINUE)?.to_vec();
    // The server chooses how often the password is hashed, up to 100,000 times.
    let hashed = tokio::task::spawn_blocking(move || scram.update(&challenge).map(|()| scram)).await;
    let mut scram = hashed.map_err(|_| LoginError::Protocol)?.map_err(|_| LoginError::NotProven)?;
    frontend::sasl_response(scram.message(), &mut out).map_err(WireError::Io)?;
    send(server, &mut out).await?;
    let message = next(server, framing).await?;
    scram.finish(authentication(&message, SASL_FINAL)?).map_err(|_| LoginError::NotProven)?;
    let message = next(server, framing).await?;
    authentication(&message, OK)?;
    Ok(())
}

/// Receives what the server says before it is ready.
async fn begin(server: &mut Box<dyn ByteStream>, framing: &mut Framing) -> Result<DatabaseSession, LoginError> {
    let mut session = DatabaseSession { settings: Vec::new(), key: None };
    for _ in 0..MAX_MESSAGES {
        let message = next(server, framing).await?;
        let mut body = message.body();
        match message.tag {
            tag::PARAMETER_STATUS => {
                let name = text(&mut body).ok_or(LoginError::Protocol)?.to_owned();
                let value = text(&mut body).ok_or(LoginError::Protocol)?.to_owned();
                session.settings.push((name, value));
            }
            tag::KEY_DATA if body.len() == 8 => session.key = Some((body.get_i32(), body.get_i32())),
            tag::READY => return Ok(session),
            _ => return Err(LoginError::Protocol),
        }
    }
    Err(LoginError::Protocol)
}

/// Tells the guest that it is logged in.
pub(super) fn write_welcome(session: &DatabaseSession, is_newer: bool, out: &mut BytesMut) {
    let mut put = |tag: u8, body: &[u8]| {
        out.put_u8(tag);
        out.put_u32(u32::try_from(body.len() + 4).unwrap_or(u32::MAX));
        out.extend_from_slice(body);
    };
    if is_newer {
        // Version 3.0, and no option that is not understood.
        put(tag::NEGOTIATE_VERSION, &[0, 3, 0, 0, 0, 0, 0, 0]);
    }
    put(tag::AUTHENTICATION, &[0; 4]);
    for (name, value) in &session.settings {
        put(tag::PARAMETER_STATUS, &[name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
    }
    // The key stays with belljar.
    put(tag::KEY_DATA, &[0; 8]);
    put(tag::READY, b"I");
}
