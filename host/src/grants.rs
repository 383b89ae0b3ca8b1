//! What an operator can give a mount, one file a kind, and THE list of kinds.
//!
//! A grant has three moments: [`Grant::link`] once per engine, [`Grant::configure`] once per mount (the only place
//! where ambient power is spent: a path becomes a handle here), [`Grant::open`] once per call. Each decision that a
//! grant takes during a call goes onto the call's trail. What is not granted is linked all the same and refuses, so
//! that every WASI program can be instantiated.

pub mod edit;
pub mod env;
pub mod fs;
pub mod http;
pub mod secrets;
mod trail;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml_edit::TableLike;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;
use wasmtime_wasi::{WasiCtxBuilder, WasiView};
use wasmtime_wasi_http::WasiHttpView;

use tokio::time::Instant;

use edit::{Flag, Gift, Here};
use secrets::{Redactor, Secret, Secrets};

use crate::model::{Consent, Limits, MountName};

pub use trail::SharedTrail;

/// What a store must lend for the grants to work in it.
pub trait View: WasiView + WasiHttpView + Send + 'static {
    /// The grants that were opened for this call.
    fn opened(&mut self) -> &mut Opened;
}

/// Notes the fuel that is left, before something that may not come back.
pub(crate) fn note_fuel<T: View>(store: &mut StoreContextMut<'_, T>) {
    let left = store.get_fuel().unwrap_or_default();
    store.data_mut().opened().trail.fuel_left(left);
}

/// The call that grants are opened for.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Whose call it is.
    pub mount: &'a MountName,
    /// Its limits.
    pub limits: &'a Limits,
    /// When it ends at the latest.
    pub deadline: Instant,
    /// What a person allowed for this call alone.
    pub consent: &'a [Consent],
    /// Where decisions are noted.
    pub trail: &'a SharedTrail,
}

/// What a grant may know when it is configured.
#[derive(Clone, Default)]
pub struct Ambient {
    /// The directory that relative host paths start from: where the configuration file lies.
    pub base: PathBuf,
    /// The operator's home directory, for `~/`.
    pub home: Option<PathBuf>,
    /// belljar's own files and directories, which no grant may cover: plugins, configuration, lock, cache, state.
    pub reserved: Vec<PathBuf>,
    /// The operator's secrets.
    pub secrets: Secrets,
    /// What connections are made with; none where no mount may make one.
    pub network: Option<Arc<http::Network>>,
}

impl Ambient {
    /// A path of the operator's: `~/` is the home directory, and what is relative starts beside the configuration.
    ///
    /// # Errors
    /// When there is no home directory.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, String> {
        if let Ok(below) = path.strip_prefix("~") {
            let home = self.home.as_ref().ok_or("\"~\" is used, but HOME is not set; write the whole path")?;
            return Ok(home.join(below));
        }
        Ok(self.base.join(path))
    }
}

