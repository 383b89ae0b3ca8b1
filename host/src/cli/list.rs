//! `belljar list`: through the same gateway as a client, for people and scripts.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anstyle::Style;
use serde_json::{Value, json};

use super::keys::{Keys, Shared};
use super::pins::Pinning;
use super::{Failure, Where, caller, open, progress, shown, wall};
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
    progress::start("error");
    let only = only.map(MountName::new).transpose().map_err(Failure::Misused)?;
    let config = open::config(at, &[], Pinning::unless_dev(dev, Pinning::Pin))?;
    let keys = Keys::read(at, &config, Shared::Used)?;
    let wall = wall::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let audit = open::audit(&config, true)?;
        let opened = open::open(config, keys, audit, None, None)?;
        let snapshot = opened.gateway.loaded().await;
        progress::end();
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
            shown::print(&to_text(&all, &snapshot, is_wanted))?
        }
        // As `check` says it: what is to be served is served.
        let is_fine = !snapshot.refused().iter().any(|refused| is_wanted(&refused.name))
            && !snapshot.quarantined().iter().any(|one| is_wanted(one.name.as_str()));
        Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

/// Characters of the widest column that others are brought in line with.
const WIDE: usize = 60;

fn to_text(all: &[Whole], snapshot: &Snapshot, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    for Whole { mount, about, resources, templates, notices } in all {
        let holds = if mount.holds.is_empty() { "nothing".to_owned() } else { mount.holds.join(", ") };
        let (name, base) = (shown::styled(shown::NAME, &mount.name), &mount.base);
        let beside = format!("({}, {}, granted: {holds})", mount.file, mount.digest.short());
        let _ = writeln!(out, "{name}  {base}  {}", shown::styled(shown::FAINT, beside));
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
                let _ = writeln!(out, "  {} describe: {error}", shown::styled(shown::WARN, "!"));
            }
        }
        for need in mount.lacks.iter().filter(|need| !need.optional) {
            let _ = writeln!(out, "  {} needs {}, which is not granted", shown::styled(shown::WARN, "!"), need.shown());
        }
        out += &entries(resources, templates);
        for notice in notices {
            let _ = writeln!(out, "  {} {notice}", shown::styled(shown::WARN, "!"));
        }
    }
    for refused in snapshot.refused().iter().filter(|refused| is_wanted(&refused.name)) {
        let name = shown::styled(shown::NAME, &refused.name);
        let _ = writeln!(out, "{name}  {}: {}", shown::styled(shown::BAD, "not served"), refused.reason);
    }
    for one in snapshot.quarantined().iter().filter(|one| is_wanted(one.name.as_str())) {
        let (name, what) = (shown::styled(shown::NAME, &one.name), shown::styled(shown::BAD, "in quarantine"));
        let _ = writeln!(out, "{name}  {}  {what}: {}", one.base, one.reason());
    }
    if out.is_empty() {
        out.push_str("nothing is served: there is no .wasm file in the plugin directory\n");
    }
    out
}

/// The entries of a mount, in columns.
fn entries(resources: &[Resource], templates: &[Template]) -> String {
    let mut out = String::new();
    let types = resources.iter().map(|one| one.mime_type.clone().unwrap_or_default()).collect::<Vec<_>>();
    let sizes = resources.iter().map(|one| one.size.map(show_bytes).unwrap_or_default()).collect::<Vec<_>>();
    let names = resources.iter().map(|one| &one.reference).chain(templates.iter().map(|one| &one.template));
    let widths = (shown::width(names, WIDE), shown::width(&types, WIDE), shown::width(&sizes, WIDE));
    for template in templates {
        let name = shown::padded(Style::new(), &template.template, widths.0);
        let _ = writeln!(out, "  {name}  {}", template.title.as_deref().unwrap_or(&template.name));
    }
    for ((resource, kind), size) in resources.iter().zip(&types).zip(&sizes) {
        let line = format!(
            "  {:first$}  {kind:second$}  {size:>third$}  {}",
            resource.reference,
            resource.title.as_deref().unwrap_or_default(),
            first = widths.0,
            second = widths.1,
            third = widths.2,
        );
        let _ = writeln!(out, "{}", line.trim_end());
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
                "needs": super::check::needs(mount),
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
