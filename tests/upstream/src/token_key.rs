//! A key with which tests sign access tokens.

use rcgen::{KeyPair, PKCS_ED25519, SigningKey};

/// An Ed25519 key.
pub struct TokenKey(KeyPair);

impl TokenKey {
    /// Creates a key.
    pub fn new() -> TokenKey {
        TokenKey(KeyPair::generate_for(&PKCS_ED25519).expect("a key"))
    }

    /// The public key: 32 bytes, as in the member `x` of a JSON Web Key.
    pub fn public(&self) -> Vec<u8> {
        self.0.public_key_raw().to_vec()
    }

    /// The signature of these bytes.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.sign(bytes).expect("a signature")
    }
}

impl Default for TokenKey {
    fn default() -> Self {
        Self::new()
    }
}
