//! `belljar.toml`: what the operator wrote, checked whole before anything starts.
//!
//! Every message names the key's path, says what was expected, and the nearest valid key where one was misspelt. The
//! file is written by people only; nothing a provider does changes it.

mod callers;
mod live;
pub mod lock;
mod section;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::admission::callers::Rate;
use crate::grants::secrets::Source;
use crate::grants::{Ambient, KINDS, Requested};
use crate::model::error::show_bytes;
use crate::model::{Limits, MountName, limits, reference, text};
pub use live::{Cache, Watch};
use lock::Pins;
use section::{Bytes, Percent, Section, Span};

/// The name of the file that is looked for in the working directory.
pub const FILE: &str = "belljar.toml";

/// Where records go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Audit {
    /// To a file in the state directory, which is kept within a bound.
    #[default]
    State,
    /// To the standard error stream, among the log.
    Stderr,
    /// Nowhere.
    Off,
    /// To a file, appended.
    File(PathBuf),
}

/// Whether the process gives up what it does not need before any guest runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wall {
    /// As much as the kernel can keep from it.
    #[default]
    BestEffort,
    /// All of it, or nothing is started.
    Require,
    /// No.
    Off,
}

/// Whether a person may be asked to allow a call what its mount does not hold. What comes later allows more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Nobody is asked.
    #[default]
    Never,
    /// For the call at hand.
    Once,
    /// For the call at hand, or for good: then it is written into the configuration.
    Persist,
}

/// The whole configuration, with every path absolute.
pub struct Config {
    /// The directory that is searched for `*.wasm`.
    pub plugins: PathBuf,
    /// Where compiled code is kept.
    pub cache: PathBuf,
    /// Where keys are kept.
    pub state: PathBuf,
    /// Where records go.
    pub audit: Audit,
    /// The wall around the process.
    pub wall: Wall,
    /// Calls at once over all mounts.
    pub calls: u32,
    /// Bytes that all calls and all answers on their way may take together.
    pub total_memory: u64,
    /// How long a listing over all mounts may take.
    pub list_time: Duration,
    /// Where secrets are kept, by name.
    pub secrets: BTreeMap<String, Source>,
    /// How upstreams are found and trusted.
    pub network: Network,
    /// How what changes is followed.
    pub watch: Watch,
    /// Whether clients are given tools that list, read and search.
    pub tools: bool,
    /// How often one client may call them, and ask for completions.
    pub callers: Rate,
    /// The limits of mounts that are not named.
    pub limits: Limits,
    /// The mounts that are named, by name.
    pub mounts: BTreeMap<MountName, Mount>,
    /// The file that this was read from, if there is one.
    pub file: Option<PathBuf>,
    /// Where the lock of digests is kept.
    pub lock: PathBuf,
    /// Which bytes may use the grants of which mount. The file does not say it; until the lock was read, none may.
    pub pins: Pins,
    /// What grants may know.
    pub ambient: Ambient,
}

/// `[network]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// Name servers in place of the system's.
    pub dns: Vec<SocketAddr>,
    /// A file of certificates that are trusted beside the system's.
    pub ca: Option<PathBuf>,
}

/// One `[mounts.NAME]`.
pub struct Mount {
    /// The component's file name in the plugin directory.
    pub component: Option<String>,
    /// The base.
    pub uri: Option<String>,
    /// The grants.
    pub grants: Requested,
    /// Whether a person may be asked for what is not granted.
    pub ask: Ask,
    /// Whether its answers may be served again.
    pub cache: Cache,
    /// Whether a search looks into contents, and not only at names and descriptions.
    pub search: bool,
    /// The limits.
    pub limits: Limits,
}

impl Mount {
    /// Whether it holds anything that only the bytes may use to which it was given.
    pub fn needs_pin(&self) -> bool {
        !self.grants.is_empty()
    }

