//! The relay between a guest and a server: parses every message, forwards what the grant allows, and ends the connection at
//! anything else.
//!
//! On a read-only connection, a batch ends with the guest's Sync or simple query, and belljar forwards nothing more until
//! the server is ready. So the server's report that the session is no longer read-only comes before the next transaction.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

use super::batch::{Batch, End};
use super::cancel::RunningStatement;
use super::error_response::write_fatal;
use super::login::{READ_ONLY, log_in, write_welcome};
use super::name::NAME;
use super::server::DatabaseServer;
use super::startup::{self, StartError};
use super::statement::{Statement, classify};
use super::wire::{Framing, WireError, WireMessage, WirePiece, tag, text};
use crate::grants::network::ByteStream;
use crate::grants::network::endpoint::ConnectionScope;
use crate::model::{DecisionKind, Guard};

/// How many bytes are collected before they are passed on to the guest.
const COLLECT: usize = 16 << 10;

/// How often the server looks whether belljar is still connected, while it runs a statement.
const CHECK_INTERVAL: &str = "1000";

/// The most characters of a refused word in a message.
const MAX_WORD_CHARS: usize = 40;

/// A connection between a guest and a server.
pub(super) struct Relay {
    database: Arc<DatabaseServer>,
    scope: ConnectionScope,
    guest: DuplexStream,
    server: Box<dyn ByteStream>,
    from_guest: Framing,
    from_server: Framing,
    batch: Batch,
    cancel: Option<RunningStatement>,
}

impl Relay {
    pub(super) fn new(
        database: Arc<DatabaseServer>,
        scope: ConnectionScope,
        guest: DuplexStream,
        server: Box<dyn ByteStream>,
    ) -> Self {
        let is_read_only = database.credentials.is_read_only && Guard::ReadOnlyDatabase.is_on();
        Self {
            database,
            scope,
            guest,
            server,
            from_guest: Framing::default(),
            from_server: Framing::of_server(),
            batch: Batch::new(is_read_only),
            cancel: None,
        }
    }

    /// Runs until one side ends the connection.
    pub(super) async fn run(mut self) {
        if self.start().await.is_none() {
            return;
        }
        let Err(end) = self.relay().await else { return };
        let target = &self.database.target;
        let (code, message) = match end {
            End::Guest => {
                self.forward(&end_of_session()).await.ok();
                return;
            }
            End::Refused(name) => {
                self.decide(&format!("{name} on {target}"), DecisionKind::Denied, self.cure());
                ("25006", format!("this connection is read-only, so belljar does not send {name}"))
            }
            End::LeftReadOnly => {
                self.decide(&format!("leave read-only on {target}"), DecisionKind::Denied, self.cure());
                ("25006", "this connection is read-only, and a statement turned that off".to_owned())
            }
            End::Guests(expected) => ("08P01", expected),
            End::Servers(did) => {
                self.decide(&format!("use {target}"), DecisionKind::Unavailable, did.clone());
                ("08P01", format!("the connection to the server is lost: {did}"))
            }
        };
        self.tell(code, &message).await;
    }

    fn decide(&self, target: &str, kind: DecisionKind, cure: String) {
        self.scope.record.add_decision(NAME, target, kind, || Some(cure));
    }

    fn cure(&self) -> String {
        format!(
            "to let the provider write, set  read-only = false  in the grant of \"{}\" under [mounts.{}]",
            self.database.target, self.scope.mount
        )
    }

    /// Sends the guest an error that ends the connection.
    async fn tell(&mut self, code: &str, message: &str) {
        let mut out = BytesMut::new();
        write_fatal(code, &format!("belljar: {message}"), &mut out);
        let _ = self.guest.write_all_buf(&mut out).await;
        let _ = self.guest.shutdown().await;
    }

