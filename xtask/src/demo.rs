//! The first five minutes: serves the real providers over a few notes, reads them as MCP clients of both eras on both
//! transports do, and prints how to connect a client of one's own.
//!
//! Everything shown was received from the running server; nothing here knows what a provider would say.

use std::ffi::OsString;
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
        show(&server.url(), &mut server.client(era))?;
    }
    server.stop();

    demo.explain()
}

/// Where the demo lives.
struct Demo {
    binary: PathBuf,
    plugins: PathBuf,
    config: PathBuf,
}

impl Demo {
    /// Writes the notes, the plugin directory and the configuration.
    fn lay_out(target: &Path) -> Result<Demo> {
        let place = target.join("demo");
        let demo = Demo {
            binary: target.join("release/belljar"),
            plugins: place.join("plugins"),
            config: place.join("belljar.toml"),
        };
        fs::create_dir_all(&demo.plugins)?;
        for (component, mount) in [("clock", "clock"), ("files", "notes")] {
            let built = target.join("plugins").join(component).with_extension("wasm");
            fs::copy(&built, demo.plugins.join(mount).with_extension("wasm"))
                .with_context(|| format!("cannot copy {}", built.display()))?;
        }
        let notes = place.join("notes");
        for (name, text) in NOTES {
            let path = notes.join(name);
            fs::create_dir_all(path.parent().context("a note lies in a directory")?)?;
            fs::write(path, text)?;
        }
        fs::write(&demo.config, CONFIG)?;
        Ok(demo)
    }

    /// The arguments that serve it.
    fn arguments(&self) -> [OsString; 5] {
        ["serve".into(), "--plugins".into(), self.plugins.clone().into(), "--config".into(), self.config.clone().into()]
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(self.arguments()).args(more);
        command
    }

    /// Prints how to connect the usual clients.
    fn explain(&self) -> Result<()> {
        let arguments = self.arguments();
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        let line = format!("{} {}", self.binary.display(), arguments.join(" "));
        let server = json!({ "command": self.binary, "args": arguments });
        let file = serde_json::to_string_pretty(&json!({ "mcpServers": { "belljar": server } }))?;
        let one_line = json!({ "name": "belljar", "command": self.binary, "args": arguments });

        println!("\nConnect a client of your own\n");
        println!("Claude Code\n    claude mcp add belljar -- {line}\n");
        println!("VS Code\n    code --add-mcp '{one_line}'\n");
        println!("MCP Inspector (Node 22)\n    npx @modelcontextprotocol/inspector@2.12.0 -- {line}\n");
        println!("Claude Desktop (claude_desktop_config.json), Cursor (~/.cursor/mcp.json)");
        println!("    {}\n", file.replace('\n', "\n    "));
        println!("Any client that speaks HTTP\n    {line} --http 127.0.0.1:8808\n    http://127.0.0.1:8808/mcp");
        Ok(())
    }
}

/// What a client of one era sees on one transport: who answers, the list, a read of each provider, a refusal.
fn show<W: Wire>(transport: &str, client: &mut Client<W>) -> Result<()> {
    println!("\n{transport}, {}", client.era().version());
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