    /// The TCP ports that it may connect to: those of its grants, and where a person may be asked for an origin, those of
    /// the web.
    pub fn ports(&self) -> Vec<u16> {
        let asked: &[u16] = if self.ask == Ask::Never { &[] } else { &[80, 443] };
        [&self.grants.ports(), asked].concat()
    }
}

/// What the machine and the command line say.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The configuration file; its text.
    pub file: Option<(PathBuf, String)>,
    /// The working directory.
    pub directory: PathBuf,
    /// `--plugins`.
    pub plugins: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// Where caches go, from the environment.
    pub cache: PathBuf,
    /// Where state goes, from the environment.
    pub state: PathBuf,
}

/// Calls at once when the operator says nothing.
const CALLS: u32 = 32;

/// Memory of all calls when the operator says nothing: eight of the largest that the default limits allow, and a host that
/// fits into a container of 1 GiB.
const TOTAL_MEMORY: u64 = 512 << 20;

/// The most calls at once: each has an address space of 32 GiB set aside.
const MAX_CALLS: u64 = 1024;

/// How long a listing may take when the operator says nothing. Clients wait for it before they show anything.
const LIST_TIME: Duration = Duration::from_secs(3);

impl Config {
    /// Reads and checks the file, and fills in what it does not say.
    ///
    /// # Errors
    /// Names the file, the key's path and the cure.
    pub fn read(given: Given) -> Result<Self, String> {
        match &given.file {
            None => Self::parse(String::new(), &given),
            Some((path, text)) => Self::parse(text.clone(), &given).map_err(|why| format!("{}: {why}", path.display())),
        }
    }

    /// The TCP ports that mounts may connect to.
    pub fn ports(&self) -> Vec<u16> {
        self.mounts.values().flat_map(Mount::ports).collect()
    }

