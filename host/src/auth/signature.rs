//! Signatures of tokens, verified by ring.
//!
//! `jsonwebtoken` would add a layer around the same calls of ring: a provider for the whole process that panics where it
//! is not installed, its own lenient parser, and its own clock. The strict parser of [`super::signed_token`] is needed
//! anyway, so ring is called directly.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};

use crate::config::TokenAlgorithm;

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicKey {
    /// A point on P-256, uncompressed.
    P256(Vec<u8>),
    /// A point on P-384, uncompressed.
    P384(Vec<u8>),
    /// A point on edwards25519.
    Ed25519(Vec<u8>),
    /// Modulus and exponent, big-endian, without leading zeros.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

/// The function of ring for an algorithm.
enum Verification {
    Ecdsa(&'static EcdsaVerificationAlgorithm),
    Ed25519,
    Rsa(&'static RsaParameters),
}

fn verification(algorithm: TokenAlgorithm) -> Verification {
    match algorithm {
        TokenAlgorithm::Es256 => Verification::Ecdsa(&ECDSA_P256_SHA256_FIXED),
        TokenAlgorithm::Es384 => Verification::Ecdsa(&ECDSA_P384_SHA384_FIXED),
        TokenAlgorithm::EdDsa | TokenAlgorithm::Ed25519 => Verification::Ed25519,
        TokenAlgorithm::Rs256 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        TokenAlgorithm::Rs384 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        TokenAlgorithm::Rs512 => Verification::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        TokenAlgorithm::Ps256 => Verification::Rsa(&RSA_PSS_2048_8192_SHA256),
        TokenAlgorithm::Ps384 => Verification::Rsa(&RSA_PSS_2048_8192_SHA384),
        TokenAlgorithm::Ps512 => Verification::Rsa(&RSA_PSS_2048_8192_SHA512),
    }
}

impl PublicKey {
    /// True if keys of this kind make signatures of `algorithm`.
    pub(super) fn fits(&self, algorithm: TokenAlgorithm) -> bool {
        match self {
            Self::P256(_) => algorithm == TokenAlgorithm::Es256,
            Self::P384(_) => algorithm == TokenAlgorithm::Es384,
            Self::Ed25519(_) => matches!(algorithm, TokenAlgorithm::EdDsa | TokenAlgorithm::Ed25519),
            Self::Rsa { .. } => matches!(verification(algorithm), Verification::Rsa(_)),
        }
    }

    /// True if `signature` is this key's signature of `message`. False for an algorithm that does not fit the key.
    pub(super) fn verifies(&self, algorithm: TokenAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        let verified = match (self, verification(algorithm)) {
            (Self::P256(point) | Self::P384(point), Verification::Ecdsa(curve)) => {
                UnparsedPublicKey::new(curve, point).verify(message, signature)
            }
            (Self::Ed25519(point), Verification::Ed25519) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            (Self::Rsa { modulus: n, exponent: e }, Verification::Rsa(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        verified.is_ok()
    }
}
