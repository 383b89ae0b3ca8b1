//! Many components: what lies in the plugin directory is served or refused all the same, whether its code comes from the
//! compiler or from the cache, and what is the same component is loaded once.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Site, Stdio, places};

/// How long compiling a few components may take where the machine has much else to do.
const COMPILED: Duration = Duration::from_secs(120);

/// Mounts of each component.
const MOUNTS: usize = 8;

/// Resources of all mounts of three components, three of each.
const SERVED: usize = 3 * MOUNTS * 3;

/// Files that are not served: three texts, and what does not compile.
const REFUSED: usize = 4;

/// What the log says of one.
const NOT_SERVED: &str = "is not served";

/// What a start came to.
#[derive(Debug, PartialEq)]
struct Start {
    /// What is listed.
    uris: Vec<String>,
    /// What the log says of what is not served.
    refused: Vec<String>,
    /// Pieces of compiled code that are mapped.
    codes: usize,
}

/// A component of a digest of its own: the same but for a custom section at its end.
fn component(number: u8) -> Vec<u8> {
    let mut bytes = fs::read(places::component("guest_sized")).expect("a readable component");
    bytes.extend([0, 3, 1, b'n', number]);
    bytes
}

/// One that looks like a provider from outside, and that no compiler takes: a section of its module is of no kind.
fn invalid() -> Vec<u8> {
    let mut bytes = component(0);
    let module = bytes.windows(8).position(|bytes| bytes == b"\0asm\x01\0\0\0").expect("a module");
    bytes[module + 8] = 0x7f;
    bytes
}

/// Starts, waits until everything is served or refused, and gives what it came to, with the log.
fn start(site: &Site) -> (Start, String) {
    let mut client: Client<Stdio> = site.stdio(Era::Modern);
    let by = Instant::now() + COMPILED;
    let mut uris = client.uris();
    let is_told = |client: &mut Client<Stdio>| client.wire().process.stderr().matches(NOT_SERVED).count() == REFUSED;
    while (uris.len() < SERVED || !is_told(&mut client)) && Instant::now() < by {
        std::thread::sleep(Duration::from_millis(100));
        uris = client.uris();
    }
    let of_code = |line: &&str| line.contains("r-xp") && line.contains(".cwasm");
    let maps = fs::read_to_string(format!("/proc/{}/maps", client.wire().process.id())).expect("it runs");
    let codes = maps.lines().filter(of_code).count();
    let log = client.close().stderr;
    let said = |line: &str| line.split_once("WARN ").map(|(_, said)| said.to_owned());
    let mut refused: Vec<String> = log.lines().filter(|line| line.contains(NOT_SERVED)).filter_map(said).collect();
    refused.sort();
    (Start { uris, refused, codes }, log)
}

#[test]
fn what_is_served_is_the_same_from_the_compiler_and_from_the_cache() {
    let site = Site::new();
    for number in 0..3 {
        for copy in 0..MOUNTS {
            site.drop_in(&format!("m{number}-{copy}.wasm"), component(number));
        }
        site.drop_in(&format!("text{number}.wasm"), "no component");
    }
    site.drop_in("invalid.wasm", invalid());

    let (compiled, _) = start(&site);
    assert_eq!(compiled.uris.len(), SERVED);
    assert_eq!(compiled.refused.len(), REFUSED, "{:?}", compiled.refused);
    assert_eq!(compiled.codes, 3, "each component is loaded once");
    let (cached, log) = start(&site);
    assert_eq!(cached, compiled);
    assert!(!log.contains("damaged") && !log.contains("compiled in"), "{log}");

    // Below the cache, this configuration has a directory of its own.
    let entries = |path: PathBuf| fs::read_dir(path).expect("the cache").map(|entry| entry.expect("an entry").path());
    let own = entries(site.path("cache/belljar")).find(|path| path.is_dir()).expect("a directory of its own");
    let code = entries(own);
    let code = code.into_iter().find(|path| path.extension().is_some_and(|end| end == "cwasm")).expect("compiled code");
    let mut bytes = fs::read(&code).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&code, bytes).expect("writable");
    let (mended, log) = start(&site);
    assert_eq!(mended, compiled, "what is damaged is compiled again, for all that are made of it");
    assert_eq!(log.matches("is damaged or was not made by this belljar").count(), 1, "{log}");
    let (again, log) = start(&site);
    assert_eq!(again, compiled);
    assert!(!log.contains("damaged") && !log.contains("compiled in"), "{log}");
}
