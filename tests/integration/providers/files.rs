//! `plugins/files` in the real server, over fifty thousand files. Each file is listed once, memory does not grow with
//! the number of files, and the first page costs a fraction of all pages.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, UNIX_EPOCH};

use belljar_tests::{Client, Site, Stdio};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{serve, site};

const BASE: &str = "belljar://files/";

/// Names with characters that are special in a URI, in a template, in a shell, or to a careless program.
const STRANGE: [&str; 28] = [
    "with space.txt",
    " leading",
    "trailing ",
    "percent%.txt",
    "percent%20.txt",
    "%2e%2e",
    "%",
    "hash#tag.md",
    "what?.txt",
    "a&b=c",
    "a;b",
    "a+b",
    "braces{x}.txt",
    "square[0].txt",
    "colon:first",
    "quote\"s'",
    "back\\slash",
    "pipe|caret^",
    "tilde~",
    "dots...",
    "a..b",
    "gr\u{fc}n.md",
    "\u{65e5}\u{672c}\u{8a9e}.txt",
    "\u{1f600}.md",
    "e\u{301}.txt",
    "\u{e9}.txt",
    "<tag>.html",
    "CON",
];

/// Creates the tree, and returns the paths of all files: one very large directory, many small ones, and a very deep one.
fn create_tree(root: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut directory = |path: String, names: &mut dyn Iterator<Item = String>| {
        fs::create_dir_all(root.join(&path)).unwrap();
        for name in names {
            let file = if path.is_empty() { name } else { format!("{path}/{name}") };
            fs::write(root.join(&file), &file).unwrap();
            all.insert(file);
        }
    };
    directory("large".to_owned(), &mut (0..30_000).map(|n| format!("entry {n}.txt")));
    for n in 0..200 {
        directory(format!("wide/{n}/sub"), &mut (0..100).map(|n| format!("{n}.md")));
    }
    for depth in 1..=100 {
        directory(format!("deep{}", "/d".repeat(depth)), &mut (0..5).map(|n| n.to_string()));
    }
    directory(String::new(), &mut STRANGE.into_iter().map(str::to_owned));
    directory("strange #1?/50%".to_owned(), &mut STRANGE.into_iter().map(str::to_owned));
    // A file, and directories that sort before and after it.
    directory("order".to_owned(), &mut ["a", "a.b", "a-b", "a0", "b"].into_iter().map(str::to_owned));
    directory("order/a!".to_owned(), &mut ["x"].into_iter().map(str::to_owned));
    directory("order/a_".to_owned(), &mut ["x"].into_iter().map(str::to_owned));
    // Files with unusual modification times.
    directory("times".to_owned(), &mut ["1901", "9999", "now"].into_iter().map(str::to_owned));
    for (name, time) in [
        ("1901", UNIX_EPOCH - Duration::from_secs(2_147_000_000)),
        ("9999", UNIX_EPOCH + Duration::from_secs(253_402_300_000)),
    ] {
        let file = fs::File::options().write(true).open(root.join("times").join(name)).unwrap();
        // Some file systems do not support such times.
        file.set_modified(time).ok();
    }
    // These files are not listed, and must not affect the others: hidden, not UTF-8, or too long for a URI.
    fs::create_dir_all(root.join("empty/empty")).unwrap();
    fs::write(root.join(".hidden"), "x").unwrap();
    fs::write(root.join(OsStr::from_bytes(b"times/no\xffutf-8")), "x").unwrap();
    let long: PathBuf = (0..10).map(|_| "l".repeat(240)).collect();
    fs::create_dir_all(root.join(&long)).unwrap();
    fs::write(root.join(long).join("too-long"), "x").unwrap();
    all
}

/// The tree and the paths of its files. Dropping it removes the tree.
struct Tree {
    root: TempDir,
    files: BTreeSet<String>,
}

/// A site with the tree. Tests that run at the same time share one tree, because its creation takes long.
fn site_with_tree() -> (Site, Arc<Tree>) {
    static SHARED: Mutex<Weak<Tree>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    let tree = shared.upgrade().unwrap_or_else(|| {
        let root = TempDir::new().unwrap();
        let files = create_tree(root.path());
        Arc::new(Tree { root, files })
    });
    *shared = Arc::downgrade(&tree);
    (site(&format!("[mounts.files]\nfs = {{ \"/\" = {:?} }}\n# files.wasm\n", tree.root.path())), tree)
}

/// Decodes the percent-encoding once.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).unwrap().to_owned();
                (u8::from_str_radix(&digits, 16).unwrap(), tail)
            }
            _ => (*first, tail),
        };
        bytes.push(byte);
        rest = tail;
    }
    String::from_utf8(bytes).unwrap()
}

/// Fetches all pages. Returns the paths in order.
fn fetch_all(client: &mut Client<Stdio>) -> Vec<String> {
    let pages = client.pages("resources/list", "resources");
    // A client that stops after 64 pages must have seen the whole list.
    assert!(pages.len() < 64, "{} pages", pages.len());
    let uris = pages.concat().into_iter().map(|item| item["uri"].as_str().unwrap().to_owned());
    uris.filter_map(|uri| uri.strip_prefix(BASE).map(decoded)).collect()
}

