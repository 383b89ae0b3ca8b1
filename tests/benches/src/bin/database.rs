//! Compares a page of 100 rows through `postgres` with `psql`: the same rows of a table of 1,000,000, over TLS, from a warm
//! server. Wall time, because most of it is spent in the server.
//!
//! `psql` starts a process for each page, as a person would. The last column is a `psql` that stays connected.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio as Pipe};
use std::time::{Duration, Instant};

use belljar_benches::{Record, Samples};
use belljar_tests::{Client, Era, Site, Stdio, debian, places, process};
use belljar_upstream::postgres::{PASSWORD, PostgresServer};
use belljar_upstream::{Authority, DnsServer};

/// Rounds, if the command line names no number.
const ROUNDS: u32 = 60;

/// The rows of the table.
const ROWS: u32 = 1_000_000;

/// The rows of a page.
const PAGE: u32 = 100;

/// The line that the connected `psql` prints after a page.
const END: &str = "end of the page";

const TABLE: &str = "
CREATE ROLE reader LOGIN PASSWORD 'c0rrect-horse-battery';
CREATE TABLE measurement (id int PRIMARY KEY, station text NOT NULL, at timestamptz NOT NULL, value numeric(8, 2), note text);
INSERT INTO measurement SELECT n, 'station ' || n % 100, timestamptz '2026-01-01 00:00Z' + n * interval '1 second', n % 6000 / 100.0,
  repeat('measured by hand ', n % 3) FROM generate_series(1, 1000000) AS n;
GRANT SELECT ON measurement TO reader;
VACUUM ANALYZE measurement;
";

fn main() {
    let Some(initdb) = places::program(&debian::POSTGRESQL) else {
        println!("left out: PostgreSQL, which `cargo xtask test` installs");
        return;
    };
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let authority = Authority::new();
    let server = PostgresServer::start(&initdb, &authority, &["db.test"]);
    server.run("postgres", TABLE);
    let names = DnsServer::start(&[("db.test", &["127.0.0.1"])]);
    let site = site(&server, &authority, &names);
    let mut client = site.stdio(Era::Stateless);
    let mut session = Session::start(&server);
    let mut record = Record::new();
    println!("\nA page of {PAGE} rows of a table of {ROWS}: wall time\n");
    println!("| page | belljar, ms | psql, ms | ratio | connected psql, ms |\n|---|---|---|---|---|");
    for (name, first) in [("first", 0), ("middle", ROWS / 2), ("last", ROWS - PAGE - rounds)] {
        let mut samples = [Samples::default(), Samples::default(), Samples::default()];
        let [own, psql, connected] = &mut samples;
        // Each round reads another page, so no answer comes from a cache.
        for round in 0..rounds {
            let after = first + round;
            own.add(timed(|| read(&mut client, after)), 1);
            psql.add(timed(|| run_psql(&server, after)), 1);
            connected.add(timed(|| session.read(after)), 1);
        }
        let [of_own, of_psql, of_connected] = [&*own, &*psql, &*connected].map(|side| side.median() / 1000.0);
        let ratio = of_own / of_psql;
        println!("| {name} | {of_own:.1} | {of_psql:.1} | {ratio:.2}x | {of_connected:.1} |");
        record.row("a page of 100 rows through postgres", name, "us", &own.0);
        record.note(&format!("psql takes {of_psql:.1} ms: {ratio:.2}x"));
    }
    record.hand_over().expect("a file that can be written");
}

/// A site with the provider and its grant, compiled.
fn site(server: &PostgresServer, authority: &Authority, names: &DnsServer) -> Site {
    let site = Site::new();
    site.mount("postgres");
    site.config(&format!(
        "[mounts.postgres]\npostgres = [{{ at = \"db.test:{}/postgres\", user = \"reader\", password = \"${{secret:reader}}\", networks = [\"127.0.0.1\"] }}]\n\
         [network]\ndns = [\"{}\"]\nca = \"ca.pem\"\n[secrets]\nreader = {{ file = \"password\" }}\n",
        server.port(),
        names.address()
    ));
    site.write("ca.pem", authority.pem());
    let password = site.write("password", PASSWORD);
    std::fs::set_permissions(password, PermissionsExt::from_mode(0o600)).expect("a file of this user");
    let compiled = process::run(site.command(site.arguments(&["check", "--compile"])), Duration::from_secs(600));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    site
}

/// The wall time of `run` in nanoseconds.
fn timed(run: impl FnOnce()) -> u64 {
    let began = Instant::now();
    run();
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Reads the page after a row through belljar.
fn read(client: &mut Client<Stdio>, after: u32) {
    let page = client.text(&format!("belljar://postgres/tables/measurement?after={after}&limit={PAGE}"));
    assert!(page.contains(&format!("\"id\":{}", after + PAGE)) || page.contains(&format!("\"id\": {}", after + PAGE)));
}

/// The same page as SQL.
fn query(after: u32) -> String {
    format!("SELECT * FROM measurement WHERE id > {after} ORDER BY id LIMIT {PAGE}")
}

/// Reads the page with a new process.
fn run_psql(server: &PostgresServer, after: u32) {
    let output = server.psql("postgres").args(["-c", &query(after)]).output().expect("psql");
    assert_eq!(output.stdout.split(|byte| *byte == b'\n').count(), PAGE as usize + 1);
}

/// A `psql` that stays connected.
struct Session {
    process: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Session {
    fn start(server: &PostgresServer) -> Self {
        let mut process = server.psql("postgres").stdin(Pipe::piped()).stdout(Pipe::piped()).spawn().expect("psql");
        let answers = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, answers }
    }

    /// Reads the page.
    fn read(&mut self, after: u32) {
        let asks = self.process.stdin.as_mut().expect("a pipe");
        write!(asks, "{};\n\\echo {END}\n", query(after)).expect("a psql that reads");
        let rows =
            self.answers.by_ref().lines().map(|line| line.expect("a line")).take_while(|line| line != END).count();
        assert_eq!(rows, PAGE as usize);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
