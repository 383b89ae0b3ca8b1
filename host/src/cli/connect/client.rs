//! The clients: where each keeps its servers, and in which form. One row for each, by its documentation.

use std::path::{Path, PathBuf};

use super::entry::{Entry, Node};
use super::format::Format;
use super::link;
use crate::server::failure::Failure;
use crate::server::location::variable;

/// An MCP client.
pub(super) struct Client {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// The name for people.
    pub(super) title: &'static str,
    /// The base directory of its files.
    base: Base,
    /// The configuration file, below the base directory.
    path: &'static str,
    /// What exists below the base directory if the client is installed. The file itself counts too.
    sign: &'static str,
    /// The form of the file.
    pub(super) format: Format,
    /// The key of the table of servers.
    pub(super) section: &'static str,
    /// How it writes an entry.
    dialect: Dialect,
    /// Makes a link that connects the client when it is opened.
    pub(super) link: Option<fn(&str, &Entry, &Node) -> String>,
    /// What to do after a change.
    pub(super) next: &'static str,
}

/// The base directory of a client's files.
#[derive(Clone, Copy)]
enum Base {
    /// The home directory.
    Home,
    /// The directory in this variable, or this directory below the home directory.
    Variable(&'static str, &'static str),
}

/// How a client writes an entry.
#[derive(Clone, Copy)]
enum Dialect {
    /// `command` and `args`, or the URL under this key.
    Plain { url: &'static str },
    /// The same with `type`: `stdio` or `http`.
    Typed,
    /// `command` and `args` only.
    ProgramsOnly,
    /// The form of Goose.
    Goose,
}

const XDG: Base = Base::Variable("XDG_CONFIG_HOME", ".config");

/// All clients.
pub(super) const CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        title: "Claude Code",
        base: Base::Variable("CLAUDE_CONFIG_DIR", ""),
        path: ".claude.json",
        sign: ".claude",
        format: Format::Json,
        section: "mcpServers",
        dialect: Dialect::Typed,
        link: None,
        next: "Restart Claude Code; there, type @ to attach a resource.",
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        base: XDG,
        path: "Claude/claude_desktop_config.json",
        sign: "Claude",
        format: Format::Json,
        section: "mcpServers",
        dialect: Dialect::ProgramsOnly,
        link: None,
        next: "Restart Claude Desktop.",
    },
    Client {
        name: "cursor",
        title: "Cursor",
        base: Base::Home,
        path: ".cursor/mcp.json",
        sign: ".cursor",
        format: Format::Json,
        section: "mcpServers",
        dialect: Dialect::Plain { url: "url" },
        link: Some(link::cursor),
        next: "Restart Cursor.",
    },
    Client {
        name: "vscode",
        title: "VS Code",
        base: XDG,
        path: "Code/User/mcp.json",
        sign: "Code",
        format: Format::Json,
        section: "servers",
        dialect: Dialect::Typed,
        link: Some(link::vscode),
        next: "In VS Code, run \"MCP: List Servers\" and start it.",
    },
    Client {
        name: "zed",
        title: "Zed",
        base: XDG,
        path: "zed/settings.json",
        sign: "zed",
        format: Format::Json,
        section: "context_servers",
        dialect: Dialect::Plain { url: "url" },
        link: None,
        next: "Zed uses it at once.",
    },
    Client {
        name: "codex",
        title: "Codex",
        base: Base::Variable("CODEX_HOME", ".codex"),
        path: "config.toml",
        sign: "",
        format: Format::Toml,
        section: "mcp_servers",
        dialect: Dialect::Plain { url: "url" },
        link: None,
        next: "Restart Codex.",
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        base: Base::Home,
        path: ".gemini/settings.json",
        sign: ".gemini",
        format: Format::Json,
        section: "mcpServers",
        dialect: Dialect::Plain { url: "httpUrl" },
        link: None,
        next: "Restart Gemini CLI.",
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        base: Base::Home,
        path: ".codeium/windsurf/mcp_config.json",
        sign: ".codeium/windsurf",
        format: Format::Json,
        section: "mcpServers",
        dialect: Dialect::Plain { url: "serverUrl" },
        link: None,
        next: "In Windsurf, refresh the list of MCP servers.",
    },
    Client {
        name: "goose",
        title: "Goose",
        base: XDG,
        path: "goose/config.yaml",
        sign: "goose",
        format: Format::Yaml,
        section: "extensions",
        dialect: Dialect::Goose,
        link: Some(link::goose),
        next: "Restart Goose.",
    },
];

impl Client {
    /// The base directory. `None` if `HOME` is needed and not set.
    fn base(&self) -> Option<PathBuf> {
        match self.base {
            Base::Home => variable("HOME"),
            Base::Variable(name, below) => variable(name)
                .filter(|path| path.is_absolute())
                .or_else(|| Some(variable("HOME")?.join(below).components().collect())),
        }
    }

    /// The configuration file of this user. `None` if `HOME` is needed and not set.
    pub(super) fn file(&self) -> Option<PathBuf> {
        Some(self.base()?.join(self.path))
    }

    /// True if the client left signs of itself.
    pub(super) fn is_installed(&self) -> bool {
        let exists = |path: &str| self.base().is_some_and(|base| Path::exists(&base.join(path)));
        exists(self.sign) || exists(self.path)
    }

    /// The entry as this client writes it.
    ///
    /// # Errors
    /// If the client starts servers only as programs, and the entry has a URL.
    pub(super) fn node(&self, entry: &Entry) -> Result<Node, Failure> {
        let text = Node::text;
        let program = |command: &str, args: &[String]| {
            vec![("command", text(command)), ("args", Node::List(args.iter().map(|word| text(word)).collect()))]
        };
        Ok(Node::Map(match (self.dialect, entry) {
            (Dialect::Plain { .. } | Dialect::ProgramsOnly, Entry::Program { command, args }) => program(command, args),
            (Dialect::Plain { url: key }, Entry::Url(url)) => vec![(key, text(url))],
            (Dialect::Typed, Entry::Program { command, args }) => {
                [vec![("type", text("stdio"))], program(command, args)].concat()
            }
            (Dialect::Typed, Entry::Url(url)) => vec![("type", text("http")), ("url", text(url))],
            (Dialect::ProgramsOnly, Entry::Url(_)) => {
                return Err(Failure::Misused(format!(
                    "{} starts servers as programs only; leave out --http, or add the URL under Settings > Connectors",
                    self.title
                )));
            }
            (Dialect::Goose, Entry::Program { command, args }) => {
                let args = Node::List(args.iter().map(|word| text(word)).collect());
                [goose("stdio"), vec![("cmd", text(command)), ("args", args)]].concat()
            }
            (Dialect::Goose, Entry::Url(url)) => [goose("streamable_http"), vec![("uri", text(url))]].concat(),
        }))
    }
}

/// The fields that Goose has for each server.
fn goose(kind: &str) -> Vec<(&'static str, Node)> {
    vec![
        ("enabled", Node::Bool(true)),
        ("type", Node::text(kind)),
        ("name", Node::text("belljar")),
        ("description", Node::text("Resources of sandboxed providers")),
        ("timeout", Node::Number(300)),
    ]
}
