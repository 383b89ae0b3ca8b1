//! A connection to the granted database: the beginning, batches of queries, and their results as text. Knows PostgreSQL's
//! protocol (version 3), and no table.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use belljar_guest::Error;
use bytes::{Buf as _, BytesMut};
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::IsNull;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;

use crate::failure::{Failure, Outcome, ServerError};
use crate::row::{Field, Row};

/// The longest message that is read, in bytes. A row is one message, and a call has 64 MiB of memory by default.
const MAX_MESSAGE: usize = 20 * 1024 * 1024;

/// The oldest server.
const OLDEST: u32 = 14;

/// How much is read at once.
const CHUNK: usize = 32 * 1024;

/// The settings of the session. The texts of values depend on them.
const SETTINGS: [(&str, &str); 7] = [
    ("application_name", "belljar"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("datestyle", "ISO, YMD"),
    ("extra_float_digits", "1"),
    ("intervalstyle", "iso_8601"),
    ("timezone", "UTC"),
];

/// The first statement. belljar sets `statement_timeout` to the time that the call has left; a statement that ends a little
/// earlier leaves the time to say why. Compiling expressions pays for long queries only.
const SETUP: &str = "SELECT set_config('statement_timeout', (extract(epoch FROM current_setting('statement_timeout')::interval) * 800)::bigint::text, false), set_config('jit', 'off', false), set_config('default_transaction_read_only', 'on', false)";

/// Where the grant says the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
    pub(crate) user: String,
}

/// A statement with the values of `$1`, `$2`, ...
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) sql: String,
    pub(crate) values: Vec<Option<String>>,
    /// The most rows that the server sends; 0 for all.
    pub(crate) max_rows: i32,
    /// True if the server sends values in their binary form.
    pub(crate) is_binary: bool,
}

impl Query {
    pub(crate) fn new(sql: impl Into<String>, values: Vec<Option<String>>) -> Query {
        Query { sql: sql.into(), values, ..Query::default() }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    incoming: BytesMut,
    /// True until the first batch is sent.
    is_new: bool,
    /// The database.
    pub(crate) destination: Destination,
}

/// The results of a batch, in the order of its queries.
pub(crate) struct Results<'a> {
    connection: &'a mut Connection,
    /// Batches to skip before the first result.
    before: usize,
}

impl Destination {
    /// Reads the variables that the grant sets.
    pub(crate) fn granted() -> Outcome<Destination> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let host = variable("PGHOST").ok_or_else(|| {
            Error::denied(
                "no database is granted: this mount needs a grant \"postgres\", as in  postgres = [{ at = \
                 \"db.internal:5432/shop\", user = \"reader\", password = \"${secret:shop}\" }]",
            )
        })?;
        let port = variable("PGPORT").and_then(|port| port.parse().ok()).unwrap_or(5432);
        let of = |name: &str| variable(name).unwrap_or_default();
        Ok(Destination { host, port, database: of("PGDATABASE"), user: of("PGUSER") })
    }
}

impl Connection {
    /// Connects to the granted database.
    pub(crate) fn open() -> Outcome<Connection> {
        let destination = Destination::granted()?;
        let stream = TcpStream::connect((destination.host.as_str(), destination.port)).map_err(|error| {
            let Destination { host, port, .. } = &destination;
            Error::unavailable(format_args!("cannot connect to the database at \"{host}:{port}\": {error}"))
        })?;
        let mut connection = Connection { stream, incoming: BytesMut::new(), is_new: true, destination };
        let mut out = BytesMut::new();
        let Destination { user, database, .. } = &connection.destination;
        let own = [("user", user.as_str()), ("database", database.as_str())];
        frontend::startup_message(own.into_iter().chain(SETTINGS), &mut out).map_err(lost)?;
        connection.stream.write_all(&out).map_err(lost)?;
        loop {
            match connection.message()? {
                Message::ReadyForQuery(_) => return Ok(connection),
                Message::ErrorResponse(body) => return Err(ServerError::of(&body).into()),
                Message::ParameterStatus(body) if body.name().is_ok_and(|name| name == "server_version") => {
                    check_version(body.value().unwrap_or_default())?;
                }
                Message::AuthenticationOk
                | Message::ParameterStatus(_)
                | Message::BackendKeyData(_)
                | Message::NoticeResponse(_) => {}
                _ => {
                    return Err(Error::denied(
                        "the database asks for a login: expected a grant \"postgres\", which logs in",
                    )
                    .into());
                }
            }
        }
    }

