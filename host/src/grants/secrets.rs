//! Secrets: values that the host adds to a provider's requests. Providers and clients never see them.
//!
//! belljar reads each secret once, at start-up. It wipes the memory of a dropped secret. [`Secret`] has no `Debug` and
//! no `Display`. belljar masks secrets in everything that it sends to clients or writes to logs and records.

mod error;
mod principal_path;
mod redactor;
mod secret;

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::grants::home::NoHome;
use crate::grants::trusted_owner::is_trusted_owner;
use crate::model::{Digest, command};

pub use error::{PrincipalSecretError, SecretError, SecretFileProblem, SecretSourceError, SecretTemplateError};
pub use principal_path::{PrincipalPath, PrincipalPathError};
pub use redactor::{LiveSecrets, Redactor, StreamRedactor};
use secret::MAX_LENGTH;
pub use secret::{Secret, SecretValueError};

/// The place from which belljar reads a secret.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum SecretSource {
    /// An environment variable of the belljar process.
    Env(String),
    /// A file that only its owner can read. One line break at the end is not part of the secret. With {principal} in the
    /// path, each caller has a file of its own, which is read for each call.
    File(PathBuf),
}

/// Each secret by name, or why it cannot be used. See [`Secrets::to_plain`].
pub type PlainSecrets = BTreeMap<String, Result<PlainSecret, SecretError>>;

/// One secret as plain data.
#[derive(Clone, Serialize, Deserialize)]
pub enum PlainSecret {
    /// Its value.
    Value(String),
    /// It has one file for each principal. Holds the absolute path with the placeholder.
    PerPrincipal(PathBuf),
}

/// The secrets that the operator declared, by name, or why one cannot be used.
#[derive(Clone, Default)]
pub struct Secrets(BTreeMap<String, Result<StoredSecret, SecretError>>);

/// One secret.
#[derive(Clone)]
enum StoredSecret {
    /// All principals share it.
    Shared(Arc<Secret>),
    /// Each principal has its own, in a file that is read for each call.
    PerPrincipal(PrincipalPath),
}

/// The stand-in for the value of a secret that each principal has for itself. It makes grants complete before the
/// principal is known. No call uses these grants: [`Secrets::for_principal`] gives those of a call.
const STAND_IN: &str = "the-secret-of-each-principal";

impl Secrets {
    /// Reads all secrets. `absolute` makes a path absolute. A secret that cannot be read is an error only where a grant
    /// uses it.
    pub fn read(sources: &BTreeMap<String, SecretSource>, absolute: impl Fn(&Path) -> Result<PathBuf, NoHome>) -> Self {
        let read_one = |name: &str, source: &SecretSource| {
            let value = match source {
                SecretSource::Env(variable) => from_env(variable)?,
                SecretSource::File(path) => {
                    let path = absolute(path)?;
                    match PrincipalPath::find(&path)? {
                        Some(path) => return Ok(StoredSecret::PerPrincipal(path)),
                        None => from_file(&path)?,
                    }
                }
            };
            Ok(StoredSecret::Shared(Arc::new(Secret::new(name, value)?)))
        };
        let read = |(name, source): (&String, &SecretSource)| {
            let unusable = |reason: SecretSourceError| SecretError::Unusable { name: name.clone(), reason };
            (name.clone(), read_one(name, source).map_err(unusable))
        };
        Self(sources.iter().map(read).collect())
    }

    /// The errors of all secrets that cannot be used.
    pub fn failures(&self) -> impl Iterator<Item = &SecretError> {
        self.0.values().filter_map(|secret| secret.as_ref().err())
    }

    /// Makes a set of exactly these secrets.
    pub fn from_secrets(secrets: impl IntoIterator<Item = Arc<Secret>>) -> Self {
        Self(secrets.into_iter().map(|secret| (secret.name.clone(), Ok(StoredSecret::Shared(secret)))).collect())
    }

    /// The directories of those of the secrets `names` that have a file for each principal. Calls read them.
    pub fn directories<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<PathBuf> {
        let directory = |name| match self.0.get(name) {
            Some(Ok(StoredSecret::PerPrincipal(path))) => Some(path.directory().to_owned()),
            _ => None,
        };
        names.into_iter().filter_map(directory).collect()
    }