    fn parse(source: String, given: &Given) -> Result<Self, String> {
        let base = given
            .file
            .as_ref()
            .and_then(|(path, _)| path.parent())
            .map_or_else(|| given.directory.clone(), Path::to_owned);
        let mut root = Section::parse(&source)?;
        let home = given.home.clone();
        let place = &|path: PathBuf| match (path.strip_prefix("~"), &home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => base.join(path),
        };
        let plugins = root.take::<PathBuf>("plugins", "a directory")?.map(place);
        let cache = root.take::<PathBuf>("cache", "a directory")?.map_or_else(|| given.cache.clone(), place);
        let state = root.take::<PathBuf>("state", "a directory")?.map_or_else(|| given.state.clone(), place);
        let audit = match root.take::<String>("audit", "\"stderr\", \"off\" or a file")?.as_deref() {
            None => Audit::State,
            Some("stderr") => Audit::Stderr,
            Some("off") => Audit::Off,
            Some(file) => Audit::File(place(file.into())),
        };
        const WALLS: &str = "\"best-effort\", \"require\" or \"off\"";
        let wall = match root.take::<String>("wall", WALLS)?.as_deref() {
            None | Some("best-effort") => Wall::BestEffort,
            Some("require") => Wall::Require,
            Some("off") => Wall::Off,
            Some(other) => {
                return Err(root.wrong("wall", format_args!(" = {:?}: expected {WALLS}", text::excerpt(other, 80))));
            }
        };
        let calls = root.take::<u64>("calls", "a number")?.unwrap_or(CALLS.into());
        let calls = u32::try_from(calls)
            .ok()
            .filter(|calls| (1..=MAX_CALLS).contains(&u64::from(*calls)))
            .ok_or_else(|| root.wrong("calls", format_args!(" = {calls}: expected 1 to {MAX_CALLS}")))?;
        let total_memory = root
            .take::<Bytes>(
                "total-memory",
                "a size such as \"512MiB\", where MiB is 1,048,576 bytes; M and MB are 1,000,000",
            )?
            .map(|size| size.0);
        let list_time = root.take::<Span>("list-time", "a time such as \"3s\"")?.map_or(LIST_TIME, |span| span.0);
        let limits = match root.section("limits")? {
            None => Limits::default(),
            Some(section) => read_limits(section, Limits::default())?,
        };
        let watch = root.section("watch")?.map_or(Ok(Watch::default()), live::read_watch)?;
        let callers = root.section("callers")?.map_or(Ok(Rate::default()), callers::read)?;
        let tools = root.take::<bool>("tools", "true or false")?.unwrap_or(true);
        let secrets = read_secrets(&mut root)?;
        let network = match root.section("network")? {
            None => Network::default(),
            Some(section) => read_network(section, place)?,
        };
        let mut mounts = BTreeMap::new();
        for (name, section) in root.sections("mounts")? {
            let name = MountName::new(&name).map_err(|why| format!("[mounts.{}]: {why}", section.shown()))?;
            let mount = read_mount(section, &limits)?;
            mounts.insert(name, mount);
        }
        root.finish(&[])?;
        let total_memory = check_memory(total_memory, &limits, &mounts)?;
        // Half of all turns at most, so that no mount alone can keep the others waiting.
        let fair = usize::try_from(calls / 2).unwrap_or(usize::MAX).max(1);
        let mut limits = limits;
        limits.concurrency = limits.concurrency.min(fair);
        mounts.values_mut().for_each(|mount: &mut Mount| mount.limits.concurrency = mount.limits.concurrency.min(fair));

        let plugins = given
            .plugins
            .as_ref()
            .map(|path| given.directory.join(path))
            .or(plugins)
            .unwrap_or_else(|| base.join("plugins"));
        let lock = base.join(lock::FILE);
        let mut reserved = vec![plugins.clone(), cache.clone(), state.clone(), lock.clone()];
        reserved.extend(given.file.as_ref().map(|(path, _)| path.clone()));
        if let Audit::File(path) = &audit {
            reserved.push(path.clone());
        }
        let mut ambient = Ambient { base, home, reserved, ..Ambient::default() };
        // What is kept there is for the host alone.
        let files = secrets.values().filter_map(|source| match source {
            Source::File(path) => ambient.absolute(path).ok(),
            Source::Env(_) => None,
        });
        let files: Vec<PathBuf> = files.collect();
        ambient.reserved.extend(files);
        let (pins, file) = (Pins::default(), given.file.as_ref().map(|(path, _)| path.clone()));
        Ok(Self {
            plugins,
            cache,
            state,
            audit,
            wall,
            calls,
            total_memory,
            list_time,
            secrets,
            network,
            watch,
            tools,
            callers,
            limits,
            mounts,
            file,
            lock,
            pins,
            ambient,
        })
    }
}

/// The memory of all calls: at least twice what any mount may take, so that none alone can keep the others waiting.
fn check_memory(total: Option<u64>, limits: &Limits, mounts: &BTreeMap<MountName, Mount>) -> Result<u64, String> {
    let named = mounts.iter().map(|(name, mount)| (format!("mounts.{name}.limits.memory"), mount.limits.memory));
    let all = named.chain([("limits.memory".to_owned(), limits.memory)]);
    let Some((name, most)) = all.max_by_key(|(_, memory)| *memory) else { return Ok(total.unwrap_or(TOTAL_MEMORY)) };
    let needed = most.saturating_mul(2);
    match total {
        None => Ok(TOTAL_MEMORY.max(needed)),
        Some(total) if total >= needed => Ok(total),
        Some(total) => Err(format!(
            "total-memory = \"{}\": a mount gets at most half of it, and {name} is \"{}\"; lower that, or set  total-memory = \"{}\"",
            show_bytes(total),
            show_bytes(most),
            show_bytes(needed)
        )),
    }
}

