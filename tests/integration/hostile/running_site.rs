//! The site and the process of a row, and the operations for its script.
//!
//! A site has the hostile mounts and two witnesses. A witness is a harmless mount. The suite reads it during the
//! attack, and so checks that belljar serves other mounts correctly and in time.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use belljar_tests::http::Http;
use belljar_tests::{Client, Era, Process, Server, SharedStdio, Site, places};
use serde_json::{Value, json};

use crate::expect::{Answer, is_busy, kind};
use crate::oracle::{Canaries, Holdings, WitnessTimes};
use crate::row::{Guest, Row, RunMode};
use crate::tools::deadline;

/// The URI of the witness, and the text that a read of this URI must give.
const WITNESS: (&str, &str) = ("belljar://witness/static-text", "This is the content of the static text resource.");

/// The URI of the second witness, which reads a file, and the text that a read of this URI must give.
const FILE_WITNESS: (&str, &str) = ("belljar://witness-files/known.txt", "known to the byte");

/// The file with the `Authorization` of the clients that read the witnesses, in a site whose configuration has `[auth]`.
pub(crate) const WITNESS_KEY: &str = "witness.key";

/// How long to wait for a witness when guards are off. Longer than the longest time that a read may take.
const WITNESS_PATIENCE: Duration = Duration::from_secs(8);

/// The longest time of a start. The first start compiles every component, and later ones use the same compiled code.
const START: Duration = Duration::from_secs(60);

/// How long after its deadline an answer may come, in addition to a tenth of the time limit. Concurrent rows share few
/// processors, which delays answers.
pub(crate) const SLACK: Duration = Duration::from_millis(2500);

/// A run with guards off.
#[derive(Clone, Debug)]
pub(crate) struct Unguarded {
    /// The build of belljar whose guards can be switched off.
    pub(crate) binary: PathBuf,
    /// The names of the guards that are off, separated by commas.
    pub(crate) off: String,
}

/// A site with a running belljar in it.
pub(crate) struct RunningSite {
    pub(crate) site: Site,
    pub(crate) canaries: Canaries,
    pub(crate) connection: Connection,
    /// The open files, threads and memory of the process before the attack.
    pub(crate) before: Holdings,
    /// The reads of the witnesses before the attack.
    pub(crate) alone: WitnessTimes,
    /// True if several rows share the process.
    pub(crate) together: bool,
    unguarded: Option<Unguarded>,
}

/// The running belljar, with a connection to it.
pub(crate) enum Connection {
    /// belljar on stdio.
    Stdio(SharedStdio),
    /// belljar on HTTP.
    Http(Box<Server>),
    /// No connection: the script starts belljar.
    None,
}

/// Reads a URI. Returns the answer and the time that it took, or `None` without an answer.
type Reader<'a> = Box<dyn FnMut(&str) -> Option<(Answer, Duration)> + 'a>;

impl RunningSite {
    /// Creates a site for these rows, and starts belljar in it.
    pub(crate) fn new(rows: &[&Row], unguarded: Option<&Unguarded>) -> Result<RunningSite, String> {
        let mut site = Site::new();
        let together = rows.len() > 1;
        let canaries = Canaries::new(&mut site);
        lay_out(&site, &canaries, rows);
        site.share(shared());
        let none = Holdings::default();
        let (connection, before, alone) = (Connection::None, none, WitnessTimes::default());
        let mut running =
            RunningSite { site, canaries, connection, before, alone, together, unguarded: unguarded.cloned() };
        let (run_mode, shell) = rows.first().map_or((RunMode::Shared, ""), |row| (row.run_mode, row.shell));
        running.connection = match run_mode {
            RunMode::Shared | RunMode::Stdio => {
                let line =
                    SharedStdio::start(running.command(&["serve"], shell), Era::Stateless, &[&running.canaries.secret]);
                let greeted = line.greet(START);
                greeted.map_err(|why| format!("{why}\n{}", line.process.stderr()))?;
                Connection::Stdio(line)
            }
            RunMode::Http => {
                Connection::Http(Box::new(Server::start(running.command(&["serve", "--http", "127.0.0.1:0"], shell))))
            }
            RunMode::Unstarted => Connection::None,
        };
        if let Connection::None = running.connection {
            return Ok(running);
        }
        running.wait_until_loaded()?;
        // After some reads of the witnesses, belljar has started all of its permanent threads.
        running.alone = running.witness(&AtomicBool::new(true), 100);
        if let Some(why) = running.alone.wrong.first() {
            return Err(format!("before the attack: {why}\n{}", running.process().stderr()));
        }
        running.before = Holdings::of(running.process());
        Ok(running)
    }

