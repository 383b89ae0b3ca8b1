//! Which signatures count. The samples have an authority, a log and a time-stamping authority of their own.

use belljar_fetch_protocol::{FailureKind, Identity, Required, Root, SignatureKind, Signer, Standing, Trust};
use serde_json::json;

use crate::support::program::{resolve, source};
use crate::support::registry::{Contents, INDEX, MANIFEST};
use crate::support::samples::{IDENTITY, ISSUER, digest, keyless, root, rule, sample, text, trust, unsigned};

/// The key of the samples, with or without a log.
fn key(log: bool) -> Signer {
    Signer::Key { pem: text("key.pem"), root: log.then(root) }
}

/// Resolves the sample with these signatures, if only this signer is trusted.
fn with(bundles: &[&str], signer: Signer) -> Result<belljar_fetch_protocol::Resolved, belljar_fetch_protocol::Failure> {
    let server = Contents::signed(bundles).start();
    resolve(&source(server.port), trust(server.port, signer))
}

#[test]
fn a_keyless_signature_of_a_trusted_signer_counts() {
    for bundle in ["good", "stamped"] {
        let resolved = with(&[bundle], keyless()).unwrap();
        let [signature] = resolved.signatures.as_slice() else { panic!("{resolved:?}") };
        assert_eq!(
            (signature.kind, signature.signer.as_str(), signature.issuer.as_deref()),
            (SignatureKind::Keyless, IDENTITY, Some(ISSUER))
        );
        assert!(matches!(&signature.standing, Standing::Trusted(scope) if scope.ends_with("/acme")), "{signature:?}");
        assert!(signature.time.is_some_and(|time| time > 1_700_000_000), "{signature:?}");
        assert!(resolved.refused.is_empty(), "{bundle}: {:?}", resolved.refused);
    }
}

#[test]
fn a_regular_expression_can_name_the_signer() {
    let signer = |pattern: &str| Signer::Keyless {
        identity: Identity::Regex(pattern.to_owned()),
        issuer: ISSUER.to_owned(),
        root: root(),
    };
    with(&["good"], signer(r"https://github\.com/acme/tides/.*@refs/tags/v.*")).unwrap();
    let failure = with(&["good"], signer("github.com/acme/tides")).unwrap_err();
    assert!(failure.problem.contains("its identity is not one"), "{failure:?}");
    let failure = with(&["good"], signer("(")).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Request, "{failure:?}");
}

#[test]
fn a_signature_by_a_trusted_key_counts() {
    let resolved = with(&["key"], key(false)).unwrap();
    assert_eq!(resolved.signatures[0].kind, SignatureKind::Key);
    assert!(resolved.signatures[0].signer.starts_with("sha256:"));
    with(&["logged_key"], key(true)).unwrap();
    with(&["logged_key"], key(false)).unwrap();
    let failure = with(&["key"], key(true)).unwrap_err();
    assert!(failure.problem.contains("no log lists it"), "{failure:?}");
}

#[test]
fn one_good_signature_is_enough_and_the_others_are_named() {
    let resolved = with(&["another_identity", "good", "expired"], keyless()).unwrap();
    assert_eq!(resolved.signatures.len(), 1);
    assert_eq!(resolved.refused.len(), 2, "{:?}", resolved.refused);
    assert!(
        resolved
            .refused
            .iter()
            .any(|refused| refused.signer.as_deref().is_some_and(|signer| signer.contains("acme-evil")))
    );
    assert!(
        resolved.refused.iter().any(|refused| refused.signer.is_none() && refused.reason.contains("expired")),
        "{:?}",
        resolved.refused
    );
}

#[test]
fn signatures_are_also_found_under_the_tag() {
    let mut contents = Contents::signed(&["good"]);
    contents.is_old = true;
    let server = contents.start();
    resolve(&source(server.port), trust(server.port, keyless())).unwrap();
}

#[test]
fn the_manifest_in_an_index_may_be_the_signed_one() {
    let mut contents = Contents::signed(&["good"]);
    let entry = json!({ "mediaType": MANIFEST, "digest": digest(&sample("manifest.json")), "size": 1 });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] });
    contents.manifest("1.2", INDEX, &serde_json::to_vec(&index).unwrap());
    let server = contents.start();
    let resolved = resolve(&source(server.port), trust(server.port, keyless())).unwrap();
    assert_eq!(resolved.signatures.len(), 1);
    assert!(!resolved.pinned.contains(&digest(&sample("manifest.json"))), "{}", resolved.pinned);
}