fn read_secrets(root: &mut Section) -> Result<BTreeMap<String, Source>, String> {
    let Some(mut section) = root.section("secrets")? else { return Ok(BTreeMap::new()) };
    let mut secrets = BTreeMap::new();
    for name in section.keys() {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(format!(
                "secrets: \"{}\" is not the name of a secret: letters, digits, \"-\" and \"_\"",
                text::excerpt(&name, 80)
            ));
        }
        // A value in this place is most likely the secret itself, so it is not shown.
        let value = section.remove(&name).unwrap_or(toml::Value::Boolean(false));
        let source = value.try_into().map_err(|_| {
            format!("secrets.{name}: expected {{ env = \"VARIABLE\" }} or {{ file = \"FILE\" }}; the secret itself is never written here")
        })?;
        secrets.insert(name, source);
    }
    Ok(secrets)
}

fn read_network(mut section: Section, place: impl Fn(PathBuf) -> PathBuf) -> Result<Network, String> {
    const DNS: &str = "addresses of name servers such as [\"9.9.9.9\", \"127.0.0.1:5353\"]";
    let mut network = Network::default();
    for server in section.take::<Vec<String>>("dns", DNS)?.unwrap_or_default() {
        let address = server.parse().or_else(|_| server.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53)));
        network
            .dns
            .push(address.map_err(|_| format!("network.dns: {:?} is none of {DNS}", text::excerpt(&server, 80)))?);
    }
    network.ca = section.take::<PathBuf>("ca", "a file of certificates in PEM")?.map(place);
    section.finish(&[])?;
    Ok(network)
}

fn read_mount(mut section: Section, defaults: &Limits) -> Result<Mount, String> {
    let component = section.take::<String>("component", "the name of a file in the plugin directory")?;
    if let Some(file) = &component
        && (file.contains(['/', '\\', '\0']) || file.starts_with('.') || !file.ends_with(".wasm"))
    {
        return Err(section.wrong(
            "component",
            format_args!(" = {file:?}: expected the name of a .wasm file in the plugin directory, without a path"),
        ));
    }
    let uri = section.take::<String>("uri", "a URI that ends in \"/\"")?;
    if let Some(uri) = &uri {
        reference::check_base(uri).map_err(|why| section.wrong("uri", format_args!(" = {uri:?} {why}")))?;
    }
    let ask = read_ask(&mut section)?;
    let cache = live::read_cache(&mut section)?;
    if ask != Ask::Never && cache.public {
        return Err(format!(
            "{0}cache-scope = \"public\": what a person allowed for one read is not for others, and this mount asks; remove  cache-scope  or  ask  from [{1}]",
            section.path(),
            section.path().trim_end_matches('.')
        ));
    }
    let search = section.take::<bool>("search", "true or false")?.unwrap_or(false);
    let limits = match section.section("limits")? {
        None => defaults.clone(),
        Some(own) => read_limits(own, defaults.clone())?,
    };
    let mut grants = Requested::default();
    for kind in KINDS {
        if let Some(value) = section.remove(kind.name) {
            match grants.set(kind.name, value) {
                Some(Ok(())) | None => {}
                Some(Err(error)) => {
                    let why = text::excerpt(error.message(), 300);
                    return Err(
                        section.wrong(kind.name, format_args!(": {why}; expected something like  {}", kind.example))
                    );
                }
            }
        }
    }
    if let Some(kind) = grants.needs_consent().filter(|_| ask == Ask::Never) {
        return Err(format!(
            "{0}{kind}: it is asked for first, and this mount asks nobody; add  ask = true  to [{1}], or take  ask = true  from it",
            section.path(),
            section.path().trim_end_matches('.')
        ));
    }
    section.finish(&KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>())?;
    Ok(Mount { component, uri, grants, ask, cache, search, limits })
}

fn read_ask(section: &mut Section) -> Result<Ask, String> {
    const WAYS: &str = "true, false or \"persist\"";
    match section.take::<toml::Value>("ask", WAYS)? {
        None | Some(toml::Value::Boolean(false)) => Ok(Ask::Never),
        Some(toml::Value::Boolean(true)) => Ok(Ask::Once),
        Some(toml::Value::String(word)) if word == "persist" => Ok(Ask::Persist),
        Some(other) => {
            Err(section.wrong("ask", format_args!(" = {}: expected {WAYS}", text::excerpt(&other.to_string(), 80))))
        }
    }
}

