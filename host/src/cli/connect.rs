//! `belljar connect`: writes belljar into the configuration of an MCP client, and takes it out again. The rest of the
//! file keeps every byte.

mod client;
mod entry;
mod format;
mod format_error;
mod json;
mod link;
mod note;
mod toml;
mod yaml;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use self::client::{CLIENTS, Client};
use self::entry::Entry;
use self::note::Note;
use super::flags::WriteFlags;
use super::{confirm, output, table};
use crate::model::{nearest, text};
use crate::server::edit::diff;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{files, log};

/// The help of `connect`.
pub(super) const HELP: &str = "Examples:
  belljar connect
  belljar connect claude-code --config belljar.toml
  belljar connect cursor --http http://127.0.0.1:8808/mcp
  belljar connect zed --print
  belljar connect claude-code --remove

Without a client, the command lists all clients: which are installed, and which are connected.";

/// The name of the server in the client's configuration, unless the command names another one.
const NAME: &str = "belljar";

/// The longest name of a server.
const MAX_NAME: usize = 64;

/// The options of `connect`.
#[derive(Args)]
pub(super) struct ConnectArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// The client. Without it, the command lists the clients.
    #[arg(value_name = "CLIENT")]
    client: Option<String>,
    /// Let the client connect to a belljar that serves this URL, instead of starting one.
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// The name of the server in the client.
    #[arg(long, value_name = "NAME", default_value = NAME, value_parser = server_name)]
    name: String,
    /// The client's configuration file, such as .vscode/mcp.json of a project (default: the one of this user).
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print what belongs into the client's configuration, and write nothing.
    #[arg(long, conflicts_with = "remove")]
    print: bool,
    /// Take belljar out of the client's configuration.
    #[arg(long, conflicts_with = "http")]
    remove: bool,
    /// Print links that connect a client when they are opened.
    #[arg(long, conflicts_with_all = ["print", "remove", "file"])]
    links: bool,
    #[command(flatten)]
    write: WriteFlags,
}

