//! A read-only connection to one snapshot of a database. The connection cannot write or attach another file, and its
//! queries have limits of time, steps and memory. If a program writes during the read, the read starts again.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use belljar_guest::{Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::hooks::AuthContext;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::access;
use crate::modules;
use crate::schema::Catalog;
use crate::state::{Mode, State};
use crate::store::{self, Database};

/// How long one call retries while other programs write.
const MAX_WAIT: Duration = Duration::from_millis(1500);

/// How long a query may run. Less than the host's limit for a call: the error of this limit names the query as the cause.
/// An hour in unit tests, which must not depend on the speed of the machine.
const QUERY_TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 1000 });

/// How many steps of SQLite's virtual machine a query may take. A step takes 20 to 150 instructions, and the
/// fuel of a call allows five thousand million. Fewer in unit tests, which are compiled for debugging.
const MAX_STEPS: u32 = if cfg!(test) { 2_000_000 } else { 20_000_000 };

/// The number of steps between two checks of a query's limits.
const CHECK_INTERVAL: u32 = 20_000;

/// The most memory that SQLite may allocate in this process, in bytes; 0 is no limit. The answer needs the rest of the host's
/// memory limit. Unit tests share one process, where the limit of one call would stop others.
const MAX_HEAP: u64 = if cfg!(test) { 0 } else { 36 * 1024 * 1024 };

/// A connection to a database that no program changes meanwhile.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) connection: Connection,
    pub(crate) catalog: Catalog,
    /// The damage of the schema, if SQLite could not read all of it. The other tables can be read.
    pub(crate) damaged: Option<String>,
    budget: Budget,
}

/// How much a query may still take.
#[derive(Debug, Clone)]
struct Budget(Arc<Mutex<Spent>>);

#[derive(Debug)]
struct Spent {
    checks: u32,
    began: Instant,
}

impl Budget {
    fn new() -> Budget {
        Budget(Arc::new(Mutex::new(Spent { checks: 0, began: Instant::now() })))
    }

    fn spent(&self) -> std::sync::MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Counts one check. True if the query must stop.
    fn is_exceeded(&self) -> bool {
        let mut spent = self.spent();
        spent.checks += 1;
        spent.checks > MAX_STEPS / CHECK_INTERVAL || spent.began.elapsed() > QUERY_TIME
    }
}

impl Snapshot {
    /// Gives the next query its full time and steps.
    pub(crate) fn renew_budget(&self) {
        *self.budget.spent() = Spent { checks: 0, began: Instant::now() };
    }

    /// True if a query with this budget has taken half of it.
    pub(crate) fn is_half_spent(&self) -> bool {
        let spent = self.budget.spent();
        spent.checks > MAX_STEPS / CHECK_INTERVAL / 2 || spent.began.elapsed() > QUERY_TIME / 2
    }

    /// Fails unless all statements of the schema are UTF-8. SQL that this module does not write may name any of them.
    pub(crate) fn check_names(&self) -> Result<()> {
        match self.catalog.not_utf8.first() {
            None => Ok(()),
            Some(name) => Err(Error::failed(format_args!(
                "the CREATE statement of \"{name}\" has bytes that are not UTF-8: own SQL is not possible in this database; \
                 its other tables can be read"
            ))),
        }
    }
}

