//! The real providers over the corpus of `tests/corpus`, compared with native libraries.
//!
//! A program in Python writes the files, and prints what its library says of each. `compare` reads the same through the
//! real binary.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use belljar_tests::{Client, Era, Stdio, places, wait_until};
use serde_json::Value;

use crate::providers::support;

mod calendar;
mod files;
mod git;
mod images;
mod logs;
mod mail;
mod pdf;
mod sqlite;
mod tables;
mod web;

/// No provider stops the work of a read by its clock earlier than this.
const SHORTEST_CLOCK: Duration = Duration::from_millis(700);

/// One case that a program printed.
pub(crate) struct Case {
    /// What the case is about.
    pub(crate) name: String,
    /// The mount to read from. `None`: the one with the name of the provider.
    pub(crate) mount: Option<String>,
    /// The reference to read.
    pub(crate) reference: String,
    /// What the native library says.
    pub(crate) expected: Value,
}

/// Runs the program of `provider` and reads each of its cases. `judge` gets the text that belljar answers, or the error, and
/// says what is wrong. Panics with all wrong cases.
///
/// `config` has the lines of the mount after the grant of the directory `data` as `/data`. A case may name another mount, which
/// `config` has too. Does nothing without Python.
pub(crate) fn compare(
    provider: &str,
    config: &str,
    mut judge: impl FnMut(&Case, Result<&str, &str>) -> Result<(), String>,
) {
    compare_reads(provider, config, |case, client| {
        let mount = case.mount.as_deref().unwrap_or(provider);
        let read = client.read(&format!("belljar://{mount}/{}", case.reference));
        let answer = match &read {
            // The text, or the bytes in base64.
            Ok(result) => {
                let contents = &result["contents"][0];
                Ok(contents["text"].as_str().or(contents["blob"].as_str()).unwrap_or_default())
            }
            Err(error) => Err(error.message.as_str()),
        };
        judge(case, answer)
    });
}

/// Like [`compare`]. `judge` reads what it wants itself, for example several pages.
pub(crate) fn compare_reads(
    provider: &str,
    config: &str,
    mut judge: impl FnMut(&Case, &mut Client<Stdio>) -> Result<(), String>,
) {
    if support::lacks_build_tools() {
        return;
    }
    let site = support::over_data(provider, config);
    let Some(cases) = cases(provider, &site.path("data")) else { return };
    let mut client = site.stdio(Era::Stateless);
    judge_all(provider, &cases, |case| judge(case, &mut client));
}

/// Runs the program of `provider`, which writes its files into `directory`. `None` without Python.
pub(crate) fn cases(provider: &str, directory: &Path) -> Option<Vec<Case>> {
    let mut program = Command::new(places::native_python()?);
    // Without `-P`, `calendar.py` would hide the module of this name in the standard library.
    program.arg("-P").arg(places::repository().join("tests/corpus").join(format!("{provider}.py"))).arg(directory);
    let printed: Vec<Value> = serde_json::from_slice(&support::run(program, b"")).expect("a JSON array of cases");
    assert!(!printed.is_empty(), "the program of {provider} prints no case");
    let case = |mut case: Value| {
        let text =
            |key: &str| case[key].as_str().unwrap_or_else(|| panic!("a case without \"{key}\": {case}")).to_owned();
        let (name, reference) = (text("name"), text("reference"));
        let mount = case["mount"].as_str().map(str::to_owned);
        Case { name, mount, reference, expected: case["expected"].take() }
    };
    Some(printed.into_iter().map(case).collect())
}

/// Calls `judge` for each case. Panics with all wrong cases.
///
/// On a busy machine, a provider may give up by its clock for a file of any size. A case that is wrong and took so long is
/// judged again.
pub(crate) fn judge_all(provider: &str, cases: &[Case], mut judge: impl FnMut(&Case) -> Result<(), String>) {
    let mut wrong = Vec::new();
    for case in cases {
        let verdict = wait_until("a verdict that does not depend on the clock", || {
            let began = Instant::now();
            match judge(case) {
                Err(why) if began.elapsed() >= SHORTEST_CLOCK => {
                    Err(format!("{} ({}): {why}", case.name, case.reference))
                }
                verdict => Ok(verdict),
            }
        });
        if let Err(why) = verdict {
            wrong.push(format!("{} ({}): {why}", case.name, case.reference));
        }
    }
    assert!(wrong.is_empty(), "{} cases of {provider} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
