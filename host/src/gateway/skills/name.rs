//! `skill://MOUNT/REFERENCE`: the second name of a mount's own reference. Only mounts with skills have such names.

use std::sync::Arc;

use tokio::time::Instant;

use super::entry::{MARKDOWN, SCHEME, skill_uri};
use crate::catalog::{Mount, Snapshot};
use crate::gateway::consent::ConsentInput;
use crate::gateway::pipeline::{FIRST_LOAD_WAIT, Gateway};
use crate::gateway::read::ReadOutcome;
use crate::interfaces::skills::root_of;
use crate::model::{Body, Fault, MountName, ReadError, reference, text};
use crate::policy::{Caller, Principal};

/// What a `skill://` URI names.
pub(in crate::gateway) struct SkillName<'u> {
    pub(super) mount: Arc<Mount>,
    /// A checked reference below the mount's base.
    pub(super) reference: &'u str,
}

impl Gateway {
    /// What `uri` names, if it is the second name of a mount that `principal` knows. Waits for components that are
    /// being loaded, as long for a mount that does not exist as for a hidden one.
    pub(in crate::gateway) async fn skill_name<'u>(
        &self,
        principal: &Principal,
        uri: &'u str,
    ) -> Option<SkillName<'u>> {
        let rest = uri.strip_prefix(SCHEME).filter(|_| uri.len() <= reference::MAX_URI)?;
        let (name, reference) = rest.split_once('/')?;
        let name = MountName::new(name).ok()?;
        let find = |snapshot: &Snapshot| {
            let mount = snapshot.find(&name).filter(|mount| mount.has_skills());
            mount.filter(|mount| self.knows(principal, &mount.name, &mount.base)).cloned()
        };
        let mut snapshot = self.catalog.snapshot();
        if find(&snapshot).is_none() {
            let by = Instant::now() + FIRST_LOAD_WAIT;
            self.catalog.wait_loaded_or(by, |snapshot| find(snapshot).is_some()).await;
            snapshot = self.catalog.snapshot();
        }
        let mount = find(&snapshot)?;
        reference::check(reference).ok()?;
        // Another mount may own a part of the base.
        snapshot.absolute_name(&mount, reference).ok()?;
        Some(SkillName { mount, reference })
    }

    /// Reads a file by its second name: the same read as by its usual one. The contents come back under the second name.
    pub(in crate::gateway) async fn read_skill_file(
        &self,
        caller: &Caller,
        uri: &str,
        SkillName { mount, reference }: SkillName<'_>,
        input: ConsentInput<'_>,
        room: impl Future<Output = ()>,
    ) -> Result<ReadOutcome, Fault> {
        let second = |name: &str| match name.strip_prefix(&mount.base) {
            Some(reference) => skill_uri(&mount.name, reference),
            None => name.to_owned(),
        };
        let renamed = |fault: Fault| {
            let error = match fault.error {
                ReadError::NotFoundWithHint { suggestion: Some(instead), .. } => {
                    let instead = second(&instead);
                    ReadError::NotFoundWithHint {
                        why: format!("did you mean \"{instead}\"?"),
                        suggestion: Some(instead),
                    }
                }
                error => error,
            };
            Fault { error, uri: Some(text::excerpt(uri, reference::MAX_URI)), ..fault }
        };
        let usual = [mount.base.as_str(), reference].concat();
        match self.read_resource(caller, &usual, input, room).await.map_err(renamed)? {
            // The mount was replaced meanwhile by one without skills, or by another owner of the name.
            ReadOutcome::Contents(_, served, _) if served.name != mount.name || !served.has_skills() => {
                Err(Fault { error: ReadError::NotFound, mount: None, uri: Some(uri.to_owned()) })
            }
            ReadOutcome::Contents(mut reading, served, cost) => {
                for contents in &mut reading.contents {
                    let is_skill_md = contents.reference.strip_prefix(&served.base).and_then(root_of).is_some();
                    if is_skill_md && matches!(contents.body, Body::Text(_)) {
                        contents.mime_type = Some(MARKDOWN.to_owned());
                    }
                    contents.reference = second(&contents.reference);
                }
                Ok(ReadOutcome::Contents(reading, served, cost))
            }
            ReadOutcome::ConsentUnavailable(fault) => Ok(ReadOutcome::ConsentUnavailable(renamed(fault))),
            asked @ ReadOutcome::ConsentRequired(_) => Ok(asked),
        }
    }
}
