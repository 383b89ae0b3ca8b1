//! `belljar check --conformance FILE.wasm`: checks that a provider conforms to the interface.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::catalog::Mount;
use crate::cli::{output, progress};
use crate::interfaces::conformance::{CheckResult, ConformanceReport};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{configuration, keys::Keys, keys::SharedCode, landlock, pins::Pinning, startup};

pub(in crate::cli) fn run(at: LocationArgs, file: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    progress::start("error");
    let name = file.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".wasm"));
    let name = name.ok_or_else(|| {
        Failure::Misused(format!("\"{}\" is not a component file; expected a name that ends in .wasm", file.display()))
    })?;
    if !file.is_file() {
        return Err(Failure::Failed(format!("there is no file \"{}\"", file.display())));
    }
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = LocationArgs { plugins: Some(directory.to_owned()), ..at };
    let config = configuration::config(&at, &[], Pinning::OffForAuthor)?;
    let keys = Keys::read(&at, &config, SharedCode::Use)?;
    let wall = landlock::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let host = startup::start_for_file(config, keys, name)?;
        let snapshot = host.gateway.fully_loaded_snapshot().await;
        progress::end();
        if let Some(refused) = snapshot.refused().first().filter(|_| snapshot.mounts().is_empty()) {
            return Err(Failure::Failed(format!("\"{name}\" cannot be mounted: {}", refused.reason)));
        }
        let mut all = Vec::new();
        for mount in snapshot.mounts() {
            let report = host.gateway.conformance(&startup::caller(), mount).await;
            if !as_json {
                output::print(&to_text(mount, &report))?;
            }
            all.push((mount, report));
        }
        if as_json {
            output::print_json(&all.iter().map(|(mount, report)| to_json(mount, report)).collect::<Value>())?;
        }
        let is_good = all.iter().all(|(_, report)| report.is_good());
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

fn to_text(mount: &Mount, report: &ConformanceReport) -> String {
    let holds = if mount.granted_kinds.is_empty() { "nothing".to_owned() } else { mount.granted_kinds.join(", ") };
    let mut out = format!("{}  ({}, {}, granted: {holds})\n", mount.name, mount.file, mount.digest.short());
    for finding in &report.findings {
        for (at, said) in finding.messages.iter().enumerate() {
            let (verdict, check) = if at == 0 { (finding.verdict.as_str(), finding.check) } else { ("", "") };
            let _ = writeln!(out, "  {verdict:8} {check:19} {said}");
        }
    }
    let count = |wanted| report.findings.iter().filter(|finding| finding.verdict == wanted).count();
    let _ = writeln!(
        out,
        "{} checks: {} ok, {} failed, {} with a warning, {} skipped",
        report.findings.len(),
        count(CheckResult::Good),
        count(CheckResult::Bad),
        count(CheckResult::Warning),
        count(CheckResult::Skipped)
    );
    out
}

fn to_json(mount: &Mount, report: &ConformanceReport) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| json!({ "check": finding.check, "verdict": finding.verdict.as_str(), "said": finding.messages }))
        .collect();
    let most = &report.most;
    json!({
        "mount": mount.name.as_str(), "file": mount.file, "digest": mount.digest.to_string(), "holds": mount.granted_kinds,
        "good": report.is_good(), "checks": findings, "calls": report.calls,
        "most": { "fuel": most.fuel, "milliseconds": most.time.as_secs_f64() * 1e3, "memory": most.memory, "bytes": most.bytes },
    })
}
