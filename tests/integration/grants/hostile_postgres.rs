//! Hostile rows about grants of databases. A provider with a read-only grant tries to write, to leave read-only, or to learn
//! the password. A server lies in the protocol. The honest server is Debian's PostgreSQL; its user may write.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belljar_tests::Site;
use belljar_upstream::postgres::PASSWORD;
use belljar_upstream::{Stream, Upstream, until_closed};

use crate::database::{Database, database};
use crate::expect::{limit, text};
use crate::http_grants::answer_text;
use crate::row::{Row, RunMode, Stops, hostile_guest};
use crate::tools::{deadline, path, shown};

/// Why a row is skipped.
const ABSENT: &str = "PostgreSQL's server is not installed";

/// The secret of the grant.
const SECRETS: &str = "[secrets]\nshop = { file = \"shop-password\" }";

/// Why a lying server gains nothing.
const PROTOCOL: Stops = Stops::Structure(
    "belljar parses every message of a server, and ends the connection at anything that the protocol does not allow there",
);

pub(crate) fn rows() -> Vec<Row> {
    [writing(), passwords(), places(), liars()].into_iter().flatten().collect()
}

/// Rows about the place of the server: its address and its certificate.
fn places() -> Vec<Row> {
    let Some(database) = database() else { return Vec::new() };
    let port = database.server.port();
    let row = |attack, host: &'static str, networks: &'static str, settings: &str| {
        let line = format!(
            "postgres = [{{ at = \"{host}:{port}/shop\", user = \"reader\", password = \"${{secret:shop}}\"{networks} }}]"
        );
        let pem = database.authority.pem();
        hostile_guest("PG-06", attack)
            .settings(&format!("{SECRETS}\n[network]\ndns = [\"{}\"]\n{settings}", database.names.address()))
            .prepare(move |site| {
                write_password(site);
                site.write("ca.pem", &pem);
            })
            .config(&line)
            .act(move |context| {
                let steps = path(format!("{host}:{port}/user=x|q SELECT 1"));
                let said = answer_text(&context.read(&format!("postgres/{steps}")));
                assert!(said.starts_with("refused: "), "{said}");
                said
            })
    };
    let trusted = "ca = \"ca.pem\"";
    let certificate = Stops::Structure("rustls checks the certificate against the trusted ones and the granted name");
    vec![
        row("a name of a database with an address that is not public", "db.test", "", trusted).stopped_by(&["address"]),
        row("a database with a certificate of a stranger", "db.test", ", networks = [\"127.0.0.1\"]", "")
            .stopped(certificate),
        row("a database with a certificate for another name", "other.test", ", networks = [\"127.0.0.1\"]", trusted)
            .stopped(certificate),
    ]
}

/// Writes the password into a file that only the owner reads.
fn write_password(site: &Site) {
    let file = site.write("shop-password", PASSWORD);
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).expect("a private file");
}

/// The line of a mount's table that grants the database behind `port` of this machine.
fn grant(port: u16, more: &str) -> String {
    format!(
        "postgres = [{{ at = \"localhost:{port}/shop\", user = \"reader\", password = \"${{secret:shop}}\"{more} }}]"
    )
}

/// The reference that makes the hostile guest run `steps`. `tests/guests/hostile/src/sockets.rs` describes them.
fn session(port: u16, parameters: &str, steps: &str) -> String {
    format!("postgres/{}", path(format!("localhost:{port}/{parameters}|{steps}")))
}

/// A row with a grant of the database behind `port`.
fn granted(id: &'static str, attack: &'static str, port: u16, more: &str) -> Row {
    hostile_guest(id, attack).settings(SECRETS).prepare(write_password).config(&grant(port, more))
}

/// A way to write. `{n}` is a number of its own; if the attack succeeds, the row with this key exists, or `stolen_{n}`.
struct Writing {
    attack: &'static str,
    parameters: &'static str,
    steps: &'static str,
    /// True if belljar lets it through, because the server itself refuses it.
    by_server: bool,
}

/// Writes in a statement that begins like a query.
macro_rules! insert {
    () => {
        "q WITH x AS (INSERT INTO item VALUES ({n}, 'x') RETURNING id) TABLE x"
    };
}

const fn by_belljar(attack: &'static str, steps: &'static str) -> Writing {
    Writing { attack, parameters: "user=x", steps, by_server: false }
}

