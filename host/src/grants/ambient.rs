//! The ambient authority that grants may use while they are configured.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::home::NoHome;
use super::network::Network;
use super::outside::OutsideOpener;
use super::secrets::Secrets;

/// What [`super::Grant::configure`] may use of the host: paths, secrets and the network.
#[derive(Clone, Default)]
pub struct Ambient {
    /// The directory of the configuration file: the start of relative host paths.
    pub base: PathBuf,
    /// The operator's home directory, for `~/`.
    pub home: Option<PathBuf>,
    /// The files and directories of belljar, which no grant may cover: plugins, configuration, lock, cache, state.
    pub reserved: Vec<PathBuf>,
    /// The operator's secrets.
    pub secrets: Secrets,
    /// The directory of the logins at authorization servers. `None` without a configuration file.
    pub logins: Option<PathBuf>,
    /// Resolver and certificates for connections. `None` if no mount may connect.
    pub network: Option<Arc<Network>>,
    /// Opens what the second wall hides from this process. `None`: this process opens everything itself.
    pub outside: Option<Arc<dyn OutsideOpener>>,
}

impl Ambient {
    /// The same authority for a mount in a worker process: `outside` opens what the second wall hides from this one.
    #[must_use]
    pub fn with_outside(&self, outside: &Arc<dyn OutsideOpener>) -> Self {
        let network = self.network.as_ref().map(|network| Arc::new(network.with_outside(outside)));
        Self { network, outside: Some(Arc::clone(outside)), ..self.clone() }
    }

    /// Makes a path of the configuration absolute. `~/` stands for the home directory. Other relative paths start at
    /// the configuration file.
    ///
    /// # Errors
    /// When the path starts with `~` and no home directory is known.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, NoHome> {
        if let Ok(below) = path.strip_prefix("~") {
            let home = self.home.as_ref().ok_or(NoHome)?;
            return Ok(home.join(below));
        }
        Ok(self.base.join(path))
    }
}
