//! Judges the signatures of a manifest: is the bundle valid, is it about this manifest, and is its signer trusted?
//!
//! A bundle counts if it is a signature of `cosign sign`, or SLSA provenance: its signer then says "I release this", or "I built
//! this". A statement of another type, such as a report of a scanner, approves nothing.

mod key_alone;
mod minisign;
mod provenance;
mod provider;
mod reasons;
mod rules;

use belljar_fetch_protocol::{
    Failure, FailureKind, Provenance, RefusedSignature, Required, Resolved, Signature, SignatureKind, Standing, Trust,
};
use sigstore_verify::types::bundle::VerificationMaterialContent;
use sigstore_verify::types::{Bundle, SignatureContent, Statement};
use sigstore_verify::{PublicKeyVerificationPolicy, VerificationPolicy, VerificationResult};

use crate::failure::{Outcome, failure};
use crate::text;
pub(crate) use minisign::{Announced, Stream};
use rules::{Rules, key_name};

/// The predicate type of `cosign sign`.
const COSIGN_SIGN: &str = "https://sigstore.dev/cosign/sign/v1";

/// What signatures are checked against.
pub(crate) struct Judge {
    rules: Rules,
    required: Required,
}

/// What was found so far.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) signatures: Vec<Signature>,
    pub(crate) refused: Vec<RefusedSignature>,
    pub(crate) provenance: Vec<Provenance>,
}

/// A valid bundle.
struct Valid {
    signature: Signature,
    statement: Option<Statement>,
}

impl Judge {
    /// What `trust` says about the source with this scope.
    pub(crate) fn new(trust: &Trust, scope: &str) -> Outcome<Self> {
        Ok(Self { rules: Rules::of(trust, scope)?, required: trust.required })
    }

    /// Judges one bundle that is said to be about the document `bytes`.
    pub(crate) fn judge(&self, bundle: &[u8], bytes: &[u8], findings: &mut Findings) {
        match self.check(bundle, bytes) {
            Ok(valid) => {
                if let Some(statement) = &valid.statement {
                    findings.provenance.extend(provenance::read(statement, &valid.signature));
                }
                if !findings.signatures.contains(&valid.signature) {
                    findings.signatures.push(valid.signature);
                }
            }
            Err(refused) => findings.refuse(*refused),
        }
    }

