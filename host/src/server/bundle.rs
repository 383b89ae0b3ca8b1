//! A bundle: one file with a configuration, its lock, its policies and its components. It is JSON, so it has no paths, no
//! links and no modes. It has no secret: a configuration only says where secrets are.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::lock::{Lock, LockError};
use crate::model::{Digest, MountName, text};

/// The version of the format.
const VERSION: u64 = 1;

/// The most components.
const MAX_COMPONENTS: usize = 1000;

/// The most bytes of a bundle.
pub(crate) const MAX_BYTES: u64 = 4 << 30;

/// The keys of a configuration that belong to one machine: its places, and how it is reached.
const OF_ONE_MACHINE: [&str; 3] = ["plugins", "cache", "state"];

/// See the module.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bundle {
    /// The version of the format.
    belljar: u64,
    /// The text of `belljar.toml`, without the places of one machine.
    pub(crate) configuration: String,
    /// The text of `belljar.lock`.
    pub(crate) lock: Option<String>,
    /// The text of the policies.
    pub(crate) policy: Option<String>,
    /// The components, by the names of their files in the plugin directory.
    components: BTreeMap<String, Component>,
}

/// The bytes of a component, in base64.
#[derive(Debug)]
struct Component(Vec<u8>);

/// Why a file is no bundle.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BundleError {
    /// It is no JSON of this form.
    #[error("it is no bundle that \"belljar export\" wrote: {0}")]
    Form(String),
    /// It has another version.
    #[error("it is a bundle of version {0}, and this belljar reads version {VERSION}; use a newer belljar")]
    Version(u64),
    /// The name of a component could leave the plugin directory, or hide there.
    #[error(
        "the component \"{0}\" has no name that a mount can have; expected small letters, digits and \"-\", and \".wasm\""
    )]
    Name(String),
    /// Too many components.
    #[error("it has {0} components, and at most {MAX_COMPONENTS} are read")]
    TooMany(usize),
    /// The lock is damaged.
    #[error("its lock is damaged, {0}")]
    Lock(#[from] LockError),
    /// The lock is for another component.
    #[error("the component \"{0}\" is not the one in the lock of the bundle; somebody changed one of them")]
    Digest(String),
}

impl Serialize for Component {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Component {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map(Self).map_err(|_| serde::de::Error::custom("a component is not in base64"))
    }
}

impl Bundle {
    /// A bundle of these texts and components, which are known by their files.
    pub(crate) fn new(
        configuration: &str,
        lock: Option<String>,
        policy: Option<String>,
        components: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<Self, toml_edit::TomlError> {
        let mut document: toml_edit::DocumentMut = configuration.parse()?;
        for key in OF_ONE_MACHINE {
            document.remove(key);
        }
        let components = components.into_iter().map(|(name, bytes)| (name, Component(bytes))).collect();
        Ok(Self { belljar: VERSION, configuration: document.to_string(), lock, policy, components })
    }

    /// Reads a bundle, and compares its components with its lock.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, BundleError> {
        let bundle: Self =
            serde_json::from_slice(bytes).map_err(|error| BundleError::Form(text::excerpt(&error.to_string(), 200)))?;
        if bundle.belljar != VERSION {
            return Err(BundleError::Version(bundle.belljar));
        }
        if bundle.components.len() > MAX_COMPONENTS {
            return Err(BundleError::TooMany(bundle.components.len()));
        }
        for name in bundle.components.keys() {
            // The name of a file is that of a mount, so it has neither "/" nor a dot in front.
            let is_named = name.strip_suffix(".wasm").is_some_and(|stem| MountName::new(stem).is_ok());
            if !is_named {
                return Err(BundleError::Name(text::excerpt(name, 100)));
            }
        }
        Ok(bundle)
    }

    /// The lock. Empty if there is none.
    ///
    /// # Errors
    /// If it is damaged, or is for other components than `file_of` finds for its mounts.
    pub(crate) fn checked_lock(&self, file_of: impl Fn(&MountName) -> String) -> Result<Lock, BundleError> {
        let lock = self.lock.as_deref().map(Lock::parse).transpose()?.unwrap_or_default();
        for (mount, pin) in lock.pins() {
            let file = file_of(mount);
            let found = self.components.get(&file).map(|Component(bytes)| Digest::of(bytes));
            if found.is_some_and(|found| found != pin.digest && pin.next != Some(found)) {
                return Err(BundleError::Digest(file));
            }
        }
        Ok(lock)
    }

    /// The components, by the names of their files.
    pub(crate) fn components(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.components.iter().map(|(name, Component(bytes))| (name.as_str(), bytes.as_slice()))
    }

    /// The bytes of the file.
    pub(crate) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::lock::Pin;

    fn bundle(lock: Option<String>) -> Bundle {
        let components = [("tides.wasm".to_owned(), b"one".to_vec())];
        Bundle::new("# mine\nplugins = \"/srv\"\n[mounts.tides]\n", lock, None, components).unwrap()
    }

    #[test]
    fn a_bundle_is_read_back_without_the_places_of_its_machine() {
        let read = Bundle::parse(&bundle(None).to_bytes().unwrap()).unwrap();
        assert!(!read.configuration.contains("/srv") && read.configuration.contains("[mounts.tides]"));
        assert_eq!(read.components().collect::<Vec<_>>(), [("tides.wasm", b"one".as_slice())]);
    }

    #[test]
    fn a_damaged_bundle_is_refused() {
        let good = String::from_utf8(bundle(None).to_bytes().unwrap()).unwrap();
        for (from, to, why) in [
            ("\"belljar\":1", "\"belljar\":2", "version 2"),
            ("tides.wasm", "../tides.wasm", "no name that a mount can have"),
            ("tides.wasm", "/etc/x.wasm", "no name that a mount can have"),
            ("tides.wasm", "a/b.wasm", "no name that a mount can have"),
            ("tides.wasm", ".wasm", "no name that a mount can have"),
            ("tides.wasm", "tides.toml", "no name that a mount can have"),
            ("\"configuration\"", "\"more\":1,\"configuration\"", "unknown field `more`"),
            ("b25l", "b25l!", "not in base64"),
            ("{", "[", "no bundle"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good, "{from}");
            let found = Bundle::parse(bad.as_bytes()).unwrap_err().to_string();
            assert!(found.contains(why), "{to}: {found}");
        }
    }

    #[test]
    fn components_are_compared_with_the_lock() {
        let lock = |bytes: &[u8]| {
            let mut lock = Lock::default();
            let (exports, imports) = (Vec::new(), Vec::new());
            let pin = Pin { digest: Digest::of(bytes), next: None, source: None, exports, imports };
            lock.set(MountName::new("tides").unwrap(), pin);
            bundle(Some(lock.to_text()))
        };
        let file = |mount: &MountName| format!("{mount}.wasm");
        assert!(lock(b"one").checked_lock(file).is_ok());
        assert!(matches!(lock(b"two").checked_lock(file), Err(BundleError::Digest(name)) if name == "tides.wasm"));
        assert!(matches!(bundle(Some("x".to_owned())).checked_lock(file), Err(BundleError::Lock(_))));
    }
}
