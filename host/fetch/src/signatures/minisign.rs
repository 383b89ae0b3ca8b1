//! minisign, for files without a registry. Its signature is over the bytes of the file, so it is announced first and checked at
//! the end of the download.

use belljar_fetch_protocol::{AnnouncedMinisign, FailureKind, Required, Signature, SignatureKind, Standing};
use minisign_verify::{PublicKey, StreamVerifier};

use super::rules::Minisign;
use crate::digest::hex;
use crate::failure::{Outcome, failure};
use crate::text;

/// A signature that can be read, and the rule for its key.
pub(crate) struct Announced {
    signature: minisign_verify::Signature,
    rule: Option<(String, PublicKey, String)>,
}

/// Checks a signature while bytes arrive.
pub(crate) struct Stream<'a> {
    verifier: StreamVerifier<'a>,
    scope: &'a str,
    number: &'a str,
}

/// Finds the rule for a signature. Fails if a required signature is missing or no rule has its key.
pub(super) fn announce(
    rules: &[Minisign],
    required: Required,
    signature: Option<&str>,
    reference: &str,
) -> Outcome<Option<Announced>> {
    let refuse = |problem: String, cure: &str| Err(failure(FailureKind::Signature, problem, cure));
    let Some(text) = signature else {
        if required == Required::Nothing {
            return Ok(None);
        }
        let problem = format!("\"{reference}\" is not signed: there is no \"{reference}.minisig\"");
        return refuse(
            problem,
            "ask its publisher to sign it with minisign, or pass --unsigned if you trust it without",
        );
    };
    let decoded = minisign_verify::Signature::decode(text);
    let (Ok(signature), Some(number)) = (decoded, number(text.lines().nth(1).unwrap_or_default())) else {
        let problem = format!("\"{reference}.minisig\" is not a minisign signature");
        return if required == Required::Nothing {
            Ok(None)
        } else {
            refuse(problem, "ask its publisher to sign it again")
        };
    };
    // `verify_stream` compares the key numbers.
    let rule = rules.iter().find(|rule| rule.key.verify_stream(&signature).is_ok());
    let rule = rule.map(|rule| (rule.scope.clone(), rule.key.clone(), number.clone()));
    if rule.is_none() && required != Required::Nothing {
        let problem = format!("\"{reference}\" is signed with the minisign key {number}, which no rule names");
        return refuse(
            problem,
            "add this key to the rules of trust if you trust it; keys of minisign before 0.10 sign without a hash and are not read",
        );
    }
    Ok(Some(Announced { signature, rule }))
}

impl Announced {
    /// What belljar shows before the download.
    pub(crate) fn shown(&self) -> AnnouncedMinisign {
        AnnouncedMinisign {
            trusted_key: self.rule.as_ref().map(|(_, _, number)| number.clone()),
            comment: text::clean(self.signature.trusted_comment(), text::NAME),
        }
    }

    /// Checks the signature with the bytes that arrive. `None` if no rule has its key.
    pub(crate) fn stream(&self) -> Option<Stream<'_>> {
        let (scope, key, number) = self.rule.as_ref()?;
        let verifier = key.verify_stream(&self.signature).ok()?;
        Some(Stream { verifier, scope, number })
    }
}

impl Stream<'_> {
    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.verifier.update(bytes);
    }

    /// The signature, if it fits the bytes.
    pub(crate) fn finish(mut self, reference: &str) -> Outcome<Signature> {
        self.verifier.finalize().map_err(|_| {
            let problem = format!("the minisign signature of \"{reference}\" does not fit the file");
            failure(FailureKind::Signature, problem, "ask its publisher to sign it again")
        })?;
        Ok(Signature {
            kind: SignatureKind::Minisign,
            signer: self.number.to_owned(),
            issuer: None,
            time: None,
            standing: Standing::Trusted(self.scope.to_owned()),
        })
    }
}

/// The key number in the second line of a signature, as minisign prints it: the bytes in reverse order.
fn number(line: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(line.trim()).ok()?;
    let mut number = bytes.get(2..10)?.to_vec();
    number.reverse();
    Some(hex(&number).to_uppercase())
}
