//! `belljar why`: why a mount is there: where its component comes from, who signed it, and what it may do.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use super::{fetched, output, revoked};
use crate::config::lock::LockedSource;
use crate::config::{Config, TrustedSigner};
use crate::model::{MountName, text};
use crate::server::candidate::Candidate;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{configuration, log, pins};

/// Explains one mount.
pub(super) fn run(at: &LocationArgs, mount: &str, as_json: bool) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::misused)?;
    let config = configuration::file(at)?;
    let candidate = Candidate::find(&config, &mount)?;
    let pin = pins::read(&config.lock)?.pin(&mount).cloned();
    let source = pin.as_ref().and_then(|pin| pin.source.as_ref());
    let grants = config.mounts.get(&mount).map(|own| own.grants.describe()).unwrap_or_default();
    let needs = candidate.profile.needs.all();
    if as_json {
        output::print_json(&json!({
            "mount": mount.as_str(), "file": candidate.file, "digest": candidate.digest.to_string(),
            "pinned": pin.as_ref().map(|pin| pin.digest.to_string()),
            "reference": source.map(|source| &source.reference), "version": source.and_then(|source| source.version.as_ref()),
            "manifest": source.and_then(|source| source.manifest).map(|digest| digest.to_string()),
            "signedBy": source.map(fetched::signed_by), "trustedBy": source.and_then(|source| trusted_by(&config, source)),
            "revoked": source.and_then(|source| source.revoked.as_ref()).map(revoked::to_json),
            "granted": grants.iter().map(|(kind, what)| format!("{kind}: {what}")).collect::<Vec<_>>(),
            "needs": needs.iter().map(|need| need.describe()).collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = format!("{mount}  {}\n  digest   {}\n", text::excerpt(&candidate.file, 100), candidate.digest);
    let mut line = |title: &str, words: &str| {
        let _ = writeln!(out, "  {title:8} {}", text::line(words));
    };
    match source {
        None => line("from", "a file that somebody put into the plugin directory"),
        Some(source) => {
            line("from", &source.reference);
            source.version.iter().for_each(|version| line("version", version));
            source.manifest.iter().for_each(|manifest| line("manifest", &manifest.to_string()));
            line("signed", &fetched::signed_by(source));
            if let Some(revoked) = &source.revoked {
                line("revoked", &format!("{revoked}; {}", revoked.cure(&mount)));
            }
            let trusted = trusted_by(&config, source);
            line(
                "trusted",
                &trusted.unwrap_or_else(|| "by the person who added it; [trust] names no signer of it".to_owned()),
            );
        }
    }
    let is_pinned = candidate.is_trusted();
    match (&pin, is_pinned) {
        (None, _) => line("pinned", "to nothing: it holds no grants"),
        (Some(_), true) => line("pinned", "to this digest"),
        (Some(pin), false) => line("pinned", &format!("to {}: it is in quarantine", pin.digest)),
    }
    for (at, (kind, what)) in grants.iter().enumerate() {
        line(if at == 0 { "granted" } else { "" }, &format!("{kind}: {what}"));
    }
    for (at, need) in needs.iter().enumerate() {
        line(if at == 0 { "needs" } else { "" }, &need.describe());
    }
    output::print(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// The entry of `[trust]` that is for this source, in words. `None` if there is none.
fn trusted_by(config: &Config, source: &LockedSource) -> Option<String> {
    let reference = source.reference.trim_start_matches("https://");
    let is_below = |scope: &str| {
        let rest = reference.strip_prefix(scope);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':', '@']))
    };
    source.signer.as_ref()?;
    let entry = config.trust.signers.iter().find(|entry| is_below(&entry.from))?;
    let signer = match &entry.signer {
        TrustedSigner::Identity { identity, issuer } => format!("\"{identity}\" of \"{issuer}\""),
        TrustedSigner::Key(path) => format!("the key \"{}\"", path.display()),
        TrustedSigner::Minisign(key) => format!("the minisign key \"{key}\""),
    };
    Some(format!("[trust] for \"{}\": {signer}", entry.from))
}
