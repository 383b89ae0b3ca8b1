//! The JSON schema of `belljar.toml`, compared with belljar itself. The schema accepts each configuration that belljar
//! accepts. belljar refuses each configuration that breaks the schema. A Python package evaluates the schema.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use belljar_tests::places;
use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;

use super::validation::WRONG;
use crate::support::{isolated_site, stdout_and_stderr};

/// Wrong configurations. In each one, one key breaks the schema.
const INVALID: &[&str] = &[
    "plugin = \"x\"",
    "tools = \"yes\"",
    "calls = 0",
    "calls = 1025",
    "calls = 1.5",
    "wall = \"on\"",
    "audit = 5",
    "audit = { when-full = \"wait\" }",
    "audit = { file = \"a\" }",
    "[admin]\nlisten = \"nowhere\"",
    "[trace]\nsample = \"10%\"",
    "[trace]\notlp = \"http://127.0.0.1:4318\"\nsample = \"0.1\"",
    "[admin]\naddress = \"127.0.0.1:8809\"",
    "list-time = 3",
    "list-time = \"3 parsecs\"",
    "total-memory = \"64 miles\"",
    "[limits]\nmemory = 1",
    "[limits]\nfuel = \"many\"",
    "[limits]\ncpu = 50",
    "[limits]\ncpu = \"50\"",
    "[limits]\nhandles = 7",
    "[watch]\npolls = \"1s\"",
    "[callers]\nrate = 0",
    "[network]\ndns = \"9.9.9.9\"",
    "[network]\ndns = [\"example.com\"]",
    "[secrets]\napi = \"the-secret-itself\"",
    "[secrets]\napi = { env = \"A\", file = \"b\" }",
    "[secrets]\n\"a b\" = { env = \"A\" }",
    "[mounts.Clock]",
    "[mounts.clock]\ncomponent = \"../clock.wasm\"",
    "[mounts.clock]\nuri = \"clock\"",
    "[mounts.clock]\nask = \"maybe\"",
    "[mounts.clock]\ncache = \"never\"",
    "[mounts.clock]\ncache-scope = \"world\"",
    "[mounts.clock]\nevn = {}",
    "[mounts.clock]\nenv = { A = 1 }",
    "[mounts.clock]\nfs = \"/home\"",
    "[mounts.clock]\nfs = { \"/a\" = { pth = \"b\" } }",
    "[mounts.clock]\nfs = { \"/a\" = { path = \"b\", ask = \"yes\" } }",
    "[mounts.clock]\nhttp = \"https://a.example\"",
    "[[mounts.clock.http]]\nmethods = [\"GET\"]",
    "[[mounts.clock.http]]\norigin = \"https://a.example\"\nmethod = \"GET\"",
    "[[mounts.clock.http]]\norigin = \"https://a.example\"\nown-ports = 1",
];

/// Configurations that use every kind of value.
const VALID: &[&str] = &[
    "",
    "plugins = \"~/plugins\"\ncache = \"/c\"\nstate = \"/s\"\naudit = \"off\"\nwall = \"best-effort\"\ntools = false",
    "audit = { to = \"a.jsonl\", when-full = \"refuse\" }\n[admin]\nlisten = \"127.0.0.1:0\"\n[serve]\ndrain-delay = \"5s\"\n[trace]\notlp = \"http://127.0.0.1:4318\"\nsample = \"0.5%\"\nnetworks = [\"10.0.0.0/8\"]",
    "calls = 1024\nlist-time = \"1m 30s\"\ntotal-memory = 1073741824",
    "list-time = \"1.5s\"\ntotal-memory = \"1.5 GiB\"",
    "list-time = \"0\"",
    "[limits]\ntime = \"1h\"\nmemory = \"4GiB\"\nresult = \"8M\"\nfuel = 9223372036854775807\ncpu = \"150 %\"\noutput = 0",
    "[watch]\nreload = false\npoll = \"100ms\"\nreread = \"1day\"\nlists = \"1 min\"",
    "[callers]\nrate = 1\nburst = 1000000",
    "[network]\ndns = [\"9.9.9.9\", \"127.0.0.1:5353\", \"[::1]:53\", \"::1\"]\nca = \"ca.pem\"",
    "[secrets]\napi_1 = { env = \"A\" }\napi-2 = { file = \"~/b\" }",
    "[mounts.clock]\nuri = \"urn:clock:\"\nask = \"persist\"\ncache = \"off\"\ncache-scope = \"private\"\nsearch = true",
    "[mounts.clock]\nuri = \"test://\"\ncache = \"10m\"\nask = true\nfs = { \"/a\" = \"b\", \"/c\" = { path = \"d\", ask = true } }",
    "[[mounts.clock.http]]\norigin = \"https://a.example\"\nmethods = [\"GET\"]\npaths = [\"/a/*\"]\nnetworks = [\"10.0.0.0/8\"]\nallow-headers = [\"authorization\"]\nown-ports = true\nheaders = { a = \"b\" }\nquery = { c = \"d\" }",
];

/// A Python program with the validator of the package `jsonschema`, which is installed with the Python clients. The first input
/// line is the schema. Each further line is a configuration as JSON. The program answers it with `null`, or with the reason of
/// the refusal.
const VALIDATOR: &str = "
import json, sys
from jsonschema import Draft7Validator
schema = json.loads(sys.stdin.readline())
Draft7Validator.check_schema(schema)
validator = Draft7Validator(schema)
for line in sys.stdin:
    error = next(validator.iter_errors(json.loads(line)), None)
    print(json.dumps(error and error.message), flush=True)
