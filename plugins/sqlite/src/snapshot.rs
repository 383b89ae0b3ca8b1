//! A read-only connection to one snapshot of a database. The connection cannot write or attach another file, and its
//! queries have limits of time, steps and memory. If a program writes during the read, the read starts again.

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

/// How long one call retries while other programs write.
const MAX_WAIT: Duration = Duration::from_millis(1500);

/// How long a query may run. Less than the host's limit for a call: the error of this limit names the query as the cause.
/// An hour in unit tests, which must not depend on the speed of the machine.
const QUERY_TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 1000 });

/// How many steps of SQLite's virtual machine a query may take. A step takes 20 to 150 instructions, and the
/// fuel of a call allows five thousand million.
const MAX_STEPS: u32 = 20_000_000;

/// The number of steps between two checks of a query's limits.
const CHECK_INTERVAL: u32 = 20_000;

/// The most memory that SQLite may allocate, in bytes. The answer needs the rest of the host's memory limit.
const MAX_HEAP: u64 = 36 * 1024 * 1024;

/// Runs `work` on a snapshot of `database`. Runs it again if the database was written to meanwhile.
///
/// Fails with [`Error::Unavailable`] if no attempt within 1.5 s was free of writes.
pub(crate) fn with<T>(database: &Database, work: impl Fn(&Connection) -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        let before = State::of(&database.path)?;
        let reason = if let Some(obstacle) = before.obstacle() {
            obstacle
        } else if let Some(rest) = before.settle_delay(SystemTime::now()) {
            // A second write within the same clock tick would not change the modification time.
            pause = rest.max(Duration::from_millis(2));
            "the database is being written to all the time; try again".to_owned()
        } else {
            let result = connect(&database.path, before.mode()).and_then(|connection| work(&connection));
            if State::of(&database.path).is_ok_and(|after| before.is_same_snapshot(&after)) {
                return result;
            }
            "the database was written to during every attempt to read it; a database in WAL mode can be read during writes"
                .to_owned()
        };
        if began.elapsed() + pause > MAX_WAIT {
            return Err(Error::unavailable(reason));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Opens a database file. The caller checks before and after that no program wrote.
fn connect(path: &Path, mode: Mode) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match mode {
        // `immutable` means no locks and no search for journals: `State` has checked for them.
        Mode::FileOnly => Connection::open_with_flags(uri(path, "?immutable=1"), flags),
        // A read-only sandbox cannot take locks, hence `unix-none`. With `locking_mode = EXCLUSIVE`, SQLite keeps the index
        // of the write-ahead log in memory instead of shared memory.
        Mode::WithLog => Connection::open_with_flags_and_vfs(uri(path, ""), flags, c"unix-none"),
    }
    .map_err(error)?;
    let settings = format!(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; \
         PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0; PRAGMA cache_size = -4000; PRAGMA hard_heap_limit = {MAX_HEAP};"
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
    let mut checks = 0;
    let stop = move || {
        checks += 1;
        checks > MAX_STEPS / CHECK_INTERVAL || began.elapsed() > QUERY_TIME
    };
    connection.progress_handler(CHECK_INTERVAL as i32, Some(stop)).map_err(error)?;
    Ok(connection)
}

/// Allows statements that read, and denies everything else. The file is also opened read-only.
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

/// Converts an error of SQLite to an error of the provider.
pub(crate) fn error(error: rusqlite::Error) -> Error {
    let code = error.sqlite_error_code();
    match code {
        Some(ErrorCode::OperationInterrupted) => Error::failed(format_args!(
            "the query was stopped: it ran for longer than {} s or took more than {} million steps; ask for less, or give \
             the table an index that fits",
            QUERY_TIME.as_secs_f32(),
            MAX_STEPS / 1_000_000
        )),
        Some(ErrorCode::OutOfMemory) => Error::failed(format_args!(
            "the query was stopped: it needs more than {} MiB of memory; ask for less at once",
            MAX_HEAP >> 20
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::unavailable(error),
        Some(ErrorCode::NotADatabase) => Error::failed("the file is not an SQLite database, or it is encrypted"),
        Some(ErrorCode::DatabaseCorrupt) => {
            Error::failed(format_args!("the database is damaged ({error}); run  PRAGMA integrity_check  to see how"))
        }
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            Error::denied(format_args!("the statement does more than read ({error})"))
        }
        _ => Error::failed(error),
    }
}