    /// Waits until the components of all rows are loaded. Until then, a read of an unknown mount fails as unavailable;
    /// after that, as not found.
    fn wait_until_loaded(&self) -> Result<(), String> {
        let mut read = self.reader();
        let began = Instant::now();
        loop {
            let answer = read("belljar://nobody/x");
            let kind = answer.as_ref().map(|(answer, _)| answer.as_ref().map_or_else(kind, |_| "answered"));
            match kind {
                Some("not-found") => return Ok(()),
                None | Some("unavailable") if began.elapsed() < START => {}
                _ => return Err(format!("components are still being loaded after {:?}: {answer:?}", began.elapsed())),
            }
        }
    }

    /// A command that runs belljar in this site, without the guards that this run switches off.
    pub(crate) fn command(&self, verb: &[&str], shell: &str) -> Command {
        let binary = self.unguarded.as_ref().map_or_else(places::host, |unguarded| unguarded.binary.clone());
        let mut command = if shell.is_empty() {
            Command::new(&binary)
        } else {
            let mut sh = Command::new("sh");
            sh.args(["-c", &format!("{shell}; exec \"$@\""), "sh"]).arg(&binary);
            sh
        };
        command.args(self.site.arguments(verb)).env_clear().envs(self.site.environment());
        command.current_dir(self.site.path(""));
        if let Some(unguarded) = &self.unguarded {
            command.env("BELLJAR_UNGUARDED", OsString::from(&unguarded.off));
        }
        command
    }

    /// The process of belljar.
    pub(crate) fn process(&self) -> &Process {
        match &self.connection {
            Connection::Stdio(line) => &line.process,
            Connection::Http(server) => &server.process,
            Connection::None => panic!("no process: the script of this row starts belljar itself"),
        }
    }

    /// Reads the witness again and again, at least `least` times and until `stop`, on a connection of its own.
    pub(crate) fn witness(&self, stop: &AtomicBool, least: usize) -> WitnessTimes {
        let mut witness_times = WitnessTimes::default();
        let mut read = self.reader();
        let mut count = 0;
        while count < least || !stop.load(Ordering::Relaxed) {
            witness_times.note(exact(&read(WITNESS.0), WITNESS.1));
            // A read of the second witness takes another path through the host, at another speed. So do not record its
            // times.
            if count % 8 == 0
                && let Err(why) = exact(&read(FILE_WITNESS.0), FILE_WITNESS.1)
            {
                witness_times.note(Err(why));
            }
            count += 1;
            if !witness_times.wrong.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        witness_times
    }

    /// A client of the witnesses. If the site has keys, it has the one of [`WITNESS_KEY`].
    pub(crate) fn client(&self, server: &Server) -> Client<Http> {
        let mut wire = server.wire(Era::Stateless);
        wire.authorization = std::fs::read_to_string(self.site.path(WITNESS_KEY)).ok();
        Client::connect(wire, Era::Stateless)
    }

    /// A function that reads URIs, on a connection of its own if belljar runs on HTTP.
    fn reader(&self) -> Reader<'_> {
        match &self.connection {
            Connection::Stdio(line) => Box::new(move |uri| {
                let id = line.send("resources/read", json!({ "uri": uri }));
                line.wait(id, deadline(WITNESS_PATIENCE))
            }),
            Connection::Http(server) => {
                let mut client = self.client(server);
                Box::new(move |uri| {
                    let began = Instant::now();
                    Some((client.read(uri), began.elapsed()))
                })
            }
            Connection::None => Box::new(|_| None),
        }
    }
}

