//! Makes each attempt of [`ROWS`] behind the wall and without it.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt as _;

use belljar_tests::Era;

use super::table::{Behind, ROWS, Row, Without};
use super::*;

/// The machine around the attacker: a site with two mounts, and listeners that nobody may reach.
struct Surroundings {
    site: Site,
    server: Server,
    words: Vec<(&'static str, String)>,
    _listeners: (TcpListener, UnixListener, UnixListener),
}

impl Surroundings {
    /// Starts belljar with this value of `wall`, without the guards in `off`.
    fn new(unguarded: &Path, wall: &str, off: &str) -> Surroundings {
        let mut site = empty();
        site.mount_as("guest_hostile", "hostile.wasm");
        for file in ["file.txt", "victim.txt", "removed.txt", "attribute.txt"] {
            site.write(format!("data/own/{file}"), "granted to the attacker");
        }
        let secret = site.write("data/other/secret.txt", "granted to the other mount");
        symlink(&secret, site.path("data/own/leads-out")).unwrap();
        symlink(&secret, site.path("data/other/link")).unwrap();
        site.config(&format!(
            "audit = \"audit.jsonl\"\nisolation = \"mount\"\nwall = \"{wall}\"\nlist-time = \"60s\"\n[limits]\ntime = \"60s\"\n\
             [mounts.attacker]\ncomponent = \"hostile.wasm\"\nfs = {{ \"/\" = \"data/own\" }}\n\
             [mounts.other]\ncomponent = \"hostile.wasm\"\nfs = {{ \"/\" = \"data/other\" }}\n"
        ));
        site.env("BELLJAR_UNGUARDED", off);
        let server = Server::start(command(unguarded, &site, &["serve", "--http", "127.0.0.1:0"]));
        let front = server.process.id();
        let mut client = server.client(Era::Stateless);
        assert_eq!(client.text("belljar://other/ok"), "fine");
        let sibling = workers(front).first().copied().expect("the worker of the other mount");
        let maps = fs::read_to_string(format!("/proc/{front}/maps")).unwrap();
        let address = maps.lines().find(|line| line.contains(" r-")).and_then(|line| line.split('-').next()).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let unix = UnixListener::bind(site.path("socket")).unwrap();
        let name = format!("belljar-attempt-{front}");
        let by_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let path = |relative: &str| site.path(relative).display().to_string();
        let words = vec![
            ("{own}", path("data/own")),
            ("{other}", path("data/other")),
            ("{site}", path("").trim_end_matches('/').to_owned()),
            ("{unix}", path("socket")),
            ("{key}", shared().join("state/belljar/key").display().to_string()),
            ("{code}", newest_code().display().to_string()),
            ("{front}", front.to_string()),
            ("{sibling}", sibling.to_string()),
            ("{address}", u64::from_str_radix(address, 16).unwrap().to_string()),
            ("{port}", tcp.local_addr().unwrap().port().to_string()),
            ("{abstract}", name),
        ];
        Surroundings { site, server, words, _listeners: (tcp, unix, by_name) }
    }

    /// The result of an attempt.
    fn make(&self, client: &mut Client<Http>, row: &Row) -> Result<String, String> {
        let filled = self.words.iter().fold(row.arguments.to_owned(), |text, (word, value)| text.replace(word, value));
        let answer = client.read(&attempt("attacker", row.attempt, &filled));
        let answer =
            answer.unwrap_or_else(|error| panic!("{}: {error}\n{}", row.attempt, self.server.process.stderr()));
        let answer = answer["contents"][0]["text"].as_str().unwrap_or_default();
        match answer.split_once(": ") {
            Some(("succeeded", text)) => Ok(text.to_owned()),
            Some(("refused", text)) => Err(text.to_owned()),
            _ => panic!("{}: {answer}", row.attempt),
        }
    }

    /// The results of all attempts.
    fn make_all(&self) -> Vec<Result<String, String>> {
        let mut client = self.server.client(Era::Stateless);
        ROWS.iter().map(|row| self.make(&mut client, row)).collect()
    }

