//! Starts the real clients. Each is a small program in `clients/`, run as its users would run it.
//!
//! A program gets one JSON request as its argument:
//!
//! ```json
//! {"command": "...", "args": ["..."], "env": {"K": "V"}, "mode": "auto", "reads": ["belljar://..."]}
//! {"url": "http://127.0.0.1:1/mcp", "mode": "auto", "reads": ["belljar://..."]}
//! ```
//!
//! and prints one line, a [`Report`] in JSON: `client`, `protocol`, `server`, `resources` and `templates` (over all
//! pages), `pages`, and `reads`, by URI, each with `contents` or with the `error` that came instead. The clients of major
//! version 2 can be asked when the request has `answers`, which a callback gives one after the other; `questions` are what it
//! was shown.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use belljar_tests::{Server, Site, places, process};
use serde_json::{Map, Value, json};

/// How long a client program may take: it starts an interpreter, and on stdio the server too.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a client saw.
#[derive(Debug)]
pub(crate) struct Report {
    /// The client's name and version.
    pub(crate) client: String,
    /// The protocol version that was agreed on; empty where the client does not tell.
    pub(crate) protocol: String,
    /// Every resource.
    pub(crate) resources: Vec<Value>,
    /// How many pages they came in; 0 where the client walks pages by itself.
    pub(crate) pages: u64,
    /// Every template.
    pub(crate) templates: Vec<Value>,
    /// What each read gave.
    pub(crate) reads: Map<String, Value>,
    /// What the person was asked: the parameters of each `elicitation/create`.
    pub(crate) questions: Vec<Value>,
}

/// How a client reaches the server.
pub(crate) enum Reach<'a> {
    /// It starts `belljar serve` itself.
    Stdio(&'a Site),
    /// It connects to a running server.
    Http(&'a Server),
}

impl Reach<'_> {
    /// The request to a program.
    pub(crate) fn request(&self, mode: &str, reads: &[&str]) -> Value {
        let mut request = match self {
            Reach::Stdio(site) => stdio_server(site),
            Reach::Http(server) => json!({ "url": server.url() }),
        };
        request["mode"] = mode.into();
        request["reads"] = reads.into();
        request
    }
}

/// The clients that can be asked, in the modern era.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    /// Python 2.3.
    Python,
    /// TypeScript 2.4.
    Node,
}

/// A client whose person gives these answers, or who has no person; or `None` if it is not to be had here.
pub(crate) fn asked(client: Asked, reach: &Reach<'_>, reads: &[&str], answers: Option<&[&str]>) -> Option<Report> {
    let (program, script) = match client {
        Asked::Python => (places::python(2)?, "py/client_2.py"),
        Asked::Node => (places::node()?, "node/client_2.mjs"),
    };
    let mut request = reach.request("auto", reads);
    if let Some(answers) = answers {
        request["answers"] = answers.into();
    }
    let mut command = Command::new(program);
    command.arg(places::client_script(script));
    Some(self::program(command, &request))
}

/// Python SDK `major`, or `None` if Python is not to be had here.
pub(crate) fn python(major: u32, reach: &Reach<'_>, mode: &str, reads: &[&str]) -> Option<Report> {
    let mut command = Command::new(places::python(major)?);
    command.arg(places::client_script(&format!("py/client_{major}.py")));
    Some(program(command, &reach.request(mode, reads)))
}

/// One of the TypeScript clients, or `None` if Node is not to be had here.
pub(crate) fn node(script: &str, reach: &Reach<'_>, mode: &str, reads: &[&str]) -> Option<Report> {
    let mut command = Command::new(places::node()?);
    command.arg(places::client_script(&format!("node/{script}")));
    Some(program(command, &reach.request(mode, reads)))
}

