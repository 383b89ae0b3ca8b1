//! The first five minutes: serves the real providers over a few notes, reads them as MCP clients of both eras on both
//! transports do, and prints how to connect a client of one's own.
//!
//! Everything shown was received from the running server; nothing here knows what a provider would say.

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

/// What each client reads: one resource of each provider.
const READS: [&str; 2] = ["belljar://clock/utc", "belljar://notes/2026/plan.md"];

/// What each client is refused: a name that tries to leave the directory that was granted.
const ESCAPE: &str = "belljar://notes/%2e%2e/belljar.toml";

/// Sets up, builds, serves, reads, explains.
pub(crate) fn run(shell: &Shell) -> Result<()> {
    setup::wasm_target(shell)?;
    build::run(shell)?;
    let demo = Demo::lay_out(&shell.target)?;
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

/// Where the demo lives.
struct Demo {
    binary: PathBuf,
    config: PathBuf,
}

impl Demo {
    /// Writes the notes and the configuration, and drops the components into the plugin directory beside it.
    fn lay_out(target: &Path) -> Result<Demo> {
        let place = target.join("demo");
        let plugins = place.join("plugins");
        fs::create_dir_all(&plugins)?;
        for (component, mount) in [("clock", "clock"), ("files", "notes")] {
            let built = target.join("plugins").join(component).with_extension("wasm");
            fs::copy(&built, plugins.join(mount).with_extension("wasm"))
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

    /// The command that serves it.
    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--config"]).arg(&self.config).args(more);
        command
    }

    /// Prints how to connect the usual clients.
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
  Whatever speaks HTTP: http://127.0.0.1:8808/mcp, while this runs
    {line} --http 127.0.0.1:8808"
        );
    }
}

/// What a client of one era sees on one transport: who answers, the list, a read of each provider, a refusal.
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

/// The first lines of a content.
fn print_text(content: &Value) {
    let text = content["text"].as_str().unwrap_or("(binary)");
    for line in text.lines().filter(|line| !line.is_empty()).take(2) {
        println!("    | {line}");
    }
}
