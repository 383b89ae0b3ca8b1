//! Components that are fetched from a registry or by a URL: what is shown of one before it is downloaded, and what the lock
//! remembers of it.

use std::fmt::Write as _;
use std::path::Path;

use belljar_fetch_protocol::{Progress, Required, Resolved, Signature, Standing};

use super::{output, revoked};
use crate::config::lock::{LockedRevocation, LockedSigner, LockedSource};
use crate::config::{Config, OnRevoked};
use crate::grants::{Need, Needs};
use crate::model::error::show_bytes;
use crate::model::text;
use crate::sandbox::Profile;
use crate::server::failure::Failure;
use crate::server::fetcher::{FetchedComponent, Fetcher};

/// The most names of exports, and of imports, that are shown.
const MAX_NAMES: usize = 40;

/// A component that was fetched, and what is known of it.
pub(super) struct FetchedSource {
    pub(super) bytes: Vec<u8>,
    pub(super) source: LockedSource,
}

/// How a component is fetched.
#[derive(Clone, Copy)]
pub(super) struct FetchOptions {
    /// Without a signature too.
    pub(super) unsigned: bool,
    /// Nobody is asked, so nobody looks at the signer.
    pub(super) unasked: bool,
    /// What is shown goes to standard error.
    pub(super) json: bool,
    /// What is done with a version that its publisher revoked.
    pub(super) revoked: RevokedChoice,
}

/// What is done with a version that its publisher revoked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RevokedChoice {
    /// It is refused.
    Refuse,
    /// It is taken: the operator named the version, and gave the flag.
    Take,
    /// It is refused, because the configuration would not serve it.
    Stop,
}

impl RevokedChoice {
    /// The choice of an operator who gave the flag `--revoked` or not.
    pub(super) fn of(flag: bool, config: &Config) -> Self {
        match (config.trust.revoked, flag) {
            (OnRevoked::Stop, _) => Self::Stop,
            (OnRevoked::Warn, true) => Self::Take,
            (OnRevoked::Warn, false) => Self::Refuse,
        }
    }
}

/// True if `source` names something in a registry or a URL, and no file: `ghcr.io/acme/tides:1.2`, `oci://...`, `https://...`.
pub(super) fn is_reference(source: &str) -> bool {
    if source.starts_with("oci://") || source.starts_with("https://") {
        return true;
    }
    // As docker knows a registry: its name has a dot or a port, or is "localhost".
    let Some((registry, rest)) = source.split_once('/') else { return false };
    let is_registry = registry == "localhost" || registry.contains(':') || registry.contains('.');
    let is_path = registry.starts_with('.') || registry.starts_with('~') || Path::new(source).exists();
    is_registry && !rest.is_empty() && !is_path
}

/// The name of a mount for this reference: the last part of its repository, or the name of its file.
pub(super) fn default_name(reference: &str) -> &str {
    let without_digest = reference.split(['@', '#']).next().unwrap_or(reference);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.split(':').next().unwrap_or(last).trim_end_matches(".wasm")
}

impl FetchOptions {
    fn required(self) -> Required {
        if self.unsigned { Required::Nothing } else { Required::Signature }
    }

    /// Finds out what `source` is, shows it, and downloads it.
    ///
    /// # Errors
    /// If it cannot be fetched, is not signed, or if nobody vouches for its signer.
    pub(super) fn fetch(self, config: &Config, source: &str) -> Result<FetchedSource, Failure> {
        self.fetch_with(&Fetcher::new(config)?, source)
    }

    /// The same with this fetcher, which may be for bundles.
    ///
    /// # Errors
    /// As [`FetchOptions::fetch`].
    pub(super) fn fetch_with(self, fetcher: &Fetcher, source: &str) -> Result<FetchedSource, Failure> {
        let resolved = fetcher.resolve(source, self.required())?;
        output::message(self.json, &describe(&resolved))?;
        self.download(fetcher, &resolved)
    }

