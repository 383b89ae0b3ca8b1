//! Reads the configuration and everything that belongs to it: secrets, certificates, network settings and pins.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directories;
use super::files::{self, FileError};
use super::location::{LocationArgs, ReadConfigError, read_config_input};
use super::pins::{self, Pinning};
use super::replicas::{self, ReplicaKeyError};
use crate::config::{self, AuthConfig, Config, KeySetFiles};
use crate::grants::network::{Network, NetworkSettings, RootsError};
use crate::grants::secrets::Secrets;
use crate::policy::cedar::{CedarError, CedarPolicies};

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    /// The command line names a file that does not exist.
    #[error("there is no configuration \"{}\"", .0.display())]
    Absent(PathBuf),
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ReadConfigError),
    /// The configuration is invalid.
    #[error(transparent)]
    Wrong(#[from] config::Error),
    /// The certificates that it names cannot be used.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    /// A key set that it names cannot be read.
    #[error(transparent)]
    KeySet(#[from] KeySetFileError),
    /// The key of the replicas cannot be used.
    #[error(transparent)]
    ReplicaKey(#[from] ReplicaKeyError),
    /// The file of policies cannot be used.
    #[error(transparent)]
    Policies(#[from] PolicyFileError),
}

/// Reads the configuration that the command line names, or the one of the working directory; without either, takes the
/// defaults. Also reads the files that the second wall will hide from this process: the lock, secrets, certificates.
/// `own`: the addresses on which belljar itself listens.
///
/// # Errors
/// If the named file does not exist, or the configuration cannot be read or is invalid.
pub(crate) fn config(at: &LocationArgs, own: &[SocketAddr], pinning: Pinning) -> Result<Config, ConfigurationError> {
    complete(file(at)?, own, pinning)
}

/// The first half of [`config`]: reads and checks the configuration alone, without the files that it names.
///
/// # Errors
/// If the named file does not exist, or the configuration cannot be read or is invalid.
pub(crate) fn file(at: &LocationArgs) -> Result<Config, ConfigurationError> {
    let (path, input) = read_config_input(at)?;
    if input.file.is_none() && at.config.is_some() && !at.is_config_optional {
        return Err(ConfigurationError::Absent(path));
    }
    Ok(Config::read(input)?)
}

/// The second half of [`config`]: reads the files that the second wall will hide.
///
/// # Errors
/// If the operator's certificates, a key set or the key of the replicas cannot be used.
pub(crate) fn complete(mut config: Config, own: &[SocketAddr], pinning: Pinning) -> Result<Config, ConfigurationError> {
    read_ambient(&mut config, own)?;
    config.key_sets = read_key_sets(config.auth.as_ref())?;
    config.replica_key = config.replicas.as_ref().map(replicas::read_key).transpose()?;
    read_policies(&mut config)?;
    pins::apply(&mut config, pinning);
    Ok(config)
}

/// Why the file of policies cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the policies in \"{}\" cannot be used: {problem}", path.display())]
pub(crate) struct PolicyFileError {
    /// The file.
    path: PathBuf,
    /// The reason.
    problem: PolicyFileProblem,
}

/// The problem of a file of policies.
#[derive(Debug, thiserror::Error)]
enum PolicyFileProblem {
    /// The file cannot be read, or other users can change it.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// The configuration names it, and it does not exist.
    #[error("it does not exist")]
    Absent,
    /// Its text is refused.
    #[error(transparent)]
    Invalid(CedarError),
}

/// Reads the file of policies, if there is one, into `config`.
///
/// # Errors
/// If the configuration names the file and it does not exist, or the file cannot be read, or is not valid.
pub(crate) fn read_policies(config: &mut Config) -> Result<(), PolicyFileError> {
    let text = policy_text(config)?;
    set_policies(config, text.as_deref())
}

/// The text of the file of policies. `None` if the configuration does not name it and it does not exist.
///
/// # Errors
/// See [`read_policies`].
pub(crate) fn policy_text(config: &Config) -> Result<Option<String>, PolicyFileError> {
    let fail = |problem| PolicyFileError { path: config.policy_file.clone(), problem };
    match files::read_protected(&config.policy_file).map_err(|error| fail(error.into()))? {
        None if config.needs_policy_file => Err(fail(PolicyFileProblem::Absent)),
        text => Ok(text),
    }
}

/// Parses the text of the file of policies into `config`.
///
/// # Errors
/// If it is not valid.
pub(crate) fn set_policies(config: &mut Config, text: Option<&str>) -> Result<(), PolicyFileError> {
    let policies = text.map(CedarPolicies::parse).transpose().map_err(|error| PolicyFileError {
        path: config.policy_file.clone(),
        problem: PolicyFileProblem::Invalid(error),
    })?;
    config.policies = policies.map(Arc::new);
    Ok(())
}

/// The longest file of a key set, in bytes.
const MAX_KEY_SET: usize = 256 << 10;

/// Why the key set of an issuer cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("auth.issuers: the key set \"{}\" cannot be read: {problem}", path.display())]
pub(crate) struct KeySetFileError {
    /// The file.
    path: PathBuf,
    /// The reason.
    problem: KeySetFileProblem,
}

/// The problem of a file of a key set.
#[derive(Debug, thiserror::Error)]
enum KeySetFileProblem {
    /// The file cannot be read, or other users can change it.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// It does not exist.
    #[error("it does not exist; to find the keys in the metadata of the issuer, remove  jwks")]
    Absent,
    /// It is too long.
    #[error("it has more than {} KiB", MAX_KEY_SET >> 10)]
    TooLong,
}

/// Reads the key sets that the configuration names.
///
/// # Errors
/// The first file that cannot be read.
pub(crate) fn read_key_sets(auth: Option<&AuthConfig>) -> Result<KeySetFiles, KeySetFileError> {
    let mut all = KeySetFiles::new();
    for path in auth.into_iter().flat_map(AuthConfig::key_set_files) {
        let fail = |problem| KeySetFileError { path: path.clone(), problem };
        let text = files::read_protected(path).map_err(|error| fail(error.into()))?;
        let text = text.ok_or_else(|| fail(KeySetFileProblem::Absent))?;
        if text.len() > MAX_KEY_SET {
            return Err(fail(KeySetFileProblem::TooLong));
        }
        all.insert(path.clone(), text);
    }
    Ok(all)
}

/// Fills in `config.ambient`: reads the secrets, and prepares the network if any mount may connect.
///
/// # Errors
/// If the operator's certificates cannot be used.
pub(crate) fn read_ambient(config: &mut Config, own: &[SocketAddr]) -> Result<(), CertificatesError> {
    config.ambient.logins = config.file.as_ref().map(|file| directories::logins(&config.state, file));
    config.ambient.secrets = Secrets::read(&config.secrets, |path| config.ambient.absolute(path));
    config.ambient.secrets.failures().for_each(|why| tracing::warn!("{why}"));
    if !config.ports().is_empty() {
        config.ambient.network = Some(Arc::new(network(config, own)?));
    }
    Ok(())
}

/// Why the certificates that the operator names cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("network.ca: \"{}\": {problem}", path.display())]
pub(crate) struct CertificatesError {
    /// The file of the certificates.
    path: PathBuf,
    /// The reason.
    problem: CertificatesProblem,
}

/// The problem of a file of certificates.
#[derive(Debug, thiserror::Error)]
enum CertificatesProblem {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(io::Error),
    /// The file has no usable certificate.
    #[error(transparent)]
    Useless(RootsError),
}

/// The network of HTTP grants: DNS settings, root certificates, and `own`, the addresses on which belljar itself
/// listens.
///
/// # Errors
/// If the operator's certificates cannot be used.
pub(crate) fn network(config: &Config, own: &[SocketAddr]) -> Result<Network, CertificatesError> {
    let ca = config.network.ca.as_deref();
    let fail = |problem| CertificatesError { path: ca.map(Path::to_owned).unwrap_or_default(), problem };
    #[expect(clippy::disallowed_methods, reason = "the operator's certificates")]
    let read = ca.map(std::fs::read).transpose();
    let roots = read.map_err(|error| fail(CertificatesProblem::Unreadable(error)))?;
    let settings = NetworkSettings { dns: config.network.dns.clone(), roots, own_addresses: own.to_vec() };
    Network::read(&settings).map_err(|error| fail(CertificatesProblem::Useless(error)))
}