/// Runs `work` on a snapshot of `database`. Runs it again if the database was written to meanwhile.
///
/// Fails with [`Error::Unavailable`] if no attempt within 1.5 s was free of writes.
pub(crate) fn with<T>(database: &Database, work: impl Fn(&Snapshot) -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        let before = State::of(&database.path)?;
        if let Some(problem) = store::problem(before.head()) {
            return Err(Error::failed(problem));
        }
        let reason = if let Some(obstacle) = before.obstacle() {
            obstacle
        } else if let Some(rest) = before.settle_delay(SystemTime::now()) {
            // A second write within the same clock tick would not change the modification time.
            pause = rest.max(Duration::from_millis(2));
            "the database is being written to all the time; try again".to_owned()
        } else {
            let result = open(&database.path, before.mode()).and_then(|snapshot| work(&snapshot));
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
fn open(path: &Path, mode: Mode) -> Result<Snapshot> {
    let connected = |lenient| {
        let connection = connect(path, mode, lenient)?;
        let catalog = Catalog::of(&connection)?;
        Ok((connection, catalog))
    };
    match connected(false) {
        Ok((connection, catalog)) => guard(connection, catalog, None),
        // SQLite can leave out the tables whose statements it cannot read.
        Err(Error::Failed(why)) if why.contains("malformed database schema") => match connected(true) {
            Ok((connection, catalog)) => guard(connection, catalog, Some(why)),
            Err::<_, Error>(_) => Err(Error::Failed(why)),
        },
        Err(error) => Err(error),
    }
}

/// Opens a connection for reading. If `lenient` is true, SQLite ignores statements of the schema that it cannot read.
fn connect(path: &Path, mode: Mode, lenient: bool) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match mode {
        // `immutable` means no locks and no search for journals: `State` has checked for them.
        Mode::FileOnly => Connection::open_with_flags(uri(path, "?immutable=1"), flags),
        // A read-only sandbox cannot take locks, hence `unix-none`. With `locking_mode = EXCLUSIVE`, SQLite keeps the index
        // of the write-ahead log in memory instead of shared memory.
        Mode::WithLog => Connection::open_with_flags_and_vfs(uri(path, ""), flags, c"unix-none"),
    }
    .map_err(error)?;
    // No function or module from outside is registered, and the authorizer also checks the statements of the schema. So the
    // schema may use what callers may use.
    let locking = if mode == Mode::WithLog { "PRAGMA locking_mode = EXCLUSIVE;" } else { "" };
    // The defensive mode below takes the other meaning of this pragma away: writing to the schema.
    let lenient = if lenient { "PRAGMA writable_schema = ON;" } else { "" };
    let settings = format!(
        "{locking} {lenient} PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON; \
         PRAGMA trusted_schema = ON; PRAGMA cache_size = -4000; PRAGMA hard_heap_limit = {MAX_HEAP};"
    );
    connection.execute_batch(&settings).map_err(error)?;
    for (switch, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
        // Views of the database may have texts in double quotes. This module names columns that exist.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, true),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ] {
        connection.set_db_config(switch, on).map_err(error)?;
    }
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(error)?;
    Ok(connection)
}

/// Sets the authorizer and the bounds of queries.
fn guard(mut connection: Connection, catalog: Catalog, damaged: Option<String>) -> Result<Snapshot> {
    let rtree_shadows = catalog.rtree_shadows();
    let authorize = move |context: AuthContext<'_>| access::authorize(&context, &rtree_shadows);
    connection.authorizer(Some(authorize)).map_err(error)?;
    let budget = Budget::new();
    let watched = budget.clone();
    connection.progress_handler(CHECK_INTERVAL as i32, Some(move || watched.is_exceeded())).map_err(error)?;
    Ok(Snapshot { connection, catalog, damaged, budget })
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
        Some(ErrorCode::NotADatabase) => Error::failed(store::NOT_A_DATABASE),
        Some(ErrorCode::DatabaseCorrupt) => {
            Error::failed(format_args!("the database is damaged ({error}); run  PRAGMA integrity_check  to see how"))
        }
        Some(ErrorCode::TooBig) => Error::failed(format_args!(
            "a value or a statement is too large for SQLite ({error}); ask for less at once"
        )),
        Some(ErrorCode::AuthorizationForStatementDenied) => {
            Error::denied(format_args!("the statement does more than read ({error})"))
        }
        _ => {
            let message = error.to_string();
            Error::failed(modules::explain(&message).unwrap_or(message))
        }
    }
}