#[test]
fn provenance_is_shown_and_counts() {
    let resolved = with(&["provenance"], keyless()).unwrap();
    let [provenance] = resolved.provenance.as_slice() else { panic!("{resolved:?}") };
    assert_eq!(provenance.builder.as_deref(), Some("https://github.com/actions/runner/github-hosted"));
    assert_eq!(provenance.source.as_deref(), Some("https://github.com/acme/tides"));
    assert_eq!(provenance.commit.as_deref(), Some("8f14e45fceea167a5a36dedd4bea2543f1c1a3c5"));
    assert_eq!(provenance.signed_by.signer, IDENTITY);
    // The provenance of a stranger is not shown.
    let resolved = with(&["good"], keyless()).unwrap();
    assert!(resolved.provenance.is_empty());
}

#[test]
fn without_rules_the_signer_is_reported_and_not_trusted() {
    // The root of the samples is not the public one, so nothing proves who signed.
    let server = Contents::signed(&["good"]).start();
    let failure = resolve(&source(server.port), Trust::default()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Signature);
    let resolved = resolve(&source(server.port), unsigned()).unwrap();
    assert_eq!((resolved.signatures.len(), resolved.refused.len()), (0, 1));
    // A rule for other sources does not apply here.
    let mut other = rule(server.port, keyless());
    other.scope = "ghcr.io/acme".into();
    for required in [Required::Rule, Required::Signature] {
        let trust = Trust { required, rules: vec![other.clone()] };
        assert_eq!(resolve(&source(server.port), trust).unwrap_err().kind, FailureKind::Signature);
    }
}

#[test]
fn every_bad_signature_is_refused_with_its_reason() {
    let mut wrong_root = keyless();
    if let Signer::Keyless { root, .. } = &mut wrong_root {
        *root = Root::Given(text("other_root.json"));
    }
    let any_workflow =
        Signer::Keyless { identity: Identity::Regex(".*".to_owned()), issuer: ISSUER.to_owned(), root: root() };
    let strange = Signer::Key { pem: text("strange_key.pem"), root: None };
    let mut wrong = Vec::new();
    for (name, bundle, signer, reason) in [
        ("wrong identity", "another_identity", keyless(), "its identity is not one that is trusted"),
        ("wrong issuer", "another_issuer", keyless(), "its issuer is not one that is trusted"),
        ("identity with hidden letters", "hidden_identity", any_workflow, "letters that cannot be shown"),
        ("replayed for another manifest", "another_digest", keyless(), "it is about another manifest"),
        ("wrong root", "another_root", keyless(), ""),
        ("wrong root of the rule", "good", wrong_root, ""),
        ("expired certificate", "expired", keyless(), "had expired"),
        ("certificate of the future", "not_yet_valid", keyless(), "was not valid yet"),
        ("certificate in no log", "no_certificate_log", keyless(), "no trusted log lists its certificate"),
        ("signature in no log", "no_log", keyless(), "must have an inclusion proof"),
        ("signature without a time", "no_time", keyless(), "must have"),
        ("report of a scanner", "scanner", keyless(), "approves nothing"),
        ("signature of bytes", "message", keyless(), "it signs bytes"),
        ("changed statement", "changed_statement", keyless(), ""),
        ("swapped signature", "swapped_signature", keyless(), ""),
        ("swapped entry of the log", "swapped_log", keyless(), ""),
        ("changed time of the log", "changed_time", keyless(), ""),
        ("swapped certificate", "swapped_certificate", keyless(), ""),
        ("changed proof of the log", "changed_proof", keyless(), ""),
        ("key instead of a certificate", "key", keyless(), "no key is trusted"),
        ("certificate instead of a key", "good", key(false), ""),
        ("another key", "strange_key", key(false), "signed with another key"),
        ("key of another rule", "key", strange, "signed with another key"),
    ] {
        let Err(failure) = with(&[bundle], signer) else {
            wrong.push(format!("{name}: ACCEPTED"));
            continue;
        };
        let fits = failure.kind == FailureKind::Signature && failure.problem.contains("is refused");
        if !fits || !failure.problem.contains(reason) || failure.cure.is_empty() {
            wrong.push(format!("{name}: {failure:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
