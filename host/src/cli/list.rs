//! `belljar list`: lists mounts, resources and templates, as text or JSON. It uses the same gateway as MCP clients do.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anstyle::Style;
use serde_json::{Value, json};

use super::host::{HostArgs, with_host};
use super::{output, table};
use crate::catalog::listing::Listed;
use crate::catalog::{Mount, Snapshot};
use crate::config::lock::LockedRevocation;
use crate::gateway::Gateway;
use crate::model::error::show_bytes;
use crate::model::{Description, MountName, ReadError, Resource, Template};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::startup;

/// One mount with all of its resources and templates.
struct MountListing {
    mount: Arc<Mount>,
    about: Result<Description, ReadError>,
    resources: Vec<Resource>,
    templates: Vec<Template>,
    notices: Vec<String>,
}

pub(super) fn run(at: &LocationArgs, dev: bool, only: Option<&str>, as_json: bool) -> Result<ExitCode, Failure> {
    let only = only.map(MountName::new).transpose().map_err(Failure::misused)?;
    with_host(HostArgs { at, dev, output: None, asks: false }, async |host| {
        let snapshot = host.gateway.fully_loaded_snapshot().await;
        if let Some(only) = &only
            && !snapshot.mounts().iter().any(|mount| mount.name == *only)
            && !snapshot.refused().iter().any(|refused| refused.name == only.as_str())
            && !snapshot.quarantined().iter().any(|one| one.name == *only)
        {
            let names: Vec<&str> = snapshot.mounts().iter().map(|mount| mount.name.as_str()).collect();
            let hint = match names.is_empty() {
                true => "no mount is served; `belljar check` says why".to_owned(),
                false => format!("the mounts are: {}", names.join(", ")),
            };
            return Err(Failure::Failed(format!("there is no mount \"{only}\"; {hint}")));
        }
        let mut all = Vec::new();
        for mount in snapshot.mounts().iter().filter(|mount| only.as_ref().is_none_or(|only| mount.name == *only)) {
            let revoked = host.config.pins.revocation(&mount.name, &mount.digest);
            all.push(list_one(&host.gateway, mount, revoked).await);
        }
        let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only.as_str() == name);
        if as_json {
            output::print_json(&to_json(&all, &snapshot, is_wanted))?
        } else {
            table::print(&to_text(&all, &snapshot, is_wanted))?
        }
        // The same exit code as that of `check`.
        let is_fine = !snapshot.refused().iter().any(|refused| is_wanted(&refused.name))
            && !snapshot.quarantined().iter().any(|one| is_wanted(one.name.as_str()));
        Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

async fn list_one(gateway: &Gateway, mount: &Arc<Mount>, revoked: Option<&LockedRevocation>) -> MountListing {
    let mut notices = Vec::new();
    let about = gateway.describe(&startup::caller(), mount).await;
    let resources = all_pages(gateway, mount, &mut notices).await;
    let templates = all_pages(gateway, mount, &mut notices).await;
    notices.dedup();
    notices.extend(revoked.map(|why| format!("{why}; {}", why.cure(&mount.name))));
    MountListing { mount: Arc::clone(mount), about, resources, templates, notices }
}

/// The entries of all pages of a list.
async fn all_pages<T: Listed>(gateway: &Gateway, mount: &Mount, notices: &mut Vec<String>) -> Vec<T> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = gateway.list::<T>(&startup::caller(), next, Some(&mount.name)).await;
        all.extend(page.entries.into_iter().map(|(entry, _)| entry));
        notices.extend(page.notices.into_iter().map(|(_, notice)| notice.to_string()));
        next = page.next;
        if next.is_none() {
            return all;
        }
    }
}

/// The widest aligned column, in characters. Longer texts are not aligned.
const MAX_COLUMN: usize = 60;

