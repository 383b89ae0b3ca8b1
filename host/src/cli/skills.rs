//! `belljar skills`: lists the skills of all mounts, and verifies the digests of their files. It uses the same gateway
//! as MCP clients do.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::definitions::{notices_json, notices_text};
use super::host::{HostArgs, with_host};
use super::{output, table};
use crate::catalog::skills::{SkillFile, digest};
use crate::gateway::Gateway;
use crate::gateway::skills::{SkillEntry, skill_uri};
use crate::model::error::show_bytes;
use crate::model::{MountName, text};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::startup;

/// The digits of a digest in a table.
const SHOWN_DIGITS: usize = 12;

/// The most characters of a description in a table.
const MAX_DESCRIPTION: usize = 200;

/// A skill, and the result of reading each of its files again.
struct ListedSkill {
    entry: SkillEntry,
    /// One for each file, if they were verified: `None` if it is as listed, else the difference.
    verified: Option<Vec<Option<String>>>,
}

impl ListedSkill {
    /// The difference of the file at this index, if it was verified and differs.
    fn difference(&self, index: usize) -> Option<&str> {
        self.verified.as_ref()?.get(index)?.as_deref()
    }

    fn is_fine(&self) -> bool {
        self.verified.iter().flatten().all(Option::is_none)
    }
}

pub(super) fn run(
    at: &LocationArgs,
    dev: bool,
    only: Option<&str>,
    verify: bool,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let only = only.map(MountName::new).transpose().map_err(Failure::misused)?;
    with_host(HostArgs { at, dev, output: None, asks: false }, async |host| {
        let snapshot = host.gateway.fully_loaded_snapshot().await;
        if let Some(only) = &only {
            let mount = snapshot.find(only).ok_or_else(|| {
                Failure::Failed(format!("there is no mount \"{only}\"; `belljar list` shows all mounts"))
            })?;
            if !mount.has_skills() {
                return Err(Failure::Failed(format!(
                    "the mount \"{only}\" has no skills; if it lists files named SKILL.md, run: belljar set 'mounts.{only}.skills = true'"
                )));
            }
        }
        let (entries, notices) = all_pages(&host.gateway, only.as_ref()).await;
        let mut skills = Vec::new();
        for entry in entries {
            let verified = if verify { Some(differences(&host.gateway, &entry).await) } else { None };
            skills.push(ListedSkill { entry, verified });
        }
        match as_json {
            true => output::print_json(&to_json(&skills, &notices))?,
            false => table::print(&to_text(&skills, &notices))?,
        }
        Ok(if skills.iter().all(ListedSkill::is_fine) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// The skills of all pages, and the notices, each once.
async fn all_pages(gateway: &Gateway, only: Option<&MountName>) -> (Vec<SkillEntry>, Vec<(MountName, String)>) {
    let (mut all, mut notices, mut next) = (Vec::new(), Vec::new(), None);
    loop {
        let page = gateway.list_skills(&startup::caller(), next, only).await;
        all.extend(page.skills);
        for (mount, notice) in page.notices {
            let notice = (mount, notice.to_string());
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        next = page.next;
        if next.is_none() {
            return (all, notices);
        }
    }
}

/// Reads every file of a skill by its name.
async fn differences(gateway: &Gateway, entry: &SkillEntry) -> Vec<Option<String>> {
    let mut all = Vec::new();
    for file in &entry.skill.files {
        all.push(difference(gateway, &entry.mount, file).await);
    }
    all
}

async fn difference(gateway: &Gateway, mount: &MountName, file: &SkillFile) -> Option<String> {
    let uri = skill_uri(mount, &file.reference);
    let reading = match gateway.read(&startup::caller(), &uri).await {
        Ok((reading, _)) => reading,
        Err(fault) => return Some(fault.to_string()),
    };
    let [contents] = reading.contents.as_slice() else {
        return Some(format!("it has {} parts", reading.contents.len()));
    };
    let size = contents.body.len() as u64;
    if size != file.size {
        return Some(format!("it has {size} bytes; expected {}", file.size));
    }
    let found = digest(&contents.body);
    (found != file.digest).then(|| format!("its digest is sha256:{}", found.hex()))
}

fn to_text(skills: &[ListedSkill], notices: &[(MountName, String)]) -> String {
    let mut out = String::new();
    for listed in skills {
        let skill = &listed.entry.skill;
        let _ = writeln!(out, "{}  {}", table::styled(table::NAME, &skill.frontmatter.name), listed.entry.uri());
        let _ = writeln!(out, "  {}", text::excerpt(&skill.frontmatter.description, MAX_DESCRIPTION));
        let names: Vec<&str> = skill.files.iter().map(|file| file.reference.as_ref()).collect();
        let sizes: Vec<String> = skill.files.iter().map(|file| show_bytes(file.size)).collect();
        let (width, size_width) = (table::width(&names, 60), table::width(&sizes, 60));
        for (index, (file, size)) in skill.files.iter().zip(&sizes).enumerate() {
            let digest = file.digest.hex();
            let digest = digest.get(..SHOWN_DIGITS).unwrap_or_default();
            let line = format!("{:width$}  {size:>size_width$}  sha256:{digest}", file.reference);
            match (&listed.verified, listed.difference(index)) {
                (_, Some(why)) => {
                    let _ = writeln!(out, "  {line}  {}: {why}", table::styled(table::BAD, "differs"));
                }
                (Some(_), None) => {
                    let _ = writeln!(out, "  {line}  ok");
                }
                (None, None) => {
                    let _ = writeln!(out, "  {line}");
                }
            }
        }
    }
    out += &notices_text(notices);
    if out.is_empty() {
        out.push_str(
            "there are no skills; for a mount that lists files named SKILL.md, set  skills = true  under [mounts.NAME]\n",
        );
    }
    out
}

fn to_json(skills: &[ListedSkill], notices: &[(MountName, String)]) -> Value {
    let one = |listed: &ListedSkill| {
        let SkillEntry { mount, skill } = &listed.entry;
        let files = skill.files.iter().enumerate().map(|(index, file)| {
            let mut one = json!({
                "uri": skill_uri(mount, &file.reference),
                "size": file.size,
                "digest": format!("sha256:{}", file.digest.hex()),
            });
            if let (true, Value::Object(fields)) = (listed.verified.is_some(), &mut one) {
                fields.insert("difference".to_owned(), listed.difference(index).into());
            }
            one
        });
        json!({
            "uri": listed.entry.uri(),
            "mount": mount.as_str(),
            "name": skill.frontmatter.name,
            "description": skill.frontmatter.description,
            "frontmatter": skill.frontmatter.others,
            "files": files.collect::<Vec<_>>(),
        })
    };
    json!({ "skills": skills.iter().map(one).collect::<Vec<_>>(), "notices": notices_json(notices) })
}
