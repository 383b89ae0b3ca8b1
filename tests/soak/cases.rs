//! The reads of the soak with their expected outcomes: of honest providers, and of a hostile one.

use base64::Engine as _;
use belljar_tests::{RpcError, Site, places};
use serde_json::Value;

/// Files that are read through a grant.
const FILES: u64 = 50;

/// A call that runs until it is cancelled.
pub(crate) const ENDLESS: &str = "belljar://patient/forever";

/// An honest read of the mount of [`ENDLESS`].
pub(crate) const FREE: &str = "belljar://patient/ok";

/// Every provider of the soak, mounted.
pub(crate) fn site() -> Site {
    let mut site = Site::new();
    for (stem, file) in [
        ("guest_fixture", "fixture.wasm"),
        ("guest_hostile", "hostile.wasm"),
        ("guest_sized", "sized.wasm"),
        ("clock", "clock.wasm"),
        ("files", "files.wasm"),
    ] {
        site.mount_as(stem, file);
    }
    for number in 0..FILES {
        site.write(format!("docs/{number}.md"), file(number));
    }
    site.config(
        // Far more time than any call takes: a busy machine must not make an answer wrong.
        "audit = \"audit.jsonl\"\nlimits = { time = \"30s\", queue = \"30s\" }\n\
         [mounts.fixture]\nuri = \"test://\"\n\
         [mounts.docs]\ncomponent = \"files.wasm\"\nfs = { \"/\" = \"docs\" }\n\
         [mounts.hostile]\n[mounts.hostile.limits]\nfuel = 2_000_000\nresult = \"64KiB\"\nhandles = 100\n\
         random = \"1KiB\"\noutput = \"4KiB\"\n\
         [mounts.greedy]\ncomponent = \"hostile.wasm\"\nlimits = { memory = \"4MiB\" }\n\
         [mounts.late]\ncomponent = \"hostile.wasm\"\nlimits = { time = \"40ms\", fuel = 1_000_000_000_000 }\n\
         [mounts.patient]\ncomponent = \"hostile.wasm\"\nlimits = { time = \"600s\", concurrency = 4 }\n",
    );
    // Refusals and limits are expected. The audit record and the answers contain them, so the log leaves them out.
    site.env("RUST_LOG", "error,belljar::cli::serve=info");
    let output = site.run(&["check"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    site
}

fn file(number: u64) -> String {
    format!("# File {number}\n\n{}\n", "A line, ünïcode and all.\n".repeat(1 + (number as usize * 7) % 60))
}

/// One read.
pub(crate) struct Case {
    pub(crate) uri: String,
    expected: Expected,
}

enum Expected {
    Text(String),
    Blob(Vec<u8>),
    /// The current time, which differs in each answer.
    Clock,
    /// An error of this kind. For the kind `limit`, also the name of the limit.
    Error(&'static str, &'static str),
}

/// Hostile reads: mount and reference, the kind of the expected error, and the name of its limit.
const HOSTILE: [(&str, &str, &str); 16] = [
    ("hostile/spin", "limit", "fuel"),
    ("hostile/busy", "limit", "fuel"),
    ("greedy/fill", "limit", "memory"),
    ("greedy/grow/64", "limit", "memory"),
    ("hostile/recurse/0", "limit", "stack"),
    ("hostile/handles/200", "limit", "handles"),
    ("hostile/random/2000", "limit", "random"),
    ("hostile/text/200000", "limit", "result"),
    ("hostile/many/5000", "limit", "result"),
    ("hostile/trap", "trap", ""),
    ("hostile/panic/words", "trap", ""),
    ("hostile/exit/0", "trap", ""),
    ("hostile/empty", "bad-output", ""),
    ("hostile/spoof/another", "bad-output", ""),
    ("hostile/errors/denied/controls", "denied", ""),
    ("hostile/nothing", "not-found", ""),
];

/// References of reads that reach the time limit.
const LATE: [&str; 2] = ["sleep/60000", "forever"];

/// Pseudo-random numbers, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xBE11)
    }

    /// A number below `limit` (splitmix64).
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }

    /// The next read: one in five is hostile.
    pub(crate) fn case(&mut self) -> Case {
        if self.below(5) == 0 { self.hostile() } else { self.honest() }
    }

    fn hostile(&mut self) -> Case {
        if self.below(20) == 0 {
            let verb = LATE[self.below(LATE.len() as u64) as usize];
            return Case { uri: format!("belljar://late/{verb}"), expected: Expected::Error("limit", "time") };
        }
        if self.below(20) == 0 {
            let uri = "belljar://hostile/print/20000".to_owned();
            return Case { uri, expected: Expected::Text("printed".to_owned()) };
        }
        let (verb, kind, limit) = HOSTILE[self.below(HOSTILE.len() as u64) as usize];
        Case { uri: format!("belljar://{verb}"), expected: Expected::Error(kind, limit) }
    }

    fn honest(&mut self) -> Case {
        let (uri, expected) = match self.below(7) {
            0 => {
                let text = "This is the content of the static text resource.".to_owned();
                ("test://static-text".to_owned(), Expected::Text(text))
            }
            1 => {
                let id = self.below(1 << 40);
                let text = format!(r#"{{"data":"Data for ID: {id}","id":"{id}","templateTest":true}}"#);
                (format!("test://template/{id}/data"), Expected::Text(text))
            }
            2 => ("test://static-binary".to_owned(), Expected::Blob(pixel())),
            3 => {
                let length = self.below(8192);
                (format!("belljar://sized/text/{length}"), Expected::Text("x".repeat(length as usize)))
            }
            4 => {
                let length = self.below(65536);
                (format!("belljar://sized/blob/{length}"), Expected::Blob(vec![0xA5; length as usize]))
            }
            5 => {
                let number = self.below(FILES);
                (format!("belljar://docs/{number}.md"), Expected::Text(file(number)))
            }
            _ => ("belljar://clock/utc".to_owned(), Expected::Clock),
        };
        Case { uri, expected }
    }
}

