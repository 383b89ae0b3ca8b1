//! `plugins/sqlite` over databases that Python creates: large, damaged and hostile ones. During some reads, a Python process
//! writes to the database.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Site, Stdio as Wire, wait_until};
use serde_json::{Value, json};

use crate::providers::support::{self, empty_directory, fuel, lacks_build_tools};

const BASE: &str = "belljar://sqlite/";

/// Runs a Python program. Its `sqlite3` is another build of SQLite than the tested one.
fn python(program: &str, arguments: &[&str]) {
    let mut command = Command::new("python3");
    command.args(["-c", program]).args(arguments);
    support::run(command, b"");
}

/// Creates a database at `path` with `count` rows in `readings`, `count / 10` rows in `days`, and 100 rows in `stations`.
fn create_measurements(path: &str, count: usize) {
    python(
        r"
import sqlite3, sys
c = sqlite3.connect(sys.argv[1]); n = int(sys.argv[2])
c.executescript('''PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
CREATE TABLE stations (code TEXT PRIMARY KEY, name TEXT NOT NULL, height REAL) WITHOUT ROWID;
CREATE TABLE readings (id INTEGER PRIMARY KEY, station TEXT REFERENCES stations, at TEXT, temperature REAL, note TEXT);
CREATE TABLE days (station TEXT, day INT, low REAL, high REAL, PRIMARY KEY (station, day)) WITHOUT ROWID;''')
c.executemany('INSERT INTO stations VALUES (?, ?, ?)', ((f'S{i:03}', f'Station {i}', i * 1.5) for i in range(100)))
c.executemany('INSERT INTO readings VALUES (?, ?, ?, ?, ?)',
    ((i, f'S{i * 7 % 100:03}', f'2026-01-01T{i % 24:02}:{i % 60:02}:00Z', (i * 37 % 6000) / 100, 'measured by hand ' * (i % 3)) for i in range(n)))
c.executemany('INSERT INTO days VALUES (?, ?, ?, ?)', ((f'S{i % 100:03}', i // 100, i % 17 - 5.5, i % 23) for i in range(n // 10)))
c.execute('CREATE INDEX by_station ON readings (station, at)')
c.commit()
",
        &[path, &count.to_string()],
    );
}

/// A running belljar with the provider, and its client.
struct Served {
    site: Site,
    client: Client<Wire>,
}

fn serve(config: &str) -> Served {
    // Allow a long time: the machine may be busy.
    let site = support::site("sqlite", config);
    std::fs::create_dir_all(site.path("db")).unwrap();
    let client = site.stdio(Era::Stateless);
    Served { site, client }
}

impl Served {
    fn json(&mut self, reference: &str) -> Value {
        support::json(&self.client.text(&format!("{BASE}{reference}")))
    }

    /// Reads until a query ends within its second. On a busy machine, a query that needs half of it may not.
    fn json_when_idle(&mut self, reference: &str) -> Value {
        wait_until("a query that ends within its time", || match self.client.read(&format!("{BASE}{reference}")) {
            Ok(reading) => Ok(support::json(reading["contents"][0]["text"].as_str().expect("a text"))),
            Err(error) if error.to_string().contains("the query was stopped: it ran for longer") => Err(error),
            Err(error) => panic!("{error}"),
        })
    }

    fn path(&self, name: &str) -> String {
        self.site.path("db").join(name).to_string_lossy().into_owned()
    }
}

/// A grant of the directory `db`, with `a.db` as the only database.
const ONE_DATABASE: &str = "fs = { \"/db\" = \"db\" }\nenv = { DATABASE = \"a.db\" }";

#[test]
fn reads_of_a_large_database_cost_as_much_as_reads_of_a_small_one() {
    if lacks_build_tools() {
        return;
    }
    let work_dir = empty_directory("sqlite-large");
    let (small, big) = (work_dir.join("small.db"), work_dir.join("large.db"));
    create_measurements(&small.to_string_lossy(), 2_000);
    create_measurements(&big.to_string_lossy(), 1_800_000);
    let size = std::fs::metadata(&big).unwrap().len();
    assert!(size > 100 << 20, "{size}");

    let mut served = serve(&format!("fs = {{ \"/db\" = {work_dir:?} }}"));
    let mut cost = |reference: &str| {
        served.json(reference);
        fuel(&served.site, reference)
    };
    for (of_small, of_large) in [
        ("tables/readings/rows/1234", "tables/readings/rows/1234567"),
        ("tables/days/rows/S007%2C1", "tables/days/rows/S007%2C1500"),
        ("tables/readings?limit=100", "tables/readings?limit=100"),
        ("tables/readings?after=1500&limit=100", "tables/readings?after=1799000&limit=100"),
        ("tables/days?after=S050%2C1&limit=100", "tables/days?after=S050%2C1700&limit=100"),
        ("schema", "schema"),
    ] {
        let (of_small, of_large) = (cost(&format!("small.db/{of_small}")), cost(&format!("large.db/{of_large}")));
        assert!(of_large < of_small + of_small / 2 + 500_000, "{of_small} against {of_large}");
    }
    let last = served.json("large.db/tables/readings?after=1799998");
    assert_eq!(last["rows"][0]["row"]["id"], 1_799_999);
    assert_eq!(last["next"], Value::Null);
    assert_eq!(served.json("large.db/")["tables"][1]["rows"], json!({ "more_than": 6_666 }));
    assert!(served.client.close().status.success());
    std::fs::remove_dir_all(&work_dir).unwrap();
}

#[test]
fn rows_are_served_as_python_reads_them() {
    if lacks_build_tools() {
        return;
    }
    let warm = "warm = SELECT station, max(temperature) AS top FROM readings WHERE temperature > :above GROUP BY station ORDER BY station";
    let huge = "huge = WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT length(group_concat(zeroblob(1000000) || i)) FROM n";
    let views = format!("{warm}\\n{huge}");
    let mut served =
        serve(&format!("fs = {{ \"/db\" = \"db\" }}\nenv = {{ DATABASE = \"a.db\", VIEWS = \"{views}\" }}"));
    let path = served.path("a.db");
    create_measurements(&path, 3_000);
    let seen = {
        let mut command = Command::new("python3");
        let program = "
import sqlite3, sys, json
c = sqlite3.connect(sys.argv[1]); c.row_factory = sqlite3.Row
rows = lambda sql: [dict(r) for r in c.execute(sql)]
print(json.dumps({'days': rows('select * from days order by station, day'), 'readings': rows('select * from readings order by id'),
  'warm': rows('select station, max(temperature) as top from readings where temperature > 50.5 group by station order by station')}))";
        command.args(["-c", program, &path]);
        support::json(&String::from_utf8(support::run(command, b"")).unwrap())
    };
    for table in ["days", "readings"] {
        let mut rows = Vec::new();
        let mut next = format!("tables/{table}?limit=700");
        loop {
            let page = served.json(&next);
            rows.extend(page["rows"].as_array().unwrap().iter().map(|row| row["row"].clone()));
            match page["next"].as_str() {
                Some(reference) => next = reference.to_owned(),
                None => break,
            }
        }
        assert_eq!(Value::from(rows), seen[table], "{table}");
    }
    assert_eq!(served.json("views/warm?above=50.5")["rows"], seen["warm"]);
    let huge = served.client.read(&format!("{BASE}views/huge")).expect_err("a view of 1 GB");
    assert!(huge.to_string().contains("36 MiB of memory"), "{huge}");
    let templates = served.client.templates();
    assert!(
        templates.iter().any(|template| template == "belljar://sqlite/views/warm{?above,skip,limit}"),
        "{templates:?}"
    );
    let uris = served.client.uris();
    assert!(uris.contains(&format!("{BASE}tables/stations")), "{uris:?}");
    assert!(served.client.close().status.success());
}

/// The lines of a page are its rows, and the page is a document that belljar must not cut.
#[test]
fn rows_by_position_are_whole_in_a_mount_with_secrets() {
    if lacks_build_tools() {
        return;
    }
    let config = "fs = { \"/db\" = \"db\" }\nenv = { DATABASE = \"a.db\", TOKEN = \"${secret:token}\" }\n[secrets]\ntoken = { env = \"SECRET_TOKEN\" }";
    let mut site = support::site("sqlite", config);
    site.env("SECRET_TOKEN", "a-secret-of-the-operator");
    std::fs::create_dir_all(site.path("db")).unwrap();
    let client = site.stdio(Era::Stateless);
    let mut served = Served { site, client };
    create_measurements(&served.path("a.db"), 300);
    let page = served.json("tables/readings?lines=101-103");
    let ids: Vec<&Value> = page["rows"].as_array().unwrap().iter().map(|row| &row["row"]["id"]).collect();
    assert_eq!(ids, [100, 101, 102], "{page}");
    assert!(served.client.close().status.success());
}

/// A process that writes to a database until this value is dropped.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts a process that moves amounts between 200 accounts, in transactions of 20 moves. After each transaction, the sum is
/// 20,000 and all accounts have the same `round`. So a torn read is visible.
fn start_writer(path: &str, mode: &str) -> Writer {
    let program = r"
import sqlite3, sys, time, random
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute('PRAGMA journal_mode = ' + sys.argv[2]); c.execute('PRAGMA synchronous = OFF'); c.execute('PRAGMA wal_autocheckpoint = 40')
c.execute('PRAGMA cache_size = 10')
c.execute('CREATE TABLE IF NOT EXISTS accounts (id INTEGER PRIMARY KEY, amount INT, round INT, filler BLOB)')
c.execute('BEGIN'); c.executemany('INSERT INTO accounts VALUES (?, 100, 0, zeroblob(1500))', ((i,) for i in range(200))); c.execute('COMMIT')
print('ready', flush=True)
r = random.Random(7); n = 0
while True:
    n += 1
    c.execute('BEGIN IMMEDIATE')
    for _ in range(20):
        a, b, m = r.randrange(200), r.randrange(200), r.randrange(50)
        c.execute('UPDATE accounts SET amount = amount - ? WHERE id = ?', (m, a)); c.execute('UPDATE accounts SET amount = amount + ? WHERE id = ?', (m, b))
    c.execute('UPDATE accounts SET round = ?, filler = randomblob(1500)', (n,))
    c.execute('ROLLBACK' if n % 5 == 0 else 'COMMIT')
    time.sleep(r.random() * 0.12)
";
    let mut command = Command::new("python3");
    command.args(["-c", program, path, mode]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("python3");
    let mut first = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut first).unwrap();
    assert_eq!(first, "ready\n");
    Writer(child)
}

#[test]
fn no_read_is_torn_while_another_process_writes() {
    if lacks_build_tools() {
        return;
    }
    for mode in ["DELETE", "TRUNCATE", "PERSIST", "WAL"] {
        let mut served = serve(ONE_DATABASE);
        let writer = start_writer(&served.path("a.db"), mode);
        let (mut complete, mut refused, mut rounds) = (0, 0, std::collections::HashSet::new());
        let began = Instant::now();
        // Repeat until enough reads were made. The bound ends the test if reads fail.
        while (complete < 40 || rounds.len() <= 5) && began.elapsed() < Duration::from_secs(600) {
            match served.client.read(&format!("{BASE}tables/accounts?limit=1000")) {
                Ok(reading) => {
                    let page = support::json(reading["contents"][0]["text"].as_str().unwrap());
                    let rows = page["rows"].as_array().unwrap();
                    let sum: i64 = rows.iter().map(|row| row["row"]["amount"].as_i64().unwrap()).sum();
                    let round = rows[0]["row"]["round"].as_i64().unwrap();
                    assert_eq!((rows.len(), sum), (200, 20_000), "{mode}");
                    assert!(rows.iter().all(|row| row["row"]["round"] == round), "{mode}");
                    rounds.insert(round);
                    complete += 1;
                }
                Err(error) => {
                    let error_text = format!("{error:?}");
                    // If belljar also refused to open a file for writing, the kind of the error is "denied".
                    let is_busy =
                        ["unavailable", "was written to during every attempt", "is being written to all the time"];
                    assert!(is_busy.iter().any(|words| error_text.contains(words)), "{mode}: {error_text}");
                    refused += 1;
                }
            }
        }
        assert!(complete >= 40, "{mode}: {complete} complete reads, {refused} refused");
        assert!(rounds.len() > 5, "{mode}: the process wrote nothing during the reads");
        drop(writer);
        assert!(served.client.close().status.success());
    }
}

#[test]
fn an_unfinished_transaction_of_a_dead_writer_is_reported_and_not_served() {
    if lacks_build_tools() {
        return;
    }
    let mut served = serve(ONE_DATABASE);
    let path = served.path("a.db");
    // A transaction that is larger than SQLite's cache is written to the file before its commit, which never comes.
    let program = r"
import sqlite3, sys, os
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, x)')
c.execute('BEGIN'); c.executemany('INSERT INTO t VALUES (?, 1)', ((i,) for i in range(3000))); c.execute('COMMIT')
c.execute('PRAGMA cache_size = 5'); c.execute('BEGIN'); c.execute('UPDATE t SET x = hex(randomblob(200))')
os._exit(0)
";
    python(program, &[&path]);
    assert!(std::fs::metadata(format!("{path}-journal")).unwrap().len() > 0);
    let error = served.client.read(&format!("{BASE}tables/t")).unwrap_err();
    assert!(format!("{error:?}").contains("-journal"), "{error:?}");
    // Follow the advice in the message: open the database with SQLite, which undoes the transaction.
    python("import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM t').fetchone()", &[&path]);
    let page = served.json("tables/t?limit=1000");
    assert!(page["rows"].as_array().unwrap().iter().all(|row| row["row"]["x"] == 1));
    assert!(served.client.close().status.success());
}

#[test]
fn damaged_and_hostile_databases_give_answers_or_errors() {
    if lacks_build_tools() {
        return;
    }
    let mut served = serve("fs = { \"/db\" = \"db\" }");
    let good = served.path("good.db");
    create_measurements(&good, 20_000);
    let bytes = std::fs::read(&good).unwrap();
    // A truncated or overwritten database must give an answer or an error, and no trap.
    std::fs::write(served.path("cut.db"), &bytes[..bytes.len() / 3]).unwrap();
    for seed in 0..12 {
        let mut broken = bytes.clone();
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..200 {
            let at = random.usize(100..broken.len());
            broken[at] = random.u8(..);
        }
        std::fs::write(served.path(&format!("broken{seed}.db")), broken).unwrap();
    }
    python(
        r"
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.executescript('''CREATE TABLE t (a); INSERT INTO t VALUES (1);
CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS m FROM n;
CREATE VIEW greedy AS SELECT length(group_concat(hex(zeroblob(4000000)))) AS l FROM (SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3);
CREATE VIEW reaching AS SELECT load_extension('x') AS l;''')
c.commit()
",
        &[&served.path("views.db")],
    );
    for database in (0..12).map(|seed| format!("broken{seed}.db")).chain(["cut.db".to_owned()]) {
        for rest in
            ["", "schema", "tables/readings?limit=1000", "tables/days?after=S090%2C1", "tables/readings/rows/15000"]
        {
            match served.client.read(&format!("{BASE}{database}/{rest}")) {
                Ok(_) => {}
                Err(error) => {
                    let kind = error.data["kind"].as_str().unwrap_or_default();
                    let is_expected = kind == "failed" || error.code == Era::Stateless.not_found();
                    assert!(is_expected, "{database}/{rest}: {error:?}");
                }
            }
        }
    }
    for (view, why) in [("endless", "stopped"), ("greedy", "memory"), ("reaching", "no such function")] {
        let error = served.client.read(&format!("{BASE}views.db/tables/{view}")).unwrap_err();
        assert!(format!("{error:?}").contains(why), "{view}: {error:?}");
    }
    assert_eq!(served.json("good.db/tables/stations/rows/S001")["row"]["name"], "Station 1");
    assert!(served.client.close().status.success());
}

#[test]
fn the_sizes_of_the_readme_work_under_the_default_limits() {
    if lacks_build_tools() {
        return;
    }
    let mut served = serve(ONE_DATABASE);
    let program = r"
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.executescript('PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN; CREATE TABLE large (id INTEGER PRIMARY KEY, v); CREATE TABLE tight (k TEXT PRIMARY KEY, v) WITHOUT ROWID;')
for sql in ['INSERT INTO large VALUES (1, zeroblob(20000000))', 'INSERT INTO tight SELECT 1, v FROM large']: c.execute(sql)
c.execute('CREATE TABLE wide (%s)' % ', '.join('c%d' % i for i in range(2000)))
c.execute('INSERT INTO wide (c1999) VALUES (5)')
c.execute('CREATE TABLE many (id INTEGER PRIMARY KEY, a INT)')
c.executemany('INSERT INTO many (a) VALUES (?)', ((i * 7919 % 500009,) for i in range(500000)))
for i in range(500): c.execute('CREATE TABLE t%d (a, b)' % i); c.execute('CREATE VIEW v%d AS SELECT a FROM t%d' % (i, i))
c.execute('COMMIT')
";
    python(program, &[&served.path("a.db")]);
    for table in ["large", "tight"] {
        let last = format!("tables/{table}/rows/1/v?bytes=19999990-");
        let reading = served.client.read(&format!("{BASE}{last}")).unwrap();
        assert_eq!(reading["contents"][0]["blob"], "AAAAAAAAAAAAAA==", "{table}");
    }
    assert_eq!(served.json("tables/wide")["rows"][0]["row"]["c1999"], 5);
    assert_eq!(served.json("")["tables"].as_array().unwrap().len(), 1004);
    let sorted = served.json_when_idle("tables/many?sort=-a&limit=2");
    assert_eq!(sorted["rows"][0]["row"]["a"], 500_008);
    let filtered = served.json_when_idle("tables/many?where=a%3D7919");
    assert_eq!(filtered["rows"][0]["row"]["id"], 2);
    assert!(served.client.close().status.success());
}

#[test]
fn without_a_grant_the_error_names_the_grant() {
    if lacks_build_tools() {
        return;
    }
    let mut served = serve("");
    let error = served.client.read(&format!("{BASE}schema")).unwrap_err();
    assert!(format!("{error:?}").contains("no directory is granted"), "{error:?}");
    assert!(served.client.close().status.success());
}
