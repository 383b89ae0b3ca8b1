//! Plans the mounts of a plugin directory and a configuration: the name, file and base of each, and the files that are
//! refused.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use cap_std::fs::Dir;

use super::source::{ComponentSourceError, read_provider};
use crate::catalog::mount::{ConfiguredGrants, Mount};
use crate::catalog::mount_key::{MountKey, MountKeyParts};
use crate::catalog::quarantine::QuarantinedMount;
use crate::catalog::unserved::RefusedMount;
use crate::config::lock::Mismatch;
use crate::config::{Ask, CacheSettings, Config, Isolation, OnRevoked};
use crate::grants::GrantConfig;
use crate::grants::secrets::Secrets;
use crate::model::{Digest, Guard, Limits, MountName, text};
use crate::sandbox::Profile;

/// A planned mount: everything that is known before its file is read.
#[derive(Clone)]
pub(super) struct LoadPlan {
    pub(super) name: MountName,
    pub(super) file: String,
    pub(super) base: String,
    pub(super) ask: Ask,
    pub(super) cache: CacheSettings,
    pub(super) search: bool,
    pub(super) tool_prefix: String,
    pub(super) skills: bool,
    pub(super) isolation: Isolation,
    /// True if only the component may be loaded whose digest is in the lock.
    pub(super) needs_pin: bool,
    pub(super) limits: Limits,
    pub(super) configured_grants: ConfiguredGrants,
}

impl LoadPlan {
    /// True if `mount` was built from an equal plan.
    pub(super) fn is_plan_of(&self, mount: &Mount) -> bool {
        let Self { name, file, base, ask, cache, search, tool_prefix, skills, isolation, needs_pin: _, limits, .. } =
            self;
        let written = &self.configured_grants;
        *name == mount.name
            && *file == mount.file
            && *base == mount.base
            && *ask == mount.ask
            && *cache == mount.cache
            && *search == mount.search
            && *tool_prefix == mount.tool_prefix
            && *skills == mount.lists_skills
            && *isolation == mount.isolation
            && limits == mount.gate.limits()
            && *written == mount.configured_grants
    }

    /// The quarantine of a component whose digest is not in the lock, or whose version was revoked. `None` if the component may be loaded.
    pub(super) fn quarantine(&self, found: &Digest, config: &Config) -> Option<QuarantinedMount> {
        let pins = &config.pins;
        if !self.needs_pin && !pins.is_fetched(&self.name) {
            return None;
        }
        let revoked = pins.revocation(&self.name, found).filter(|_| config.trust.revoked == OnRevoked::Stop);
        let revoked = revoked.map(|revocation| Mismatch::Revoked(*found, revocation.clone()));
        let why = pins.check(&self.name, found).err().or(revoked)?;
        let (name, base, file) = (self.name.clone(), self.base.clone(), self.file.clone());
        Some(QuarantinedMount { name, base, file, found: *found, mismatch: why })
    }

    /// The key of the mount that is built from this plan and a component of this digest.
    pub(super) fn key(&self, component: &Digest) -> MountKey {
        MountKey::of(&MountKeyParts {
            name: &self.name,
            base: &self.base,
            file: &self.file,
            component,
            grants: self.configured_grants.grants.as_ref(),
            secrets: self.configured_grants.secrets.as_ref(),
            ask: self.ask,
            cache: self.cache,
            limits: &self.limits,
        })
    }

    /// True if the plan has all grants of `mount`.
    pub(super) fn still_grants(&self, mount: &Mount) -> bool {
        mount.configured_grants.is_subset_of(&self.configured_grants)
            && mount.ask <= self.ask
            && (!mount.cache.public || self.cache.public)
            && (!mount.search || self.search)
    }
}

/// The grants of a mount in the form that is compared.
fn configured_grants(grants: &GrantConfig, secrets: &Secrets) -> ConfiguredGrants {
    let (text, granted) = (format!("{grants:?}"), grants.describe());
    let secrets = grants.has_secrets().then(|| secrets.digest());
    let digest = (!granted.is_empty()).then(|| Digest::of(text.as_bytes()));
    ConfiguredGrants { grants: digest, secrets, granted, without_consent: grants.consent_lines() }
}

/// The component of a mount, read but not loaded.
pub struct MountComponent {
    /// The mount's name.
    pub name: MountName,
    /// The component's file name.
    pub file: String,
    /// The digest, the exports and the imports; or the reason why the file is no provider.
    pub component: Result<(Digest, Profile), ComponentSourceError>,
}

/// Reads the components of the mounts for which `is_wanted` is true, whether configured or only present in `dir`.
///
/// # Errors
/// When the directory cannot be read.
pub fn read_components(
    config: &Config,
    dir: &Dir,
    is_wanted: impl Fn(&MountName) -> bool,
) -> io::Result<Vec<MountComponent>> {
    let (plans, _) = plan_mounts(component_files(dir, &mut Vec::new())?, config);
    let wanted = plans.into_iter().filter(|plan| is_wanted(&plan.name));
    let found = wanted.map(|plan| {
        let component = read_provider(dir, &plan.file, plan.limits.component);
        let component = component.map(|(source, profile)| (source.digest, profile));
        MountComponent { name: plan.name, file: plan.file, component }
    });
    Ok(found.collect())
}