const fn by_server(attack: &'static str, steps: &'static str) -> Writing {
    Writing { attack, parameters: "user=x", steps, by_server: true }
}

const WRITINGS: [Writing; 38] = [
    by_belljar("INSERT", "q INSERT INTO item VALUES ({n}, 'x')"),
    by_belljar("INSERT as a prepared statement", "x INSERT INTO item VALUES ({n}, 'x')|s"),
    by_belljar("UPDATE after a comment", "q /* SELECT */ UPDATE item SET id = {n} WHERE id = 1"),
    by_belljar("INSERT after nested comments", "q /*/*/ SELECT */*/ INSERT INTO item VALUES ({n}, 'x')"),
    by_belljar(
        "INSERT after a line that ends with a carriage return",
        "q --SELECT\rINSERT INTO item VALUES ({n}, 'x')",
    ),
    by_belljar("CREATE TABLE", "q CREATE TABLE stolen_{n} (a int)"),
    by_belljar(
        "CREATE TEMPORARY TABLE, then a table beside it",
        "q CREATE TEMP TABLE t (a int)|q CREATE TABLE stolen_{n} (a int)",
    ),
    by_belljar("two statements in one", "q SELECT 1; INSERT INTO item VALUES ({n}, 'x')"),
    by_belljar("two statements, the first empty", "q ;INSERT INTO item VALUES ({n}, 'x')"),
    by_belljar("SHOW and a second statement", "q SHOW all; INSERT INTO item VALUES ({n}, 'x')"),
    by_belljar("a setting, then a write", concat!("q SET default_transaction_read_only = off|", insert!())),
    by_belljar("a quoted setting, then a write", concat!("q SET \"default_transaction_read_only\" TO off|", insert!())),
    by_belljar(
        "characteristics of the session",
        concat!("q SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE|", insert!()),
    ),
    by_belljar("a transaction that writes", concat!("q BEGIN READ WRITE|", insert!(), "|q COMMIT")),
    by_belljar(
        "a transaction that writes, with a comment inside",
        concat!("q START TRANSACTION READ /**/ WRITE|", insert!(), "|q COMMIT"),
    ),
    by_belljar(
        "SET TRANSACTION in a transaction",
        concat!("q BEGIN|q SET TRANSACTION READ WRITE|", insert!(), "|q COMMIT"),
    ),
    by_belljar(
        "SET transaction_read_only in a transaction",
        concat!("q BEGIN|q SET LOCAL transaction_read_only = off|", insert!(), "|q COMMIT"),
    ),
    by_belljar(
        "a whole transaction in one query",
        "q BEGIN; SET TRANSACTION READ WRITE; INSERT INTO item VALUES ({n}, 'x'); COMMIT",
    ),
    by_belljar(
        "set_config, then a write",
        concat!("q SELECT set_config('default_transaction_read_only', 'off', false)|", insert!()),
    ),
    by_belljar(
        "set_config by a name in escapes, then a write",
        concat!("q SELECT U&\"set\\005fconfig\"('default_transaction_read_only', 'off', false)|", insert!()),
    ),
    by_belljar(
        "set_config, COMMIT and a write in one batch",
        "x SELECT set_config('default_transaction_read_only', 'off', false)|x COMMIT|x WITH x AS (INSERT INTO item VALUES ({n}, 'x') RETURNING id) TABLE x|s",
    ),
    by_belljar(
        "set_config in a transaction, COMMIT, a write",
        concat!("q BEGIN|q SELECT set_config('default_transaction_read_only', 'off', false)|q COMMIT|", insert!()),
    ),
    by_belljar(
        "RESET and DISCARD",
        concat!("q DISCARD ALL|q RESET ALL|q SET default_transaction_read_only = off|", insert!()),
    ),
    by_belljar(
        "DO with a transaction of its own",
        "q DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; INSERT INTO item VALUES ({n}, 'x'); END $$",
    ),
    by_belljar("CALL of a procedure with a transaction of its own", "q CALL add_in_transaction({n})"),
    by_belljar(
        "PREPARE and EXECUTE",
        "q SET default_transaction_read_only = off|q PREPARE p AS INSERT INTO item VALUES ({n}, 'x')|q EXECUTE p",
    ),
    by_belljar("a large object", "q SELECT lo_create({n})"),
    by_belljar(
        "a large object, by SQL in a string",
        "q SELECT query_to_xml(concat('SELECT lo_', 'create({n})'), true, true, '')",
    ),
    by_belljar("a large object, by a name in escapes", "q SELECT U&\"lo\\005fcreate\"({n})"),
    by_belljar(
        "a large object, by a call of a function without SQL",
        "r 4600000018000002cb00010001000100000004{hex}0001|w",
    ),
    by_server("a write in a WITH", insert!()),
    by_server("a function that writes", "q SELECT add_item({n})"),
    by_belljar("EXPLAIN ANALYZE of a write", "q EXPLAIN ANALYZE INSERT INTO item VALUES ({n}, 'x')"),
    by_belljar("EXPLAIN ANALYZE of CREATE TABLE AS", "q EXPLAIN ANALYZE CREATE TABLE stolen_{n} AS SELECT 1"),
    by_belljar("EXPLAIN ANALYZE of SELECT INTO", "q EXPLAIN (ANALYZE) SELECT id INTO stolen_{n} FROM item"),
    by_belljar(
        "an empty statement and a setting, then a write",
        concat!("q ; SET default_transaction_read_only = off|", insert!()),
    ),
    by_server("SELECT INTO", "q SELECT id INTO stolen_{n} FROM item"),
    Writing {
        attack: "options in the first message",
        parameters: "user=x&options=-c default_transaction_read_only~off&default_transaction_read_only=off",
        steps: insert!(),
        by_server: true,
    },
];

