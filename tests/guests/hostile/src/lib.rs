//! The hostile guest: a provider that misbehaves on request. The reference of a read selects an attack. The variables
//! `HOSTILE_LIST`,
//! `HOSTILE_TEMPLATES`, `HOSTILE_DESCRIBE`, `HOSTILE_COMPLETE`, `HOSTILE_REVISIONS` and `HOSTILE_CATALOG` select attacks of the other calls.
//! `HOSTILE_FRESH` is the time, in milliseconds, for which its readings may be cached. The expected outcomes are in
//! `tests/integration/`.
//!
//! A reference is a verb, such as `ok`. Some verbs take an argument in percent-encoding: `grow/64`, `print/100`. Paths
//! and addresses are encoded twice, because the host refuses a `..` that is encoded once.
//!
//! In the arguments of `fetch`, `open`, `reach` and `need`, `$TOKEN` stands for the variable `TOKEN` of the
//! environment.

mod burn;
#[cfg(target_os = "wasi")]
mod fetch;
#[cfg(target_os = "wasi")]
mod files;
#[cfg(target_os = "wasi")]
mod keep;
mod listing;
#[cfg(target_os = "wasi")]
mod network;
mod revisions;
#[cfg(target_os = "wasi")]
mod sockets;
mod speech;
mod suggest;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use belljar_guest::{
    Argument, Completion, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Revisions, Suggestions,
    Template, reference,
};

/// The provider.
#[derive(Debug)]
pub struct HostileGuest;

/// The number of calls of this instance. It must stay 1, because every call gets a fresh instance.
static CALLS: AtomicU32 = AtomicU32::new(0);

impl Provider for HostileGuest {
    fn open() -> Result<Self> {
        Ok(HostileGuest)
    }

    fn describe() -> Info {
        listing::describe(&setting("HOSTILE_DESCRIBE"))
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        listing::resources(&setting("HOSTILE_LIST"), cursor)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        listing::templates(&setting("HOSTILE_TEMPLATES"))
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let mut reading = reading(reference)?;
        if reading.fresh_for.is_none() {
            reading.fresh_for = setting("HOSTILE_FRESH").parse().ok().map(Duration::from_millis);
        }
        Ok(reading)
    }
}

impl Completion for HostileGuest {
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions> {
        suggest::complete(&setting("HOSTILE_COMPLETE"), template, argument, resolved)
    }
}

impl Revisions for HostileGuest {
    fn catalog_revision(&self) -> Result<String> {
        let own = setting("HOSTILE_CATALOG");
        revisions::catalog(if own.is_empty() { setting("HOSTILE_REVISIONS") } else { own }.as_str())
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        revisions::resource(&setting("HOSTILE_REVISIONS"), reference)
    }

    fn resource_revisions(&self, references: &[String]) -> Vec<Result<String>> {
        revisions::resources(&setting("HOSTILE_REVISIONS"), references)
    }
}

/// The result of a read of `reference`.
fn reading(reference: &str) -> Result<Reading> {
    let (verb, argument) = reference.split_once('/').unwrap_or((reference, ""));
    let argument = reference::decode(argument)?;
    let text = match verb {
        "ok" => "fine".to_owned(),
        "count" => count(),
        "count-trap" => {
            count();
            burn::trap()
        }
        "args" => format!("{:?}", std::env::args().collect::<Vec<_>>()),
        "env" => format!("{:?}", std::env::vars().collect::<Vec<_>>()),
        "cwd" => std::env::current_dir().map_or_else(|error| error.to_string(), |path| path.display().to_string()),
        "stdin" => stdin(),
        "text" | "blob" | "many" | "empty" | "spoof" | "below" | "dressed" | "fresh" | "tick" | "deep" => {
            return speech::answer(reference, verb, &argument);
        }
        "errors" => return Err(speech::error(&argument)),
        "print-env" => speech::print_env(),
        "print-cut" => speech::print_cut(),
        "print" => speech::print(number(&argument)?),
        _ => run_verb(verb, &argument)?,
    };
    Ok(Contents::text(reference, text).mime_type("text/plain").into())
}

/// Runs a verb that needs WASI: only the component can, not the native tests.
#[cfg(target_os = "wasi")]
fn run_verb(verb: &str, argument: &str) -> Result<String> {
    let attempt = match verb {
        "open" => files::open,
        "raw" => files::raw,
        "stat" => files::stat,
        "link" => files::link,
        "call" => files::call,
        "calls" => files::calls,
        "alter" => files::alter,
        "hoard" => files::hoard,
        "gorge" => files::gorge,
        "keep" => keep::keep,
        "lists" => files::lists,
        "entries" => files::entries,
        "fields" => network::fields,
        "readdir" => files::readdir,
        "need" => return files::need(&filled(argument)?),
        "reach" => return network::reach(&filled(argument)?),
        "flood" => network::flood,
        "fetch" => return fetch::fetch(&filled(argument)?),
        "http" => network::http,
        "tcp" => network::tcp,
        "talk" => sockets::talk,
        "dial" => return sockets::dial(&filled(argument)?),
        "connections" => return sockets::connections(&filled(argument)?),
        "postgres" => sockets::postgres,
        "udp" => network::udp,
        "listen" => network::listen,
        "dns" => network::dns,
        _ => return burn::run_verb(verb, argument),
    };
    Ok(attempt(&filled(argument)?))
}

/// Decodes an argument, and replaces `$TOKEN` by the variable `TOKEN`.
#[cfg(target_os = "wasi")]
fn filled(argument: &str) -> Result<String> {
    let token = setting("TOKEN");
    Ok(reference::decode(argument)?.replace("$TOKEN", if token.is_empty() { "$TOKEN" } else { &token }))
}

#[cfg(not(target_os = "wasi"))]
fn run_verb(verb: &str, argument: &str) -> Result<String> {
    burn::run_verb(verb, argument)
}

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// The argument of a verb that takes an amount.
fn number(argument: &str) -> Result<usize> {
    argument.parse().map_err(|_| Error::invalid(format_args!("\"{argument}\" is no amount")))
}

fn count() -> String {
    (CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}

fn stdin() -> String {
    let mut bytes = Vec::new();
    match std::io::stdin().read_to_end(&mut bytes) {
        Ok(_) => format!("{} bytes", bytes.len()),
        Err(error) => error.to_string(),
    }
}

/// An entry of a list with a reference and a MIME type.
fn entry(reference: impl Into<String>) -> Resource {
    Resource::new(reference).mime_type("text/plain")
}

belljar_guest::export!(HostileGuest: Completion, Revisions);