fn to_text(all: &[MountListing], snapshot: &Snapshot, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut out = String::new();
    for MountListing { mount, about, resources, templates, notices } in all {
        let holds = if mount.granted_kinds.is_empty() { "nothing".to_owned() } else { mount.granted_kinds.join(", ") };
        let (name, base) = (table::styled(table::NAME, &mount.name), &mount.base);
        let details = format!("({}, {}, granted: {holds})", mount.file, mount.digest.short());
        let _ = writeln!(out, "{name}  {base}  {}", table::styled(table::FAINT, details));
        match about {
            Ok(about) => {
                let details: Vec<&str> = [&about.title, &about.version, &about.description]
                    .into_iter()
                    .flatten()
                    .map(String::as_str)
                    .collect();
                if !details.is_empty() {
                    let _ = writeln!(out, "  {}", details.join(" - "));
                }
            }
            Err(ReadError::NotFound) => {
                let _ = writeln!(
                    out,
                    "  {} the rules show you nothing of this mount; to change that, add  [[allow]]  with  who = {{ user = \"local\" }}",
                    table::styled(table::WARN, "!")
                );
            }
            Err(error) => {
                let _ = writeln!(out, "  {} describe: {error}", table::styled(table::WARN, "!"));
            }
        }
        for need in mount.missing_needs.iter().filter(|need| !need.optional) {
            let _ =
                writeln!(out, "  {} needs {}, which is not granted", table::styled(table::WARN, "!"), need.describe());
        }
        out += &entries(resources, templates);
        for notice in notices {
            let _ = writeln!(out, "  {} {notice}", table::styled(table::WARN, "!"));
        }
    }
    for refused in snapshot.refused().iter().filter(|refused| is_wanted(&refused.name)) {
        let name = table::styled(table::NAME, &refused.name);
        let _ = writeln!(out, "{name}  {}: {}", table::styled(table::BAD, "not served"), refused.reason);
    }
    for one in snapshot.quarantined().iter().filter(|one| is_wanted(one.name.as_str())) {
        let (name, what) = (table::styled(table::NAME, &one.name), table::styled(table::BAD, "in quarantine"));
        let _ = writeln!(out, "{name}  {}  {what}: {}", one.base, one.reason());
    }
    if out.is_empty() {
        out.push_str("nothing is served: there is no .wasm file in the plugin directory\n");
    }
    out
}

/// The templates and resources of a mount, in aligned columns.
pub(super) fn entries(resources: &[Resource], templates: &[Template]) -> String {
    let mut out = String::new();
    let types = resources.iter().map(|one| one.mime_type.clone().unwrap_or_default()).collect::<Vec<_>>();
    let sizes = resources.iter().map(|one| one.size.map(show_bytes).unwrap_or_default()).collect::<Vec<_>>();
    let names = resources.iter().map(|one| &one.reference).chain(templates.iter().map(|one| &one.template));
    let widths = (table::width(names, MAX_COLUMN), table::width(&types, MAX_COLUMN), table::width(&sizes, MAX_COLUMN));
    for template in templates {
        let name = table::padded(Style::new(), &template.template, widths.0);
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

/// One resource.
pub(super) fn resource_json(r: &Resource) -> Value {
    json!({
        "uri": r.reference, "name": r.name, "title": r.title, "description": r.description, "mimeType": r.mime_type, "size": r.size,
        "lastModified": r.annotations.as_ref().and_then(|a| a.last_modified.clone()),
    })
}

fn to_json(all: &[MountListing], snapshot: &Snapshot, is_wanted: impl Fn(&str) -> bool) -> Value {
    let mounts: Vec<Value> = all
        .iter()
        .map(|MountListing { mount, about, resources, templates, notices }| {
            let about = about.as_ref();
            json!({
                "name": mount.name.as_str(),
                "base": mount.base,
                "file": mount.file,
                "digest": mount.digest.to_string(),
                "holds": mount.granted_kinds,
                "uses": mount.usable_kinds,
                "needs": super::check::needs(mount),
                "title": about.ok().and_then(|a| a.title.clone()),
                "version": about.ok().and_then(|a| a.version.clone()),
                "description": about.ok().and_then(|a| a.description.clone()),
                "error": about.err().map(ToString::to_string),
                "notices": notices,
                "resources": resources.iter().map(resource_json).collect::<Vec<_>>(),
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