/// A kind of grant.
pub trait Grant {
    /// The key under `[mounts.NAME]`, and the name in records.
    const NAME: &'static str;
    /// The WASI packages or interfaces through which a guest uses it, as import prefixes.
    const IMPORTS: &'static [&'static str];
    /// What an operator adds to the configuration to give it, as an example.
    const EXAMPLE: &'static str;
    /// What gives it on the command line: `belljar grant MOUNT --NAME VALUE`; its name is [`Grant::NAME`].
    const GIVE: Flag;
    /// Flags that say more about what is given, each about the one before it.
    const MORE: &'static [Flag] = &[];
    /// What names a thing that is held, for `belljar revoke MOUNT --NAME THING`.
    const TAKE: &'static str;
    /// What gives it on the command line, as an example.
    const TYPED: &'static str;
    /// The value of the key.
    type Config: serde::de::DeserializeOwned + std::fmt::Debug + Default;
    /// What a mount holds.
    type Mount: Send + Sync;
    /// What a call holds.
    type Call: Send;

    /// Adds or replaces host functions. Once per engine.
    ///
    /// # Errors
    /// When the linker refuses a definition.
    fn link<T: View>(linker: &mut Linker<T>) -> wasmtime::Result<()>;

    /// Turns words into handles. Once per mount.
    ///
    /// # Errors
    /// Says what is wrong with the configuration, and the cure.
    fn configure(config: &Self::Config, ambient: &Ambient) -> Result<Self::Mount, String>;

    /// Whether a person is asked before calls get some of it.
    fn needs_consent(_config: &Self::Config) -> bool {
        false
    }

    /// The host directories that calls will read, as they are named when they are opened: what a wall around the process
    /// must leave open. What [`Grant::configure`] refuses is not among them.
    fn directories(_config: &Self::Config, _ambient: &Ambient) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The TCP ports that calls will connect to: what a wall around the process must leave open.
    fn ports(_config: &Self::Config) -> Vec<u16> {
        Vec::new()
    }

    /// The secrets in what is held: they are masked in whatever the mount gives.
    fn secrets(_mount: &Self::Mount) -> Vec<Arc<Secret>> {
        Vec::new()
    }

    /// Whether the mount holds anything of this kind.
    fn is_held(mount: &Self::Mount) -> bool;

    /// One line a thing held, in the operator's words.
    fn describe(config: &Self::Config) -> Vec<String>;

    /// What each thing held lets a provider do, in words that go on from "it can".
    fn in_words(config: &Self::Config) -> Vec<String>;

    /// Writes a thing to be given into the mount's table.
    ///
    /// # Errors
    /// Says what was expected.
    fn give(mount: &mut dyn TableLike, gift: &Gift, here: &Here) -> Result<(), String>;

    /// Writes what a person allowed for good into the mount's table: what a consent of this kind names.
    ///
    /// # Errors
    /// When nothing of this kind can be asked for.
    fn keep(_: &mut dyn TableLike, what: &str) -> Result<(), String> {
        Err(format!("{}: nobody can be asked for \"{what}\"", Self::NAME))
    }

    /// Takes a thing out of the mount's table.
    ///
    /// # Errors
    /// Names what is there when that is not.
    fn take(mount: &mut dyn TableLike, what: &str) -> Result<(), String>;

    /// What the operator should know about the way in which something is given.
    fn advise(_: &Gift) -> Vec<String> {
        Vec::new()
    }

    /// What the operator should know about what is held; looked for by `belljar check` only.
    fn warnings(_: &Self::Mount) -> Vec<String> {
        Vec::new()
    }

    /// Gives the call what the mount holds.
    fn open(mount: &Self::Mount, wasi: &mut WasiCtxBuilder, scope: &Scope<'_>) -> Self::Call;
}

/// Makes the types that hold one field a grant, and the functions that run over all of them.
macro_rules! grants {
    ($($field:ident: $kind:ty),* $(,)?) => {
        /// The grants of a mount as the operator wrote them.
        #[derive(Debug, Default)]
        pub struct Requested { $(#[doc = stringify!($field)] pub $field: <$kind as Grant>::Config,)* }

        /// The grants of a mount, turned into handles.
        pub struct Held { $($field: <$kind as Grant>::Mount,)* redactor: Option<Arc<Redactor>> }

        /// The grants of a call.
        pub struct Opened { $(#[doc = stringify!($field)] pub $field: <$kind as Grant>::Call,)* trail: SharedTrail }

        /// A kind of grant, for people: name, import prefixes, example.
        pub const KINDS: &[Kind] = &[$(Kind {
            name: <$kind as Grant>::NAME,
            imports: <$kind as Grant>::IMPORTS,
            example: <$kind as Grant>::EXAMPLE,
            flag: <$kind as Grant>::GIVE,
            more: <$kind as Grant>::MORE,
            thing: <$kind as Grant>::TAKE,
            typed: <$kind as Grant>::TYPED,
            give: <$kind as Grant>::give,
            keep: <$kind as Grant>::keep,
            take: <$kind as Grant>::take,
            advise: <$kind as Grant>::advise,
        }),*];

        /// Adds every grant's host functions.
        ///
        /// # Errors
        /// When the linker refuses a definition.
        pub fn link<T: View>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
            $(<$kind as Grant>::link(linker)?;)*
            Ok(())
        }

        impl Requested {
            /// Reads the value of key `name`; `None` when no grant has that name.
            pub fn set(&mut self, name: &str, value: toml::Value) -> Option<Result<(), toml::de::Error>> {
                match name {
                    $(<$kind as Grant>::NAME => Some(value.try_into().map(|config| self.$field = config)),)*
                    _ => None,
                }
            }

            /// Turns words into handles.
            ///
            /// # Errors
            /// Names the grant and says what is wrong with it.
            pub fn configure(&self, ambient: &Ambient) -> Result<Held, String> {
                $(let $field = <$kind as Grant>::configure(&self.$field, ambient)
                    .map_err(|why| format!("{}: {why}", <$kind as Grant>::NAME))?;)*
                let mut secrets = Vec::new();
                $(secrets.extend(<$kind as Grant>::secrets(&$field));)*
                Ok(Held { $($field,)* redactor: Redactor::new(&secrets).map(Arc::new) })
            }

            /// The kind of which a call gets something only when a person allows it, if there is one.
            pub fn needs_consent(&self) -> Option<&'static str> {
                $(if <$kind as Grant>::needs_consent(&self.$field) { return Some(<$kind as Grant>::NAME); })*
                None
            }

            /// The host directories that calls will read.
            pub fn directories(&self, ambient: &Ambient) -> Vec<PathBuf> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::directories(&self.$field, ambient));)*
                all
            }

            /// Whether nothing is granted.
            pub fn is_empty(&self) -> bool {
                self.describe().is_empty()
            }

            /// What is granted, one sentence a thing; see [`Grant::in_words`].
            pub fn in_words(&self) -> Vec<String> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::in_words(&self.$field));)*
                all
            }

            /// The TCP ports that calls will connect to.
            pub fn ports(&self) -> Vec<u16> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::ports(&self.$field));)*
                all
            }

            /// What is granted, one line a thing, with the kind's name.
            pub fn describe(&self) -> Vec<(&'static str, String)> {
                let mut lines = Vec::new();
                $(lines.extend(<$kind as Grant>::describe(&self.$field).into_iter().map(|line| (<$kind as Grant>::NAME, line)));)*
                lines
            }
        }

        impl Held {
            /// The kinds of which this mount holds something.
            pub fn kinds(&self) -> Vec<&'static str> {
                let mut kinds = Vec::new();
                $(if <$kind as Grant>::is_held(&self.$field) { kinds.push(<$kind as Grant>::NAME); })*
                kinds
            }

            /// What the operator should know about what is held.
            pub fn warnings(&self) -> Vec<String> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::warnings(&self.$field));)*
                all
            }

            /// Opens every grant for one call. Whatever they note on its trail has the mount's secrets masked.
            pub fn open(&self, wasi: &mut WasiCtxBuilder, scope: &Scope<'_>) -> Opened {
                if let Some(redactor) = &self.redactor {
                    scope.trail.mask_with(redactor);
                }
                Opened { $($field: <$kind as Grant>::open(&self.$field, wasi, scope),)* trail: scope.trail.clone() }
            }
        }
    };
}

