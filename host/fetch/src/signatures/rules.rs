//! The rules of trust, ready to be compared with signers. A rule that cannot be read fails the whole request: without it, a
//! signer would be judged by fewer rules than the operator wrote.

use belljar_fetch_protocol::{Failure, FailureKind, Identity, Root, Signer, Trust};
use regex::{Regex, RegexBuilder};
use sigstore_verify::Verifier;
use sigstore_verify::trust_root::{SigstoreInstance, TrustedRoot};
use sigstore_verify::types::DerPublicKey;

use crate::digest::Sha256;
use crate::failure::{Outcome, failure};
use crate::text;

/// The most bytes of a compiled regular expression.
const MAX_REGEX: usize = 256 * 1024;

/// The rules that apply to one source.
pub(crate) struct Rules {
    pub(crate) keyless: Vec<Keyless>,
    pub(crate) keys: Vec<Key>,
    pub(crate) minisign: Vec<Minisign>,
    /// The roots of the keyless rules, each once. Without keyless rules, the public one.
    pub(crate) roots: Vec<Trusted>,
}

/// A root, and what checks signatures with it.
pub(crate) struct Trusted {
    pub(crate) root: Root,
    pub(crate) verifier: Verifier,
}

/// A keyless signer.
pub(crate) struct Keyless {
    pub(crate) scope: String,
    identity: Matcher,
    issuer: String,
    root: Root,
}

/// A key.
pub(crate) struct Key {
    pub(crate) scope: String,
    pub(crate) key: DerPublicKey,
    /// `None`: no log is asked for.
    pub(crate) log: Option<Verifier>,
}

/// A minisign key.
pub(crate) struct Minisign {
    pub(crate) scope: String,
    pub(crate) key: minisign_verify::PublicKey,
}

enum Matcher {
    Exact(String),
    Regex(Regex),
}

impl Rules {
    /// The rules of `trust` that apply to a source with this scope.
    pub(crate) fn of(trust: &Trust, scope: &str) -> Outcome<Self> {
        super::provider::install();
        let mut rules = Self { keyless: Vec::new(), keys: Vec::new(), minisign: Vec::new(), roots: Vec::new() };
        for rule in trust.rules.iter().filter(|rule| covers(&rule.scope, scope)) {
            let own = rule.scope.clone();
            match &rule.signer {
                Signer::Keyless { identity, issuer, root } => {
                    rules.add_root(root)?;
                    let identity = Matcher::new(identity).ok_or_else(|| {
                        wrong(
                            &own,
                            "its identity is not a regular expression (write [0-9] for \\d, and [A-Za-z0-9_] for \\w)",
                        )
                    })?;
                    rules.keyless.push(Keyless { scope: own, identity, issuer: issuer.clone(), root: root.clone() });
                }
                Signer::Key { pem, root } => {
                    let key = DerPublicKey::from_pem(pem)
                        .map_err(|error| wrong(&own, &format!("its key is not one: {error}")))?;
                    let log = root.as_ref().map(verifier).transpose()?;
                    rules.keys.push(Key { scope: own, key, log });
                }
                Signer::Minisign { key } => {
                    let key = minisign_verify::PublicKey::from_base64(key.trim())
                        .map_err(|error| wrong(&own, &format!("its minisign key is not one: {error}")))?;
                    rules.minisign.push(Minisign { scope: own, key });
                }
            }
        }
        if rules.keyless.is_empty() {
            rules.add_root(&Root::PublicGood)?;
        }
        Ok(rules)
    }

    fn add_root(&mut self, root: &Root) -> Outcome<()> {
        if !self.roots.iter().any(|known| known.root == *root) {
            self.roots.push(Trusted { root: root.clone(), verifier: verifier(root)? });
        }
        Ok(())
    }

    /// True if no rule names a signer of manifests.
    pub(crate) fn is_empty(&self) -> bool {
        self.keyless.is_empty() && self.keys.is_empty()
    }

    /// The rule that names a signer whose certificate `root` confirms.
    pub(crate) fn keyless(&self, root: &Root, identity: &str, issuer: Option<&str>) -> Option<&Keyless> {
        self.keyless
            .iter()
            .find(|rule| rule.root == *root && issuer == Some(rule.issuer.as_str()) && rule.identity.matches(identity))
    }

