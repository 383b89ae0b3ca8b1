//! From a directory of files and a configuration to what is to be served: who is who, and why a file is not.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use cap_std::fs::Dir;

use super::mount::{Mount, Refused, Written, look};
use crate::config::{Ask, Cache, Config};
use crate::grants::Requested;
use crate::grants::secrets::Secrets;
use crate::model::{Digest, Guard, Limits, MountName, text};
use crate::sandbox::Profile;

/// A mount to be: everything that is known before its file is read.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) name: MountName,
    pub(super) file: String,
    pub(super) base: String,
    pub(super) ask: Ask,
    pub(super) cache: Cache,
    pub(super) search: bool,
    /// Whether only the bytes may be loaded that its grants were given to.
    pub(super) needs_pin: bool,
    pub(super) limits: Limits,
    pub(super) written: Written,
}

impl Plan {
    /// Whether `mount` was made by one that said the same.
    pub(super) fn made(&self, mount: &Mount) -> bool {
        let Self { name, file, base, ask, cache, search, needs_pin: _, limits, written } = self;
        *name == mount.name
            && *file == mount.file
            && *base == mount.base
            && *ask == mount.ask
            && *cache == mount.cache
            && *search == mount.search
            && limits == mount.gate.limits()
            && *written == mount.written
    }

    /// Whether everything that `mount` may do is granted here too.
    pub(super) fn still_grants(&self, mount: &Mount) -> bool {
        mount.written.is_within(&self.written)
            && mount.ask <= self.ask
            && (!mount.cache.public || self.cache.public)
            && (!mount.search || self.search)
    }
}

/// What is written for a mount.
fn written(grants: &Requested, secrets: &Secrets) -> Written {
    let (text, granted) = (format!("{grants:?}"), grants.describe());
    // The secrets that are meant, or more: what is plain text there may look like one.
    let secrets = text.contains("Secret(").then(|| secrets.digest());
    let digest = (!granted.is_empty()).then(|| Digest::of(text.as_bytes()));
    Written { grants: digest, secrets, granted, unasked: grants.unasked() }
}

/// The component of a mount, read but not loaded.
pub struct Found {
    /// The mount.
    pub name: MountName,
    /// The component's file name.
    pub file: String,
    /// Its digest, and what it exports and imports; or why it is no provider.
    pub component: Result<(Digest, Profile), String>,
}

/// Reads the components of the mounts that `is_wanted` names, whether they are in the configuration or only in `dir`.
///
/// # Errors
/// When the directory cannot be read.
pub fn find(config: &Config, dir: &Dir, is_wanted: impl Fn(&MountName) -> bool) -> io::Result<Vec<Found>> {
    let (plans, _) = plan(files(dir, &mut Vec::new())?, config);
    let wanted = plans.into_iter().filter(|plan| is_wanted(&plan.name));
    let found = wanted.map(|plan| {
        let component = look(dir, &plan.file, plan.limits.component);
        let component = component.map(|(source, profile)| (source.digest, profile)).map_err(|why| why.to_string());
        Found { name: plan.name, file: plan.file, component }
    });
    Ok(found.collect())
}

/// Decides names and bases of everything in `files` and `config`, in an order that does not depend on the directory's.
pub(super) fn plan(mut files: Vec<String>, config: &Config) -> (Vec<Plan>, Vec<Refused>) {
    files.sort_unstable();
    let present: HashSet<&str> = files.iter().map(String::as_str).collect();
    let mut refused = Vec::new();
    let mut plans: BTreeMap<MountName, Plan> = BTreeMap::new();
    let base = |name: &MountName| format!("belljar://{name}/");
    let mut stems: BTreeMap<MountName, &String> = BTreeMap::new();
    for file in &files {
        if let Some(name) = file.strip_suffix(".wasm").and_then(|stem| MountName::from_stem(stem).ok()) {
            stems.entry(name).or_insert(file);
        }
    }
    for (name, mount) in &config.mounts {
        // A mount without a file of its own takes the file whose stem makes its name.
        let own = stems.get(name).copied();
        let file = mount.component.clone().or_else(|| own.cloned()).unwrap_or_else(|| format!("{name}.wasm"));
        if !present.contains(file.as_str()) {
            refused.push(Refused {
                base: Some(mount.uri.clone().unwrap_or_else(|| base(name))),
                needs_restart: false,
                name: name.to_string(),
                reason: format!("there is no \"{}\" in the plugin directory; put it there, or name another with component = \"FILE.wasm\" under [mounts.{name}]", text::excerpt(&file, 100)),
            });
            continue;
        }
        plans.insert(
            name.clone(),
            Plan {
                name: name.clone(),
                file,
                base: mount.uri.clone().unwrap_or_else(|| base(name)),
                ask: mount.ask,
                cache: mount.cache,
                search: mount.search,
                needs_pin: mount.needs_pin(),
                limits: mount.limits.clone(),
                written: written(&mount.grants, &config.ambient.secrets),
            },
        );
    }
    // A file that some mount names is not mounted a second time under its own name.
    let named: HashSet<String> = plans.values().map(|plan| plan.file.clone()).collect();
    for file in &files {
        if named.contains(file) {
            continue;
        }
        let stem = file.strip_suffix(".wasm").unwrap_or(file);
        match MountName::from_stem(stem) {
            Ok(name) => {
                if let Some(other) = plans.get(&name).filter(|_| Guard::Taken.is_on()) {
                    let reason = format!(
                        "its name \"{name}\" is taken by \"{}\"; rename one of the files",
                        text::excerpt(&other.file, 100)
                    );
                    refused.push(Refused::new(text::excerpt(file, 100), reason));
                } else {
                    plans.insert(
                        name.clone(),
                        Plan {
                            base: base(&name),
                            name,
                            file: file.clone(),
                            ask: Ask::Never,
                            cache: Cache::default(),
                            search: false,
                            needs_pin: false,
                            limits: config.limits.clone(),
                            written: Written::default(),
                        },
                    );
                }
            }
            Err(reason) => refused.push(Refused::new(text::excerpt(file, 100), reason)),
        }
    }
    let mut bases: HashMap<String, MountName> = HashMap::new();
    let plans = plans
        .into_values()
        .filter(|plan| match bases.get(&plan.base) {
            None => {
                bases.insert(plan.base.clone(), plan.name.clone());
                true
            }
            Some(_) if !Guard::Taken.is_on() => true,
            Some(first) => {
                let reason =
                    format!("its base \"{}\" is taken by mount \"{first}\"; give one of them another uri", plan.base);
                refused.push(Refused::new(plan.name.to_string(), reason));
                false
            }
        })
        .collect();
    (plans, refused)
}

/// The `.wasm` files of a directory. Hidden ones and other names are passed over: temporary files of editors and copies.
pub(super) fn files(dir: &Dir, refused: &mut Vec<Refused>) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in dir.entries()? {
        match entry?.file_name().into_string() {
            Ok(name) if name.ends_with(".wasm") && !name.starts_with('.') => files.push(name),
            Ok(_) => {}
            Err(name) => {
                let name = text::excerpt(&name.to_string_lossy(), 100);
                if name.ends_with(".wasm") {
                    refused.push(Refused::new(name, "its name is not UTF-8; rename it".to_owned()));
                }
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
