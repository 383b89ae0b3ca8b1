//! The demo: serves two providers, reads from them as an MCP client in both revisions over both transports, and prints how to
//! connect other clients.
//!
//! All output comes from the running server. This module contains no expected answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use belljar_tests::{Client, Era, Server, Stdio, Wire};
use serde_json::{Value, json};

use crate::shell::Shell;
use crate::{build, setup};

/// The notes that the demo serves.
const NOTES: [(&str, &str); 3] = [
    (
        "welcome.md",
        "# Welcome\n\nThese notes are read through a sandboxed component. It was given this directory, to read.\n",
    ),
    ("2026/plan.md", "# Plan for 2026\n\n- drop a component into a directory\n- read it over MCP\n"),
    ("2026/ideas.md", "# Ideas\n\nA provider for each thing that an assistant should see, and for nothing else.\n"),
];

/// The whole configuration. The clock needs none.
const CONFIG: &str = "[mounts.notes]\nfs = { \"/notes\" = \"notes\" }   # may read this directory, and nothing else\n";

/// The URIs that each client reads: one of each provider.
const READS: [&str; 2] = ["belljar://clock/utc", "belljar://notes/2026/plan.md"];

/// A URI that belljar must refuse: it tries to leave the granted directory.
const ESCAPE: &str = "belljar://notes/%2e%2e/belljar.toml";

/// The providers that the demo shows, and the names of their mounts.
const PROVIDERS: [(&str, &str); 2] = [("clock", "clock"), ("files", "notes")];

/// Builds belljar and the two providers, serves them, reads, and prints how to connect a client.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    progress(1, "the wasm target of Rust");
    setup::wasm_target(shell)?;
    let first = if shell.target.join("release/belljar").is_file() { "" } else { FIRST_BUILD };
    progress(2, &format!("belljar and its WebAssembly engine{first}"));
    build::host(shell)?;
    progress(3, "two providers: clock and files");
    let mut components = Vec::new();
    for (name, mount) in PROVIDERS {
        components.push((build::provider(shell, name)?, mount));
    }
    progress(4, "belljar serves them, and four clients read");
    let demo = Demo::lay_out(&shell.target, &components)?;
    println!("\nTwo providers, one configuration: {}\n", demo.config.display());
    for line in fs::read_to_string(&demo.config)?.lines() {
        println!("    {line}");
    }

    for era in Era::ALL {
        let mut client = Client::<Stdio>::start(demo.command(&[]), era);
        show("stdio", &mut client)?;
        client.close();
    }
    let server = Server::start(demo.command(&["--http", "127.0.0.1:0"]));
    for era in Era::ALL {
        show("HTTP", &mut server.client(era))?;
    }
    server.stop();

    demo.explain();
    Ok(())
}

/// A note for the longest step, if nothing was built before.
const FIRST_BUILD: &str = " (the first time: 6 to 12 minutes on two cores; cargo shows its progress)";

fn progress(step: usize, what: &str) {
    println!("\n[{step}/4] {what}");
}

/// The files of the demo.
struct Demo {
    binary: PathBuf,
    config: PathBuf,
}

impl Demo {
    /// Writes the notes, the configuration, and the components into the plugin directory.
    fn lay_out(target: &Path, components: &[(PathBuf, &str)]) -> Result<Demo> {
        let place = target.join("demo");
        let plugins = place.join("plugins");
        fs::create_dir_all(&plugins)?;
        for (built, mount) in components {
            fs::copy(built, plugins.join(mount).with_extension("wasm"))
                .with_context(|| format!("cannot copy {}", built.display()))?;
        }
        for (name, text) in NOTES {
            let path = place.join("notes").join(name);
            fs::create_dir_all(path.parent().context("a note lies in a directory")?)?;
            fs::write(path, text)?;
        }
        let demo = Demo { binary: target.join("release/belljar"), config: place.join("belljar.toml") };
        fs::write(&demo.config, CONFIG)?;
        Ok(demo)
    }

    /// The command that serves the demo.
    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--config"]).arg(&self.config).args(more);
        command
    }

    /// Prints how to connect common clients.
    fn explain(&self) {
        let (binary, config) = (json!(self.binary), json!(self.config));
        let line = format!("{} serve --config {}", self.binary.display(), self.config.display());
        let server = format!("\"command\": {binary}, \"args\": [\"serve\", \"--config\", {config}]");
        println!(
            "
Connect a client of your own

  Claude Code
    claude mcp add belljar -- {line}
  VS Code
    code --add-mcp '{{ \"name\": \"belljar\", {server} }}'
  Claude Desktop (claude_desktop_config.json), Cursor (~/.cursor/mcp.json)
    {{ \"mcpServers\": {{ \"belljar\": {{ {server} }} }} }}
  MCP Inspector (needs Node 22)
    npx @modelcontextprotocol/inspector@2.12.0 -- {line}
  Any client over HTTP: http://127.0.0.1:8808/mcp, while this command runs
    {line} --http 127.0.0.1:8808"
        );
    }
}

/// Prints what one client receives: the list, one resource of each provider, a refusal.
fn show<W: Wire>(transport: &str, client: &mut Client<W>) -> Result<()> {
    println!("\nover {transport}, protocol {}", client.era().version());
    println!("  resources/list");
    for resource in client.resources() {
        let field = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
        println!("    {:<36}  {:<14}  {}", field("uri"), field("mimeType"), field("title"));
    }
    for uri in READS {
        println!("  resources/read {uri}");
        let result = client.read(uri).map_err(|error| anyhow!("cannot read {uri}: {error}"))?;
        print_text(&result["contents"][0]);
    }
    println!("  resources/read {ESCAPE}");
    match client.read(ESCAPE) {
        Ok(_) => bail!("{ESCAPE} could be read, and must not be"),
        Err(error) => println!("    refused: {} {}", error.code, error.message),
    }
    Ok(())
}

/// Prints the first lines of a text.
fn print_text(content: &Value) {
    let text = content["text"].as_str().unwrap_or("(binary)");
    for line in text.lines().filter(|line| !line.is_empty()).take(2) {
        println!("    | {line}");
    }
}
