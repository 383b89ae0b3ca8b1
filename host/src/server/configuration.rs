//! Reads the configuration and everything that belongs to it: secrets, certificates, network settings and pins.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::location::{LocationArgs, ReadConfigError, read_config_input};
use super::pins::{self, Pinning};
use crate::config::{self, Config};
use crate::grants::network::{Network, NetworkSettings, RootsError};
use crate::grants::secrets::Secrets;

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
}

/// Reads the configuration that the command line names, or the one of the working directory; without either, takes the
/// defaults. Also reads the files that the second wall will hide from this process: the lock, secrets, certificates.
/// `own`: the addresses on which belljar itself listens.
///
/// # Errors
/// If the named file does not exist, or the configuration cannot be read or is invalid.
pub(crate) fn config(at: &LocationArgs, own: &[SocketAddr], pinning: Pinning) -> Result<Config, ConfigurationError> {
    let (path, input) = read_config_input(at)?;
    if input.file.is_none() && at.config.is_some() && !at.is_config_optional {
        return Err(ConfigurationError::Absent(path));
    }
    let mut config = Config::read(input)?;
    read_ambient(&mut config, own)?;
    pins::apply(&mut config, pinning);
    Ok(config)
}

/// Fills in `config.ambient`: reads the secrets, and prepares the network if any mount may connect.
///
/// # Errors
/// If the operator's certificates cannot be used.
pub(crate) fn read_ambient(config: &mut Config, own: &[SocketAddr]) -> Result<(), CertificatesError> {
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