#[test]
fn fifty_thousand_files_are_listed_in_order_with_constant_memory() {
    let (site, tree) = site_with_tree();
    let files = &tree.files;
    assert!(files.len() > 50_000, "{} files", files.len());
    let mut client = serve(&site);
    let start = client.wire().process.memory();

    let first = fetch_all(&mut client);
    let seen: BTreeSet<&String> = first.iter().collect();
    let missing: Vec<_> = files.iter().filter(|file| !seen.contains(file)).take(5).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
    let unknown: Vec<_> = first.iter().filter(|file| !files.contains(*file)).take(5).collect();
    assert!(unknown.is_empty(), "not in the tree: {unknown:?}");
    assert_eq!(first.len(), files.len(), "some files are listed twice");

    // The memory may grow by one page of thousands of entries, but not by the whole list.
    let peak = client.wire().process.peak_memory() - start;
    assert!(peak < 160 << 20, "the memory grew by {} MiB during one list", peak >> 20);
    assert!(fetch_all(&mut client) == first, "two lists differ");
    let after_second = client.wire().process.memory();
    assert!(fetch_all(&mut client) == first, "two lists differ");
    let after_third = client.wire().process.memory();
    assert!(
        after_third < after_second + (16 << 20),
        "from {} to {} MiB during one more list",
        after_second >> 20,
        after_third >> 20
    );
    assert!(client.close().status.success());
}

/// The fuel in the record shows how much of the tree the provider read. Fuel does not depend on the load of the machine.
#[test]
fn the_first_page_costs_a_fraction_of_all_pages() {
    let (site, _tree) = site_with_tree();
    let mut client = serve(&site);
    client.request("resources/list", serde_json::json!({})).unwrap();
    client.close();
    let fuel = |records: &[Value]| -> u64 {
        let of_list =
            records.iter().filter(|record| record["mount"] == "files" && record["operation"] == "list-resources");
        of_list.map(|record| record["usage"]["fuel"].as_u64().unwrap()).sum()
    };
    let first = fuel(&site.audit());
    let mut client = serve(&site);
    fetch_all(&mut client);
    client.close();
    let all = fuel(&site.audit()) - first;
    assert!(first > 0 && first * 8 < all, "the first page took {first} fuel, all pages {all}");
}

/// A read of each listed name must give the contents of its file.
#[test]
fn every_listed_name_can_be_read() {
    let (site, _tree) = site_with_tree();
    let mut client = serve(&site);
    let uris = client.uris();
    let strange = uris.iter().filter(|uri| {
        let path = uri.strip_prefix(BASE).map(decoded).unwrap_or_default();
        !path.contains('/') || path.starts_with("strange") || path.starts_with("order")
    });
    let deepest = uris.iter().max_by_key(|uri| uri.matches('/').count()).unwrap();
    let some = uris.iter().step_by(997);
    let mut read = 0;
    for uri in strange.chain([deepest]).chain(some).filter(|uri| uri.starts_with(BASE)) {
        let result = client.read(uri).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(result["contents"][0]["uri"], *uri);
        assert_eq!(result["contents"][0]["text"], decoded(&uri[BASE.len()..]), "{uri}");
        read += 1;
    }
    assert!(read > 2 * STRANGE.len() + 50, "{read}");
    assert_eq!(deepest.matches("/d").count(), 101, "{deepest}");
}

/// A file of any size can be read, and memory does not grow with it.
#[test]
fn a_file_over_the_limit_gives_its_first_part_and_with_a_higher_limit_all_of_it() {
    let config =
        |limits: &str| format!("[mounts.files]\nfs = {{ \"/\" = \"data\" }}\nlimits = {{ {limits} }}\n# files.wasm\n");
    let site_with_limits = |limits: &str| {
        let site = site(&config(limits));
        for (name, size) in [("data/large.bin", 9 << 20), ("data/sparse", 10 << 30)] {
            let path = site.write(name, "");
            fs::File::options().write(true).open(path).unwrap().set_len(size).unwrap();
        }
        site
    };
    let site = site_with_limits("");
    let mut client = serve(&site);
    for (name, total) in [("large.bin", 9u64 << 20), ("sparse", 10 << 30)] {
        let first = client.read(&format!("belljar://files/{name}")).unwrap();
        let part = &first["contents"][0]["_meta"]["dev.belljar/part"];
        let read = first["contents"][0]["text"].as_str().unwrap().len();
        assert!((8_000_000..=8 << 20).contains(&read), "{name}: {read}");
        assert_eq!(part["total"], total, "{name}");
        assert_eq!(part["next"], format!("belljar://files/{name}?bytes={read}-"));
    }
    let before = client.wire().process.peak_memory();
    let last = client.text(&format!("belljar://files/sparse?bytes={}-", (10u64 << 30) - 5));
    assert_eq!(last.len(), 5);
    assert!(client.wire().process.peak_memory() < before + (8 << 20));
    assert_eq!(client.uris().len(), 3);

    let site = site_with_limits("result = \"16MiB\"");
    // Zero bytes are valid UTF-8, so they are text.
    assert_eq!(serve(&site).text("belljar://files/large.bin").len(), 9 << 20);
}