    /// True if one of the secrets `names` has a file for each principal.
    pub fn has_per_principal<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        names.into_iter().any(|name| matches!(self.0.get(name), Some(Ok(StoredSecret::PerPrincipal(_)))))
    }

    /// The secrets `names` for a call of `principal`: reads its own files. Blocks while it reads.
    ///
    /// # Errors
    /// The first secret of which the principal has no file, or no usable one.
    pub fn for_principal<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
        principal: &str,
    ) -> Result<Self, PrincipalSecretError> {
        let mut own = BTreeMap::new();
        for name in names {
            let Some(stored) = self.0.get(name) else { continue };
            let secret = match stored {
                Ok(StoredSecret::PerPrincipal(path)) => {
                    let fail = |is_absent| PrincipalSecretError {
                        name: name.to_owned(),
                        file: path.below(principal),
                        is_absent,
                    };
                    let value = from_file(&path.file(principal)).map_err(|error| {
                        let is_absent =
                            matches!(&error, SecretSourceError::File { problem: SecretFileProblem::Absent, .. });
                        // The principal learns only that it has no usable file. The log has the path and the reason.
                        tracing::warn!(principal, secret = name, "the secret of a principal cannot be used: {error}");
                        fail(is_absent)
                    })?;
                    let secret = Secret::new(name, value).map_err(|error| {
                        tracing::warn!(principal, secret = name, "the secret of a principal cannot be used: {error}");
                        fail(false)
                    })?;
                    Ok(StoredSecret::Shared(Arc::new(secret)))
                }
                other => other.clone(),
            };
            own.insert(name.to_owned(), secret);
        }
        Ok(Self(own))
    }

    /// A digest of all names, values and errors. It changes when a secret changes.
    pub fn digest(&self) -> Digest {
        let mut all = Zeroizing::new(Vec::new());
        for (name, secret) in &self.0 {
            let why = secret.as_ref().err().map(SecretError::to_string).unwrap_or_default();
            let pattern;
            let (kind, text) = match secret {
                Ok(StoredSecret::Shared(secret)) => (0u8, secret.value.as_bytes()),
                Err(_) => (1, why.as_bytes()),
                Ok(StoredSecret::PerPrincipal(path)) => {
                    pattern = path.pattern();
                    (2, pattern.as_os_str().as_encoded_bytes())
                }
            };
            // Each part follows its length, so that two different lists never have the same bytes.
            for part in [name.as_bytes(), &[kind], text] {
                all.extend_from_slice(&(part.len() as u64).to_le_bytes());
                all.extend_from_slice(part);
            }
        }
        Digest::of(&all)
    }

    /// All secrets as plain data, for another belljar process.
    pub fn to_plain(&self) -> PlainSecrets {
        let plain = |secret: &Result<StoredSecret, SecretError>| match secret {
            Ok(StoredSecret::Shared(secret)) => Ok(PlainSecret::Value(secret.value.as_str().to_owned())),
            Ok(StoredSecret::PerPrincipal(path)) => Ok(PlainSecret::PerPrincipal(path.pattern())),
            Err(why) => Err(why.clone()),
        };
        self.0.iter().map(|(name, secret)| (name.clone(), plain(secret))).collect()
    }

    /// The reverse of [`Secrets::to_plain`].
    pub fn from_plain(plain: PlainSecrets) -> Self {
        let read = |name: &str, plain: PlainSecret| match plain {
            PlainSecret::Value(value) => Ok(StoredSecret::Shared(Arc::new(Secret::new(name, Zeroizing::new(value))?))),
            PlainSecret::PerPrincipal(path) => match PrincipalPath::find(&path)? {
                Some(path) => Ok(StoredSecret::PerPrincipal(path)),
                None => Err(PrincipalPathError::Placeholder.into()),
            },
        };
        let secret = |name: &str, plain: Result<PlainSecret, SecretError>| {
            let unusable = |reason: SecretSourceError| SecretError::Unusable { name: name.to_owned(), reason };
            read(name, plain?).map_err(unusable)
        };
        Self(plain.into_iter().map(|(name, value)| (name.clone(), secret(&name, value))).collect())
    }

    fn get(&self, name: &str) -> Result<Arc<Secret>, SecretError> {
        match self.0.get(name) {
            Some(Ok(StoredSecret::Shared(secret))) => Ok(Arc::clone(secret)),
            Some(Ok(StoredSecret::PerPrincipal(_))) => {
                let secret = Secret::new(name, Zeroizing::new(STAND_IN.to_owned()));
                let unusable =
                    |error: SecretValueError| SecretError::Unusable { name: name.to_owned(), reason: error.into() };
                secret.map(Arc::new).map_err(unusable)
            }
            Some(Err(why)) => Err(why.clone()),
            None => Err(SecretError::Undeclared { name: name.to_owned() }),
        }
    }
}

fn from_env(variable: &str) -> Result<Zeroizing<String>, SecretSourceError> {
    #[expect(clippy::disallowed_methods, reason = "the variable that the operator named")]
    let value = std::env::var(variable);
    value.map(Zeroizing::new).map_err(|error| match error {
        std::env::VarError::NotPresent => SecretSourceError::NotSet(variable.to_owned()),
        std::env::VarError::NotUnicode(_) => SecretSourceError::NotText(variable.to_owned()),
    })
}