";

/// A running validator, with the schema that `belljar schema` prints.
struct Validator {
    program: Child,
    instances: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Validator {
    /// Starts the validator. `None` if this machine has no Python clients.
    fn new(schema: &Value) -> Option<Self> {
        let mut python = Command::new(places::python(2)?);
        python.args(["-c", VALIDATOR]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = python.spawn().unwrap();
        let mut instances = program.stdin.take().unwrap();
        writeln!(instances, "{schema}").unwrap();
        let answers = BufReader::new(program.stdout.take().unwrap());
        Some(Self { program, instances, answers })
    }

    /// The reason why the schema refuses a configuration. `None` if the configuration is valid. Text that is not TOML is refused.
    fn refusal(&mut self, text: &str) -> Option<String> {
        let table: toml::Table = match text.parse() {
            Ok(table) => table,
            Err(error) => return Some(error.to_string()),
        };
        writeln!(self.instances, "{}", serde_json::to_value(table).unwrap()).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("the validator answers {answer:?}: {error}"))
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        // The program may have ended already, so errors do not matter.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The schema that `belljar schema` prints.
fn printed_schema() -> Value {
    // The command gets no arguments that name a configuration: it prints the same schema for all.
    let output = Command::new(places::host()).arg("schema").output().unwrap();
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_schema_accepts_each_configuration_that_belljar_accepts() {
    let site = isolated_site();
    let Some(mut validator) = Validator::new(&printed_schema()) else { return };
    site.mount("clock");
    for text in VALID {
        site.config(text);
        let output = site.run(&["check"]);
        assert!(!output.stdout.is_empty(), "belljar refuses {text:?}: {}", stdout_and_stderr(&output));
        assert_eq!(validator.refusal(text), None, "{text}");
    }
}

#[test]
fn the_schema_and_belljar_refuse_the_same_mistakes() {
    let site = isolated_site();
    let Some(mut validator) = Validator::new(&printed_schema()) else { return };
    site.mount("clock");
    for text in INVALID {
        site.config(text);
        let output = site.run(&["check"]);
        assert!(output.stdout.is_empty() && output.status.code() == Some(1), "belljar accepts {text:?}");
        assert!(validator.refusal(text).is_some(), "the schema accepts {text:?}");
    }
    // The schema has no bounds for times and sizes, because the configuration writes them as text.
    let is_bound =
        |text: &str| ["\"0s\"", "\"2h\"", "\"1KiB\"", "\"8GiB\"", "\"1TiB\""].iter().any(|b| text.contains(b));
    for (text, _) in WRONG.iter().filter(|(text, _)| !is_bound(text) && !text.contains("uri = \"x://a/../b/\"")) {
        assert!(validator.refusal(text).is_some(), "the schema accepts {text:?}");
    }
}

/// The schema accepts every configuration in documents and tests that belljar accepts.
#[test]
fn examples_in_documents_and_tests_are_valid() {
    let site = isolated_site();
    let Some(mut validator) = Validator::new(&printed_schema()) else { return };
    let mut examples = Vec::new();
    collect(&places::repository(), &mut examples);
    assert!(examples.iter().any(|(path, _)| path == "README.md"), "no example in README.md");
    let mut accepted = 0;
    for (path, text) in examples {
        site.config(&text);
        let output = site.run(&["check"]);
        if output.stdout.is_empty() {
            continue;
        }
        accepted += 1;
        assert_eq!(validator.refusal(&text), None, "{path}: belljar accepts this, and the schema does not: {text}");
    }
    assert!(accepted > 20, "belljar accepts only {accepted} examples");
}

/// Collects the configurations in documents and in the strings of tests, each with the path of its file.
fn collect(directory: &Path, examples: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let shown = path.strip_prefix(places::repository()).unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules", "build"].contains(&name.as_str()) {
                collect(&path, examples);
            }
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(&path).unwrap();
            let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
            examples
                .extend(blocks.filter(|block| is_configuration(block)).map(|block| (shown.clone(), block.to_owned())));
        } else if name.ends_with(".rs") && shown.starts_with("tests/") {
            let tokens = fs::read_to_string(&path).unwrap().parse::<TokenStream>().unwrap();
            let mut strings = Vec::new();
            literals(tokens, &mut strings);
            examples
                .extend(strings.into_iter().filter(|text| is_configuration(text)).map(|text| (shown.clone(), text)));
        }
    }
}

/// True if a text looks like a whole configuration, and not like a format string.
fn is_configuration(text: &str) -> bool {
    let tables = ["[limits]", "[mounts.", "[[mounts.", "[secrets]", "[network]", "[watch]", "[callers]"];
    tables.iter().any(|table| text.contains(table)) && !text.contains("{}")
}

/// Collects the string literals of a Rust file.
fn literals(tokens: TokenStream, strings: &mut Vec<String>) {
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => literals(group.stream(), strings),
            TokenTree::Literal(literal) => {
                let literal = literal.to_string();
                let raw = literal.strip_prefix('r').map(|raw| raw.trim_matches('#').trim_matches('"').to_owned());
                strings.extend(raw.or_else(|| serde_json::from_str(&literal).ok()));
            }
            _ => {}
        }
    }
}