/// The mount that already has a name or a base, so that no other mount gets it.
fn if_taken<T>(by: Option<T>) -> Option<T> {
    by.filter(|_| Guard::Taken.is_on())
}

/// Decides the names and bases of everything in `files` and `config`. The result does not depend on the order of the
/// directory.
pub(super) fn plan_mounts(mut files: Vec<String>, config: &Config) -> (Vec<LoadPlan>, Vec<RefusedMount>) {
    files.sort_unstable();
    let present: HashSet<&str> = files.iter().map(String::as_str).collect();
    let mut refused = Vec::new();
    let mut plans: BTreeMap<MountName, LoadPlan> = BTreeMap::new();
    let base = |name: &MountName| format!("belljar://{name}/");
    let mut stems: BTreeMap<MountName, &String> = BTreeMap::new();
    for file in &files {
        if let Some(name) = file.strip_suffix(".wasm").and_then(|stem| MountName::from_stem(stem).ok()) {
            stems.entry(name).or_insert(file);
        }
    }
    for (name, mount) in &config.mounts {
        // A mount without a configured file takes the file whose stem gives its name.
        let own = stems.get(name).copied();
        let file = mount.component.clone().or_else(|| own.cloned()).unwrap_or_else(|| format!("{name}.wasm"));
        if !present.contains(file.as_str()) {
            refused.push(RefusedMount {
                base: Some(mount.uri.clone().unwrap_or_else(|| base(name))),
                needs_restart: false,
                name: name.to_string(),
                reason: format!("there is no \"{}\" in the plugin directory; put it there, or name another with component = \"FILE.wasm\" under [mounts.{name}]", text::excerpt(&file, 100)),
            });
            continue;
        }
        plans.insert(
            name.clone(),
            LoadPlan {
                name: name.clone(),
                file,
                base: mount.uri.clone().unwrap_or_else(|| base(name)),
                ask: mount.ask,
                cache: mount.cache,
                search: mount.search,
                tool_prefix: mount.tool_prefix.clone(),
                skills: mount.skills,
                isolation: mount.isolation,
                needs_pin: mount.needs_pin(),
                limits: mount.limits.clone(),
                configured_grants: configured_grants(&mount.grants, &config.ambient.secrets),
            },
        );
    }
    // A file that a configured mount names is not mounted a second time under its own name.
    let named: HashSet<String> = plans.values().map(|plan| plan.file.clone()).collect();
    for file in &files {
        if named.contains(file) {
            continue;
        }
        let stem = file.strip_suffix(".wasm").unwrap_or(file);
        match MountName::from_stem(stem) {
            Ok(name) => {
                if let Some(other) = if_taken(plans.get(&name)) {
                    let reason = format!(
                        "its name \"{name}\" is taken by \"{}\"; rename one of the files",
                        text::excerpt(&other.file, 100)
                    );
                    refused.push(RefusedMount::new(text::excerpt(file, 100), reason));
                } else {
                    plans.insert(
                        name.clone(),
                        LoadPlan {
                            base: base(&name),
                            tool_prefix: name.to_string(),
                            name,
                            file: file.clone(),
                            ask: Ask::Never,
                            cache: CacheSettings::default(),
                            search: false,
                            skills: false,
                            isolation: config.isolation,
                            needs_pin: false,
                            limits: config.limits.clone(),
                            configured_grants: ConfiguredGrants::default(),
                        },
                    );
                }
            }
            Err(error) => refused.push(RefusedMount::new(text::excerpt(file, 100), error.to_string())),
        }
    }
    let mut bases: HashMap<String, MountName> = HashMap::new();
    let plans = plans
        .into_values()
        .filter(|plan| match if_taken(bases.get(&plan.base)) {
            None => {
                bases.insert(plan.base.clone(), plan.name.clone());
                true
            }
            Some(first) => {
                let reason =
                    format!("its base \"{}\" is taken by mount \"{first}\"; give one of them another uri", plan.base);
                refused.push(RefusedMount::new(plan.name.to_string(), reason));
                false
            }
        })
        .collect();
    (plans, refused)
}

/// The `.wasm` files of a directory. Skips hidden files and other names, such as temporary files of editors.
pub(super) fn component_files(dir: &Dir, refused: &mut Vec<RefusedMount>) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in dir.entries()? {
        match entry?.file_name().into_string() {
            Ok(name) if name.ends_with(".wasm") && !name.starts_with('.') => files.push(name),
            Ok(_) => {}
            Err(name) => {
                let name = text::excerpt(&name.to_string_lossy(), 100);
                if name.ends_with(".wasm") {
                    refused.push(RefusedMount::new(name, "its name is not UTF-8; rename it".to_owned()));
                }
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