    fn check(&self, bundle: &[u8], bytes: &[u8]) -> Result<Valid, Box<RefusedSignature>> {
        let text = String::from_utf8_lossy(bundle);
        let bundle =
            Bundle::from_json(&text).map_err(|error| unproven(&format!("it is not a Sigstore bundle: {error}")))?;
        let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
            return Err(unproven(
                "it signs bytes and not a statement about an image; sign with cosign 3: cosign sign IMAGE",
            ));
        };
        let statement: Option<Statement> = serde_json::from_slice(envelope.payload.as_bytes()).ok();
        let signature = match &bundle.verification_material.content {
            VerificationMaterialContent::PublicKey(_) => self.with_keys(&bundle, bytes)?,
            _ => self.with_certificate(&bundle, bytes)?,
        };
        // The statement is read from bytes whose signature is checked now.
        let kind = statement.as_ref().map(|statement| statement.predicate_type.as_str()).unwrap_or_default();
        if kind != COSIGN_SIGN && !provenance::is_provenance(kind) {
            let reason =
                format!("it is a statement of the type \"{}\", which approves nothing", text::clean(kind, text::NAME));
            return Err(Box::new(RefusedSignature {
                signer: Some(signature.signer),
                issuer: signature.issuer,
                reason,
            }));
        }
        Ok(Valid { signature, statement })
    }

    fn with_certificate(&self, bundle: &Bundle, bytes: &[u8]) -> Result<Signature, Box<RefusedSignature>> {
        let mut reason = String::new();
        let mut stranger = None;
        for trusted in &self.rules.roots {
            let result = match trusted.verifier.verify(bytes, bundle, &VerificationPolicy::any_identity()) {
                Ok(result) if result.certificate_verified() && result.sct_verified() && result.tlog_verified() => {
                    result
                }
                Ok(_) => continue,
                Err(error) => {
                    reason = reasons::shown(&error);
                    continue;
                }
            };
            let signer = result.identity().map(|identity| identity.as_str().to_owned()).unwrap_or_default();
            let issuer = result.issuer();
            // The operator decides about the identity that is shown.
            if text::clean(&signer, text::NAME) != signer || signer.is_empty() {
                reason = "its identity has letters that cannot be shown, or is empty".to_owned();
                continue;
            }
            let standing = match self.rules.keyless(&trusted.root, &signer, issuer) {
                Some(rule) => Standing::Trusted(rule.scope.clone()),
                None if self.rules.is_empty() => Standing::NoRule,
                None => {
                    stranger = Some(RefusedSignature {
                        signer: Some(signer),
                        issuer: issuer.and_then(|issuer| text::clean_some(issuer, text::NAME)),
                        reason: self.rules.misfit(issuer).to_owned(),
                    });
                    continue;
                }
            };
            return Ok(Signature {
                kind: SignatureKind::Keyless,
                signer,
                issuer: issuer.and_then(|issuer| text::clean_some(issuer, text::NAME)),
                time: time(&result),
                standing,
            });
        }
        Err(stranger.map_or_else(|| unproven(&reason), Box::new))
    }

    fn with_keys(&self, bundle: &Bundle, bytes: &[u8]) -> Result<Signature, Box<RefusedSignature>> {
        let mut reason = "it is made with a key, and no key is trusted for this source".to_owned();
        for rule in &self.rules.keys {
            let policy = PublicKeyVerificationPolicy::new(rule.key.clone());
            let verified = match &rule.log {
                Some(_) if bundle.verification_material.tlog_entries.is_empty() => Err("no log lists it".to_owned()),
                Some(log) => log
                    .verify(bytes, bundle, &policy)
                    .map(|result| time(&result))
                    .map_err(|error| reasons::shown(&error)),
                None => key_alone::verify(bundle, &rule.key, bytes).map(|()| None),
            };
            match verified {
                Ok(time) => {
                    return Ok(Signature {
                        kind: SignatureKind::Key,
                        signer: key_name(&rule.key),
                        issuer: None,
                        time,
                        standing: Standing::Trusted(rule.scope.clone()),
                    });
                }
                Err(error) => reason = text::clean(&error, text::SENTENCE),
            }
        }
        Err(unproven(&reason))
    }

    /// Copies the findings. Fails if the source does not have the required signature. `old`: there is a signature in the form
    /// that cosign 2 wrote.
    pub(crate) fn decide(&self, mut findings: Findings, old: bool, into: &mut Resolved) -> Outcome<()> {
        let is_trusted = |signature: &Signature| matches!(signature.standing, Standing::Trusted(_));
        findings.signatures.sort_by_key(|signature| !is_trusted(signature));
        let enough = match self.required {
            Required::Nothing => true,
            Required::Signature => !findings.signatures.is_empty(),
            Required::Rule => findings.signatures.iter().any(is_trusted),
        };
        if !enough {
            return Err(self.refusal(&findings, old, &into.reference));
        }
        into.signatures = findings.signatures;
        into.refused = findings.refused;
        into.provenance = findings.provenance;
        Ok(())
    }

    fn refusal(&self, findings: &Findings, old: bool, reference: &str) -> Box<Failure> {
        if let Some(stranger) = findings.signatures.first() {
            let problem = format!("\"{reference}\" is signed by \"{}\", whom no rule names", stranger.signer);
            return failure(FailureKind::Signature, problem, "add this signer to the rules of trust if you trust it");
        }
        if let Some(refused) = findings.refused.first() {
            let who = refused.signer.as_ref().map(|signer| format!(" by \"{signer}\"")).unwrap_or_default();
            let from = refused.issuer.as_ref().map(|issuer| format!(" of \"{issuer}\"")).unwrap_or_default();
            let others = match findings.refused.len() {
                1 => String::new(),
                all => format!("; {} more are refused too", all - 1),
            };
            let problem = format!("the signature{who}{from} of \"{reference}\" is refused: {}{others}", refused.reason);
            return failure(
                FailureKind::Signature,
                problem,
                "ask its publisher to sign it, or correct the rules of trust",
            );
        }
        if old {
            let problem = format!("the signature of \"{reference}\" has the form of cosign 2, which is not read");
            return failure(
                FailureKind::Signature,
                problem,
                "ask its publisher to sign it with cosign 3, or pass --unsigned",
            );
        }
        let problem = format!("\"{reference}\" is not signed");
        failure(
            FailureKind::Signature,
            problem,
            "ask its publisher to sign it, or pass --unsigned if you trust it without",
        )
    }

    /// Looks at the minisign signature beside a file.
    pub(crate) fn announce(&self, signature: Option<&str>, reference: &str) -> Outcome<Option<Announced>> {
        minisign::announce(&self.rules.minisign, self.required, signature, reference)
    }
}

impl Findings {
    /// Adds a signature that does not count.
    pub(crate) fn refuse(&mut self, refused: RefusedSignature) {
        if !self.refused.contains(&refused) {
            self.refused.push(refused);
        }
    }
}

/// A signature that nobody proves to be anybody's.
pub(crate) fn unproven(reason: &str) -> Box<RefusedSignature> {
    Box::new(RefusedSignature { signer: None, issuer: None, reason: text::clean(reason, text::SENTENCE) })
}

/// The earliest confirmed time of a signature.
fn time(result: &VerificationResult) -> Option<i64> {
    result.verified_timestamps().iter().map(|time| time.as_second()).min()
}
