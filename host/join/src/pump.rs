//! Passes lines between the client of standard input and output, and the belljar that serves it.
//!
//! Two threads: one reads from the client, the calling thread from belljar. What they know together is a [`Conversation`].

use std::fs::File;
use std::io::{self, Write as _};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::conversation::Conversation;
use crate::lend::{DRAIN, Passed, Receipts};
use crate::lines::{Lines, ReadLines};
use crate::socket_files::SocketFiles;
use crate::successor::{self, Connection};

/// The longest line of a client that is kept whole, in bytes. belljar refuses longer messages.
const MAX_LINE: usize = 1 << 20;

/// The stack of the thread that reads from the client, in bytes. It parses the heads of messages.
const STACK: usize = 256 << 10;

/// A connection that lasted less than this does not count as one that served.
const SHORT: Duration = Duration::from_secs(1);

/// The connections in a row that may fail before requests are answered with an error.
const MAX_SHORT: u32 = 4;

/// The longest pause before the next connection, after several short ones.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// The direction to belljar.
#[derive(Default)]
struct ToServer {
    /// `None` while no belljar is connected.
    stream: Option<UnixStream>,
    /// What belljar says of the answers that it writes to the client itself.
    receipts: Option<Receipts>,
    /// True if a request waits for a belljar.
    has_request: bool,
    /// True if the client's input has ended.
    has_ended: bool,
}

/// What the two threads share. Locked in this order.
#[derive(Default)]
struct Shared {
    to_server: Mutex<ToServer>,
    /// Notified when a request waits for a belljar, and when the client's input ends.
    changed: Condvar,
    conversation: Mutex<Conversation>,
}

impl ToServer {
    /// Notes the answers that belljar has written to the client itself.
    fn take_receipts(&mut self, conversation: &mut Conversation) {
        if let Some(receipts) = &mut self.receipts {
            receipts.take(|id| conversation.note_written(id));
        }
    }
}

impl Shared {
    fn to_server(&self) -> MutexGuard<'_, ToServer> {
        self.to_server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a connection ended.
enum End {
    /// belljar has ended.
    Server,
    /// belljar refuses the connection. Holds its reason.
    Refused(String),
    /// The client takes no more answers.
    Client,
}

/// Serves the client of standard input and output through the belljar at the other end of `stream`, and through those
/// that follow it, until the client leaves.
///
/// # Errors
/// If the standard streams cannot be used.
pub fn serve_client(files: &SocketFiles, stream: UnixStream) -> io::Result<()> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut client = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let shared = Arc::new(Shared::default());
    let mut next = Some(Serving::begin(&mut shared.to_server(), successor::greet(stream)?)?);
    let of_input = Arc::clone(&shared);
    std::thread::Builder::new().stack_size(STACK).spawn(move || read_client(input, &of_input))?;
    // The connections in a row that did not last.
    let mut short = 0_u32;
    loop {
        let since = Instant::now();
        let refused = match next.take().map(|serving| read_server(serving, &shared, &mut client)) {
            Some(End::Client) => return Ok(()),
            Some(End::Refused(why)) => Some(why),
            Some(End::Server) | None => None,
        };
        short = if since.elapsed() < SHORT { short + 1 } else { 0 };
        if disconnect(&shared, &mut client).is_err() {
            return Ok(());
        }
        if shared.to_server().has_ended {
            let _ = put(&mut client, shared.conversation().give_up("belljar ended before it answered"));
            return Ok(());
        }
        if short > 1 {
            std::thread::sleep(MAX_PAUSE.min(Duration::from_millis(25) * 2_u32.saturating_pow(short)));
        }
        let connected = match refused {
            Some(why) => Err(GiveUp::Now(why)),
            None => successor::connect(files)
                .map_err(|why| GiveUp::Now(why.to_string()))
                .and_then(|connection| resume(connection, &shared)),
        };
        match connected {
            Ok(serving) => next = Some(serving),
            // It may have ended just now, and another one starts.
            Err(GiveUp::Later(_)) if short < MAX_SHORT => {}
            Err(GiveUp::Now(why) | GiveUp::Later(why)) => {
                if put(&mut client, shared.conversation().give_up(&why)).is_err() {
                    return Ok(());
                }
                wait_for_request(&shared);
                short = 0;
            }
        }
    }
}

/// The direction from belljar.
struct Serving {
    stream: UnixStream,
    /// Tells belljar how much was passed on. `None` if belljar writes nothing to the client itself.
    passed: Option<Passed>,
}

impl Serving {
    /// Uses a connection: the direction to belljar, and the other one.
    ///
    /// # Errors
    /// If this process has no free descriptor.
    fn begin(to_server: &mut ToServer, connection: Connection) -> io::Result<Self> {
        to_server.stream = Some(connection.stream.try_clone()?);
        let (receipts, passed) = connection.lent.unzip();
        to_server.receipts = receipts;
        Ok(Self { stream: connection.stream, passed })
    }
}

/// Why no belljar serves the client. Holds the message for the client.
enum GiveUp {
    /// Another attempt is of no use now.
    Now(String),
    /// The next attempt may succeed.
    Later(String),
}

