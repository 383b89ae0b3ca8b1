//! The operator's files: `config` and `grants`. They are not hostile. But they are often wrong, and sometimes copied from
//! an untrusted page.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use belljar::config::{Audit, Config, ConfigInput};
use belljar::grants::{Ambient, GrantConfig, KINDS};
use belljar::model::{Limits, limits};
use tempfile::TempDir;
use toml::{Table, Value};

use crate::{input, oracle};

/// An accepted configuration has all values within their bounds, and only absolute paths. An error message is plain text
/// and names a key of the file, or the line.
pub(super) fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let input = ConfigInput {
        file: Some(("/srv/jar/belljar.toml".into(), text.to_owned())),
        directory: "/work".into(),
        plugins: None,
        home: Some("/srv/op".into()),
        cache: "/var/cache/belljar".into(),
        state: "/var/lib/belljar".into(),
    };
    match Config::read(input) {
        Ok(config) => assert_accepted(&config),
        Err(why) => {
            let why = why.to_string();
            why.lines().for_each(|line| oracle::assert_plain(line, "a refusal"));
            let rest = why.strip_prefix("/srv/jar/belljar.toml: ").unwrap_or_else(|| panic!("no file in {why:?}"));
            match text.parse::<Table>() {
                Err(_) => assert!(rest.contains("line "), "{why:?} names no line"),
                Ok(table) => {
                    let mut keys = Vec::new();
                    collect(&table, &mut keys);
                    assert!(keys.iter().any(|key| rest.contains(key.as_str())), "{why:?} names none of {keys:?}");
                }
            }
        }
    }
}

/// Collects every key of a file in the form that messages show.
fn collect(table: &Table, keys: &mut Vec<String>) {
    for (key, value) in table {
        keys.push(belljar::model::text::excerpt(key, 80));
        if let Value::Table(inner) = value {
            collect(inner, keys);
        }
    }
}

/// Checks the values and paths of an accepted configuration.
fn assert_accepted(config: &Config) {
    assert!((1..=1024).contains(&config.calls));
    let fair = usize::try_from(config.calls / 2).unwrap().max(1);
    for limits in config.mounts.values().map(|mount| &mount.limits).chain([&config.limits]) {
        assert_within_bounds(limits);
        assert!((1..=fair).contains(&limits.concurrency), "{limits:?}");
    }
    let mut places = vec![&config.plugins, &config.cache, &config.state];
    if let Audit::File(file) = &config.audit {
        places.push(file);
    }
    for place in places {
        assert!(place.is_absolute(), "{}", place.display());
        assert!(config.ambient.reserved.contains(place), "{} may be granted", place.display());
    }
    for (name, mount) in &config.mounts {
        assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{name}");
        let file = mount.component.as_deref().unwrap_or("x.wasm");
        let plain = Path::new(file).file_name().is_some_and(|last| last == file);
        assert!(plain && file.ends_with(".wasm") && !file.starts_with('.'), "{file:?}");
        if let Some(uri) = &mount.uri {
            assert!(uri.ends_with(['/', ':']) && uri.is_ascii(), "{uri:?}");
        }
    }
}

/// Checks that limits are within their bounds.
fn assert_within_bounds(checked: &Limits) {
    let time = Duration::from_millis(1)..=limits::MAX_TIME;
    assert!(time.contains(&checked.time) && time.contains(&checked.queue), "{checked:?}");
    assert!((1..=limits::MAX_FUEL).contains(&checked.fuel), "{checked:?}");
    assert!((64 << 10..=limits::MAX_MEMORY).contains(&checked.memory), "{checked:?}");
    assert!((1 << 10..=limits::MAX_RESULT).contains(&checked.result), "{checked:?}");
    assert!((8..=limits::MAX_RANDOM).contains(&checked.random), "{checked:?}");
    assert!((8..=limits::MAX_HANDLES).contains(&(checked.handles as u64)), "{checked:?}");
    assert!(checked.output <= 16 << 20 && checked.resources >= 1 && checked.component >= 1 << 10, "{checked:?}");
}