/// The Inspector's command line, once for each thing it is asked, or `None` if Node is not to be had here.
pub(crate) fn inspector(reach: &Reach<'_>, era: &str, reads: &[&str]) -> Option<Report> {
    let inspector = Inspector::new(reach, era)?;
    let mut listed = inspector.ask("resources/list", &[]).unwrap();
    let mut templates = inspector.ask("resources/templates/list", &[]).unwrap();
    let read = |uri: &&str| {
        let read = inspector.ask("resources/read", &["--uri", uri]);
        let seen = read.map_or_else(
            |error| json!({ "error": error }),
            |mut result| json!({ "contents": result["contents"].take() }),
        );
        ((*uri).to_owned(), seen)
    };
    Some(Report {
        client: "inspector 2.12.0".to_owned(),
        protocol: String::new(),
        resources: array(&mut listed["resources"]),
        pages: 0,
        templates: array(&mut templates["resourceTemplates"]),
        reads: reads.iter().map(read).collect(),
        questions: Vec::new(),
    })
}

struct Inspector {
    // Where it keeps what it keeps; and its configuration.
    home: tempfile::TempDir,
    node: PathBuf,
    script: PathBuf,
    era: String,
}

impl Inspector {
    fn new(reach: &Reach<'_>, era: &str) -> Option<Inspector> {
        let server = match reach {
            Reach::Stdio(site) => stdio_server(site),
            Reach::Http(server) => json!({ "type": "streamable-http", "url": server.url() }),
        };
        let home = tempfile::tempdir().unwrap();
        let config = json!({ "mcpServers": { "belljar": server } });
        std::fs::write(home.path().join("mcp.json"), config.to_string()).unwrap();
        Some(Inspector {
            home,
            node: places::node()?,
            script: places::node_module("@modelcontextprotocol/inspector/clients/launcher/build/index.js")?,
            era: era.to_owned(),
        })
    }

    /// One method: its result, or its error.
    fn ask(&self, method: &str, more: &[&str]) -> Result<Value, Value> {
        let mut command = Command::new(&self.node);
        command
            .arg(&self.script)
            .args(["--cli", "--server", "belljar", "--protocol-era", &self.era])
            .args(["--quiet", "--format", "json", "--method", method])
            .args(more)
            .arg("--config")
            .arg(self.home.path().join("mcp.json"))
            .env("HOME", self.home.path());
        let output = process::run(command, PATIENCE);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        // A result goes to stdout and an error to stderr, each as one JSON object.
        let (stream, key) = if output.status.success() { (&stdout, "result") } else { (&stderr, "error") };
        let mut answer: Value = serde_json::from_str(stream.trim())
            .unwrap_or_else(|error| panic!("{method}: no answer ({error}); stdout {stdout:?}, stderr {stderr:?}"));
        let payload = answer[key].take();
        if key == "result" { Ok(payload) } else { Err(payload) }
    }
}

/// A server that the client starts, in the notation that all configuration files of MCP clients share.
fn stdio_server(site: &Site) -> Value {
    let arguments = site.arguments(&["serve"]);
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
    let environment = site.environment();
    let environment = environment.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap().into()));
    let environment: Map<String, Value> = environment.map(|(name, value)| (name.to_owned(), value)).collect();
    json!({ "command": places::host(), "args": arguments, "env": environment })
}

/// Runs a program of `clients/` and reads its report.
fn program(mut command: Command, request: &Value) -> Report {
    command.arg(request.to_string());
    let output = process::run(command, PATIENCE);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "the client failed with {}:\n{stdout}\n{stderr}", output.status);
    let mut seen: Value =
        serde_json::from_str(stdout.trim()).unwrap_or_else(|error| panic!("no report ({error}):\n{stdout}\n{stderr}"));
    assert_eq!(seen["server"], "belljar", "whom the client believes to speak to");
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    Report {
        client: word(&seen["client"]),
        protocol: word(&seen["protocol"]),
        pages: seen["pages"].as_u64().unwrap(),
        resources: array(&mut seen["resources"]),
        templates: array(&mut seen["templates"]),
        reads: match seen["reads"].take() {
            Value::Object(reads) => reads,
            other => panic!("no reads: {other}"),
        },
        questions: seen["questions"].as_array().cloned().unwrap_or_default(),
    }
}

fn array(value: &mut Value) -> Vec<Value> {
    match value.take() {
        Value::Array(items) => items,
        other => panic!("not a list: {other}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