    /// The files of the site's directories of data, with their contents, modes and times.
    fn data(&self) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
        let mut all = BTreeMap::new();
        for directory in ["data/own", "data/other", "plugins"].map(|name| self.site.path(name)) {
            for entry in fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                let state = fs::symlink_metadata(&path).unwrap();
                let bytes = fs::read(&path).unwrap_or_default();
                all.insert(path, (state.mode(), state.mtime_nsec(), state.ctime_nsec(), bytes));
            }
        }
        all
    }
}

/// A file of compiled code in the shared cache.
fn newest_code() -> PathBuf {
    let mut waiting = vec![shared().join("cache")];
    let mut files = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { waiting.push(path) } else { files.push(path) }
        }
    }
    files.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).expect("compiled code")
}

/// One line of a failure.
fn line(row: &Row, result: &Result<String, String>) -> String {
    format!("{}: {} {:?}: {result:?}", row.class, row.attempt, row.arguments)
}

#[test]
fn every_attempt_is_refused_behind_the_wall() {
    let Some(unguarded) = unguarded() else { return };
    let around = Surroundings::new(&unguarded, "require", "");
    let before = around.data();
    let results = around.make_all();
    let mut wrong = Vec::new();
    for (row, result) in ROWS.iter().zip(&results) {
        match (row.behind, result) {
            (Behind::Refused, Err(_)) | (Behind::Harmless(_), Ok(_)) => {}
            (Behind::Refused, Ok(_)) => wrong.push(line(row, result)),
            (Behind::Harmless(why), Err(_)) => wrong.push(format!("{}, but: {why}", line(row, result))),
        }
    }
    assert!(wrong.is_empty(), "{} attempts of {} ended wrongly:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
    assert_eq!(around.data(), before);
    // The worker has done all this, and still works.
    let mut client = around.server.client(Era::Stateless);
    for mount in ["attacker", "other"] {
        assert_eq!(client.text(&format!("belljar://{mount}/ok")), "fine");
    }
}

#[test]
fn the_attempts_succeed_without_the_wall() {
    let Some(unguarded) = unguarded() else { return };
    let around = Surroundings::new(&unguarded, "off", "worker-files,worker-calls");
    let is_root = rustix::process::geteuid().is_root();
    let results = around.make_all();
    let mut wrong = Vec::new();
    for (row, result) in ROWS.iter().zip(&results) {
        match (row.without, result) {
            (Without::Succeeds, Err(_)) => wrong.push(line(row, result)),
            (Without::RootSucceeds, Err(_)) if is_root => wrong.push(line(row, result)),
            (Without::Depends, Err(text)) if text.contains("os error 1)") && is_root => wrong.push(line(row, result)),
            (Without::Never(why), Ok(_)) => wrong.push(format!("{}, but: {why}", line(row, result))),
            _ => {}
        }
    }
    if std::env::var_os("BELLJAR_TEST_REPORT").is_some() {
        report(&unguarded, &results);
    }
    assert!(wrong.is_empty(), "{} attempts of {} ended wrongly:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
}

/// Prints which part of the wall refuses each attempt.
#[expect(clippy::print_stderr, reason = "a table for people")]
fn report(unguarded: &Path, without: &[Result<String, String>]) {
    let run = |off| Surroundings::new(unguarded, "best-effort", off).make_all();
    let (with, files_only, calls_only) = (run(""), run("worker-calls"), run("worker-files"));
    let word = |result: &Result<String, String>| result.as_ref().map_or_else(Clone::clone, |_| "succeeds".to_owned());
    for (at, row) in ROWS.iter().enumerate() {
        let columns = [&with[at], &files_only[at], &calls_only[at], &without[at]].map(word).join(" | ");
        eprintln!("REPORT {} | {} {:?} | {columns}", row.class, row.attempt, row.arguments);
    }
}
