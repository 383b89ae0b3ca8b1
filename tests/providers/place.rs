//! Where these tests run: a site with one provider, and what its calls cost by the host's own record.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use belljar_tests::{Site, places};
use serde_json::Value;

/// A site with this provider mounted under its own name, `config` in its table. Compiled code is kept for all tests of it.
pub(crate) fn site(provider: &str, config: &str) -> Site {
    let mut site = Site::new();
    site.mount(provider);
    site.config(&format!("audit = \"audit.jsonl\"\n[mounts.{provider}]\n{config}\n"));
    site.share(&shared(provider));
    site
}

/// The same with a directory `data` that it is granted; `more` follows the grant.
pub(crate) fn over_data(provider: &str, more: &str) -> Site {
    let site = site(provider, &format!("fs = {{ \"/data\" = \"data\" }}\n{more}"));
    std::fs::create_dir_all(site.path("data")).unwrap();
    site
}

/// Where the compiled code of a provider is kept: made once for all tests of a run.
pub(crate) fn shared(provider: &str) -> PathBuf {
    static ONCE: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("providers-{provider}"));
    let mut compiled = ONCE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !compiled.iter().any(|name| name == provider) {
        Site::compile(&shared, &[provider]);
        compiled.push(provider.to_owned());
    }
    shared
}

/// Whether the component needs tools that this machine cannot have, as set-up has said.
pub(crate) fn is_left_out() -> bool {
    let skipped = std::env::var("BELLJAR_SKIP").unwrap_or_default();
    skipped.split(',').any(|family| family == "languages")
}

/// Copies the fixtures of a provider into `data`.
pub(crate) fn fixtures(site: &Site, provider: &str) {
    for entry in std::fs::read_dir(places::repository().join("plugins").join(provider).join("fixtures")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, site.path("data").join(path.file_name().unwrap())).unwrap();
    }
}

/// What the last read of this reference took, which comes on record a moment after the answer.
pub(crate) fn usage(site: &Site, reference: &str) -> Value {
    let began = Instant::now();
    loop {
        let records = site.audit();
        let mut reads = records.iter().rev().filter(|record| record["operation"] == "read");
        if let Some(record) = reads.find(|record| record["reference"] == reference) {
            return record["usage"].clone();
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{reference} is not on record: {records:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The fuel of it.
pub(crate) fn fuel(site: &Site, reference: &str) -> u64 {
    usage(site, reference)["fuel"].as_u64().unwrap()
}

/// Runs a program with this input, and gives what it printed.
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

/// A directory of this test's own below the build directory, where there is room for much; made anew.
pub(crate) fn large(name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::remove_dir_all(&place).ok();
    std::fs::create_dir_all(&place).unwrap();
    place
}

/// The text of a reading as JSON.
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
