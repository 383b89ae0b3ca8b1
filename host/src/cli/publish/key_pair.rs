//! The key that signs: reads it from a file or a secret, and makes new ones.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use zeroize::Zeroizing;

use crate::cli::output;
use crate::config::Config;
use crate::grants::secrets::SecretSource;
use crate::model::{command, text};
use crate::server::failure::Failure;
use crate::server::files;
use crate::server::publishing::signing_key::{SigningKey, SigningKeyError};

/// The flags that name a key.
#[derive(Args)]
pub(in crate::cli) struct SignFlags {
    /// Sign with this private key in PEM (PKCS#8): P-256, P-384 or Ed25519.
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// Sign with the private key in this secret of the configuration.
    #[arg(long, value_name = "NAME", conflicts_with = "sign_key")]
    sign_secret: Option<String>,
}

impl SignFlags {
    /// True if a flag names a key.
    pub(in crate::cli) fn is_named(&self) -> bool {
        self.sign_key.is_some() || self.sign_secret.is_some()
    }

    /// The key. `None` if no flag names one.
    ///
    /// # Errors
    /// If it cannot be read, others can read it, or it is none.
    pub(in crate::cli) fn read(&self, config: &Config) -> Result<Option<SigningKey>, Failure> {
        let source = match (&self.sign_key, &self.sign_secret) {
            (Some(path), _) => SecretSource::File(path.clone()),
            (None, Some(name)) => config.secrets.get(name).cloned().ok_or_else(|| {
                let name = text::excerpt(name, 100);
                Failure::Misused(format!(
                    "there is no secret \"{name}\"; declare it: [secrets] {name} = {{ file = \"PATH\" }}, or pass --sign-key FILE"
                ))
            })?,
            (None, None) => return Ok(None),
        };
        let (shown, text) = match &source {
            SecretSource::File(path) => (path.display().to_string(), read_private(path)?),
            SecretSource::Env(variable) => {
                #[expect(clippy::disallowed_methods, reason = "the variable that the configuration names")]
                let value = std::env::var(variable).map(Zeroizing::new);
                let unset =
                    |_| Failure::Failed(format!("the variable \"{variable}\" holds no key; set it, and try again"));
                (variable.clone(), value.map_err(unset)?)
            }
        };
        let shown = text::excerpt(&shown, 200);
        let refuse = |why: SigningKeyError| Failure::Failed(format!("\"{shown}\" cannot sign: {why}"));
        SigningKey::parse(&text).map(Some).map_err(refuse)
    }
}

/// Reads a file that nobody else can read or change.
fn read_private(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let shown = text::excerpt(&path.display().to_string(), 200);
    let text = files::read_protected(path)?.map(Zeroizing::new);
    let text = text.ok_or_else(|| {
        Failure::Failed(format!(
            "there is no file \"{shown}\"; to make a key pair: {}",
            command::line(["publish", "--key-pair", "FILE"])
        ))
    })?;
    if files::is_readable_by_others(path) {
        let quoted = command::shell_quoted(&path.to_string_lossy());
        return Err(Failure::Failed(format!("other users can read \"{shown}\"; run: chmod 600 {quoted}")));
    }
    Ok(text)
}

/// Writes a new private key, and its public key beside it. Changes no file that exists.
pub(in crate::cli) fn make(path: &Path) -> Result<ExitCode, Failure> {
    let public = path.with_extension("pub");
    if public == path {
        return Err(Failure::Misused(
            "a private key cannot end with \".pub\"; name another file, such as acme.key".to_owned(),
        ));
    }
    for file in [path, &public] {
        if file.symlink_metadata().is_ok() {
            let shown = text::excerpt(&file.display().to_string(), 200);
            return Err(Failure::Failed(format!("\"{shown}\" exists already; name another file")));
        }
    }
    let (key, private) = SigningKey::generate().map_err(|why| Failure::Failed(why.to_string()))?;
    let lock = files::lock_for_writing(&[path])?;
    files::replace(&lock, path, private.as_bytes(), 0o600)?;
    files::replace(&lock, &public, key.public_pem(), 0o644)?;
    let [shown, shown_public] = [path, &public].map(|file| text::excerpt(&file.display().to_string(), 200));
    output::print(&format!(
        "Wrote \"{shown}\", which signs: keep it secret. Wrote \"{shown_public}\", which you give to your users.\n\
         The signer is {}. Users write into their configuration:\n\n\
         [[trust.signers]]\nfrom = \"REGISTRY/NAMESPACE\"\nkey = \"{shown_public}\"\n",
        key.name()
    ))?;
    Ok(ExitCode::SUCCESS)
}