    /// Receives what the guest asks for, and logs in. `None`: the connection is over.
    async fn start(&mut self) -> Option<()> {
        let database = Arc::clone(&self.database);
        let credentials = &database.credentials;
        let start = startup::receive(&mut self.guest, &mut self.from_guest, &credentials.database).await;
        let start = match start {
            Ok(start) => start,
            Err(StartError::Wire(_)) => return None,
            Err(error) => {
                self.tell("08P01", &error.to_string()).await;
                return None;
            }
        };
        let mut settings = start.settings;
        // The server's settings come last: it takes the last value of a name.
        let remaining = self.scope.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let limit = remaining.as_millis().to_string();
        settings.extend([
            ("statement_timeout".to_owned(), limit.clone()),
            ("idle_in_transaction_session_timeout".to_owned(), limit),
            ("client_connection_check_interval".to_owned(), CHECK_INTERVAL.to_owned()),
        ]);
        if self.batch.is_read_only {
            settings.push((READ_ONLY.to_owned(), "on".to_owned()));
        }
        let login = log_in(&mut self.server, &mut self.from_server, credentials, &settings, self.batch.is_read_only);
        let session = match tokio::time::timeout_at(self.scope.end(), login).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => {
                let message = error.to_string();
                self.decide(&format!("log in to {}", database.target), DecisionKind::Unavailable, message.clone());
                self.tell(error.sqlstate(), &message).await;
                return None;
            }
            Err(_) => return None,
        };
        let (key, scope) = (session.key, self.scope.clone());
        self.cancel = key.map(|key| RunningStatement::new(Arc::clone(&database), scope, key));
        let mut out = BytesMut::new();
        write_welcome(&session, start.is_newer, &mut out);
        self.guest.write_all_buf(&mut out).await.ok()
    }

    /// Passes messages on in both directions.
    async fn relay(&mut self) -> Result<(), End> {
        loop {
            let takes_from_guest = !(self.batch.is_read_only && self.batch.is_waiting);
            tokio::select! {
                piece = self.from_guest.receive(&mut self.guest), if takes_from_guest => {
                    match piece.map_err(of_guest)? {
                        WirePiece::Message(message) => self.take_from_guest(message).await?,
                        WirePiece::Row(_) => return Err(End::Guests("expected a message".to_owned())),
                    }
                }
                piece = self.from_server.receive(&mut self.server) => {
                    let mut out = BytesMut::new();
                    let mut next = Some(piece.map_err(of_server)?);
                    while let Some(piece) = next {
                        self.batch.take(piece, &mut out)?;
                        next = if out.len() < COLLECT { self.from_server.next().map_err(of_server)? } else { None };
                    }
                    if let Some(cancel) = &mut self.cancel {
                        cancel.is_running = self.batch.is_waiting;
                    }
                    self.guest.write_all_buf(&mut out).await.map_err(|_| End::Guest)?;
                }
            }
        }
    }

    async fn forward(&mut self, bytes: &[u8]) -> Result<(), End> {
        let sent = async {
            self.server.write_all(bytes).await?;
            self.server.flush().await
        };
        sent.await.map_err(|error| of_server(error.into()))
    }

    fn wait(&mut self, is_translated: bool) {
        (self.batch.is_waiting, self.batch.is_translated) = (true, is_translated);
        if let Some(cancel) = &mut self.cancel {
            cancel.is_running = true;
        }
    }

    async fn take_from_guest(&mut self, message: WireMessage) -> Result<(), End> {
        match message.tag {
            tag::QUERY => self.take_query(&message).await,
            tag::PARSE => {
                if self.batch.is_read_only {
                    let mut body = message.body();
                    let sql = text(&mut body).and_then(|_| text(&mut body)).ok_or_else(not_text)?;
                    match classify(sql) {
                        Statement::Reads => {}
                        // In a batch, it would begin a transaction before the server's report is seen.
                        Statement::Transaction => {
                            return Err(End::Guests("send a statement of transactions as a simple query".to_owned()));
                        }
                        Statement::Refused(name) => return Err(refused(name)),
                    }
                }
                self.forward(message.bytes()).await
            }
            tag::BIND | tag::DESCRIBE | tag::EXECUTE | tag::CLOSE | tag::FLUSH => self.forward(message.bytes()).await,
            tag::SYNC => {
                self.wait(false);
                self.forward(message.bytes()).await
            }
            tag::COPY_DATA | tag::COPY_DONE | tag::COPY_FAIL if !self.batch.is_read_only => {
                self.forward(message.bytes()).await
            }
            tag::TERMINATE => Err(End::Guest),
            other => Err(refused(&format!("messages of the kind {:?}", char::from(other)))),
        }
    }

    /// Sends a simple query. On a read-only connection as a prepared statement, of which the server takes only one.
    async fn take_query(&mut self, message: &WireMessage) -> Result<(), End> {
        if !self.batch.is_read_only {
            self.wait(false);
            return self.forward(message.bytes()).await;
        }
        let mut body = message.body();
        let sql = text(&mut body).filter(|_| body.is_empty()).ok_or_else(not_text)?;
        match classify(sql) {
            Statement::Refused(name) => Err(refused(name)),
            Statement::Transaction => {
                self.wait(false);
                self.forward(message.bytes()).await
            }
            Statement::Reads => {
                let mut out = BytesMut::new();
                let no_values = || std::iter::empty::<i16>();
                let written = frontend::parse("", sql, [], &mut out).and_then(|()| {
                    let value = |(): (), _: &mut BytesMut| Ok(postgres_protocol::IsNull::Yes);
                    let bound = frontend::bind("", "", no_values(), std::iter::empty(), value, [0], &mut out);
                    bound.map_err(|_| std::io::ErrorKind::InvalidInput)?;
                    frontend::describe(b'P', "", &mut out)?;
                    frontend::execute("", 0, &mut out)
                });
                written.map_err(|_| not_text())?;
                frontend::sync(&mut out);
                self.wait(true);
                self.forward(&out).await
            }
        }
    }
}

/// The message by which a client says goodbye.
fn end_of_session() -> BytesMut {
    let mut out = BytesMut::new();
    frontend::terminate(&mut out);
    out
}

fn refused(name: &str) -> End {
    End::Refused(name.chars().take(MAX_WORD_CHARS).collect::<String>().to_uppercase())
}

fn not_text() -> End {
    End::Guests("expected a statement in UTF-8".to_owned())
}

fn of_guest(error: WireError) -> End {
    match error {
        WireError::Ended | WireError::Io(_) => End::Guest,
        error => End::Guests(format!("expected shorter messages: {error}")),
    }
}

fn of_server(error: WireError) -> End {
    End::Servers(match error {
        // The text of the system names nothing that the reader can use.
        WireError::Io(_) => "the connection failed".to_owned(),
        error => error.to_string(),
    })
}