/// One row for each way to write.
fn writing() -> Vec<Row> {
    let database = database();
    let rows = WRITINGS.iter().enumerate().map(|(at, writing)| {
        let port = database.map_or(1, |database| database.server.port());
        let n = 100_000 + at;
        let steps = writing.steps.replace("{n}", &n.to_string()).replace("{hex}", &format!("{n:08x}"));
        granted("PG-01", writing.attack, port, ", tls = false")
            .act(move |context| {
                let said = answer_text(&context.read(&session(port, writing.parameters, &steps)));
                let Some(Database { server, .. }) = database else { return said };
                let found = server.run(
                    "shop",
                    &format!(
                        "SELECT (SELECT count(*) FROM item WHERE id = {n}) + (SELECT count(*) FROM pg_class WHERE relname = 'stolen_{n}') + (SELECT count(*) FROM pg_largeobject_metadata WHERE oid = {n})"
                    ),
                );
                assert_eq!(found, "0", "it wrote: {said}");
                assert_eq!(said.contains("belljar:") || said.contains("multiple commands"), !writing.by_server, "{said}");
                said
            })
            .stopped(match writing.steps.starts_with("r ") {
                true => Stops::Structure("belljar forwards no calls of functions without SQL, with any grant"),
                false => Stops::Guards(&["read-only-database"]),
            })
            .needs(database.is_none().then_some(ABSENT))
    });
    rows.collect()
}

/// Rows about the password.
fn passwords() -> Vec<Row> {
    let database = database();
    let port = database.map_or(1, |database| database.server.port());
    let absent = database.is_none().then_some(ABSENT);
    let echo =
        granted("PG-02", "the database itself holds the password, and a provider reads it", port, ", tls = false")
            .act(move |context| {
                let Some(Database { server, .. }) = database else { return String::new() };
            server.run("shop", &format!("INSERT INTO item VALUES (200000, 'here: {PASSWORD}') ON CONFLICT DO NOTHING"));
            let sql = "q SELECT name FROM item WHERE id = 200000|q SELECT encode(name::bytea, 'base64') FROM item WHERE id = 200000";
                let said = answer_text(&context.read(&session(port, "user=x", &sql)));
                assert!(said.contains("here: ") && !said.contains(PASSWORD), "{said}");
                said
            })
            .stopped_by(&["redact"])
            .needs(absent);
    let nowhere = granted(
        "PG-02",
        "a provider looks for the password: in its environment, in errors, in settings",
        port,
        ", tls = false",
    )
    .act(move |context| {
        let looks = [
            "env".to_owned(),
            "args".to_owned(),
            session(port, "user=x", "q SHOW ALL"),
            session(port, "user=x", "q SELECT * FROM pg_authid"),
            session(port, "user=x", "q SELECT * FROM pg_stat_activity WHERE pid = pg_backend_pid()"),
            session(port, "user=x&database=other", "q SELECT 1"),
            session(port, "user=x&replication=database", "q IDENTIFY_SYSTEM"),
            session(port, "user=x", "r 70000000066869|w"),
        ];
        for look in looks {
            let said = shown(&context.read(&look));
            assert!(!said.contains("horse"), "{said}");
        }
        assert!(!context.running.site.audit().iter().any(|record| record.to_string().contains("horse")));
        "nowhere".to_owned()
    })
    .stopped(Stops::Structure("the password is in the memory of the host only, and SCRAM does not send it"))
    .needs(absent);
    vec![echo, nowhere]
}

