//! A real PostgreSQL server for tests: Debian's, with its data in a directory of its own, on a free port of loopback.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::Authority;

/// The password of the administrator and of the users that [`PostgresServer::run`] may create.
pub const PASSWORD: &str = "c0rrect-horse-battery";

/// The user who owns the server's files if the tests run as root: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

/// The longest time that a server takes to start on a crowded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many servers this process has started. Each has a directory of its own.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A running server. It ends when this value is dropped, or with the process of the tests.
pub struct PostgresServer {
    process: Child,
    port: u16,
    programs: PathBuf,
}

impl PostgresServer {
    /// Starts a server with a certificate of `authority` for `names`. PostgreSQL's other programs are beside `initdb`.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn start(initdb: &Path, authority: &Authority, names: &[&str]) -> PostgresServer {
        let programs = initdb.parent().expect("a program is in a folder").to_owned();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("belljar-postgres-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the server");
        let owner = Owner::choose();
        let (certificate, key) = authority.pair(names);
        fs::write(directory.join("server.crt"), certificate).expect("the certificate");
        private(&directory.join("server.key"), &key);
        private(&directory.join("password"), PASSWORD);
        for path in
            [&directory, &directory.join("server.key"), &directory.join("server.crt"), &directory.join("password")]
        {
            owner.give(path);
        }
        let data = directory.join("data");
        let mut init = owner.command(initdb);
        init.arg("--pgdata").arg(&data).args(["--no-sync", "--auth=scram-sha-256", "--username=postgres"]);
        init.args(["--encoding=UTF8", "--locale=C.UTF-8"]).arg("--pwfile").arg(directory.join("password"));
        let made = init.output().expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        // The shell ends the server, and removes its files, when the pipe to it closes: then this process is over, however it
        // ended.
        let mut shell = owner.command(Path::new("/bin/sh"));
        let script = "directory=$1; shift; \"$@\" & read -r _; kill -INT $!; wait; rm -rf \"$directory\"";
        shell.args(["-c", script, "sh"]).arg(&directory).arg(programs.join("postgres"));
        shell.arg("-D").arg(&data).args(["-p", &port.to_string()]);
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            "unix_socket_directories=".to_owned(),
            "fsync=off".to_owned(),
            "shared_buffers=64MB".to_owned(),
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", directory.join("server.crt").display()),
            format!("ssl_key_file={}", directory.join("server.key").display()),
        ];
        for setting in settings {
            shell.args(["-c", &setting]);
        }
        let log = fs::File::create(directory.join("log")).expect("a log");
        let errors = log.try_clone().expect("a log");
        let process = shell.stdin(Stdio::piped()).stdout(log).stderr(errors).spawn().expect("the server");
        let server = PostgresServer { process, port, programs };
        let begin = Instant::now();
        while let Err(why) = server.query("postgres", "SELECT 1") {
            assert!(begin.elapsed() < PATIENCE, "the server does not start: {why}");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// The port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The administrator's `psql` with these arguments, in `database`.
    pub fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-U", "postgres", "-d", database]);
        psql.env("PGPASSWORD", PASSWORD);
        psql
    }

    /// Runs SQL as the administrator. Returns the rows, as `psql` prints them.
    ///
    /// # Errors
    /// What `psql` says.
    pub fn query(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = self
            .psql(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        if let Some(mut input) = psql.stdin.take() {
            input.write_all(sql.as_bytes()).map_err(|error| error.to_string())?;
        }
        let output = psql.wait_with_output().map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Runs SQL as the administrator.
    ///
    /// # Panics
    /// If the server refuses it.
    pub fn run(&self, database: &str, sql: &str) -> String {
        self.query(database, sql).unwrap_or_else(|why| panic!("{why}\n{sql}"))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Writes a file that only its owner reads.
fn private(path: &Path, text: &str) {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).expect("a new file");
    file.write_all(text.as_bytes()).expect("a file");
    fs::set_permissions(path, Permissions::from_mode(0o600)).expect("a file of one's own");
}

/// The user who runs the server.
enum Owner {
    /// The user of the tests.
    Own,
    /// Another user: the tests run as root.
    Nobody,
}

impl Owner {
    fn choose() -> Owner {
        let id = Command::new("id").arg("-u").output().expect("id");
        if id.stdout == b"0\n" { Owner::Nobody } else { Owner::Own }
    }

    fn give(&self, path: &Path) {
        if matches!(self, Owner::Nobody) {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("a file for another user");
        }
    }

    fn command(&self, program: &Path) -> Command {
        match self {
            Owner::Own => Command::new(program),
            Owner::Nobody => {
                let mut command = Command::new("setpriv");
                let id = NOBODY.to_string();
                command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(program);
                command
            }
        }
    }
}
