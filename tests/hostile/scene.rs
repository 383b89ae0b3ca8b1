//! Where a row happens: a site with two witnesses and the hostile mounts, a running belljar, and what a script may do to it.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use belljar_tests::{Era, Line, Process, Server, Site, places};
use serde_json::{Value, json};

use crate::expect::{Answer, is_busy, kind};
use crate::oracle::{Canaries, Fared, Holdings};
use crate::row::{Guest, Row, Way};

/// What the witness answers, byte by byte.
const WITNESS: (&str, &str) = ("belljar://witness/static-text", "This is the content of the static text resource.");

/// What the witness that reads a file answers.
const FILE_WITNESS: (&str, &str) = ("belljar://witness-files/known.txt", "known to the byte");

/// How long the witness's answer is waited for: longer than it may take.
const WITNESS_PATIENCE: Duration = Duration::from_secs(8);

/// How long the start may take: every component is compiled, once for all rows.
const START: Duration = Duration::from_secs(60);

/// How much later than its deadline an answer may come, beside a tenth: rows share few processors.
pub(crate) const SLACK: Duration = Duration::from_millis(2500);

/// The guards that are off in a run, by name, and the binary that can do without them.
#[derive(Clone, Debug)]
pub(crate) struct Unguarded {
    pub(crate) binary: PathBuf,
    pub(crate) off: String,
}

/// A site with a running belljar in it.
pub(crate) struct Stage {
    pub(crate) site: Site,
    pub(crate) canaries: Canaries,
    pub(crate) peer: Peer,
    pub(crate) before: Holdings,
    /// The witness alone, just before.
    pub(crate) alone: Fared,
    pub(crate) together: bool,
    unguarded: Option<Unguarded>,
}

/// What runs there.
pub(crate) enum Peer {
    /// belljar on stdio.
    Line(Line),
    /// belljar on HTTP.
    Http(Box<Server>),
    /// Nothing yet: the script starts it.
    None,
}

/// Reads a URI: the answer, and how long it took; none when there was none.
type Reader<'a> = Box<dyn FnMut(&str) -> Option<(Answer, Duration)> + 'a>;

impl Stage {
    /// Lays out a site for these rows, and starts belljar in it.
    pub(crate) fn new(rows: &[&Row], unguarded: Option<&Unguarded>) -> Result<Stage, String> {
        let mut site = Site::new();
        let together = rows.len() > 1;
        let canaries = Canaries::new(&mut site);
        lay_out(&site, &canaries, rows);
        site.share(shared());
        let none = Holdings { files: 0, threads: 0, memory: 0 };
        let (peer, before, alone) = (Peer::None, none, Fared::default());
        let mut stage = Stage { site, canaries, peer, before, alone, together, unguarded: unguarded.cloned() };
        let (way, shell) = rows.first().map_or((Way::Shared, ""), |row| (row.way, row.shell));
        stage.peer = match way {
            Way::Shared | Way::Stdio => {
                let line = Line::start(stage.command(&["serve"], shell), Era::Modern, &[&stage.canaries.secret]);
                let greeted = line.greet(START);
                greeted.map_err(|why| format!("{why}\n{}", line.process.stderr()))?;
                Peer::Line(line)
            }
            Way::Http => Peer::Http(Box::new(Server::start(stage.command(&["serve", "--http", "127.0.0.1:0"], shell)))),
            Way::Unstarted => Peer::None,
        };
        if let Peer::None = stage.peer {
            return Ok(stage);
        }
        stage.wait_until_loaded()?;
        // Every thread that stays has been started when the witnesses have answered a few times.
        stage.alone = stage.witness(&AtomicBool::new(true), 100);
        if let Some(why) = stage.alone.wrong.first() {
            return Err(format!("before the attack: {why}"));
        }
        stage.before = Holdings::of(stage.process());
        Ok(stage)
    }

    /// Waits for the components of all rows. What nobody serves is said not to be there only when all of them are loaded.
    fn wait_until_loaded(&self) -> Result<(), String> {
        let mut read = self.reader();
        let began = Instant::now();
        loop {
            let answer = read("belljar://nobody/x");
            let kind = answer.as_ref().map(|(answer, _)| answer.as_ref().map_or_else(kind, |_| "answered"));
            match kind {
                Some("not-found") => return Ok(()),
                None | Some("unavailable") if began.elapsed() < START => {}
                _ => return Err(format!("not all is loaded after {:?}: {answer:?}", began.elapsed())),
            }
        }
    }

    /// A command that runs belljar here, with the guards of this run off.
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

    /// The process that runs here.
    pub(crate) fn process(&self) -> &Process {
        match &self.peer {
            Peer::Line(line) => &line.process,
            Peer::Http(server) => &server.process,
            Peer::None => panic!("this row starts no process but in its script"),
        }
    }

    /// Reads the witness again and again, at least `least` times and until `stop`, on a connection of its own.
    pub(crate) fn witness(&self, stop: &AtomicBool, least: usize) -> Fared {
        let mut fared = Fared::default();
        let mut read = self.reader();
        let mut count = 0;
        while count < least || !stop.load(Ordering::Relaxed) {
            fared.note(exact(&read(WITNESS.0), WITNESS.1));
            // The one that reads a file has another path through the host, and another speed.
            if count % 8 == 0
                && let Err(why) = exact(&read(FILE_WITNESS.0), FILE_WITNESS.1)
            {
                fared.note(Err(why));
            }
            count += 1;
            if !fared.wrong.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        fared
    }

    /// Something that reads URIs here, on a connection of its own.
    fn reader(&self) -> Reader<'_> {
        match &self.peer {
            Peer::Line(line) => Box::new(move |uri| {
                let id = line.send("resources/read", json!({ "uri": uri }));
                line.wait(id, WITNESS_PATIENCE)
            }),
            Peer::Http(server) => {
                let mut client = server.client(Era::Modern);
                Box::new(move |uri| {
                    let began = Instant::now();
                    Some((client.read(uri), began.elapsed()))
                })
            }
            Peer::None => Box::new(|_| None),
        }
    }
}

