//! The tools of all mounts, or their prompts, for commands: their lists, and one of them with the words after its name.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::arguments::{self, Words};
use super::fields::Field;
use super::host::{HostArgs, with_host};
use super::{output, table};
use crate::catalog::Defined;
use crate::gateway::Gateway;
use crate::gateway::definitions::PublicDefinition;
use crate::model::{Fault, MountName, ReadError, command, nearest, text};
use crate::server::failure::Failure;
use crate::server::startup::{self, StartedHost};

/// The most characters of a line of a description.
const MAX_DESCRIPTION_CHARS: usize = 2000;

/// Lists the definitions of all mounts, or of the mount `only`. `to_text` and `to_json` show one of them.
pub(super) fn list<D: Defined>(
    host: HostArgs<'_>,
    only: Option<&str>,
    as_json: bool,
    to_text: impl Fn(&PublicDefinition<D>) -> String,
    to_json: impl Fn(&PublicDefinition<D>) -> Value,
) -> Result<ExitCode, Failure> {
    let only = only.map(MountName::new).transpose().map_err(Failure::misused)?;
    with_host(host, async |host| {
        let (all, notices) = all::<D>(&host.gateway, only.as_ref()).await?;
        let kind = format!("{}s", D::WHAT);
        if as_json {
            let all: Vec<Value> = all.iter().map(to_json).collect();
            output::print_json(&json!({ kind: all, "notices": notices_json(&notices) }))?;
        } else {
            let mut text: String = all.iter().map(to_text).collect();
            text += &notices_text(&notices);
            if text.is_empty() {
                text = format!("no mount has {kind}; what the mounts have, says: {}\n", command::line(["check"]));
            }
            table::print(&text)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Finds the definition whose name is the first of `words`, and reads the others as its arguments. Then prints its help, or
/// does `work` with its name and the arguments. `fields` are its arguments.
pub(super) fn with_arguments<D: Defined>(
    host: HostArgs<'_>,
    words: &[String],
    fields: impl FnOnce(&D) -> Vec<Field>,
    help: impl FnOnce(&PublicDefinition<D>, &[Field]) -> String,
    work: impl AsyncFnOnce(&StartedHost, &str, Map<String, Value>) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let Some((name, words)) = words.split_first() else {
        let what = D::WHAT;
        let why = format!("the name of the {what} is missing; to list the {what}s, run: belljar {what}s");
        return Err(Failure::Misused(why));
    };
    with_host(host, async |host| {
        let found = find::<D>(host, name).await?;
        let fields = fields(&found.definition);
        match arguments::parse(&fields, words).map_err(Failure::Misused)? {
            Words::Help => output::print(&help(&found, &fields)).map(|()| ExitCode::SUCCESS),
            Words::Arguments(arguments) => work(host, name, arguments).await,
        }
    })
}

/// The title and the description, each line with two spaces before it. Both are the provider's words.
pub(super) fn about(title: Option<&str>, description: &str) -> String {
    let lines = title.into_iter().chain(description.lines()).filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("  {}\n", text::excerpt(line, MAX_DESCRIPTION_CHARS))).collect()
}

/// One line for each notice of a list.
pub(super) fn notices_text(notices: &[(MountName, String)]) -> String {
    let line =
        |(mount, why): &(MountName, String)| format!("{} mount \"{mount}\": {why}\n", table::styled(table::WARN, "!"));
    notices.iter().map(line).collect()
}

/// The notices of a list as JSON.
pub(super) fn notices_json(notices: &[(MountName, String)]) -> Value {
    notices.iter().map(|(mount, why)| json!({ "mount": mount.as_str(), "reason": why })).collect()
}

/// The definitions of all mounts, or of one, and what was left out: the mount and the reason.
async fn all<D: Defined>(
    gateway: &Gateway,
    only: Option<&MountName>,
) -> Result<(Vec<PublicDefinition<D>>, Vec<(MountName, String)>), Failure> {
    if let Some(only) = only {
        let snapshot = gateway.fully_loaded_snapshot().await;
        let mount = snapshot.mounts().iter().find(|mount| mount.name == *only).ok_or_else(|| {
            let cure = command::line(["list"]);
            Failure::Failed(format!("there is no mount \"{only}\"; to list the mounts, run: {cure}"))
        })?;
        if !D::is_exported(mount.interfaces) {
            return Err(Failure::Failed(format!("the provider of the mount \"{only}\" has no {}s", D::WHAT)));
        }
    }
    let (mut all, mut notices, mut next) = (Vec::new(), Vec::new(), None);
    loop {
        let page = gateway.definitions::<D>(&startup::caller(), next, only).await;
        all.extend(page.entries);
        notices.extend(page.notices.into_iter().map(|(mount, notice)| (mount, notice.to_string())));
        next = page.next;
        if next.is_none() {
            return Ok((all, notices));
        }
    }
}

/// The definition with this public name.
async fn find<D: Defined>(host: &StartedHost, name: &str) -> Result<PublicDefinition<D>, Failure> {
    if name.starts_with('-') {
        let shown = text::quoted(name, 80);
        return Err(Failure::Misused(format!("{shown} is no flag of this command; --help lists its flags")));
    }
    match host.gateway.definition::<D>(&startup::caller(), name).await {
        Ok(found) => Ok(found),
        Err(Fault { error: ReadError::NotFound, .. }) => Err(unknown::<D>(host, name).await),
        Err(fault) => Err(fault.into()),
    }
}

/// The failure for an unknown name, with the nearest name that is known.
async fn unknown<D: Defined>(host: &StartedHost, name: &str) -> Failure {
    let known = match all::<D>(&host.gateway, None).await {
        Ok((known, _)) => known,
        Err(failure) => return failure,
    };
    let list = command::line([format!("{}s", D::WHAT)]);
    let hint = match nearest(name, known.iter().map(|one| one.name.as_str())) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("to list the {}s, run: {list}", D::WHAT),
    };
    let rules = if host.config.rules.is_empty() { "" } else { "; the rules hold for you, too" };
    Failure::Failed(format!("there is no {} {}; {hint}{rules}", D::WHAT, text::quoted(name, 80)))
}