    /// Downloads what was resolved.
    ///
    /// # Errors
    /// As [`FetchOptions::fetch`].
    pub(super) fn download(self, fetcher: &Fetcher, resolved: &Resolved) -> Result<FetchedSource, Failure> {
        let revoked = revoked::of(resolved)?;
        self.check_revoked(resolved, revoked.as_ref())?;
        self.check_vouched(resolved, signer(resolved, None))?;
        let mut last = 0;
        let report = |Progress { bytes, total }: Progress| {
            // A line for each tenth, or each 8 MiB if the size is not known.
            let step = total.map_or(8 << 20, |total| total / 10).max(1 << 20);
            if bytes / step > last {
                last = bytes / step;
                let of = total.map(|total| format!(" of {}", show_bytes(total))).unwrap_or_default();
                let _ = output::message(true, &format!("  {}{of}\n", show_bytes(bytes)));
            }
        };
        let FetchedComponent { bytes, signature } = fetcher.download(resolved, self.required(), report)?;
        check_needs(resolved, &bytes)?;
        let signature = signer(resolved, signature.as_ref());
        self.check_vouched(resolved, signature)?;
        let manifest = resolved.manifest_digest.as_ref().map(|digest| digest.parse()).transpose()?;
        let source = LockedSource {
            reference: resolved.reference.clone(),
            manifest,
            version: resolved.version.clone(),
            signer: signature.map(locked),
            revoked,
        };
        Ok(FetchedSource { bytes, source })
    }

    /// A revoked version is taken only if the operator names it and says so.
    fn check_revoked(self, resolved: &Resolved, revoked: Option<&LockedRevocation>) -> Result<(), Failure> {
        let cure = match self.revoked {
            RevokedChoice::Take => return Ok(()),
            RevokedChoice::Refuse => "name another version, or, if you need this one, name it and add --revoked",
            RevokedChoice::Stop => "name another version, or set  revoked = \"warn\"  under [trust]",
        };
        match revoked {
            Some(revoked) => Err(Failure::Failed(format!("\"{}\": {revoked}; {cure}", resolved.reference))),
            None => Ok(()),
        }
    }