/// Passes lines from the client on, until its input ends.
fn read_client(input: File, shared: &Shared) {
    let mut lines = Lines::new(input, MAX_LINE + 1);
    let mut passed = Vec::new();
    let mut pass = |reading: ReadLines<'_>| {
        let mut to_server = shared.to_server();
        let bytes = match reading {
            ReadLines::Part(bytes) => bytes,
            ReadLines::Lines(bytes) => {
                let mut conversation = shared.conversation();
                to_server.take_receipts(&mut conversation);
                passed.clear();
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    if let Some(line) = conversation.note_client(line.trim_ascii_end()) {
                        append(&mut passed, &line);
                    }
                }
                &passed
            }
        };
        match &mut to_server.stream {
            // An error is also seen by the thread that reads from belljar, which sends the request again.
            Some(stream) => drop(stream.write_all(bytes)),
            None => {
                to_server.has_request = true;
                shared.changed.notify_all();
            }
        }
        Ok(())
    };
    while lines.next(&mut pass).unwrap_or(false) {}
    let mut to_server = shared.to_server();
    to_server.has_ended = true;
    to_server.stream.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Write)));
    shared.changed.notify_all();
}

/// Passes lines of belljar on, until one side ends.
fn read_server(serving: Serving, shared: &Shared, client: &mut File) -> End {
    let Serving { stream, passed: mut told } = serving;
    let mut lines = Lines::new(stream, usize::MAX);
    let (mut passed, mut refused) = (Vec::new(), None);
    let mut is_client_gone = false;
    let mut pass = |reading: ReadLines<'_>| {
        let (ReadLines::Lines(bytes) | ReadLines::Part(bytes)) = reading;
        passed.clear();
        let mut conversation = shared.conversation();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line == DRAIN {
                passed.extend(told.iter_mut().flat_map(|told| told.tray.take()));
                continue;
            }
            let line = line.trim_ascii_end();
            if let Some(why) = successor::refused(line) {
                refused = Some(why);
            } else if let Some(line) = conversation.note_server(line) {
                append(&mut passed, &line);
            }
        }
        drop(conversation);
        let written = client.write_all(&passed);
        is_client_gone |= written.is_err();
        if let Some(told) = &mut told {
            told.add(bytes.len());
        }
        passed.shrink_to(KEPT);
        written
    };
    while lines.next(&mut pass).unwrap_or(false) {}
    match refused {
        _ if is_client_gone => End::Client,
        Some(why) => End::Refused(why),
        None => End::Server,
    }
}

/// A longer buffer gives its memory back.
const KEPT: usize = 256 << 10;

fn append(lines: &mut Vec<u8>, line: &[u8]) {
    lines.extend_from_slice(line);
    lines.push(b'\n');
}

/// Notes that belljar has ended, and tells the client what it must know.
fn disconnect(shared: &Shared, client: &mut File) -> io::Result<()> {
    // First ends a write that waits for the old belljar.
    let mut to_server = shared.to_server();
    to_server.stream = None;
    let mut conversation = shared.conversation();
    to_server.take_receipts(&mut conversation);
    let left = match to_server.receipts.take() {
        Some(mut receipts) => receipts.left_in_tray(|id| conversation.note_written(id)),
        None => Vec::new(),
    };
    let lost = conversation.lost();
    drop((conversation, to_server));
    client.write_all(&left)?;
    put(client, lost)
}

/// Opens the session of the client at the next belljar, and sends it what was not answered.
///
/// # Errors
/// If this belljar ends meanwhile, or refuses the session.
fn resume(mut connection: Connection, shared: &Arc<Shared>) -> Result<Serving, GiveUp> {
    const FAILED: &str = "belljar ended while it opened the session again; its log has the reason: belljar status";
    let opening = shared.conversation().opening();
    if let Some(opening) = opening {
        let answered = successor::open(&mut connection.stream, &opening);
        let length = answered.map_err(|_| GiveUp::Later(FAILED.to_owned()))?;
        if let Some((_, passed)) = &mut connection.lent {
            passed.add(length);
        }
    }
    let no_memory = |error: io::Error| GiveUp::Now(format!("belljar cannot be joined: {error}"));
    let mut to_server = shared.to_server();
    let mut conversation = shared.conversation();
    let lines = conversation.resend();
    let serving = Serving::begin(&mut to_server, connection).map_err(no_memory)?;
    to_server.has_request = false;
    if to_server.has_ended {
        to_server.stream.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Write)));
    }
    drop((conversation, to_server));
    if !lines.is_empty() {
        // A thread of its own: belljar may take no more lines before its answers are read.
        let shared = Arc::clone(shared);
        std::thread::Builder::new()
            .stack_size(STACK)
            .spawn(move || {
                if let Some(stream) = &mut shared.to_server().stream {
                    let _ = stream.write_all(&joined(lines));
                }
            })
            .map_err(no_memory)?;
    }
    Ok(serving)
}

/// Waits until a request needs a belljar, or the client's input ends.
fn wait_for_request(shared: &Shared) {
    let to_server = shared.to_server();
    let waits = |state: &mut ToServer| !state.has_request && !state.has_ended;
    let mut to_server = shared.changed.wait_while(to_server, waits).unwrap_or_else(PoisonError::into_inner);
    to_server.has_request = false;
}

fn joined(lines: Vec<Vec<u8>>) -> Vec<u8> {
    let mut all = Vec::new();
    lines.iter().for_each(|line| append(&mut all, line));
    all
}

/// Writes lines to the client.
fn put(client: &mut File, lines: Vec<Vec<u8>>) -> io::Result<()> {
    if lines.is_empty() { Ok(()) } else { client.write_all(&joined(lines)) }
}