    /// Sends the queries as one transaction.
    pub(crate) fn send(&mut self, queries: &[Query]) -> Outcome<Results<'_>> {
        let mut out = BytesMut::new();
        let mut before = 0;
        if self.is_new {
            write(&Query::new(SETUP, Vec::new()), &mut out)?;
            frontend::sync(&mut out);
            (self.is_new, before) = (false, 1);
        }
        for query in queries {
            write(query, &mut out)?;
        }
        frontend::sync(&mut out);
        self.stream.write_all(&out).map_err(lost)?;
        Ok(Results { connection: self, before })
    }

    /// Sends the queries, and collects all rows of each.
    pub(crate) fn all(&mut self, queries: &[Query]) -> Outcome<VecDeque<Vec<Row>>> {
        let mut results = self.send(queries)?;
        let mut all = VecDeque::with_capacity(queries.len());
        for _ in queries {
            results.columns()?;
            let mut rows = Vec::new();
            while let Some(row) = results.row()? {
                rows.push(row);
            }
            all.push_back(rows);
        }
        results.finish()?;
        Ok(all)
    }

    /// Receives the next message.
    fn message(&mut self) -> Outcome<Message> {
        loop {
            let mut missing = CHUNK;
            if let Some(header) = Header::parse(&self.incoming).map_err(lost)? {
                let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
                if length > MAX_MESSAGE {
                    return Err(Error::failed(format_args!(
                        "a row has {length} bytes: expected at most {MAX_MESSAGE}; ask for fewer columns, or for a part of \
                         the value, as in substr(column, 1, 100000)"
                    ))
                    .into());
                }
                // Memory for the whole message at once: growing would need up to three times as much.
                missing = (length + 1).saturating_sub(self.incoming.len()).max(CHUNK);
            }
            if let Some(message) = Message::parse(&mut self.incoming).map_err(lost)? {
                return Ok(message);
            }
            let filled = self.incoming.len();
            self.incoming.reserve(missing);
            self.incoming.resize(filled + CHUNK, 0);
            let (_, free) = self.incoming.split_at_mut(filled);
            let read = self.stream.read(free).map_err(lost)?;
            self.incoming.truncate(filled + read);
            if read == 0 {
                return Err(Error::unavailable("the database ended the connection").into());
            }
        }
    }
}

impl Results<'_> {
    /// The columns of the next query. Empty if it has no rows.
    pub(crate) fn columns(&mut self) -> Outcome<Vec<Field>> {
        loop {
            match self.next()? {
                Message::RowDescription(body) => {
                    let fields =
                        body.fields().map(|field| Ok(Field { name: field.name().to_owned(), oid: field.type_oid() }));
                    return fields.collect().map_err(lost);
                }
                Message::NoData => return Ok(Vec::new()),
                Message::ParseComplete | Message::BindComplete => {}
                _ => return Err(unexpected()),
            }
        }
    }

    /// The next row of the query. `None` after the last one.
    pub(crate) fn row(&mut self) -> Outcome<Option<Row>> {
        match self.next()? {
            Message::DataRow(body) => Row::of(&body).map(Some).map_err(lost),
            Message::CommandComplete(_) | Message::EmptyQueryResponse | Message::PortalSuspended => Ok(None),
            _ => Err(unexpected()),
        }
    }

    /// Skips what is left of the batch.
    pub(crate) fn finish(mut self) -> Outcome<()> {
        self.skip()
    }

    fn skip(&mut self) -> Outcome<()> {
        loop {
            match self.connection.message()? {
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => {
                    let error = ServerError::of(&body);
                    self.skip()?;
                    return Err(error.into());
                }
                _ => {}
            }
        }
    }

    /// The next message that is not a notice. An error ends the batch.
    fn next(&mut self) -> Outcome<Message> {
        while self.before > 0 {
            self.skip()?;
            self.before -= 1;
        }
        loop {
            match self.connection.message()? {
                Message::NoticeResponse(_) | Message::ParameterStatus(_) => {}
                Message::ErrorResponse(body) => {
                    let error = ServerError::of(&body);
                    // belljar ends the connection after its own errors.
                    if !error.is_fatal {
                        self.skip()?;
                    }
                    return Err(error.into());
                }
                message => return Ok(message),
            }
        }
    }
}

fn write(query: &Query, out: &mut BytesMut) -> Outcome<()> {
    if query.sql.contains('\0') || query.values.iter().flatten().any(|value| value.contains('\0')) {
        return Err(Error::invalid("the text has a zero byte, which PostgreSQL cannot store").into());
    }
    frontend::parse("", &query.sql, [], out).map_err(lost)?;
    let value = |value: &Option<String>, out: &mut BytesMut| {
        Ok(match value {
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                IsNull::No
            }
            None => IsNull::Yes,
        })
    };
    let format = i16::from(query.is_binary);
    frontend::bind("", "", [], &query.values, value, [format], out)
        .map_err(|_| Error::invalid("too many values for one query"))?;
    frontend::describe(b'P', "", out).map_err(lost)?;
    frontend::execute("", query.max_rows, out).map_err(lost)
}

/// Refuses servers whose catalog lacks multiranges, and which cannot scan ranges of places.
fn check_version(version: &str) -> Outcome<()> {
    let major: Option<u32> = version.split(['.', ' ']).next().and_then(|major| major.parse().ok());
    match major {
        Some(major) if major < OLDEST => {
            Err(Error::failed(format_args!("the server is PostgreSQL \"{version}\": expected {OLDEST} or later"))
                .into())
        }
        _ => Ok(()),
    }
}

fn lost(error: std::io::Error) -> Failure {
    Error::unavailable(format_args!("the connection to the database failed: {error}")).into()
}

fn unexpected() -> Failure {
    Error::failed("the database does not keep to PostgreSQL's protocol").into()
}

/// Parses all messages of a stream, as a connection does. For the fuzzer.
pub(crate) fn parse_messages(bytes: &[u8]) {
    let mut incoming = BytesMut::from(bytes);
    while let Ok(Some(header)) = Header::parse(&incoming) {
        if usize::try_from(header.len()).map_or(true, |length| length > incoming.remaining()) {
            return;
        }
        match Message::parse(&mut incoming) {
            Ok(Some(Message::DataRow(body))) => drop(Row::of(&body)),
            Ok(Some(Message::ErrorResponse(body))) => drop(ServerError::of(&body)),
            Ok(Some(Message::RowDescription(body))) => drop(body.fields().count()),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}