fn from_file(path: &Path) -> Result<Zeroizing<String>, SecretSourceError> {
    let fail = |problem| SecretSourceError::File { path: path.display().to_string(), problem };
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => fail(SecretFileProblem::Absent),
        _ => fail(SecretFileProblem::Unreadable(error.to_string())),
    };
    // Do not block: a FIFO must be an error.
    let nonblock = i32::from_ne_bytes(rustix::fs::OFlags::NONBLOCK.bits().to_ne_bytes());
    #[expect(clippy::disallowed_methods, reason = "the file that the operator named")]
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblock).open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(fail(SecretFileProblem::NotAFile));
    }
    let own = (rustix::process::geteuid().as_raw(), own_groups());
    if meta.mode() & 0o077 != 0 && !is_for_own_group((meta.mode(), meta.uid(), meta.gid()), (own.0, &own.1)) {
        let quoted = command::shell_quoted(&path.to_string_lossy());
        return Err(fail(SecretFileProblem::Open(format!("chmod 600 {quoted}"))));
    }
    if !is_trusted_owner(meta.uid()) {
        return Err(fail(SecretFileProblem::Foreign));
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_LENGTH + 2));
    file.take(MAX_LENGTH as u64 + 2).read_to_end(&mut bytes).map_err(unreadable)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| fail(SecretFileProblem::NotText))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(Zeroizing::new(text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

/// The groups of this process.
fn own_groups() -> Vec<u32> {
    let more = rustix::process::getgroups().unwrap_or_default();
    more.into_iter().chain([rustix::process::getegid()]).map(rustix::process::Gid::as_raw).collect()
}

/// True if root keeps the file for the group of a process of another user: its mode, owner and group, and the user and the
/// groups of the process. So Kubernetes mounts a Secret.
fn is_for_own_group((mode, uid, gid): (u32, u32, u32), (own_uid, own_groups): (u32, &[u32])) -> bool {
    mode & 0o077 == 0o040 && uid == 0 && own_uid != 0 && own_groups.contains(&gid)
}

/// A configured text that may name secrets: `Bearer ${secret:name}`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(try_from = "String")]
#[schemars(with = "String", inline)]
pub struct SecretTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Plain(String),
    Secret(String),
}

impl TryFrom<String> for SecretTemplate {
    type Error = SecretTemplateError;

    fn try_from(text: String) -> Result<Self, SecretTemplateError> {
        const OPEN: &str = "${secret:";
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(OPEN) {
            let is_name = |name: &str| {
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            };
            let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
                return Err(SecretTemplateError);
            };
            if !before.is_empty() {
                parts.push(TemplatePart::Plain(before.to_owned()));
            }
            parts.push(TemplatePart::Secret(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Plain(rest.to_owned()));
        }
        Ok(Self(parts))
    }
}

impl SecretTemplate {
    /// The value of the secret of this name, and nothing else.
    pub fn of(name: &str) -> Self {
        Self(vec![TemplatePart::Secret(name.to_owned())])
    }

    /// True if the text names a secret.
    pub fn has_secrets(&self) -> bool {
        !self.secret_names().is_empty()
    }

    /// The names of the secrets in the text, in order.
    pub fn secret_names(&self) -> Vec<&str> {
        let secrets = self.0.iter().filter_map(|part| match part {
            TemplatePart::Secret(name) => Some(name.as_str()),
            TemplatePart::Plain(_) => None,
        });
        secrets.collect()
    }

    /// The text with the values of its secrets, and these secrets.
    ///
    /// # Errors
    /// When a secret is not declared, or could not be read.
    pub fn fill(&self, secrets: &Secrets) -> Result<(Zeroizing<String>, Vec<Arc<Secret>>), SecretError> {
        let mut text = Zeroizing::new(String::new());
        let mut used = Vec::new();
        for part in &self.0 {
            match part {
                TemplatePart::Plain(plain) => text.push_str(plain),
                TemplatePart::Secret(name) => {
                    let secret = secrets.get(name)?;
                    // Copy into a new string: growing the old one in place could leave a part of a secret in freed
                    // memory.
                    let mut longer = Zeroizing::new(String::with_capacity(text.len() + secret.value.len()));
                    longer.push_str(&text);
                    longer.push_str(&secret.value);
                    text = longer;
                    used.push(secret);
                }
            }
        }
        Ok((text, used))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn root_may_keep_a_secret_for_the_group_of_the_process() {
        let is_for_own_group = |mode, uid, gid, own_uid| is_for_own_group((mode, uid, gid), (own_uid, &[7, 8]));
        assert!(is_for_own_group(0o440, 0, 7, 1000) && is_for_own_group(0o640, 0, 8, 1000));
        for (mode, uid, gid, own_uid) in [
            (0o444, 0, 7, 1000),
            (0o460, 0, 7, 1000),
            (0o450, 0, 7, 1000),
            (0o440, 1000, 7, 1000),
            (0o440, 0, 9, 1000),
            (0o440, 0, 7, 0),
        ] {
            assert!(!is_for_own_group(mode, uid, gid, own_uid), "{mode:o} {uid} {gid} {own_uid}");
        }
    }

    #[test]
    fn templates_name_secrets() {
        let template = |text: &str| SecretTemplate::try_from(text.to_owned());
        let bearer = template("Bearer ${secret:api-key}!").unwrap();
        assert_eq!(bearer.secret_names(), ["api-key"]);
        assert!(!template("plain $x ${y}").unwrap().has_secrets());
        for bad in ["${secret:}", "${secret:a b}", "${secret:a"] {
            assert!(template(bad).is_err(), "{bad}");
        }
        let secrets = Secrets::from_secrets([Arc::new(
            Secret::new("api-key", Zeroizing::new("12345678".to_owned())).unwrap_or_else(|why| panic!("{why}")),
        )]);
        assert_eq!(bearer.fill(&secrets).unwrap().0.as_str(), "Bearer 12345678!");
        let why = template("${secret:other}").unwrap().fill(&secrets).err().unwrap().to_string();
        assert!(why.contains("\"other\"") && why.contains("[secrets]"), "{why}");
    }

    #[test]
    fn each_principal_has_its_own_secret() {
        let temp = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str, mode: u32| {
            let path = temp.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        let sources = BTreeMap::from([
            ("own".to_owned(), SecretSource::File("s/{principal}/own".into())),
            ("all".to_owned(), SecretSource::File("all".into())),
        ]);
        write("all", "shared-secret", 0o600);
        write("s/local/own", "secret-of-local", 0o600);
        write("s/key%3aci/own", "secret-of-ci", 0o600);
        write("s/key%3aopen/own", "secret-of-open", 0o644);
        write("s/key%3ashort/own", "short", 0o600);
        let secrets = Secrets::read(&sources, |path| Ok(temp.path().join(path)));
        assert_eq!(secrets.failures().count(), 0);
        // The helper process reads the secrets, and sends them as plain data.
        let secrets = Secrets::from_plain(secrets.to_plain());
        assert_eq!(secrets.directories(["own", "all", "other"]), [temp.path().join("s")]);
        assert!(secrets.has_per_principal(["all", "own"]) && !secrets.has_per_principal(["all", "other"]));
        let template = SecretTemplate::try_from("${secret:own} ${secret:all}".to_owned()).unwrap();
        assert_eq!(template.fill(&secrets).unwrap().0.as_str(), format!("{STAND_IN} shared-secret"));
        let of = |principal: &str| {
            let own = secrets.for_principal(["own", "all"], principal)?;
            Ok(template.fill(&own).unwrap().0.as_str().to_owned())
        };
        assert_eq!(of("local"), Ok("secret-of-local shared-secret".to_owned()));
        assert_eq!(of("key:ci"), Ok("secret-of-ci shared-secret".to_owned()));
        let error = |file: &str, is_absent| {
            Err(PrincipalSecretError { name: "own".to_owned(), file: format!("{file}/own"), is_absent })
        };
        assert_eq!(of("anonymous"), error("anonymous", true));
        assert_eq!(of("../local"), error("%2e%2e%2flocal", true));
        assert_eq!(of("key:open"), error("key%3aopen", false));
        assert_eq!(of("key:short"), error("key%3ashort", false));
        // The digest, which cached answers depend on, changes with the value.
        let digest = |principal| secrets.for_principal(["own"], principal).unwrap().digest();
        assert_ne!(digest("local"), digest("key:ci"));
    }

    #[test]
    fn files_must_be_private() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("token");
        let read = || {
            let sources = BTreeMap::from([("t".to_owned(), SecretSource::File("token".into()))]);
            let secrets = Secrets::read(&sources, |path| Ok(temp.path().join(path)));
            secrets.get("t").map(|secret| secret.value.as_str().to_owned()).map_err(|why| why.to_string())
        };
        assert!(read().unwrap_err().contains("token"));
        std::fs::write(&path, "a-long-token\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(read().unwrap_err().contains("chmod 600"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(read().unwrap(), "a-long-token");
        for (bad, says) in [("", "empty"), ("short\n", "fewer than 8"), ("two\nlines\nlong", "line break")] {
            std::fs::write(&path, bad).unwrap();
            assert!(read().unwrap_err().contains(says), "{bad:?}");
        }
        let unset = BTreeMap::from([("e".to_owned(), SecretSource::Env("BELLJAR_NO_SUCH_VARIABLE".to_owned()))]);
        assert!(
            Secrets::read(&unset, |path| Ok(path.to_owned()))
                .failures()
                .any(|why| why.to_string().contains("is not set"))
        );
    }
}