/// The read of [`FREE`].
pub(crate) fn free() -> Case {
    Case { uri: FREE.to_owned(), expected: Expected::Text("fine".to_owned()) }
}

fn pixel() -> Vec<u8> {
    use std::sync::OnceLock;
    static PIXEL: OnceLock<Vec<u8>> = OnceLock::new();
    let path = places::repository().join("tests/guests/fixture/src/pixel.png");
    PIXEL.get_or_init(|| std::fs::read(path).expect("the fixture's picture")).clone()
}

impl Case {
    /// True if the read is honest.
    pub(crate) fn is_honest(&self) -> bool {
        !matches!(self.expected, Expected::Error(..))
    }

    /// Compares `answer` with the expected outcome.
    pub(crate) fn check(&self, answer: &Result<Value, RpcError>) -> Result<(), String> {
        let wrong = |what: &str| {
            let shown: String = match answer {
                Ok(result) => result.to_string().chars().take(300).collect(),
                Err(error) => error.to_string(),
            };
            Err(format!("{}: {what}: {shown}", self.uri))
        };
        match (&self.expected, answer) {
            (Expected::Error(kind, limit), Err(error)) => {
                let is = |key: &str, value: &str| error.data[key].as_str().unwrap_or_default() == value;
                if is("kind", kind) && is("limit", limit) { Ok(()) } else { wrong(&format!("expected {kind} {limit}")) }
            }
            (Expected::Error(kind, limit), Ok(_)) => wrong(&format!("expected {kind} {limit}")),
            (_, Err(_)) => wrong("an error"),
            (expected, Ok(result)) => {
                let contents = result["contents"].as_array().map(Vec::as_slice);
                let Some([content]) = contents else { return wrong("not one content") };
                if content["uri"] != self.uri.as_str() {
                    return wrong("contents of another name");
                }
                let is_right = match expected {
                    Expected::Text(text) => content["text"] == text.as_str() && content["blob"].is_null(),
                    Expected::Blob(bytes) => {
                        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
                        content["blob"] == encoded.as_str() && content["text"].is_null()
                    }
                    Expected::Clock => content["text"]
                        .as_str()
                        .is_some_and(|text| text.lines().count() == 4 && text.contains("\nzone: UTC\nrfc3339: 2")),
                    Expected::Error(..) => false,
                };
                if is_right { Ok(()) } else { wrong("other bytes") }
            }
        }
    }
}