/// A directory with every kind of file that the path of a grant can name.
struct Place {
    root: TempDir,
    ambient: Ambient,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let root = TempDir::with_prefix("belljar-fuzz-").expect("a temporary directory");
    let at = |path: &str| root.path().join(path);
    for directory in ["jar/data/inner", "jar/state", "jar/cache", "jar/real/plugins", "jar/op/x", "out"] {
        fs::create_dir_all(at(directory)).expect("a writable place");
    }
    fs::write(at("jar/file"), "x").expect("a writable place");
    fs::write(at("jar/belljar.toml"), "").expect("a writable place");
    for (link, to) in [("link", "data"), ("outside", "../out"), ("plugins", "real/plugins"), ("round", "round")] {
        symlink(to, at("jar").join(link)).expect("a writable place");
    }
    let jar = at("jar");
    // Operators may write such paths through a link or with `..`.
    let reserved = ["plugins", "state", "data/../cache", "belljar.toml", "belljar.lock"].map(|own| jar.join(own));
    let ambient =
        Ambient { base: jar.clone(), home: Some(jar.join("op")), reserved: reserved.into(), ..Ambient::default() };
    Place { root, ambient }
});

/// The grants of one mount. Accepted grants of directories must not contain belljar's own files, or be below them.
pub(super) fn grants(bytes: &[u8]) {
    let Ok(mut table) = input::text(bytes).parse::<Table>() else { return };
    let mut requested = GrantConfig::default();
    let (mut fs, mut env, mut http) = (BTreeMap::new(), BTreeMap::new(), 0);
    for kind in KINDS {
        let Some(value) = table.remove(kind.name) else { continue };
        match requested.set(kind.name, value.clone()) {
            Some(Ok(())) => {}
            Some(Err(_)) => return,
            None => panic!("{} is a kind of grant without a value", kind.name),
        }
        match kind.name {
            "fs" => fs = strings(&value),
            "env" => env = strings(&value),
            "http" => http = value.as_array().map_or(0, Vec::len),
            _ => {}
        }
    }
    let described = requested.describe();
    let named: Vec<_> = described.iter().filter(|(kind, _)| *kind == "env").map(|(_, line)| line).collect();
    assert_eq!(named, env.keys().collect::<Vec<_>>(), "the description of a grant names each variable and no value");
    match requested.configure(&PLACE.ambient) {
        Ok(held) => {
            assert_eq!(held.opens_files(), !fs.is_empty());
            assert_eq!(held.kinds().contains(&"env"), !env.is_empty());
            assert_eq!(held.kinds().contains(&"http"), http > 0);
            for (guest, host) in &fs {
                granted(guest, host);
            }
            for (name, value) in &env {
                assert!(!name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'), "{name:?}");
            }
        }
        Err(why) => {
            let why = why.to_string();
            oracle::assert_plain(&why, "a refusal");
            assert!(KINDS.iter().any(|kind| why.starts_with(&format!("{}: ", kind.name))), "{why:?} names no grant");
        }
    }
}

fn strings(value: &Value) -> BTreeMap<String, String> {
    let table = value.as_table().into_iter().flatten();
    // The value may be a table with the path and the consent setting.
    let plain = |value: &Value| value.get("path").unwrap_or(value).as_str().map(str::to_owned);
    table.filter_map(|(key, value)| Some((key.clone(), plain(value)?))).collect()
}

fn granted(guest: &str, host: &str) {
    oracle::assert_plain(guest, "a guest path");
    assert!(guest.starts_with('/') && !guest.split('/').any(|s| s == "." || s == ".."), "{guest:?}");
    let ambient = &PLACE.ambient;
    let path = match host.strip_prefix("~") {
        Some(below) if below.is_empty() || below.starts_with('/') => {
            ambient.home.as_ref().expect("set above").join(below.trim_start_matches('/'))
        }
        _ => ambient.base.join(host),
    };
    let real = fs::canonicalize(&path).unwrap_or_else(|why| panic!("{host:?} was granted, and is not there: {why}"));
    assert!(real.is_dir(), "{}", real.display());
    assert!(real != Path::new("/"), "the whole file system");
    for kernel in ["/proc", "/sys", "/dev"] {
        assert!(!real.starts_with(kernel), "{}", real.display());
    }
    for own in &ambient.reserved {
        let own: PathBuf = fs::canonicalize(own).unwrap_or_else(|_| own.clone());
        let shown = own.strip_prefix(PLACE.root.path()).unwrap_or(&own).display();
        assert!(!own.starts_with(&real) && !real.starts_with(&own), "{host:?} covers belljar's own {shown}");
    }
}