/// Reads the name of a server.
fn server_name(name: &str) -> Result<String, String> {
    let is_valid = |name: &str| {
        (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match is_valid(name) {
        true => Ok(name.to_owned()),
        false => Err(format!("expected 1 to {MAX_NAME} letters, digits, \"-\" or \"_\"")),
    }
}

/// Runs the command.
pub(super) fn run(arguments: &ConnectArgs) -> Result<ExitCode, Failure> {
    log::start("warn");
    let client = arguments.client.as_deref().map(find).transpose()?;
    if arguments.links {
        return links(arguments, client);
    }
    let Some(client) = client else {
        if arguments.print || arguments.remove || arguments.http.is_some() || arguments.file.is_some() {
            return Err(Failure::Misused(format!("expected a client; one of: {}", names())));
        }
        return list(arguments);
    };
    let path = match &arguments.file {
        Some(file) => std::path::absolute(file)?,
        None => client.file().ok_or("cannot find the client's configuration: HOME is not set".to_owned())?,
    };
    if arguments.print {
        let entry = Entry::of(arguments.http.as_deref(), &arguments.at)?;
        output::message(true, &format!("in {}:\n", path.display()))?;
        let text = client.format.set(None, client.section, &arguments.name, &client.node(&entry)?);
        output::print(&text.map_err(|problem| problem.in_file(&path))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.remove { disconnect(arguments, client, &path) } else { connect(arguments, client, &path) }
}

/// The client with this name.
fn find(name: &str) -> Result<&'static Client, Failure> {
    CLIENTS.iter().find(|client| client.name == name).ok_or_else(|| {
        let shown = text::quoted(name, MAX_NAME);
        let near = nearest(name, CLIENTS.iter().map(|client| client.name));
        let hint = near.map(|near| format!("did you mean \"{near}\"? ")).unwrap_or_default();
        Failure::Misused(format!("there is no client {shown}; {hint}expected one of: {}", names()))
    })
}

/// The names of all clients.
fn names() -> String {
    CLIENTS.iter().map(|client| client.name).collect::<Vec<_>>().join(", ")
}

fn connect(arguments: &ConnectArgs, client: &Client, path: &Path) -> Result<ExitCode, Failure> {
    let entry = Entry::of(arguments.http.as_deref(), &arguments.at)?;
    let node = client.node(&entry)?;
    let name = &arguments.name;
    let directory = path.parent().unwrap_or(Path::new("/"));
    if !directory.is_dir() {
        return Err(Failure::Failed(format!(
            "{} is not installed for this user: \"{}\" does not exist; to see what to write elsewhere, add --print",
            client.title,
            directory.display()
        )));
    }
    let before = files::read(path)?;
    let old = client.format.get(before.as_deref(), client.section, name).map_err(|problem| problem.in_file(path))?;
    if old.as_ref() == Some(&node.to_json()) {
        output::message(
            arguments.write.json,
            &format!("{} is already connected; nothing was changed\n", client.title),
        )?;
        return report(arguments, client, path, None);
    }
    if old.as_ref().is_some_and(|old| !entry::is_own(old)) {
        return Err(Failure::Failed(format!(
            "\"{}\" has a server \"{name}\" that is not belljar; choose another name: --name NAME",
            path.display()
        )));
    }
    let after =
        client.format.set(before.as_deref(), client.section, name, &node).map_err(|problem| problem.in_file(path))?;
    let shown = diff(path, before.as_deref(), &after, 0);
    output::message(arguments.write.json, &shown)?;
    if !confirm::ask("Write this?", arguments.write.yes)? {
        return Ok(ExitCode::FAILURE);
    }
    write(path, before.as_deref(), Some(&after))?;
    // The change of an entry keeps the note of the first change, which knows the text without any entry.
    if old.is_none() {
        Note::of(path, before.as_deref(), &after).store(client.name, name)?;
    } else if let Some(note) = Note::load(client.name, name)?.filter(|note| note.is_for(path)) {
        let first = note.undo(before.as_deref().unwrap_or_default());
        match first {
            Some(first) => {
                Note::of(path, (!note.creates()).then_some(first.as_str()), &after).store(client.name, name)?
            }
            None => Note::forget(client.name, name)?,
        }
    }
    output::message(arguments.write.json, &format!("Connected. {}\n", client.next))?;
    report(arguments, client, path, Some(&shown))
}

fn disconnect(arguments: &ConnectArgs, client: &Client, path: &Path) -> Result<ExitCode, Failure> {
    let name = &arguments.name;
    let absent = || {
        output::message(
            arguments.write.json,
            &format!("{} has no server \"{name}\"; nothing was changed\n", client.title),
        )
    };
    let Some(before) = files::read(path)? else {
        absent()?;
        return report(arguments, client, path, None);
    };
    let get = |text: &str| client.format.get(Some(text), client.section, name).map_err(|problem| problem.in_file(path));
    let Some(old) = get(&before)? else {
        absent()?;
        return report(arguments, client, path, None);
    };
    if !entry::is_own(&old) {
        return Err(Failure::Failed(format!(
            "the server \"{name}\" in \"{}\" is not belljar; take it out by hand",
            path.display()
        )));
    }
    let note = Note::load(client.name, name)?.filter(|note| note.is_for(path));
    // The text without the entry, as it was before. Without a note, or after another change of the entry, only the entry
    // is taken out.
    let undone = note.as_ref().and_then(|note| note.undo(&before)).filter(|text| matches!(get(text), Ok(None)));
    let after = match undone {
        Some(text) => text,
        None => client.format.remove(&before, client.section, name).map_err(|problem| problem.in_file(path))?,
    };
    let is_deleted = after.is_empty() && note.is_some_and(|note| note.creates());
    let shown = diff(path, Some(&before), &after, 0);
    output::message(arguments.write.json, &shown)?;
    if !confirm::ask("Write this?", arguments.write.yes)? {
        return Ok(ExitCode::FAILURE);
    }
    write(path, Some(&before), (!is_deleted).then_some(after.as_str()))?;
    Note::forget(client.name, name)?;
    output::message(arguments.write.json, &format!("Removed. {}\n", client.next))?;
    report(arguments, client, path, Some(&shown))
}

/// Writes the new text, or deletes the file, if the file still has the text for which the change was made.
fn write(path: &Path, before: Option<&str>, after: Option<&str>) -> Result<(), Failure> {
    let lock = files::lock_for_writing(&[path])?;
    if files::read(path)?.as_deref() != before {
        return Err(Failure::Failed(format!(
            "nothing was changed: another program changed \"{}\" in the meantime; try again",
            path.display()
        )));
    }
    match after {
        Some(after) => files::replace(&lock, path, after, 0o600)?,
        None => std::fs::remove_file(path)?,
    }
    Ok(())
}

/// Prints the result as JSON, if it is wanted.
fn report(arguments: &ConnectArgs, client: &Client, path: &Path, diff: Option<&str>) -> Result<ExitCode, Failure> {
    if arguments.write.json {
        output::print_json(&json!({
            "client": client.name, "name": arguments.name, "file": path, "written": diff.is_some(),
            "diff": diff.unwrap_or_default(),
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lists the clients.
fn list(arguments: &ConnectArgs) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    for client in CLIENTS {
        let file = client.file();
        let is_installed = file.as_deref().and_then(Path::parent).is_some_and(Path::is_dir) && client.is_installed();
        let read = |file: &PathBuf| -> Result<bool, String> {
            let text = files::read(file).map_err(|error| error.to_string())?;
            let found = client.format.get(text.as_deref(), client.section, &arguments.name);
            Ok(found.map_err(|problem| problem.to_string())?.is_some_and(|entry| entry::is_own(&entry)))
        };
        all.push((client, file.as_ref().map_or(Ok(false), read), is_installed, file));
    }
    if arguments.write.json {
        let one = |(client, connected, installed, file): &(&Client, Result<bool, String>, bool, Option<PathBuf>)| {
            json!({
                "client": client.name, "title": client.title, "installed": installed, "file": file,
                "connected": connected.as_ref().ok(), "problem": connected.as_ref().err(),
            })
        };
        output::print_json(&json!({ "clients": all.iter().map(one).collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = table::width(CLIENTS.iter().map(|client| client.name), usize::MAX);
    let mut out = String::new();
    for (client, connected, installed, file) in &all {
        let (style, state) = match (connected, installed) {
            (Ok(true), _) => (table::GOOD, "connected"),
            (Ok(false), true) => (table::WARN, "installed"),
            (Ok(false), false) => (table::FAINT, "not found"),
            (Err(_), _) => (table::BAD, "unreadable"),
        };
        let file = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        out += &format!(
            "{}  {}  {file}\n",
            table::padded(table::NAME, client.name, width),
            table::padded(style, state, 10)
        );
        if let Err(problem) = connected {
            out += &format!("{:width$}  {problem}\n", "");
        }
    }
    table::print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// A client whose file has an entry of belljar, or cannot be read.
pub(super) struct ClientEntry {
    /// The name, as for [`ConnectArgs`].
    pub(super) name: &'static str,
    /// The name for people.
    pub(super) title: &'static str,
    /// The entry, or the reason why the file cannot be read.
    pub(super) entry: Result<Value, String>,
}

/// The clients that are connected, or whose file cannot be read.
pub(super) fn connected() -> Vec<ClientEntry> {
    let read = |client: &'static Client| {
        let text = files::read(&client.file()?).map_err(|error| error.to_string());
        let found = text.and_then(|text| {
            client.format.get(text.as_deref(), client.section, NAME).map_err(|problem| problem.to_string())
        });
        let entry = found.map(|entry| entry.filter(entry::is_own)).transpose()?;
        Some(ClientEntry { name: client.name, title: client.title, entry })
    };
    CLIENTS.iter().filter_map(read).collect()
}

/// Prints the links of one client, or of all clients that have links.
fn links(arguments: &ConnectArgs, only: Option<&Client>) -> Result<ExitCode, Failure> {
    let entry = Entry::of(arguments.http.as_deref(), &arguments.at)?;
    let mut found = Vec::new();
    for client in CLIENTS.iter().filter(|client| only.is_none_or(|only| only.name == client.name)) {
        if let Some(link) = client.link {
            found.push((client, link(&arguments.name, &entry, &client.node(&entry)?)));
        }
    }
    if let (Some(client), []) = (only, found.as_slice()) {
        return Err(Failure::Misused(format!("{} opens no links; leave out --links", client.title)));
    }
    if arguments.write.json {
        let one = |(client, link): &(&Client, String)| json!({ "client": client.name, "link": link });
        output::print_json(&json!({ "links": found.iter().map(one).collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = table::width(found.iter().map(|(client, _)| client.name), usize::MAX);
    let lines = found.iter().map(|(client, link)| format!("{:width$}  {link}\n", client.name));
    output::print(&lines.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests;