/// A server that answers the first message of a client, and keeps what it receives.
fn lying(answers: Vec<Vec<u8>>) -> (Upstream, Arc<Mutex<Vec<u8>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&received);
    let upstream = Upstream::raw(move |stream| {
        for answer in &answers {
            let mut buffer = [0; 4096];
            let Ok(read @ 1..) = stream.read(&mut buffer) else { return };
            own.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..read]);
            if stream.write_all(answer).is_err() {
                return;
            }
        }
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        own.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&rest);
    });
    (upstream, received)
}

/// A message of the protocol.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

/// A request for a proof of this kind.
fn authentication(kind: u32, more: &[u8]) -> Vec<u8> {
    message(b'R', &[&kind.to_be_bytes(), more].concat())
}

/// A row in which a server lies before the session begins. belljar must say why, and must not send the password.
fn lies_at_login(attack: &'static str, tls: bool, answers: Vec<Vec<u8>>, says: &'static str) -> Row {
    let (upstream, received) = lying(answers);
    let port = upstream.port();
    let tls = if tls { "" } else { ", tls = false" };
    granted("PG-03", attack, port, tls)
        .act(move |context| {
            let said = answer_text(&context.read(&session(port, "user=x", "q SELECT 1")));
            assert!(said.contains(says), "{said}");
            assert!(upstream.all_closed_within(deadline(Duration::from_secs(2))), "the connection is open");
            let received = received.lock().unwrap_or_else(PoisonError::into_inner).clone();
            assert!(!String::from_utf8_lossy(&received).contains("horse"), "the server got the password");
            said
        })
        .stopped(PROTOCOL)
}

/// A server that is honest until the first query, and then sends `lie`.
fn relay_then(server: u16, lie: Vec<u8>) -> Upstream {
    Upstream::raw(move |client: &mut dyn Stream| {
        let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)) else { return };
        let mut is_ready = false;
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = client.read(&mut buffer) {
            if is_ready {
                let _ = client.write_all(&lie);
                until_closed(client, Duration::from_secs(10));
                return;
            }
            if server.write_all(&buffer[..read]).is_err() {
                return;
            }
            // A login alternates: a message of the client, then messages of the server up to its next question.
            loop {
                let mut header = [0; 5];
                if server.read_exact(&mut header).is_err() {
                    return;
                }
                let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
                let mut body = vec![0; length.saturating_sub(4)];
                if server.read_exact(&mut body).is_err() || client.write_all(&[&header[..], &body].concat()).is_err() {
                    return;
                }
                is_ready = header[0] == b'Z';
                if is_ready || (header[0] == b'R' && matches!(body.get(3), Some(10 | 11))) {
                    break;
                }
            }
        }
    })
}

/// A row in which a server lies after the login.
fn lies_in_session(attack: &'static str, lie: Vec<u8>, says: &'static str) -> Row {
    let database = database();
    let upstream = relay_then(database.map_or(1, |database| database.server.port()), lie);
    let port = upstream.port();
    granted("PG-04", attack, port, ", tls = false")
        .time(3000)
        .act(move |context| {
            let before = context.memory();
            let answer = context.read(&session(port, "user=x", "q SELECT 1"));
            match text(&answer) {
                Some(said) => assert!(said.contains(says), "{said}"),
                // The hostile guest believes the length, and runs out of memory.
                None => assert!(says.is_empty(), "{}", shown(&answer)),
            }
            assert!(upstream.all_closed_within(deadline(Duration::from_secs(2))), "the connection is open");
            let grown = context.memory().saturating_sub(before) >> 20;
            assert!(grown <= 24, "{grown} MiB more");
            shown(&answer)
        })
        .stopped(PROTOCOL)
        .needs(database.is_none().then_some(ABSENT))
}

