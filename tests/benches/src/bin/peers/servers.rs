//! The compared servers: the command of each server with its fastest settings, its requests, and a note for readers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio as Pipe};

use belljar_benches::names;
use belljar_tests::{Era, Process, Server, Site, places};
use serde_json::{Value, json};

use crate::cases::{Case, HUGE, Operation, Transport};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Belljar,
    /// With `isolation = "none"`.
    Unisolated,
    /// The least: hyper, or one loop.
    Bare,
    /// The same with a guest.
    Limit,
    Native,
    FastMcp,
    Sdk,
    Everything,
    Filesystem,
}

/// The settings of a server process. Each variant of a server is a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    Usual,
    /// A server that lists a hundred resources.
    Lister,
    /// A server with sessions.
    Sessions,
}

/// The directories of the servers, and the file that they serve.
pub(crate) struct Place {
    /// The site of belljar with the guests for bodies and files.
    pub(crate) site: Site,
    /// The same without worker processes.
    unisolated: Site,
    /// The site of belljar with one mount that lists a hundred resources.
    lister: Site,
    /// The path of a text of 4 KiB.
    file: PathBuf,
}

impl Kind {
    /// All servers, in the order of the table.
    pub(crate) const ALL: [Kind; 9] = [
        Kind::Belljar,
        Kind::Unisolated,
        Kind::Bare,
        Kind::Limit,
        Kind::Native,
        Kind::FastMcp,
        Kind::Sdk,
        Kind::Everything,
        Kind::Filesystem,
    ];

