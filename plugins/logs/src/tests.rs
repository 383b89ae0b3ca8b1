//! Tests of the provider over temporary directories. This file has the fixture; each module tests one area.

mod calls;
mod changes;
mod choosing;
mod listing;
mod reading;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::SystemTime;

use belljar_guest::Body;

use super::*;

/// A provider over a single granted directory; its clock shows noon.
struct Fixture {
    dir: tempfile::TempDir,
    logs: Logs,
}

const NOON: &str = "2026-11-21T12:00:00Z";

impl Fixture {
    fn new() -> Self {
        Fixture::with("", None, None)
    }

    fn with(ignore: &str, lines: Option<&str>, zone: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(vec![("/logs".to_owned(), dir.path().to_owned())], ignore).unwrap();
        Fixture { logs: Logs::over(store, lines, zone, NOON.parse().unwrap()).unwrap(), dir }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        // As if written before: a last line without a line end is left out of a file that was just written.
        let before = SystemTime::now() - Duration::from_secs(10);
        fs::File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
    }

    fn append(&self, name: &str, contents: &str) {
        let mut file = fs::File::options().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(contents.as_bytes()).unwrap();
    }

    fn write_packed(&self, name: &str, contents: impl AsRef<[u8]>) {
        self.write(name, packed(contents.as_ref()));
    }

    /// Sets the modification time of a file.
    fn touch(&self, name: &str, time: &str) {
        let time: Timestamp = time.parse().unwrap();
        let file = fs::File::options().write(true).open(self.path(name)).unwrap();
        file.set_modified(SystemTime::from(time)).unwrap();
    }

    fn text(&self, reference: &str) -> String {
        let mut reading = self.logs.read(reference).unwrap_or_else(|error| panic!("{reference}: {error}"));
        assert_eq!((reading.contents.len(), reading.fresh_for), (1, None));
        match reading.contents.remove(0).body {
            Body::Text(text) => text,
            Body::Blob(_) => panic!("a blob"),
        }
    }

    fn lines(&self, reference: &str) -> Vec<String> {
        self.text(reference).lines().map(str::to_owned).collect()
    }

    /// The names of the files from which the lines of a read come.
    fn files(&self, reference: &str) -> Vec<String> {
        let reading = self.logs.read(reference).unwrap();
        let (_, json) = &reading.contents[0].meta[0];
        let about: serde_json::Value = serde_json::from_str(json).unwrap();
        about["files"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    fn listed(&self) -> Vec<String> {
        let page = self.logs.list_resources(None).unwrap();
        page.resources.into_iter().map(|resource| resource.reference).collect()
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// `count` lines with consecutive numbers from `first`.
fn numbered(first: usize, count: usize) -> String {
    (first..first + count).map(|n| format!("line {n}\n")).collect()
}

/// An entry `seconds` after ten o'clock on the 21st.
fn entry(seconds: u64, text: &str) -> String {
    let ten: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    format!("{} {text}\n", ten + Duration::from_secs(seconds))
}