/// Rows about servers that lie.
fn liars() -> Vec<Row> {
    let scram = || authentication(10, b"SCRAM-SHA-256\0\0");
    let challenge = |text: &str| authentication(11, text.as_bytes());
    let endless = |message: Vec<u8>| message.repeat(4000);
    let silent = Upstream::raw(|stream| {
        until_closed(stream, Duration::from_secs(30));
    });
    let port = silent.port();
    let never = granted("PG-05", "a server of databases that never answers", port, ", tls = false")
        .run_mode(RunMode::Stdio)
        .time(700)
        .act(move |context| {
            let answer = context.read(&session(port, "user=x", "q SELECT 1"));
            limit("time").judge(&answer, &context.name("")).unwrap_or_else(|why| panic!("{why}"));
            assert!(silent.all_closed_within(deadline(Duration::from_secs(2))), "the connection is open");
            shown(&answer)
        })
        .stopped_by(&["time"]);
    vec![
        never,
        lies_at_login("a server refuses TLS", true, vec![b"N".to_vec()], "refused: "),
        lies_at_login(
            "a server answers the request for TLS with something else",
            true,
            vec![b"HTTP/1.1 400".to_vec()],
            "refused: ",
        ),
        lies_at_login(
            "somebody adds bytes before the TLS handshake",
            true,
            vec![[&b"S"[..], &authentication(0, &[])].concat()],
            "refused: ",
        ),
        lies_at_login(
            "a server lets belljar in without a proof",
            false,
            vec![authentication(0, &[])],
            "asks for no password",
        ),
        lies_at_login(
            "a server asks for the password itself",
            false,
            vec![authentication(3, &[])],
            "asks for the password itself",
        ),
        lies_at_login("a server asks for MD5", false, vec![authentication(5, &[1, 2, 3, 4])], "asks for MD5"),
        lies_at_login(
            "a server offers no mechanism that belljar knows",
            false,
            vec![authentication(10, b"PLAIN\0\0")],
            "SCRAM-SHA-256 only",
        ),
        lies_at_login(
            "a server asks for 4 billion rounds of hashing",
            false,
            vec![scram(), challenge("r=x,s=AAAA,i=4294967295")],
            "does not prove",
        ),
        lies_at_login(
            "a server does not take over the nonce",
            false,
            vec![scram(), challenge("r=mine,s=AAAA,i=4096")],
            "does not prove",
        ),
        lies_at_login(
            "a server's challenge is no challenge",
            false,
            vec![scram(), challenge("\u{0}\u{1},,,")],
            "does not prove",
        ),
        lies_at_login("a server skips the challenge", false, vec![scram(), authentication(12, b"v=AAAA")], "protocol"),
        lies_at_login("a server skips the proof", false, vec![scram(), authentication(0, &[])], "asks for no password"),
        lies_at_login(
            "a message of a negative length",
            false,
            vec![b"R\xff\xff\xff\xff".to_vec()],
            "impossible length",
        ),
        lies_at_login("a message of no length", false, vec![b"R\0\0\0\0".to_vec()], "impossible length"),
        lies_at_login("a message of one gigabyte", false, vec![b"R\x40\0\0\0".to_vec()], "more than 256 KiB"),
        lies_at_login("notices without end", false, vec![endless(message(b'N', b"SNOTICE\0\0"))], "protocol"),
        lies_at_login("a row before the login", false, vec![message(b'D', &[0, 0])], "length"),
        lies_at_login(
            "a server speaks another protocol",
            false,
            vec![b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()],
            "more than 256 KiB",
        ),
        lies_in_session("an unknown message", message(b'?', b"x"), "it sent a message of the kind '?'"),
        lies_in_session("a request to authenticate again", authentication(3, &[]), "it sent a message of the kind 'R'"),
        lies_in_session("copying without a question", message(b'W', &[0, 0, 0]), "it sent a message of the kind 'W'"),
        lies_in_session(
            "the session is no longer read-only",
            message(b'S', b"default_transaction_read_only\0off\0"),
            "a statement turned that off",
        ),
        lies_in_session("a message of a negative length in a session", b"T\x80\0\0\0".to_vec(), "impossible length"),
        lies_in_session("two answers to one question", [message(b'Z', b"I"), message(b'Z', b"I")].concat(), "ready I"),
        lies_in_session("a row of two gigabytes that does not come", b"D\x7f\xff\xff\xff".to_vec(), ""),
    ]
}
