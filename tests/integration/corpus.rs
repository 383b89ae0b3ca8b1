//! The real providers over the corpus of `tests/corpus`, compared with native libraries.
//!
//! A program in Python writes the files, and prints what its library says of each. `compare` reads the same through the
//! real binary.

use std::process::Command;

use belljar_tests::{Era, places};
use serde_json::Value;

use crate::providers::support;

mod calendar;
mod files;
mod git;
mod logs;
mod mail;
mod pdf;
mod sqlite;
mod tables;
mod web;

/// One case that a program printed.
pub(crate) struct Case {
    /// What the case is about.
    pub(crate) name: String,
    /// The reference to read.
    pub(crate) reference: String,
    /// What the native library says.
    pub(crate) expected: Value,
}

/// Runs the program of `provider` and reads each of its cases. `judge` gets the text that belljar answers, or the error, and
/// says what is wrong. Panics with all wrong cases.
///
/// `config` has the lines of the mount after the grant of the directory `data` as `/data`. Does nothing without Python.
pub(crate) fn compare(
    provider: &str,
    config: &str,
    mut judge: impl FnMut(&Case, Result<&str, &str>) -> Result<(), String>,
) {
    let Some(python) = places::native_python() else { return };
    if support::lacks_build_tools() {
        return;
    }
    let site = support::over_data(provider, config);
    let mut program = Command::new(python);
    program.arg(places::repository().join("tests/corpus").join(format!("{provider}.py"))).arg(site.path("data"));
    let cases: Vec<Value> = serde_json::from_slice(&support::run(program, b"")).expect("a JSON array of cases");
    assert!(!cases.is_empty(), "the program of {provider} prints no case");
    let mut client = site.stdio(Era::Stateless);
    let mut wrong = Vec::new();
    for mut case in cases {
        let text =
            |key: &str| case[key].as_str().unwrap_or_else(|| panic!("a case without \"{key}\": {case}")).to_owned();
        let (name, reference) = (text("name"), text("reference"));
        let case = Case { name, reference, expected: case["expected"].take() };
        let read = client.read(&format!("belljar://{provider}/{}", case.reference));
        let answer = match &read {
            // The text, or the bytes in base64.
            Ok(result) => {
                let contents = &result["contents"][0];
                Ok(contents["text"].as_str().or(contents["blob"].as_str()).unwrap_or_default())
            }
            Err(error) => Err(error.message.as_str()),
        };
        if let Err(why) = judge(&case, answer) {
            wrong.push(format!("{} ({}): {why}", case.name, case.reference));
        }
    }
    assert!(wrong.is_empty(), "{} cases of {provider} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
