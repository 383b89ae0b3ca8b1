//! Signed components: whose signature counts, and what another signer means for an upgrade.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_tests::{Era, Registry, Site};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use super::{NAME, TEXT, fails, release, succeeds, verified};
use crate::support::empty;

/// A key, as `cosign sign --key` uses one.
pub(super) struct Key(EcdsaKeyPair);

impl Key {
    pub(super) fn new() -> Key {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        Key(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random).unwrap())
    }

    /// The public key in PEM.
    fn pem(&self) -> String {
        // A SubjectPublicKeyInfo of P-256: what stands before the point is always the same.
        const HEAD: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
        let head = (0..HEAD.len()).step_by(2).map(|at| u8::from_str_radix(&HEAD[at..at + 2], 16).unwrap());
        let der: Vec<u8> = head.chain(self.0.public_key().as_ref().iter().copied()).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
    }

    /// A bundle that signs the manifest with this digest.
    fn sign(&self, manifest: &str) -> String {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1", "predicateType": "https://sigstore.dev/cosign/sign/v1",
            "subject": [{ "name": "", "digest": { "sha256": manifest.trim_start_matches("sha256:") } }], "predicate": {},
        })
        .to_string();
        let kind = "application/vnd.in-toto+json";
        let signed = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
        let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": { "publicKey": { "hint": "key" }, "tlogEntries": [] },
            "dsseEnvelope": {
                "payload": STANDARD.encode(&statement), "payloadType": kind,
                "signatures": [{ "sig": STANDARD.encode(signature.as_ref()) }],
            },
        })
        .to_string()
    }
}

/// A site that trusts these keys for the repository, and a registry.
fn trusting(keys: &[&Key]) -> Option<(Site, Registry)> {
    trusting_at(Registry::start(), keys)
}

/// The same with this registry.
pub(super) fn trusting_at(registry: Option<Registry>, keys: &[&Key]) -> Option<(Site, Registry)> {
    let (site, registry) = (empty(), registry?);
    let mut config = String::new();
    for (at, key) in keys.iter().enumerate() {
        site.write(format!("{at}.pem"), key.pem());
        let from = registry.reference("acme", "");
        config += &format!("[[trust.signers]]\nfrom = {from:?}\nkey = \"{at}.pem\"\n");
    }
    site.config(&config);
    Some((site, registry))
}

/// Pushes a release, signed with a key. Returns the reference.
pub(super) fn push(registry: &Registry, version: &str, key: Option<&Key>) -> String {
    let manifest = registry.push(NAME, version, &release("guest_fixture", version));
    if let Some(key) = key {
        registry.push_signature(NAME, &manifest, &key.sign(&manifest));
    }
    registry.reference(NAME, version)
}

#[test]
fn the_signature_of_a_trusted_key_counts_and_is_remembered() {
    let key = Key::new();
    let Some((site, registry)) = trusting(&[&key]) else { return };
    let said = succeeds(&site, &["add", &push(&registry, "1.0.0", Some(&key)), "--yes"]);
    assert!(said.contains("trusted for \"127.0.0.1:"), "{said}");
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    assert!(verified(&site)["signedBy"].as_str().unwrap().starts_with("sha256:"));
    let why = succeeds(&site, &["why", "tides"]);
    assert!(why.contains("trusted  [trust] for") && why.contains("0.pem"), "{why}");
    push(&registry, "1.1.0", Some(&key));
    let said = succeeds(&site, &["upgrade", "tides", "--yes"]);
    assert!(said.contains("Upgraded"), "{said}");
}

#[test]
fn the_signature_of_a_stranger_does_not_count() {
    let (key, stranger) = (Key::new(), Key::new());
    let Some((site, registry)) = trusting(&[&key]) else { return };
    let said = fails(&site, &["add", &push(&registry, "1.0.0", Some(&stranger)), "--yes"]);
    assert!(said.contains("is refused"), "{said}");
    // A signature of another version proves nothing of this one.
    let (one, two) = (release("guest_fixture", "2.0.0"), release("guest_fixture", "3.0.0"));
    let (one, two) = (registry.push(NAME, "2.0.0", &one), registry.push(NAME, "3.0.0", &two));
    registry.push_signature(NAME, &two, &key.sign(&one));
    let said = fails(&site, &["add", &registry.reference(NAME, "3.0.0"), "--yes"]);
    assert!(said.contains("is refused"), "{said}");
    assert!(!site.path("plugins/tides.wasm").exists());
}

#[test]
fn another_signer_holds_an_upgrade_back_and_so_does_none() {
    let (key, other) = (Key::new(), Key::new());
    let Some((site, registry)) = trusting(&[&key, &other]) else { return };
    succeeds(&site, &["add", &push(&registry, "1.0.0", Some(&key)), "--yes"]);
    push(&registry, "1.1.0", Some(&other));
    let said = fails(&site, &["upgrade", "tides", "--yes"]);
    assert!(said.contains("another signer: sha256:") && said.contains("--accept"), "{said}");
    assert!(verified(&site)["reference"].as_str().unwrap().ends_with("1.0.0"));
    push(&registry, "1.2.0", None);
    assert!(fails(&site, &["upgrade", "tides", "--yes"]).contains("is not signed"));
    let said = fails(&site, &["upgrade", "tides", "--unsigned", "--yes"]);
    assert!(said.contains("nobody signed it; before: sha256:"), "{said}");
    succeeds(&site, &["upgrade", "tides", "--to", "1.1.0", "--accept", "--yes"]);
    assert!(verified(&site)["reference"].as_str().unwrap().ends_with("1.1.0"));
}

/// The registry of the other tests keeps signatures under a tag. Newer ones have a list of what refers to a manifest.
#[test]
fn a_signature_is_found_in_the_list_of_referrers() {
    let (key, stranger) = (Key::new(), Key::new());
    let Some((site, registry)) = trusting_at(Registry::with_referrers(), &[&key]) else { return };
    let reference = push(&registry, "1.0.0", Some(&stranger));
    assert!(fails(&site, &["add", &reference, "--yes"]).contains("is refused"));
    let manifest = registry.push(NAME, "1.0.0", &release("guest_fixture", "1.0.0"));
    registry.push_signature(NAME, &manifest, &key.sign(&manifest));
    let said = succeeds(&site, &["add", &reference, "--yes"]);
    assert!(said.contains("trusted for \"127.0.0.1:") && said.contains("refused  a signature"), "{said}");
    assert_eq!(site.stdio(Era::Stateless).text("belljar://tides/static-text"), TEXT);
    assert!(verified(&site)["signedBy"].as_str().unwrap().starts_with("sha256:"));
    push(&registry, "1.1.0", Some(&key));
    assert!(succeeds(&site, &["upgrade", "tides", "--yes"]).contains("Upgraded"));
}