    /// The name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Belljar => names::BELLJAR,
            Kind::Unisolated => names::UNISOLATED,
            Kind::Bare => names::BARE,
            Kind::Limit => names::LIMIT,
            Kind::Native => names::NATIVE,
            Kind::FastMcp => names::FASTMCP,
            Kind::Sdk => names::SDK,
            Kind::Everything => names::EVERYTHING,
            Kind::Filesystem => names::FILESYSTEM,
        }
    }

    /// The newest protocol era that the server supports. All servers support sessions (2025-11-25).
    pub(crate) fn newest(self) -> Era {
        match self {
            Kind::Everything | Kind::Filesystem => Era::Session,
            _ => Era::Stateless,
        }
    }

    /// A note for readers about this server, for all groups.
    pub(crate) fn note(self) -> Option<String> {
        let note = match self {
            Kind::Belljar => "a fresh sandbox for every read, no answer kept, every call on record",
            Kind::Unisolated => "the same, but providers run in belljar's own process: no worker processes",
            Kind::Bare => "hyper alone, or one loop over a pipe: it parses the request and writes the same answer",
            Kind::Limit => {
                "the same, and each read runs the guest in an instance of its own, on wasmtime alone: the least that a fresh sandbox for each read can cost"
            }
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

    /// The request of the client with the number `client` for the operation `operation`. `None` if the server does not
    /// support it.
    ///
    /// belljar answers concurrent reads of one resource by one run of the guest. So each client must read another
    /// resource: the size in the URI has `client` leading zeros.
    pub(crate) fn request(self, operation: Operation, client: u32) -> Option<Value> {
        let zeros = "0".repeat(usize::try_from(client).unwrap_or_default());
        let read = |uri: String| Some(json!({ "method": "resources/read", "params": { "uri": uri } }));
        let list = json!({ "method": "resources/list", "params": {} });
        match (self, operation) {
            (Kind::Unisolated, Operation::List) => None,
            (Kind::Bare | Kind::Limit, Operation::Text(size)) => read(format!("belljar://sized/text/{zeros}{size}")),
            (Kind::Bare | Kind::Limit, _) => None,
            (Kind::Filesystem, Operation::File) => Some(json!({ "method": "tools/call" })),
            (Kind::Filesystem, _) => None,
            (Kind::Everything, Operation::Text(1024)) => {
                read("demo://resource/static/document/extension.md".to_owned())
            }
            (Kind::Everything, Operation::List) | (_, Operation::List) => Some(list),
            (Kind::Everything, _) => None,
            (Kind::Belljar | Kind::Unisolated | Kind::Native, Operation::Text(size)) => {
                read(format!("belljar://sized/text/{zeros}{size}"))
            }
            (Kind::Belljar | Kind::Unisolated | Kind::Native, Operation::Blob(size)) => {
                read(format!("belljar://sized/blob/{zeros}{size}"))
            }
            (Kind::Belljar | Kind::Unisolated | Kind::Native, Operation::File) => {
                read("belljar://files/page.txt".to_owned())
            }
            (Kind::FastMcp | Kind::Sdk, Operation::Text(HUGE)) => None,
            (Kind::FastMcp | Kind::Sdk, Operation::Text(size)) => read(format!("bench://text/{size}")),
            (Kind::FastMcp | Kind::Sdk, Operation::Blob(size)) => read(format!("bench://blob/{size}")),
            (Kind::FastMcp | Kind::Sdk, Operation::File) => read("bench://file".to_owned()),
        }
    }

    /// The process of this server for a group. Some groups need other settings, or other resources.
    pub(crate) fn variant(self, case: &Case) -> Variant {
        match self {
            Kind::Belljar | Kind::FastMcp if case.operation == Operation::List => Variant::Lister,
            // For clients with sessions, FastMCP is cheaper with one session for each client than with a new session
            // for each request.
            Kind::FastMcp if case.is_older && case.transport == Transport::Http => Variant::Sessions,
            _ => Variant::Usual,
        }
    }
}

impl Place {
    pub(crate) fn new() -> Place {
        let line = "A bell jar lets everything inside be seen, and lets nothing of it out. \n";
        let text: String = line.chars().cycle().take(4096).collect();
        let (site, unisolated, lister) = (Site::new(), Site::new(), Site::new());
        let file = site.write("data/page.txt", text);
        // Write audit records, as in production. Turn off the cache of answers, so that each read runs a guest.
        for (own, isolation) in [(&site, ""), (&unisolated, "isolation = \"none\"\n")] {
            own.mount_as("guest_sized", "sized.wasm");
            own.mount("files");
            own.config(&format!(
                "{isolation}audit = {:?}\n[limits]\nresult = \"16MiB\"\nmemory = \"128MiB\"\n[mounts.sized]\ncache = \"off\"\n[mounts.files]\ncache = \"off\"\nfs = {{ \"/data\" = {:?} }}\n",
                own.path("audit.jsonl"),
                site.path("data")
            ));
        }
        lister.mount_as("guest_sized", "sized.wasm");
        lister.config(&format!(
            "audit = {:?}\n[mounts.sized]\nenv = {{ SIZED_COUNT = \"100\" }}\n",
            lister.path("audit.jsonl")
        ));
        Place { site, unisolated, lister, file }
    }

    /// The reason why a server cannot be measured. `None` if it can.
    pub(crate) fn lacks(&self, kind: Kind) -> Option<String> {
        let needs = match kind {
            Kind::Belljar | Kind::Unisolated => return None,
            Kind::Bare | Kind::Limit => beside("bare"),
            Kind::Native => beside("native"),
            Kind::FastMcp => python(),
            Kind::Sdk | Kind::Everything | Kind::Filesystem => node(),
        };
        (!needs.exists()).then(|| "not installed; \"cargo xtask bench\" installs it, or gives the reason".to_owned())
    }

    /// The command of a server on stdio.
    pub(crate) fn stdio(&self, kind: Kind, variant: Variant) -> Command {
        let site = if variant == Variant::Lister { &self.lister } else { &self.site };
        match kind {
            Kind::Belljar => site.command(site.arguments(&["serve"])),
            Kind::Unisolated => self.unisolated.command(self.unisolated.arguments(&["serve"])),
            Kind::Bare | Kind::Limit => bare(kind),
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
            Kind::Unisolated => self.unisolated.http(),
            Kind::Native | Kind::Bare | Kind::Limit => {
                let mut command = if kind == Kind::Native { self.native() } else { bare(kind) };
                command.arg("--http");
                Server::start(command)
            }
            Kind::Sdk => Server::start(self.node("server.mjs", &["http".to_owned(), self.file()])),
            // FastMCP and server-everything need a port as an argument, and do not print the line that `Server::start`
            // expects.
            Kind::FastMcp => {
                let address = free_address();
                let arguments = ["http".to_owned(), self.file(), address.port().to_string()];
                start_at(self.python(variant, &arguments), address)
            }
            Kind::Everything => {
                let address = free_address();
                let mut command = self.node(&published("server-everything"), &["streamableHttp".to_owned()]);
                command.env("PORT", address.port().to_string());
                start_at(command, address)
            }
            Kind::Filesystem => unreachable!("server-filesystem does not support HTTP"),
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
        let mut command = Command::new(beside("native"));
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

    /// The command of a program. Its environment has one variable of this machine: the search path.
    fn plain(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.site.environment()).current_dir(self.site.path("."));
        command
    }
}

/// The folder with the sources and the pinned versions of the other servers.
pub(crate) fn peers() -> PathBuf {
    places::repository().join("tests/benches/peers")
}

/// The path of a server of this package. `cargo xtask bench` builds it with belljar, in the same profile.
fn beside(name: &str) -> PathBuf {
    places::host().with_file_name(name)
}

/// The command of the server without a framework.
fn bare(kind: Kind) -> Command {
    let mut command = Command::new(beside("bare"));
    if kind == Kind::Limit {
        command.arg("--engine").arg(places::component("guest_sized"));
    }
    command
}

/// The path of the Python interpreter with FastMCP.
pub(crate) fn python() -> PathBuf {
    places::target().join("peers/py/bin/python")
}

/// The path of Node.
pub(crate) fn node() -> PathBuf {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    peers().join(format!("node/node_modules/node-linux-{architecture}/bin/node"))
}

/// The script of a server from npm.
fn published(name: &str) -> String {
    format!("node_modules/@modelcontextprotocol/{name}/dist/index.js")
}

/// An address that is free now. Another program could take it before the server does.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address")
}

/// Starts a server that listens on `address`.
fn start_at(mut command: Command, address: SocketAddr) -> Server {
    command.stdin(Pipe::null()).stdout(Pipe::null());
    Server::at(Process::start(command), address)
}
