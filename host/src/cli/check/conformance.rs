//! `belljar check --conformance FILE.wasm`: whether a provider keeps to the interface.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::catalog::Mount;
use crate::cli::keys::{Keys, Shared};
use crate::cli::pins::Pinning;
use crate::cli::{Failure, Where, caller, open, progress, wall};
use crate::gateway::conformance::{Report, Verdict};

pub(in crate::cli) fn run(at: Where, file: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    progress::start("error");
    let name = file.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".wasm"));
    let name = name.ok_or_else(|| {
        Failure::Misused(format!("\"{}\" is not the name of a component; expected FILE.wasm", file.display()))
    })?;
    if !file.is_file() {
        return Err(Failure::Failed(format!("there is no file \"{}\"", file.display())));
    }
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = Where { plugins: Some(directory.to_owned()), ..at };
    let config = open::config(&at, &[], Pinning::Author)?;
    let keys = Keys::read(&at, &config, Shared::Used)?;
    let wall = wall::raise(&config, &keys, None)?;
    wall.runtime()?.block_on(async {
        let opened = open::open_only(config, keys, name)?;
        let snapshot = opened.gateway.loaded().await;
        progress::end();
        if let Some(refused) = snapshot.refused().first().filter(|_| snapshot.mounts().is_empty()) {
            return Err(Failure::Failed(format!("\"{name}\" cannot be mounted: {}", refused.reason)));
        }
        let mut all = Vec::new();
        for mount in snapshot.mounts() {
            let report = opened.gateway.conformance(&caller(), mount).await;
            if !as_json {
                crate::cli::print(&to_text(mount, &report))?;
            }
            all.push((mount, report));
        }
        if as_json {
            crate::cli::print_json(&all.iter().map(|(mount, report)| to_json(mount, report)).collect::<Value>())?;
        }
        let is_good = all.iter().all(|(_, report)| report.is_good());
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

fn to_text(mount: &Mount, report: &Report) -> String {
    let holds = if mount.holds.is_empty() { "nothing".to_owned() } else { mount.holds.join(", ") };
    let mut out = format!("{}  ({}, {}, granted: {holds})\n", mount.name, mount.file, mount.digest.short());
    for finding in &report.findings {
        for (at, said) in finding.said.iter().enumerate() {
            let (verdict, check) = if at == 0 { (finding.verdict.as_str(), finding.check) } else { ("", "") };
            let _ = writeln!(out, "  {verdict:8} {check:19} {said}");
        }
    }
    let count = |wanted| report.findings.iter().filter(|finding| finding.verdict == wanted).count();
    let _ = writeln!(
        out,
        "{} checks: {} ok, {} failed, {} with a warning, {} skipped",
        report.findings.len(),
        count(Verdict::Good),
        count(Verdict::Bad),
        count(Verdict::Warning),
        count(Verdict::Skipped)
    );
    out
}

fn to_json(mount: &Mount, report: &Report) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|finding| json!({ "check": finding.check, "verdict": finding.verdict.as_str(), "said": finding.said }))
        .collect();
    let most = &report.most;
    json!({
        "mount": mount.name.as_str(), "file": mount.file, "digest": mount.digest.to_string(), "holds": mount.holds,
        "good": report.is_good(), "checks": findings, "calls": report.calls,
        "most": { "fuel": most.fuel, "milliseconds": most.time.as_secs_f64() * 1e3, "memory": most.memory, "bytes": most.bytes },
    })
}