/// How long the answer took, if it is this text and nothing else.
fn exact(answered: &Option<(Answer, Duration)>, wanted: &str) -> Result<Duration, String> {
    match answered {
        Some((Ok(result), took)) if result.pointer("/contents/0/text").is_some_and(|text| text == wanted) => Ok(*took),
        Some((Ok(result), _)) => Err(format!("answered otherwise: {result}")),
        Some((Err(error), _)) => Err(format!("failed: {error}")),
        None => Err("did not answer".to_owned()),
    }
}

/// What a script may do.
pub(crate) struct Scene<'a> {
    pub(crate) row: &'a Row,
    pub(crate) stage: &'a Stage,
    /// How much later than its deadline each answer came.
    late: Mutex<Vec<Duration>>,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(row: &'a Row, stage: &'a Stage) -> Scene<'a> {
        Scene { row, stage, late: Mutex::default() }
    }

    /// The place on disk.
    pub(crate) fn site(&self) -> &Site {
        &self.stage.site
    }

    /// The name of the row's mount with this suffix.
    pub(crate) fn name(&self, suffix: &str) -> String {
        self.row.name(suffix)
    }

    /// The URI of a reference in the row's first mount. `{canary}` and `{listener}` are filled in.
    pub(crate) fn uri(&self, reference: &str) -> String {
        self.uri_of("", reference)
    }

    /// The same in the mount with this suffix.
    pub(crate) fn uri_of(&self, suffix: &str, reference: &str) -> String {
        let canaries = &self.stage.canaries;
        let reference = reference
            .replace("{canary}", &twice(&canaries.file().to_string_lossy()))
            .replace("{listener}", &twice(&canaries.address().to_string()));
        format!("belljar://{}/{reference}", self.name(suffix))
    }

    /// The connection, of a row on stdio.
    pub(crate) fn line(&self) -> &Line {
        match &self.stage.peer {
            Peer::Line(line) => line,
            _ => panic!("{} does not run on stdio", self.row.id),
        }
    }

    /// The server, of a row on HTTP.
    pub(crate) fn server(&self) -> &Server {
        match &self.stage.peer {
            Peer::Http(server) => server,
            _ => panic!("{} does not run on HTTP", self.row.id),
        }
    }

    /// Reads a reference of the first mount.
    pub(crate) fn read(&self, reference: &str) -> Answer {
        self.read_uri(&self.uri(reference))
    }

    /// Reads any URI. Beside many others, a call that finds no turn tries again.
    pub(crate) fn read_uri(&self, uri: &str) -> Answer {
        for _ in 0..20 {
            let answer = self.request("resources/read", json!({ "uri": uri }));
            if !(self.stage.together && is_busy(&answer)) {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        panic!("no turn for {uri} in a long time")
    }

    /// One request and its answer, in time.
    pub(crate) fn request(&self, method: &str, params: Value) -> Answer {
        match &self.stage.peer {
            Peer::Line(_) => {
                let id = self.send(method, params);
                self.wait(id)
            }
            Peer::Http(server) => {
                let mut client = server.client(Era::Modern);
                let began = Instant::now();
                let answer = client.request(method, params);
                self.note(began.elapsed());
                answer
            }
            Peer::None => panic!("{} has started nothing", self.row.id),
        }
    }

    /// Sends a request without waiting (on stdio).
    pub(crate) fn send(&self, method: &str, params: Value) -> u64 {
        self.line().send(method, params)
    }

    /// Sends a read of the first mount without waiting (on stdio).
    pub(crate) fn begin(&self, reference: &str) -> u64 {
        self.send("resources/read", json!({ "uri": self.uri(reference) }))
    }

    /// The answer to a request in flight; that none comes in time is a failure.
    pub(crate) fn wait(&self, id: u64) -> Answer {
        let patience = self.patience();
        let Some((answer, took)) = self.line().wait(id, patience) else {
            panic!("no answer within {patience:?}, with a limit of {:?}", self.row.time)
        };
        self.note(took);
        answer
    }

    /// How long an answer is waited for.
    pub(crate) fn patience(&self) -> Duration {
        let noise = if self.stage.together { 4 } else { 1 };
        self.row.time + self.row.time / 10 + SLACK * noise
    }

    /// Takes the time of an answer into account.
    fn note(&self, took: Duration) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.push(took.saturating_sub(self.row.time));
    }

    /// How much later than its deadline the latest answer came.
    pub(crate) fn latest(&self) -> Duration {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.iter().max().copied().unwrap_or_default()
    }

    /// Bytes of memory that the process ever held.
    pub(crate) fn peak(&self) -> u64 {
        self.stage.process().peak_memory()
    }

    /// Bytes of memory that it holds now.
    pub(crate) fn memory(&self) -> u64 {
        self.stage.process().memory()
    }
}

/// A text in percent-encoding, twice over.
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

/// The witnesses, the hostile mounts, and the configuration that names them.
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

/// Where compiled code is kept, and the key that it is authenticated with: made once for all rows, with the large
/// components in it, so that each of them is compiled once.
fn shared() -> &'static Path {
    static SHARED: OnceLock<PathBuf> = OnceLock::new();
    SHARED.get_or_init(|| {
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
        Site::compile(&shared, &["files", "guest_fixture", "guest_imp"]);
        shared
    })
}
