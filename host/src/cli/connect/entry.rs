//! What a client must know of belljar: the program with its arguments, or a URL.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::text;
use crate::server::failure::Failure;
use crate::server::invocation;
use crate::server::location::{self, LocationArgs};

/// The names of the programs that an entry may start.
const PROGRAMS: [&str; 2] = ["belljar", invocation::JOIN];

/// How a client reaches belljar.
pub(super) enum Entry {
    /// It starts this program.
    Program {
        /// The absolute path.
        command: String,
        /// The arguments.
        args: Vec<String>,
    },
    /// It connects to this URL.
    Url(String),
}

impl Entry {
    /// The entry for these options. Paths become absolute, because clients start belljar in other directories.
    ///
    /// # Errors
    /// If the URL is no URL of a web server, no configuration is named or found, or a path is not UTF-8.
    pub(super) fn of(url: Option<&str>, at: &LocationArgs) -> Result<Self, Failure> {
        if let Some(url) = url {
            let parsed = url.parse::<http::Uri>().ok();
            let is_web = parsed.is_some_and(|uri| {
                ["http", "https"].iter().any(|scheme| uri.scheme_str() == Some(scheme)) && uri.host().is_some()
            });
            if !is_web {
                return Err(Failure::Misused(format!(
                    "--http {}: expected a URL such as \"http://127.0.0.1:8808/mcp\"",
                    text::quoted(url, 200)
                )));
            }
            return Ok(Self::Url(url.to_owned()));
        }
        #[expect(clippy::disallowed_methods, reason = "clients start this program, or the one beside it")]
        let program = std::env::current_exe()?;
        // It joins a running belljar at little cost, and becomes belljar if there is none.
        let join = invocation::join_program().filter(|join| join.is_file());
        let program = join.unwrap_or(program);
        let (config, _) = location::config_path(at)?;
        let mut args = vec!["serve".to_owned()];
        let plugins = at.plugins.as_deref().map(std::path::absolute).transpose()?;
        if config.is_file() {
            args.extend(["--config".to_owned(), utf8(config)?]);
        } else if plugins.is_none() || at.config.is_some() {
            return Err(Failure::Failed(format!(
                "there is no configuration \"{}\"; name one: --config FILE, or only a directory of components: --plugins DIR",
                config.display()
            )));
        }
        if let Some(plugins) = plugins {
            args.extend(["--plugins".to_owned(), utf8(plugins)?]);
        }
        Ok(Self::Program { command: utf8(program)?, args })
    }
}

fn utf8(path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|path| {
        Failure::Failed(format!("the path {path:?} is not UTF-8, and the files of clients are text; move it"))
    })
}

/// True if belljar may change an entry of a client: it starts belljar, or it has a URL. The programs of others stay.
pub(super) fn is_own(entry: &Value) -> bool {
    let program = ["command", "cmd"].iter().find_map(|key| entry.get(key)?.as_str());
    let url = ["url", "uri", "httpUrl", "serverUrl"].iter().find_map(|key| entry.get(key)?.as_str());
    match (program, url) {
        (Some(program), _) => {
            Path::new(program).file_name().is_some_and(|name| PROGRAMS.iter().any(|own| name == *own))
        }
        (None, url) => url.is_some(),
    }
}

/// A value in a client's configuration.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A text.
    Text(String),
    /// A number.
    Number(u32),
    /// True or false.
    Bool(bool),
    /// A list.
    List(Vec<Node>),
    /// A table. The order is that in the file.
    Map(Vec<(&'static str, Node)>),
}

impl Node {
    /// A text.
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// The value as JSON.
    pub(super) fn to_json(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Number(number) => (*number).into(),
            Self::Bool(is_true) => (*is_true).into(),
            Self::List(all) => all.iter().map(Self::to_json).collect(),
            Self::Map(all) => Value::Object(all.iter().map(|(key, own)| ((*key).to_owned(), own.to_json())).collect()),
        }
    }
}