/// A kind of grant, for people.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// See [`Grant::NAME`].
    pub name: &'static str,
    /// See [`Grant::IMPORTS`].
    pub imports: &'static [&'static str],
    /// See [`Grant::EXAMPLE`].
    pub example: &'static str,
    /// See [`Grant::GIVE`].
    pub flag: Flag,
    /// See [`Grant::MORE`].
    pub more: &'static [Flag],
    /// See [`Grant::TAKE`].
    pub thing: &'static str,
    /// See [`Grant::TYPED`].
    pub typed: &'static str,
    /// See [`Grant::give`].
    pub give: fn(&mut dyn TableLike, &Gift, &Here) -> Result<(), String>,
    /// See [`Grant::keep`].
    pub keep: fn(&mut dyn TableLike, &str) -> Result<(), String>,
    /// See [`Grant::take`].
    pub take: fn(&mut dyn TableLike, &str) -> Result<(), String>,
    /// See [`Grant::advise`].
    pub advise: fn(&Gift) -> Vec<String>,
}

impl Kind {
    /// What gives `mount` something of this kind, in both ways.
    pub fn cure(&self, mount: &str) -> String {
        format!("add  {}  to [mounts.{mount}], or run: {}", self.example, self.command(mount))
    }

    /// What gives `mount` something of this kind, on the command line.
    pub fn command(&self, mount: &str) -> String {
        format!("belljar grant {mount} {}", self.typed)
    }
}

// THE list: a new kind of grant is a new file and one line here.
grants! {
    fs: fs::Fs,
    env: env::Env,
    http: http::Http,
}

impl Held {
    /// Whether calls of this mount can open files.
    pub fn has_files(&self) -> bool {
        fs::Fs::is_held(&self.fs)
    }

    /// What masks the mount's secrets in whatever it gives.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_deref()
    }

    /// Whether file operations of this mount may stall, so that its calls need threads of their own.
    pub fn may_stall(&self) -> bool {
        self.fs.may_stall()
    }
}

/// The version that the linked WASI interfaces carry; guests that import an older 0.2 are matched to it.
pub(crate) const WASI: &str = "@0.2.12";

/// The full name of a WASI interface as it is linked.
pub(crate) fn wasi(interface: &str) -> String {
    format!("wasi:{interface}{WASI}")
}