/// Returns the time of the answer if its text is exactly `wanted`, otherwise a description of the failure.
fn exact(answered: &Option<(Answer, Duration)>, wanted: &str) -> Result<Duration, String> {
    match answered {
        Some((Ok(result), took)) if result.pointer("/contents/0/text").is_some_and(|text| text == wanted) => Ok(*took),
        Some((Ok(result), _)) => Err(format!("gave another answer: {result}")),
        Some((Err(error), _)) => Err(format!("failed: {error}")),
        None => Err("did not answer".to_owned()),
    }
}

/// A row that runs, with the operations that its script may use.
pub(crate) struct RowContext<'a> {
    pub(crate) row: &'a Row,
    pub(crate) running: &'a RunningSite,
    /// How long after its deadline each answer came.
    late: Mutex<Vec<Duration>>,
}

impl<'a> RowContext<'a> {
    pub(crate) fn new(row: &'a Row, running: &'a RunningSite) -> RowContext<'a> {
        RowContext { row, running, late: Mutex::default() }
    }

    /// The directory of the site.
    pub(crate) fn site(&self) -> &Site {
        &self.running.site
    }

    /// The name of the row's mount with this suffix.
    pub(crate) fn name(&self, suffix: &str) -> String {
        self.row.name(suffix)
    }

    /// The URI of a reference in the row's first mount. Replaces `{canary}` and `{listener}`.
    pub(crate) fn uri(&self, reference: &str) -> String {
        self.uri_of("", reference)
    }

    /// The URI of a reference in the row's mount with this suffix. Replaces `{canary}` and `{listener}`.
    pub(crate) fn uri_of(&self, suffix: &str, reference: &str) -> String {
        let canaries = &self.running.canaries;
        let reference = reference
            .replace("{canary}", &twice(&canaries.file().to_string_lossy()))
            .replace("{listener}", &twice(&canaries.address().to_string()));
        format!("belljar://{}/{reference}", self.name(suffix))
    }

    /// The connection of a row on stdio.
    pub(crate) fn stdio(&self) -> &SharedStdio {
        match &self.running.connection {
            Connection::Stdio(line) => line,
            _ => panic!("{} does not run on stdio", self.row.id),
        }
    }

    /// The server, of a row on HTTP.
    pub(crate) fn server(&self) -> &Server {
        match &self.running.connection {
            Connection::Http(server) => server,
            _ => panic!("{} does not run on HTTP", self.row.id),
        }
    }

    /// Reads a reference of the first mount.
    pub(crate) fn read(&self, reference: &str) -> Answer {
        self.read_uri(&self.uri(reference))
    }

    /// Reads any URI. If rows run together, a read that is refused as busy is repeated.
    pub(crate) fn read_uri(&self, uri: &str) -> Answer {
        for _ in 0..20 {
            let answer = self.request("resources/read", json!({ "uri": uri }));
            if !(self.running.together && is_busy(&answer)) {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        panic!("{uri} is still busy after 20 reads in 5 s")
    }

    /// The audit record, with the records of all answers so far: waits for the record of one more read.
    pub(crate) fn records(&self) -> String {
        let last = format!("last-{}", self.row.id);
        self.read_uri(&format!("belljar://no-such-mount/{last}")).expect_err("there is no such mount");
        self.site().audit_text_with(&last)
    }

    /// Sends a request, and waits for its answer.
    pub(crate) fn request(&self, method: &str, params: Value) -> Answer {
        match &self.running.connection {
            Connection::Stdio(_) => {
                let id = self.send(method, params);
                self.wait(id)
            }
            Connection::Http(server) => {
                let mut client = self.running.client(server);
                let began = Instant::now();
                let answer = client.request(method, params);
                self.note(began.elapsed());
                answer
            }
            Connection::None => panic!("{} has no connection: its script starts belljar", self.row.id),
        }
    }

    /// Sends a request without waiting (on stdio).
    pub(crate) fn send(&self, method: &str, params: Value) -> u64 {
        self.stdio().send(method, params)
    }

    /// Sends a read of the first mount without waiting (on stdio).
    pub(crate) fn begin(&self, reference: &str) -> u64 {
        self.send("resources/read", json!({ "uri": self.uri(reference) }))
    }

    /// Waits for the answer to a request. Panics if none comes in time.
    pub(crate) fn wait(&self, id: u64) -> Answer {
        let patience = self.patience();
        let Some((answer, took)) = self.stdio().wait(id, patience) else {
            panic!("no answer within {patience:?}, with a limit of {:?}", self.row.time)
        };
        self.note(took);
        answer
    }

    /// How long to wait for an answer.
    pub(crate) fn patience(&self) -> Duration {
        let noise = if self.running.together { 4 } else { 1 };
        self.row.time + self.row.time / 10 + deadline(SLACK * noise)
    }

    /// Records how long after the time limit an answer came.
    fn note(&self, took: Duration) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.push(took.saturating_sub(self.row.time));
    }

    /// How long after its deadline the latest answer came.
    pub(crate) fn latest(&self) -> Duration {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.iter().max().copied().unwrap_or_default()
    }

    /// The most bytes of memory that the process held at any time.
    pub(crate) fn peak(&self) -> u64 {
        self.running.process().peak_memory()
    }

    /// The bytes of memory that the process holds now.
    pub(crate) fn memory(&self) -> u64 {
        self.running.process().memory()
    }
}