    /// Why no keyless rule names a signer.
    pub(crate) fn misfit(&self, issuer: Option<&str>) -> &'static str {
        if self.keyless.is_empty() {
            "only keys are trusted for this source"
        } else if self.keyless.iter().any(|rule| Some(rule.issuer.as_str()) == issuer) {
            "its identity is not one that is trusted for this source"
        } else {
            "its issuer is not one that is trusted for this source"
        }
    }
}

impl Matcher {
    fn new(identity: &Identity) -> Option<Self> {
        match identity {
            Identity::Exact(text) => Some(Self::Exact(text.clone())),
            Identity::Regex(pattern) => {
                let build = |pattern: &str| RegexBuilder::new(pattern).size_limit(MAX_REGEX).build().ok();
                // Without this check, a pattern such as "a)|(b" would leave the anchors.
                build(pattern)?;
                build(&format!("^(?:{pattern})$")).map(Self::Regex)
            }
        }
    }

    fn matches(&self, identity: &str) -> bool {
        match self {
            Self::Exact(text) => text == identity,
            Self::Regex(regex) => regex.is_match(identity),
        }
    }
}

/// True if a source lies below a scope.
fn covers(scope: &str, source: &str) -> bool {
    let scope = scope.trim_end_matches('/');
    let rest = source.strip_prefix(scope);
    !scope.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn verifier(root: &Root) -> Outcome<Verifier> {
    let parsed = match root {
        Root::PublicGood => TrustedRoot::from_embedded(SigstoreInstance::PublicGood),
        Root::Given(json) => TrustedRoot::from_json(json),
    };
    let unusable = |error: String| {
        let problem = format!("the trusted root cannot be used: {error}");
        failure(FailureKind::Request, problem, "use the file trusted_root.json of your Sigstore")
    };
    let parsed = parsed.map_err(|error| unusable(error.to_string()))?;
    Verifier::new(&parsed).map_err(|error| unusable(error.to_string()))
}

/// The name of a key: the digest of its DER form.
pub(crate) fn key_name(key: &DerPublicKey) -> String {
    Sha256::of(key.as_bytes()).to_string()
}

fn wrong(scope: &str, problem: &str) -> Box<Failure> {
    let problem = format!("the rule of trust for \"{}\" cannot be used: {problem}", text::clean(scope, text::NAME));
    failure(FailureKind::Request, problem, "correct the rule")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_ends_at_a_slash() {
        for (scope, source, is_below) in [
            ("ghcr.io", "ghcr.io/acme/tides", true),
            ("ghcr.io/acme", "ghcr.io/acme/tides", true),
            ("ghcr.io/acme/", "ghcr.io/acme/tides", true),
            ("ghcr.io/acme/tides", "ghcr.io/acme/tides", true),
            ("ghcr.io/acme", "ghcr.io/acme-evil/tides", false),
            ("ghcr.io", "ghcr.io.evil.example/acme", false),
            ("ghcr.io/acme/tides", "ghcr.io/acme", false),
            ("", "ghcr.io/acme", false),
            ("/", "ghcr.io/acme", false),
        ] {
            assert_eq!(covers(scope, source), is_below, "{scope} {source}");
        }
    }

    #[test]
    fn a_regular_expression_matches_the_whole_identity() {
        let matches = |pattern: &str, identity: &str| {
            Matcher::new(&Identity::Regex(pattern.to_owned())).map(|matcher| matcher.matches(identity))
        };
        let pattern = r"https://github\.com/acme/.*";
        assert_eq!(matches(pattern, "https://github.com/acme/tides"), Some(true));
        assert_eq!(matches(pattern, "https://evil.example/?https://github.com/acme/tides"), Some(false));
        assert_eq!(matches("a|b", "ab"), Some(false));
        assert_eq!(matches("a", "a\n"), Some(false));
        assert_eq!(matches("a)|(?:b", "bcd"), None);
        assert_eq!(matches("(", "a"), None);
        assert_eq!(matches(&"a{1000}".repeat(1000), "a"), None);
    }
}
