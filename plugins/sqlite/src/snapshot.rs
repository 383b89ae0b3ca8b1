//! A connection to one snapshot of a database: opened so that nothing can be written, nothing else can be reached and no
//! query runs for ever; and used again from the beginning when somebody wrote meanwhile.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use belljar_guest::{Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::state::{Mode, State};
use crate::store::Database;

/// How long one call may look for a moment in which nobody writes.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How long a query may run: less than what the host gives a call, so that it is told what ran too long.
const QUERY_TIME: Duration = Duration::from_millis(1000);

/// How many of SQLite's own steps a query may take. They take 20 to 150 instructions each, and the host gives a call five
/// thousand million.
const STEPS: u32 = 20_000_000;

/// How often a query is looked at, in steps.
const LOOK: u32 = 20_000;

/// What SQLite may hold, in bytes: what the host gives a call is enough for this and for an answer.
const HEAP: u64 = 36 * 1024 * 1024;

/// Runs `work` on a snapshot of `database`, several times if need be.
///
/// Fails with [`Error::Unavailable`] when it is written to all the time.
pub(crate) fn of<T>(database: &Database, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        let before = State::of(&database.path)?;
        let reason = if let Some(obstacle) = before.obstacle() {
            obstacle
        } else if let Some(rest) = before.unsettled(SystemTime::now()) {
            // What is written in the same tick could not be told from what is there now.
            pause = rest.max(Duration::from_millis(2));
            "it is being written to all the time".to_owned()
        } else {
            let result = connect(&database.path, before.mode()).and_then(|connection| work(&connection));
            if State::of(&database.path).is_ok_and(|after| before.held(&after)) {
                return result;
            }
            "it was written to each time that it was being read; a database in WAL mode can be read meanwhile"
                .to_owned()
        };
        if began.elapsed() + pause > PATIENCE {
            return Err(Error::unavailable(reason));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Opens a file that nobody writes to for the moment.
fn connect(path: &Path, mode: Mode) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match mode {
        // No lock, and no look at what is beside it: that has been looked at.
        Mode::Alone => Connection::open_with_flags(uri(path, "?immutable=1"), flags),
        // Without locks, which are not to be had; with the index of the log in memory, which SQLite does for whoever has the
        // file for himself.
        Mode::WithLog => Connection::open_with_flags_and_vfs(uri(path, ""), flags, c"unix-none"),
    }
    .map_err(error)?;
    let settings = format!(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; \
         PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; PRAGMA cache_size = -4000; PRAGMA hard_heap_limit = {HEAP};"
    );
    connection.execute_batch(&settings).map_err(error)?;
    for (switch, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ] {
        connection.set_db_config(switch, on).map_err(error)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(error)?;
    connection.authorizer(Some(authorize)).map_err(error)?;
    let began = Instant::now();
    let mut looks = 0;
    let stop = move || {
        looks += 1;
        looks > STEPS / LOOK || began.elapsed() > QUERY_TIME
    };
    connection.progress_handler(LOOK as i32, Some(stop)).map_err(error)?;
    Ok(connection)
}

/// What a statement may do: read. The file is open for reading only, and could not be written to anyhow.
fn authorize(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name: "load_extension" | "fts3_tokenizer" } => Authorization::Deny,
        AuthAction::Function { .. } => Authorization::Allow,
        AuthAction::Pragma {
            pragma_name:
                "table_list" | "table_xinfo" | "index_list" | "index_xinfo" | "foreign_key_list" | "schema_version",
            pragma_value: _,
        } => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn uri(path: &Path, query: &str) -> String {
    let mut uri = String::from("file:");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(byte)),
            _ => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri + query
}

/// What an error of SQLite's is to a caller.
pub(crate) fn error(error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    match code {
        Some(ErrorCode::OperationInterrupted) => Error::failed(format_args!(
            "the query was stopped: it ran for longer than {} s or took more than {} million steps; ask for less, or give \
             the table an index that fits",
            QUERY_TIME.as_secs_f32(),
            STEPS / 1_000_000
        )),
        Some(ErrorCode::OutOfMemory) => Error::failed(format_args!(
            "the query was stopped: it needs more than {} MiB of memory; ask for less at once",
            HEAP >> 20
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::unavailable(error),
        Some(ErrorCode::NotADatabase) => Error::failed("the file is no SQLite database, or it is encrypted"),
        Some(ErrorCode::DatabaseCorrupt) => {
            Error::failed(format_args!("the database is damaged ({error}); look at it with  PRAGMA integrity_check"))
        }
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            Error::denied(format_args!("the statement does something else than read ({error})"))
        }
        _ => Error::failed(error),
    }
}