    /// Without a question, a signer must be known: nobody looks at its name.
    fn check_vouched(self, resolved: &Resolved, signature: Option<&Signature>) -> Result<(), Failure> {
        match signature {
            Some(Signature { standing: Standing::NoRule, signer, issuer, .. }) if self.unasked => {
                let from = resolved.reference.split([':', '@']).next().unwrap_or_default();
                let issuer = issuer.as_deref().unwrap_or_default();
                Err(Failure::Failed(format!(
                    "\"{}\" is signed by \"{signer}\", whom [trust] does not name, and with --yes nobody looks at the signer; \
                     leave out --yes, or add to the configuration:\n\
                     [[trust.signers]]\nfrom = \"{from}\"\nidentity = \"{signer}\"\nissuer = \"{issuer}\"",
                    resolved.reference
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Compares what the publisher said that the component asks for with what the component says. Its own declaration counts, and a
/// publisher who said something else showed the operator something else.
fn check_needs(resolved: &Resolved, component: &[u8]) -> Result<(), Failure> {
    let Some(said) = &resolved.needs else { return Ok(()) };
    // What is no component is refused later, by its name.
    let Ok(profile) = Profile::read(component) else { return Ok(()) };
    match Needs::parse(said.as_bytes()) {
        Ok(needs) if profile.bad_needs.is_none() && needs == profile.needs => Ok(()),
        _ => {
            let own: Vec<String> = profile.needs.all().iter().map(Need::describe).collect();
            let own = if own.is_empty() { "nothing".to_owned() } else { own.join(", ") };
            Err(Failure::Failed(format!(
                "\"{}\" asks for other things than its publisher says: the component itself asks for {own}; \
                 ask its publisher to publish it again",
                resolved.reference
            )))
        }
    }
}

/// The signature that counts: `checked`, which was checked after the download, or the first one. Trusted signers come first.
fn signer<'s>(resolved: &'s Resolved, checked: Option<&'s Signature>) -> Option<&'s Signature> {
    checked.or_else(|| resolved.signatures.first())
}

fn locked(signature: &Signature) -> LockedSigner {
    LockedSigner { name: signature.signer.clone(), issuer: signature.issuer.clone() }
}

/// What is known of a component before it is downloaded.
pub(super) fn describe(resolved: &Resolved) -> String {
    let Resolved { reference, component_digest, size, title, version, .. } = resolved;
    let title = title.as_deref().unwrap_or_else(|| default_name(reference));
    let size = size.map(|size| format!("  {}", show_bytes(size))).unwrap_or_default();
    let mut out =
        format!("{title} {}  {reference}{size}\n  {component_digest}\n", version.as_deref().unwrap_or("(no version)"));
    let mut line = |title: &str, words: &str| {
        let _ = writeln!(out, "  {title:8} {}", text::line(words));
    };
    for (title, words) in [
        ("about", &resolved.description),
        ("licence", &resolved.licence),
        ("source", &resolved.homepage),
        ("target", &resolved.target),
    ] {
        words.iter().for_each(|words| line(title, words));
    }
    for signature in &resolved.signatures {
        line("signed", &describe_signature(signature));
    }
    if let Some(minisign) = &resolved.minisign {
        line("signed", &format!("by minisign, to be checked after the download: \"{}\"", minisign.comment));
    }
    if resolved.signatures.is_empty() && resolved.minisign.is_none() {
        line("signed", "by nobody");
    }
    for refused in &resolved.refused {
        let signer = refused.signer.as_ref().map(|signer| format!("by \"{signer}\": ")).unwrap_or_default();
        line("refused", &format!("a signature {signer}{}", refused.reason));
    }
    for built in &resolved.provenance {
        let of = |what: &Option<String>| what.clone().unwrap_or_else(|| "unknown".to_owned());
        line(
            "built",
            &format!(
                "by {} from {} at {}, says {}",
                of(&built.builder),
                of(&built.source),
                of(&built.commit),
                built.signed_by.signer
            ),
        );
    }
    if let Ok(Some(revoked)) = revoked::of(resolved) {
        line("revoked", &revoked.to_string());
    }
    for (title, names) in [("exports", &resolved.exports), ("imports", &resolved.imports)] {
        for (at, name) in names.iter().take(MAX_NAMES).enumerate() {
            line(if at == 0 { title } else { "" }, name);
        }
        if names.len() > MAX_NAMES {
            line("", &format!("and {} more", names.len() - MAX_NAMES));
        }
    }
    for (at, need) in resolved.needs.iter().flat_map(|said| describe_needs(said)).enumerate() {
        line(if at == 0 { "asks for" } else { "" }, &need);
    }
    out
}

/// What the publisher says that the component asks for, one line for each need.
fn describe_needs(said: &str) -> Vec<String> {
    match Needs::parse(said.as_bytes()) {
        Ok(needs) if needs.is_empty() => vec!["nothing".to_owned()],
        Ok(needs) => needs.all().iter().map(Need::describe).collect(),
        Err(why) => vec![format!("something that cannot be read: {why}")],
    }
}

fn describe_signature(signature: &Signature) -> String {
    let signer = locked(signature);
    match &signature.standing {
        Standing::Trusted(scope) => format!("by {signer}, trusted for \"{scope}\""),
        Standing::NoRule => format!("by {signer}, whom [trust] does not name"),
    }
}

/// Who signed a component, in words.
pub(super) fn signed_by(source: &LockedSource) -> String {
    source.signer.as_ref().map_or_else(|| "unsigned".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_known_from_files_and_names() {
        for reference in [
            "ghcr.io/acme/tides:1.2",
            "oci://ghcr.io/acme/tides",
            "https://acme.example/tides.wasm#sha256=00",
            "localhost/tides",
            "127.0.0.1:5000/tides@sha256:00",
        ] {
            assert!(is_reference(reference), "{reference}");
        }
        for file in [
            "tides",
            "./tides.wasm",
            "../acme.io/tides.wasm",
            "/srv/acme.io/tides.wasm",
            "plugins/tides.wasm",
            "~/a.b/c",
        ] {
            assert!(!is_reference(file), "{file}");
        }
    }

    #[test]
    fn a_publisher_who_says_other_needs_is_refused() {
        let component = wat::parse_str(r#"(component (@custom "belljar:needs" "[[fs]]\npath = '/a'"))"#).unwrap();
        let check = |said: Option<&str>| {
            let resolved = Resolved { needs: said.map(str::to_owned), ..Resolved::default() };
            check_needs(&resolved, &component).map_err(Failure::message)
        };
        assert_eq!((check(None), check(Some("fs = [{ path = \"/a\" }]"))), (Ok(()), Ok(())));
        for other in ["", "fs = [{ path = \"/b\" }]", "fs = [{ path = \"/a\", any = true }]", "x", "[["] {
            assert!(check(Some(other)).unwrap_err().contains("itself asks for fs \"/a\""), "{other}");
        }
        assert_eq!(describe_needs(""), ["nothing"]);
        assert!(describe_needs("\u{1b}[2J")[0].starts_with("something that cannot be read"));
    }

    #[test]
    fn a_mount_is_named_as_the_repository() {
        for (reference, name) in [
            ("ghcr.io/acme/tides:1.2", "tides"),
            ("localhost:5000/tides", "tides"),
            ("ghcr.io/acme/tides:1.2@sha256:00", "tides"),
            ("https://acme.example/dl/tides.wasm#sha256=00", "tides"),
        ] {
            assert_eq!(default_name(reference), name, "{reference}");
        }
    }
}
