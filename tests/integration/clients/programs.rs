//! Starts the real clients. Each client is a small program in `tests/clients/` that uses a published SDK, or the Inspector.
//!
//! A program gets one JSON request as its argument:
//!
//! ```json
//! {"command": "...", "args": ["..."], "env": {"K": "V"}, "mode": "auto", "reads": ["belljar://..."]}
//! {"url": "http://127.0.0.1:1/mcp", "mode": "auto", "reads": ["belljar://..."]}
//! ```
//!
//! The program prints one line, a [`Report`] in JSON: `client`, `protocol`, `server`, `resources` and `templates` (over all
//! pages), `pages`, and `reads`. `reads` maps each URI to its `contents` or to the `error`. If the request has `answers`,
//! clients of major version 2 support elicitation: a callback gives one answer after the other. `questions` holds the
//! parameters of each question.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use belljar_tests::{Server, Site, places, process};
use serde_json::{Map, Value, json};

/// The longest accepted time of a client program. The program starts an interpreter, and on stdio also the server.
const PATIENCE: Duration = Duration::from_secs(120);

/// The report of a client.
#[derive(Debug)]
pub(crate) struct Report {
    /// The client's name and version.
    pub(crate) client: String,
    /// The agreed protocol version. Empty if the client does not report it.
    pub(crate) protocol: String,
    /// Every resource.
    pub(crate) resources: Vec<Value>,
    /// The number of pages of the list. 0 if the client follows cursors by itself.
    pub(crate) pages: u64,
    /// Every template.
    pub(crate) templates: Vec<Value>,
    /// The result of each read.
    pub(crate) reads: Map<String, Value>,
    /// The questions: the parameters of each `elicitation/create`.
    pub(crate) questions: Vec<Value>,
}

/// How a client reaches the server.
pub(crate) enum Reach<'a> {
    /// The client starts `belljar serve` itself.
    Stdio(&'a Site),
    /// The client connects to a running server.
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

/// The clients that can answer questions of a server, with the stateless protocol (2026-07-28).
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElicitingClient {
    /// Python 2.3.
    Python,
    /// TypeScript 2.4.
    Node,
}

/// Runs a client that answers questions with `answers`. Without `answers` the client does not support elicitation. `None` if this machine lacks the client.
pub(crate) fn run_with_answers(
    client: ElicitingClient,
    reach: &Reach<'_>,
    reads: &[&str],
    answers: Option<&[&str]>,
) -> Option<Report> {
    let (program, script) = match client {
        ElicitingClient::Python => (places::python(2)?, "py/client_2.py"),
        ElicitingClient::Node => (places::node()?, "node/client_2.mjs"),
    };
    let mut request = reach.request("auto", reads);
    if let Some(answers) = answers {
        request["answers"] = answers.into();
    }
    let mut command = Command::new(program);
    command.arg(places::client_script(script));
    Some(self::program(command, &request))
}

/// Runs the Python SDK `major`. `None` if this machine lacks Python.
pub(crate) fn python(major: u32, reach: &Reach<'_>, mode: &str, reads: &[&str]) -> Option<Report> {
    let mut command = Command::new(places::python(major)?);
    command.arg(places::client_script(&format!("py/client_{major}.py")));
    Some(program(command, &reach.request(mode, reads)))
}

/// Runs one of the TypeScript clients. `None` if this machine lacks Node.
pub(crate) fn node(script: &str, reach: &Reach<'_>, mode: &str, reads: &[&str]) -> Option<Report> {
    let mut command = Command::new(places::node()?);
    command.arg(places::client_script(&format!("node/{script}")));
    Some(program(command, &reach.request(mode, reads)))
}

/// Runs the command line of the MCP Inspector, once for each request. `None` if this machine lacks Node.
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

/// The command line of the Inspector, with the configuration of one server.
pub(crate) struct Inspector {
    /// The directory of the data and the configuration.
    home: tempfile::TempDir,
    node: PathBuf,
    script: PathBuf,
    era: String,
}

impl Inspector {
    /// The Inspector for a server. `None` if this machine lacks Node.
    pub(crate) fn new(reach: &Reach<'_>, era: &str) -> Option<Inspector> {
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

    /// Calls a method. Returns its result, or its error.
    pub(crate) fn ask(&self, method: &str, more: &[&str]) -> Result<Value, Value> {
        let (succeeded, stdout, stderr) = self.run(method, more);
        // A result goes to stdout and an error to stderr, each as one JSON object.
        let (stream, key) = if succeeded { (&stdout, "result") } else { (&stderr, "error") };
        let mut answer: Value = serde_json::from_str(stream.trim())
            .unwrap_or_else(|error| panic!("{method}: no answer ({error}); stdout {stdout:?}, stderr {stderr:?}"));
        let payload = answer[key].take();
        if key == "result" { Ok(payload) } else { Err(payload) }
    }

    /// Calls a method with an option that prints one JSON object a line. Panics if the Inspector fails.
    pub(crate) fn lines(&self, method: &str, more: &[&str]) -> Vec<Value> {
        let (succeeded, stdout, stderr) = self.run(method, more);
        assert!(succeeded, "{method} {more:?}: stdout {stdout:?}, stderr {stderr:?}");
        stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// Calls a method. Returns whether it succeeded, its standard output, and its standard error.
    fn run(&self, method: &str, more: &[&str]) -> (bool, String, String) {
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
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }
}

/// The entry of a server that the client starts, in the form of the `mcpServers` table of client configurations.
fn stdio_server(site: &Site) -> Value {
    let arguments = site.arguments(&["serve"]);
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_str().unwrap()).collect();
    let environment = site.environment();
    let environment = environment.iter().map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap().into()));
    let environment: Map<String, Value> = environment.map(|(name, value)| (name.to_owned(), value)).collect();
    json!({ "command": places::host(), "args": arguments, "env": environment })
}

/// Runs a client program with a request. Returns the report that it prints.
pub(crate) fn report(mut command: Command, request: &Value) -> Value {
    let shown = format!("{command:?}");
    command.arg(request.to_string());
    let output = process::run(command, PATIENCE);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{shown} failed with {}:\n{stdout}\n{stderr}", output.status);
    serde_json::from_str(stdout.trim()).unwrap_or_else(|error| panic!("no report ({error}):\n{stdout}\n{stderr}"))
}

/// Runs a program of `tests/clients/`, and parses its report.
fn program(command: Command, request: &Value) -> Report {
    let mut seen = report(command, request);
    assert_eq!(seen["server"], "belljar", "the name of the server, as the client reports it");
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

/// Takes the items of a JSON array.
fn array(value: &mut Value) -> Vec<Value> {
    match value.take() {
        Value::Array(items) => items,
        other => panic!("not a list: {other}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
