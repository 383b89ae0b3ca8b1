//! The servers that are compared: how each is started at its best, what it is asked, and what has to be known of it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio as Pipe};

use belljar_benches::names;
use belljar_tests::{Era, Process, Server, Site, places};
use serde_json::{Value, json};

use crate::cases::{Case, Transport, What};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Belljar,
    Native,
    FastMcp,
    Sdk,
    Everything,
    Filesystem,
}

/// One of the processes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    Usual,
    Lister,
    Sessions,
}

/// Where they run, and the file that they serve.
pub(crate) struct Place {
    /// belljar with the guests that answer bodies and files.
    pub(crate) site: Site,
    /// belljar with one mount that lists a hundred resources.
    lister: Site,
    /// A text of 4 KiB.
    file: PathBuf,
}

impl Kind {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Kind; 6] =
        [Kind::Belljar, Kind::Native, Kind::FastMcp, Kind::Sdk, Kind::Everything, Kind::Filesystem];

    /// As the table calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Belljar => names::BELLJAR,
            Kind::Native => names::NATIVE,
            Kind::FastMcp => names::FASTMCP,
            Kind::Sdk => names::SDK,
            Kind::Everything => names::EVERYTHING,
            Kind::Filesystem => names::FILESYSTEM,
        }
    }

    /// The newest era that it speaks; all speak the older one.
    pub(crate) fn newest(self) -> Era {
        match self {
            Kind::Everything | Kind::Filesystem => Era::Older,
            _ => Era::Modern,
        }
    }

    /// What has to be known of it, whatever it is asked.
    pub(crate) fn note(self) -> Option<String> {
        let note = match self {
            Kind::Belljar => "a fresh sandbox for every read, no answer kept, every call on record",
            Kind::Native => "the same SDK with its answers built in, no sandbox, no limits, no record",
            Kind::FastMcp => {
                "static resources made once, stateless HTTP (in the older era with sessions, which cost less) with JSON answers, no log of requests"
            }
            Kind::Sdk => "a server of ours on the SDK's low-level class, bodies made once, JSON answers",
            Kind::Everything => {
                "speaks 2025-11-25 at most; over HTTP it has sessions and event streams only, and keeps each answer to be sent again"
            }
            Kind::Filesystem => {
                "speaks 2025-11-25 at most, has no HTTP and no resources: its tool \"read_text_file\", which answers the text twice"
            }
        };
        Some(note.to_owned())
    }

    /// What the client with the number `client` asks it for `what`; nothing where it has no such thing.
    ///
    /// belljar answers those who ask for the same at the same time by one run of the guest. So each client asks for a resource
    /// of its own, which has as many zeros before its size.
    pub(crate) fn asked(self, what: What, client: u32) -> Option<Value> {
        let zeros = "0".repeat(usize::try_from(client).unwrap_or_default());
        let read = |uri: String| Some(json!({ "method": "resources/read", "params": { "uri": uri } }));
        let list = json!({ "method": "resources/list", "params": {} });
        match (self, what) {
            (Kind::Filesystem, What::File) => Some(json!({ "method": "tools/call" })),
            (Kind::Filesystem, _) => None,
            (Kind::Everything, What::Text(1024)) => read("demo://resource/static/document/extension.md".to_owned()),
            (Kind::Everything, What::List) | (_, What::List) => Some(list),
            (Kind::Everything, _) => None,
            (Kind::Belljar | Kind::Native, What::Text(size)) => read(format!("belljar://sized/text/{zeros}{size}")),
            (Kind::Belljar | Kind::Native, What::Blob(size)) => read(format!("belljar://sized/blob/{zeros}{size}")),
            (Kind::Belljar | Kind::Native, What::File) => read("belljar://files/page.txt".to_owned()),
            (Kind::FastMcp | Kind::Sdk, What::Text(size)) => read(format!("bench://text/{size}")),
            (Kind::FastMcp | Kind::Sdk, What::Blob(size)) => read(format!("bench://blob/{size}")),
            (Kind::FastMcp | Kind::Sdk, What::File) => read("bench://file".to_owned()),
        }
    }

    /// Which of its processes answers in a group: it may need other settings, or other resources.
    pub(crate) fn variant(self, case: &Case) -> Variant {
        match self {
            Kind::Belljar | Kind::FastMcp if case.what == What::List => Variant::Lister,
            // In the older era a session for each client costs it less than a new one for each request.
            Kind::FastMcp if case.is_older && case.transport == Transport::Http => Variant::Sessions,
            _ => Variant::Usual,
        }
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        let line = "A bell jar lets everything inside be seen, and lets nothing of it out. \n";
        let text: String = line.chars().cycle().take(4096).collect();
        let (site, lister) = (Site::new(), Site::new());
        let file = site.write("data/page.txt", text);
        site.mount_as("guest_sized", "sized.wasm");
        site.mount("files");
        // Records are kept, as an operator would; nothing is answered from what was kept.
        site.config(&format!(
            "audit = {:?}\n[mounts.sized]\ncache = \"off\"\n[mounts.files]\ncache = \"off\"\nfs = {{ \"/data\" = {:?} }}\n",
            site.path("audit.jsonl"),
            site.path("data")
        ));
        lister.mount_as("guest_sized", "sized.wasm");
        lister.config(&format!(
            "audit = {:?}\n[mounts.sized]\nenv = {{ SIZED_COUNT = \"100\" }}\n",
            lister.path("audit.jsonl")
        ));
        Place { site, lister, file }
    }

    /// Why a server cannot be measured, if it cannot.
    pub(crate) fn lacks(&self, kind: Kind) -> Option<String> {
        let needs = match kind {
            Kind::Belljar => return None,
            Kind::Native => native(),
            Kind::FastMcp => python(),
            Kind::Sdk | Kind::Everything | Kind::Filesystem => node(),
        };
        (!needs.exists()).then(|| "not there; \"cargo xtask bench\" brings it, or says why it cannot".to_owned())
    }

    /// Starts a server on stdio.
    pub(crate) fn stdio(&self, kind: Kind, variant: Variant) -> Command {
        let site = if variant == Variant::Lister { &self.lister } else { &self.site };
        match kind {
            Kind::Belljar => site.command(site.arguments(&["serve"])),
            Kind::Native => self.native(),
            Kind::FastMcp => self.python(variant, &["stdio".to_owned(), self.file()]),
            Kind::Sdk => self.node("server.mjs", &["stdio".to_owned(), self.file()]),
            Kind::Everything => self.node(&published("server-everything"), &["stdio".to_owned()]),
            Kind::Filesystem => {
                let directory = self.site.path("data").to_string_lossy().into_owned();
                self.node(&published("server-filesystem"), &[directory])
            }
        }
    }

    /// Starts a server on HTTP.
    pub(crate) fn http(&self, kind: Kind, variant: Variant) -> Server {
        let site = if variant == Variant::Lister { &self.lister } else { &self.site };
        match kind {
            Kind::Belljar => site.http(),
            Kind::Native => {
                let mut command = self.native();
                command.arg("--http");
                Server::start(command)
            }
            Kind::Sdk => Server::start(self.node("server.mjs", &["http".to_owned(), self.file()])),
            // These two are told their port, and do not say that they listen in words of ours.
            Kind::FastMcp => {
                let address = free();
                let arguments = ["http".to_owned(), self.file(), address.port().to_string()];
                listening(self.python(variant, &arguments), address)
            }
            Kind::Everything => {
                let address = free();
                let mut command = self.node(&published("server-everything"), &["streamableHttp".to_owned()]);
                command.env("PORT", address.port().to_string());
                listening(command, address)
            }
            Kind::Filesystem => unreachable!("it has no HTTP"),
        }
    }

    /// The tool call that reads the file.
    pub(crate) fn tool_call(&self) -> Value {
        json!({ "name": "read_text_file", "arguments": { "path": self.file() } })
    }

    fn file(&self) -> String {
        self.file.to_string_lossy().into_owned()
    }

    fn native(&self) -> Command {
        let mut command = Command::new(native());
        command.arg("--file").arg(&self.file);
        command
    }

    fn python(&self, variant: Variant, arguments: &[String]) -> Command {
        let mut command = self.plain(python());
        command.arg(peers().join("py/server.py")).args(arguments);
        match variant {
            Variant::Usual => {}
            Variant::Lister => {
                command.arg("list");
            }
            Variant::Sessions => {
                command.arg("sessions");
            }
        }
        command
    }

    fn node(&self, script: &str, arguments: &[String]) -> Command {
        let mut command = self.plain(node());
        command.arg(peers().join("node").join(script)).args(arguments).env("NODE_ENV", "production");
        command
    }

    /// A program with nothing of this machine's but its search path.
    fn plain(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.site.environment()).current_dir(self.site.path("."));
        command
    }
}

/// The folder with what describes them.
pub(crate) fn peers() -> PathBuf {
    places::repository().join("tests/benches/peers")
}

/// The server without a sandbox, which was built with this program.
fn native() -> PathBuf {
    places::host().with_file_name("native")
}

/// The interpreter with FastMCP.
pub(crate) fn python() -> PathBuf {
    places::target().join("peers/py/bin/python")
}

/// The interpreter that the servers for Node run on.
pub(crate) fn node() -> PathBuf {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    peers().join(format!("node/node_modules/node-linux-{architecture}/bin/node"))
}

/// The program of a published server.
fn published(name: &str) -> String {
    format!("node_modules/@modelcontextprotocol/{name}/dist/index.js")
}

/// An address that was free a moment ago.
fn free() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address")
}

fn listening(mut command: Command, address: SocketAddr) -> Server {
    command.stdin(Pipe::null()).stdout(Pipe::null());
    Server::at(Process::start(command), address)
}
