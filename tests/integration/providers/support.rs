//! Helpers for tests of providers: sites with one provider, the recorded usage of its calls, and other programs.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use belljar_tests::{Site, places};
use serde_json::Value;

use crate::support::patient;

/// A site with this provider, mounted under its name with the configuration lines `config`. All tests share the compiled
/// code of the provider.
pub(crate) fn site(provider: &str, config: &str) -> Site {
    let mut site = Site::new();
    site.mount(provider);
    site.config(&format!("audit = \"audit.jsonl\"\n{}", patient(&format!("[mounts.{provider}]\n{config}\n"))));
    site.share(shared(provider));
    site
}

/// Like [`site`], with a grant of the directory `data`. `more` has the configuration lines after the grant.
pub(crate) fn over_data(provider: &str, more: &str) -> Site {
    let site = site(provider, &format!("fs = {{ \"/data\" = \"data\" }}\n{more}"));
    std::fs::create_dir_all(site.path("data")).unwrap();
    site
}

/// The directory with compiled code that all tests share. It has the code of this provider: the first call compiles it.
pub(crate) fn shared(provider: &str) -> &'static Path {
    static COMPILED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let shared = crate::support::shared();
    let mut compiled = COMPILED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !compiled.iter().any(|name| name == provider) {
        Site::compile_more(shared, &[provider]);
        compiled.push(provider.to_owned());
    }
    shared
}

/// True if this machine lacks the tools that build the component. `cargo xtask test` reports this.
pub(crate) fn lacks_build_tools() -> bool {
    places::lacks("languages")
}

/// Copies the fixtures of a provider into `data`.
pub(crate) fn fixtures(site: &Site, provider: &str) {
    for entry in std::fs::read_dir(places::repository().join("plugins").join(provider).join("fixtures")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, site.path("data").join(path.file_name().unwrap())).unwrap();
    }
}

/// The usage of the last read of this reference, from the audit record.
pub(crate) fn usage(site: &Site, reference: &str) -> Value {
    let is_read = |record: &Value| record["operation"] == "read" && record["reference"] == reference;
    site.await_record(&format!("a read of {reference}"), is_read)["usage"].take()
}

/// The fuel of the last read of this reference.
pub(crate) fn fuel(site: &Site, reference: &str) -> u64 {
    usage(site, reference)["fuel"].as_u64().unwrap()
}

/// Runs a program with this input, and returns its output.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Vec<u8> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().ok();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Creates an empty directory for a test. It is below the build directory, which has space for large files.
pub(crate) fn empty_directory(name: &str) -> PathBuf {
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::remove_dir_all(&empty).ok();
    std::fs::create_dir_all(&empty).unwrap();
    empty
}

/// The text of a reading as JSON.
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
