//! `belljar list`: through the same gateway as a client, for people and scripts.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use super::keys::{Keys, Shared};
use super::pins::Pinning;
use super::{Failure, Where, caller, open, wall};
use crate::catalog::listing::Listed;
use crate::catalog::{Mount, Snapshot};
use crate::gateway::Gateway;
use crate::model::error::show_bytes;
use crate::model::{Description, MountName, ReadError, Resource, Template};

/// One mount with everything in it.
struct Whole {
    mount: Arc<Mount>,
    about: Result<Description, ReadError>,
    resources: Vec<Resource>,
    templates: Vec<Template>,
    notices: Vec<String>,
}

pub(super) fn run(at: &Where, dev: bool, only: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    super::log::start("error,belljar::compiling=info");
    let only = only.map(MountName::new).transpose().map_err(Failure::Misused)?;
    let config = open::config(at, &[], Pinning::unless_dev(dev, Pinning::Pin))?;
    let keys = Keys::read(at, &config, Shared::Used)?;
    let wall = wall::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let audit = open::audit(&config, true)?;
        let opened = open::open(config, keys, audit, None, None)?;
        let snapshot = opened.gateway.loaded().await;
        if let Some(only) = &only
            && !snapshot.mounts().iter().any(|mount| mount.name == *only)
            && !snapshot.refused().iter().any(|refused| refused.name == only.as_str())
            && !snapshot.quarantined().iter().any(|one| one.name == *only)
        {
            let names: Vec<&str> = snapshot.mounts().iter().map(|mount| mount.name.as_str()).collect();
            return Err(Failure::Failed(format!("there is no mount \"{only}\"; the mounts are: {}", names.join(", "))));
        }
        let mut all = Vec::new();
        for mount in snapshot.mounts().iter().filter(|mount| only.as_ref().is_none_or(|only| mount.name == *only)) {
            all.push(list_one(&opened.gateway, mount).await);
        }
        let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only.as_str() == name);
        if as_json {
            super::print_json(&to_json(&all, &snapshot, is_wanted))?
        } else {
            super::print(&to_text(&all, &snapshot, is_wanted))?
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn list_one(gateway: &Gateway, mount: &Arc<Mount>) -> Whole {
    let mut notices = Vec::new();
    let about = gateway.describe(&caller(), mount).await;
    let resources = walk(gateway, mount, &mut notices).await;
    let templates = walk(gateway, mount, &mut notices).await;
    notices.dedup();
    Whole { mount: Arc::clone(mount), about, resources, templates, notices }
}

async fn walk<T: Listed>(gateway: &Gateway, mount: &Mount, notices: &mut Vec<String>) -> Vec<T> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = gateway.list::<T>(&caller(), next, Some(&mount.name)).await;
        all.extend(page.entries.into_iter().map(|(entry, _)| entry));
        notices.extend(page.notices.into_iter().map(|(_, reason)| reason));
        next = page.next;
        if next.is_none() {
            return all;
        }
    }
}

fn to_text(all: &[Whole], snapshot: &Snapshot, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    for Whole { mount, about, resources, templates, notices } in all {
        let holds = if mount.holds.is_empty() { "nothing".to_owned() } else { mount.holds.join(", ") };
        let digest: String = mount.digest.to_string().chars().take(19).collect();
        let _ = writeln!(out, "{}  {}  ({}, {digest}, granted: {holds})", mount.name, mount.base, mount.file);
        match about {
            Ok(about) => {
                let said: Vec<&str> = [&about.title, &about.version, &about.description]
                    .into_iter()
                    .flatten()
                    .map(String::as_str)
                    .collect();
                if !said.is_empty() {
                    let _ = writeln!(out, "  {}", said.join(" - "));
                }
            }
            Err(error) => {
                let _ = writeln!(out, "  ! describe: {error}");
            }
        }
        for template in templates {
            let _ = writeln!(out, "  {}  {}", template.template, template.title.as_deref().unwrap_or(&template.name));
        }
        for resource in resources {
            let mut line = format!("  {}", resource.reference);
            for more in [resource.mime_type.clone(), resource.size.map(show_bytes), resource.title.clone()]
                .into_iter()
                .flatten()
            {
                let _ = write!(line, "  {more}");
            }
            let _ = writeln!(out, "{line}");
        }
        for notice in notices {
            let _ = writeln!(out, "  ! {notice}");
        }
    }
    for refused in snapshot.refused().iter().filter(|refused| is_wanted(&refused.name)) {
        let _ = writeln!(out, "{}  not served: {}", refused.name, refused.reason);
    }
    for one in snapshot.quarantined().iter().filter(|one| is_wanted(one.name.as_str())) {
        let _ = writeln!(out, "{}  {}  in quarantine: {}", one.name, one.base, one.reason());
    }
    if out.is_empty() {
        out.push_str("nothing is served: there is no .wasm file in the plugin directory\n");
    }
    out
}

fn to_json(all: &[Whole], snapshot: &Snapshot, is_wanted: impl Fn(&str) -> bool) -> Value {
    let mounts: Vec<Value> = all
        .iter()
        .map(|Whole { mount, about, resources, templates, notices }| {
            let about = about.as_ref();
            json!({
                "name": mount.name.as_str(),
                "base": mount.base,
                "file": mount.file,
                "digest": mount.digest.to_string(),
                "holds": mount.holds,
                "uses": mount.uses,
                "title": about.ok().and_then(|a| a.title.clone()),
                "version": about.ok().and_then(|a| a.version.clone()),
                "description": about.ok().and_then(|a| a.description.clone()),
                "error": about.err().map(ToString::to_string),
                "notices": notices,
                "resources": resources.iter().map(|r| json!({
                    "uri": r.reference, "name": r.name, "title": r.title, "description": r.description, "mimeType": r.mime_type, "size": r.size,
                    "lastModified": r.annotations.as_ref().and_then(|a| a.last_modified.clone()),
                })).collect::<Vec<_>>(),
                "templates": templates.iter().map(|t| json!({
                    "uriTemplate": t.template, "name": t.name, "title": t.title, "description": t.description, "mimeType": t.mime_type,
                })).collect::<Vec<_>>(),
            })
        })
        .collect();
    let refused: Vec<Value> = snapshot
        .refused()
        .iter()
        .filter(|r| is_wanted(&r.name))
        .map(|r| json!({"name": r.name, "reason": r.reason}))
        .collect();
    let quarantined: Vec<Value> = snapshot
        .quarantined()
        .iter()
        .filter(|one| is_wanted(one.name.as_str()))
        .map(super::check::quarantined)
        .collect();
    json!({ "mounts": mounts, "refused": refused, "quarantined": quarantined })
}