/// Percent-encodes a text twice.
fn twice(text: &str) -> String {
    let once = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect()
    };
    once(&once(text))
}

/// Writes the components of the witnesses and of the hostile mounts, the files of the rows, and the configuration.
fn lay_out(site: &Site, canaries: &Canaries, rows: &[&Row]) {
    site.mount_as("guest_fixture", "witness.wasm");
    site.mount_as("files", "witness-files.wasm");
    site.write("witness/known.txt", FILE_WITNESS.1);
    let mut config = "audit = \"audit.jsonl\"\n".to_owned();
    config.extend(rows.iter().map(|row| row.settings.as_str()));
    config += "[mounts.witness-files]\nfs = { \"/\" = \"witness\" }\n";
    let mut dropped = HashSet::new();
    for row in rows {
        if let Some(prepare) = &row.prepare {
            prepare(site);
        }
        for mount in &row.mounts {
            let name = row.name(mount.suffix);
            let file = match &mount.guest {
                Guest::Built(stem) => format!("{stem}.wasm"),
                Guest::Bytes(_) => format!("{name}.wasm"),
            };
            if dropped.insert(file.clone()) {
                match &mount.guest {
                    Guest::Built(stem) => site.mount_as(stem, &file),
                    Guest::Bytes(bytes) => site.drop_in(&file, bytes()),
                }
            }
            let Row { time, .. } = row;
            config += &format!("[mounts.{name}]\ncomponent = \"{file}\"\n{}", mount.config);
            config += &format!("[mounts.{name}.limits]\ntime = \"{}ms\"\n{}", time.as_millis(), mount.limits);
        }
    }
    let config = config
        .replace("{site}", &site.path("").to_string_lossy())
        .replace("{canary}", &canaries.file().to_string_lossy())
        .replace("{listener}", &canaries.address().to_string());
    site.config(&config);
}

/// The directory with compiled code, and with the key that authenticates this code. All rows share the directory. It is
/// made once with the large components, so that each of them is compiled once.
fn shared() -> &'static Path {
    static SHARED: OnceLock<PathBuf> = OnceLock::new();
    SHARED.get_or_init(|| {
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
        Site::compile(&shared, &["files", "guest_fixture", "guest_hostile", "guest_skills", "guest_tools", "images"]);
        shared
    })
}