fn read_limits(mut section: Section, mut limits: Limits) -> Result<Limits, String> {
    const TIME: &str = "a time such as \"5s\" or \"500ms\"";
    const PART: &str = "a part of a processor such as \"50%\" or \"200%\"";
    const SIZE: &str = "a size such as \"64MiB\", where MiB is 1,048,576 bytes; M and MB are 1,000,000";
    if let Some(Percent(value)) = section.take("cpu", PART)? {
        if !(1..=limits::MAX_CPU).contains(&value) {
            return Err(section.wrong("cpu", format_args!(": expected \"1%\" to \"{}%\"", limits::MAX_CPU)));
        }
        limits.cpu = value;
    }
    let mut time = |key: &str, max: Duration, into: &mut Duration| -> Result<(), String> {
        if let Some(Span(value)) = section.take(key, TIME)? {
            if value < Duration::from_millis(1) || value > max {
                return Err(section.wrong(key, format_args!(": expected 1ms to {}", humantime::format_duration(max))));
            }
            *into = value;
        }
        Ok(())
    };
    time("time", limits::MAX_TIME, &mut limits.time)?;
    time("queue", limits::MAX_TIME, &mut limits.queue)?;
    let mut size = |key: &str, min: u64, max: u64, into: &mut u64| -> Result<(), String> {
        if let Some(Bytes(value)) = section.take(key, SIZE)? {
            if !(min..=max).contains(&value) {
                return Err(section.wrong(key, format_args!(": expected {} to {}", show_bytes(min), show_bytes(max))));
            }
            *into = value;
        }
        Ok(())
    };
    // A page is 64 KiB, and a random number has 8 bytes.
    size("memory", 64 << 10, limits::MAX_MEMORY, &mut limits.memory)?;
    size("result", 1 << 10, limits::MAX_RESULT, &mut limits.result)?;
    size("random", 8, limits::MAX_RANDOM, &mut limits.random)?;
    size("component", 1 << 10, 512 << 20, &mut limits.component)?;
    size("upload", 0, limits::MAX_TRAFFIC, &mut limits.traffic.upload)?;
    size("download", 0, limits::MAX_TRAFFIC, &mut limits.traffic.download)?;
    let mut output = limits.output as u64;
    size("output", 0, 16 << 20, &mut output)?;
    limits.output = usize::try_from(output).unwrap_or(usize::MAX);
    let mut number = |key: &str, min: u64, max: u64, into: &mut u64| -> Result<(), String> {
        if let Some(value) = section.take::<u64>(key, "a number")? {
            if !(min..=max).contains(&value) {
                return Err(section.wrong(key, format_args!(" = {value}: expected {min} to {max}")));
            }
            *into = value;
        }
        Ok(())
    };
    number("fuel", 1, limits::MAX_FUEL, &mut limits.fuel)?;
    number("resources", 1, 10_000_000, &mut limits.resources)?;
    number("requests", 1, limits::MAX_REQUESTS, &mut limits.traffic.requests)?;
    let mut count = |key: &str, min: u64, max: u64, into: &mut usize| -> Result<(), String> {
        let mut value = *into as u64;
        number(key, min, max, &mut value)?;
        *into = usize::try_from(value).unwrap_or(usize::MAX);
        Ok(())
    };
    count("handles", 8, limits::MAX_HANDLES, &mut limits.handles)?;
    count("concurrency", 1, MAX_CALLS, &mut limits.concurrency)?;
    count("connections", 1, limits::MAX_CONNECTIONS, &mut limits.traffic.connections)?;
    section.finish(&[])?;
    Ok(limits)
}

#[cfg(test)]
mod tests;
