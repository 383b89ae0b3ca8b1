//! A plugin directory with many components. belljar serves and refuses the same mounts, whether the compiled code comes from
//! the compiler or from the cache. Its own process maps no code of mounts in workers, and other code once for all mounts that
//! share it. The tests start the real program.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use belljar_tests::{Client, Era, Site, Stdio, places, wait_until_within};

use crate::support::component::hollow;

/// The longest time to compile a few components, on a busy machine.
const COMPILED: Duration = Duration::from_secs(120);

/// The number of mounts of each component.
const MOUNTS: usize = 8;

/// The number of listed resources: three components, [`MOUNTS`] mounts of each, three resources of each mount.
const SERVED: usize = 3 * MOUNTS * 3;

/// The number of refused files: three texts, a component that does not compile, and one that does not fit the interface.
const REFUSED: usize = 5;

/// The words in the log about a refused file.
const NOT_SERVED: &str = "is not served";

/// The result of a start.
#[derive(Clone, Debug, PartialEq)]
struct Start {
    /// The listed URIs.
    uris: Vec<String>,
    /// The lines of the log about refused files.
    refused: Vec<String>,
    /// The number of files of compiled code that belljar's own process has mapped.
    codes: usize,
}

/// A component with a different digest for each number: the same bytes, and a further custom section with the number.
fn component(number: u8) -> Vec<u8> {
    let mut bytes = fs::read(places::component("guest_sized")).expect("read the component");
    bytes.extend([0, 3, 1, b'n', number]);
    bytes
}

/// A component that has the exports of a provider and does not compile: its module has a section of an unknown kind.
fn invalid() -> Vec<u8> {
    let mut bytes = component(0);
    let module =
        bytes.windows(8).position(|bytes| bytes == b"\0asm\x01\0\0\0").expect("the component contains a module");
    bytes[module + 8] = 0x7f;
    bytes
}

/// Starts belljar, waits until every file is served or refused, and returns the result with the log.
fn start(site: &Site) -> (Start, String) {
    let mut client: Client<Stdio> = site.stdio(Era::Stateless);
    let uris = wait_until_within(COMPILED, "every resource and every refusal", || {
        let uris = client.uris();
        let refusals = client.wire().process.stderr().matches(NOT_SERVED).count();
        let is_all = uris.len() >= SERVED && refusals == REFUSED;
        if is_all { Ok(uris) } else { Err(format!("{} resources, {refusals} refusals", uris.len())) }
    });
    let of_code = |line: &&str| line.contains("r-xp") && line.contains(".cwasm");
    let maps = fs::read_to_string(format!("/proc/{}/maps", client.wire().process.id())).expect("belljar is running");
    let codes = maps.lines().filter(of_code).count();
    let log = client.close().stderr;
    let said = |line: &str| line.split_once("WARN ").map(|(_, said)| said.to_owned());
    let mut refused: Vec<String> = log.lines().filter(|line| line.contains(NOT_SERVED)).filter_map(said).collect();
    refused.sort();
    (Start { uris, refused, codes }, log)
}

#[test]
fn the_compiler_and_the_cache_give_the_same_catalog() {
    let site = Site::new();
    for number in 0..3 {
        for copy in 0..MOUNTS {
            site.drop_in(&format!("m{number}-{copy}.wasm"), component(number));
        }
        site.drop_in(&format!("text{number}.wasm"), "no component");
    }
    site.drop_in("invalid.wasm", invalid());
    site.drop_in("unfit.wasm", hollow());

    let (compiled, _) = start(&site);
    assert_eq!(compiled.uris.len(), SERVED);
    assert_eq!(compiled.refused.len(), REFUSED, "{:?}", compiled.refused);
    assert!(compiled.refused.iter().any(|line| line.contains("does not fit the interface")), "{:?}", compiled.refused);
    assert_eq!(compiled.codes, 0, "all mounts run in workers");
    let (cached, log) = start(&site);
    assert_eq!(cached, compiled);
    assert!(!log.contains("damaged") && !log.contains("compiled in"), "{log}");

    // In the cache, each configuration of belljar has its own directory. This site has one configuration.
    let entries = |path: PathBuf| {
        fs::read_dir(path)
            .expect("read a directory of the cache")
            .map(|entry| entry.expect("read an entry of the cache").path())
    };
    let directory =
        entries(site.path("cache/belljar")).find(|path| path.is_dir()).expect("a directory of compiled code");
    let code = entries(directory);
    let code = code.into_iter().find(|path| path.extension().is_some_and(|end| end == "cwasm")).expect("compiled code");
    let mut bytes = fs::read(&code).expect("read the compiled code");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&code, bytes).expect("write the compiled code");
    let (mended, log) = start(&site);
    assert_eq!(mended, compiled, "the damaged code is compiled again, for all its mounts");
    assert_eq!(log.matches("is damaged or was not made by this belljar").count(), 1, "{log}");
    let (again, log) = start(&site);
    assert_eq!(again, compiled);
    assert!(!log.contains("damaged") && !log.contains("compiled in"), "{log}");

    // One mount runs in belljar's own process, and then all.
    for (config, codes) in [("[mounts.m0-0]\nisolation = \"none\"\n", 1), ("isolation = \"none\"\n", 3)] {
        site.config(config);
        let (inside, log) = start(&site);
        assert_eq!(inside, Start { codes, ..compiled.clone() }, "{config}");
        assert!(!log.contains("compiled in"), "{log}");
    }
}
