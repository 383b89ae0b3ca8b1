//! The one list of all kinds of grants, and the functions that run over all of them. A new kind needs a new folder and
//! one line here.

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use toml_edit::TableLike;
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi_http::WasiHttpHooks;
use zeroize::Zeroizing;

use super::ambient::Ambient;
use super::broker::Broker;
use super::call_record::CallRecord;
use super::edit::{EditDirectories, EditError, Flag, GrantArgs};
use super::editor::{GrantEditor, GrantSuggestion};
use super::grant::{CallScope, Grant, GrantView, HasCallState, Powers};
use super::http::HttpCallState;
use super::kind_error::KindError;
use super::memory_directory::MemoryDirectory;
use super::need::{Need, NeedSchema};
use super::network::endpoint::ConnectionScope;
use super::network_handover::{MemoryHandover, NetworkHandover};
use super::secrets::{PrincipalSecretError, Redactor, SecretTemplate, Secrets};
use super::sockets::{self, HasSockets, SocketsCallState, SocketsMountState};
use super::{env, fs, http, postgres, system, tcp, view};
use crate::model::{Consent, Limit};

/// Defines the types that have one field per kind, and the functions that run over all kinds.
macro_rules! grants {
    ($($field:ident: $kind:ty),* $(,)?) => {
        /// The grants of a mount as the operator wrote them.
        ///
        /// Each field has the name of its kind, and so has its property in the JSON schema.
        #[derive(Clone, Debug, Default, JsonSchema)]
        pub struct GrantConfig { $(
            #[doc = stringify!($field)]
            #[schemars(default, description = <$kind as GrantEditor>::SUMMARY)]
            pub $field: <$kind as Grant>::Config,
        )* }

        /// The grants of a mount as handles, made by [`GrantConfig::configure`].
        pub struct MountGrants { $(pub(super) $field: <$kind as Grant>::MountState,)* pub(super) sockets: Arc<SocketsMountState>, pub(super) redactor: Option<Arc<Redactor>>, per_principal: Option<PerPrincipalGrants> }

        /// The grants that one call holds, made by [`MountGrants::open`].
        pub struct CallGrants { $(#[doc = stringify!($field)] pub $field: <$kind as Grant>::CallState,)* sockets: SocketsCallState, record: CallRecord }

        /// All kinds of grants, in the order of the list.
        pub const KINDS: &[GrantKind] = &[$(GrantKind {
            name: <$kind as Grant>::NAME,
            imports: <$kind as Grant>::IMPORTS,
            is_missed_silently: <$kind as Grant>::IS_MISSED_SILENTLY,
            is_used_in_workers: <$kind as Grant>::IS_USED_IN_WORKERS,
            example: <$kind as GrantEditor>::EXAMPLE,
            flag: <$kind as GrantEditor>::FLAG,
            extra_flags: <$kind as GrantEditor>::EXTRA_FLAGS,
            revoke_placeholder: <$kind as GrantEditor>::REVOKE_PLACEHOLDER,
            need_schema: <$kind as GrantEditor>::NEED_SCHEMA,
            consent_question: <$kind as GrantEditor>::CONSENT_QUESTION,
            suggest: <$kind as GrantEditor>::suggest,
            grant: <$kind as GrantEditor>::grant,
            grant_permanently: <$kind as GrantEditor>::grant_permanently,
            revoke: <$kind as GrantEditor>::revoke,
            advise: <$kind as GrantEditor>::advise,
            advise_missing: <$kind as GrantEditor>::advise_missing,
        }),*];

        /// Adds the host functions of every kind, and those of sockets.
        ///
        /// # Errors
        /// When the linker refuses a definition.
        pub fn link<T: HasCallGrants>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
            sockets::link(linker)?;
            $(<$kind as Grant>::link::<T>(linker)?;)*
            Ok(())
        }

        impl GrantConfig {
            /// Deserializes the value of the configuration key `name`. `None`: no kind has that name.
            pub fn set<'de, D: Deserializer<'de>>(&mut self, name: &str, value: D) -> Option<Result<(), D::Error>> {
                match name {
                    $(<$kind as Grant>::NAME => Some(Deserialize::deserialize(value).map(|config| self.$field = config)),)*
                    _ => None,
                }
            }

            /// Turns the configuration into handles.
            ///
            /// # Errors
            /// [`ConfigureError`] for the first kind whose configuration cannot be used.
            pub fn configure(&self, ambient: &Ambient) -> Result<MountGrants, ConfigureError> {
                $(let $field = <$kind as Grant>::configure(&self.$field, ambient)
                    .map_err(|error| ConfigureError { kind: <$kind as Grant>::NAME, source: error.into() })?;)*
                let (mut secrets, mut live, mut endpoints) = (Vec::new(), Vec::new(), Vec::new());
                $(secrets.extend(<$kind as Grant>::secrets(&$field));
                live.extend(<$kind as Grant>::live_secrets(&$field));
                endpoints.extend(<$kind as Grant>::endpoints(&$field));)*
                let redactor = Redactor::with_live(&secrets, live).map(Arc::new);
                let sockets = Arc::new(SocketsMountState::new(endpoints, ambient));
                let per_principal = PerPrincipalGrants::find(self, ambient);
                Ok(MountGrants { $($field,)* sockets, redactor, per_principal })
            }

            /// The name of the first kind that asks a person for consent before a call gets a grant. `None`: no kind
            /// asks.
            pub fn needs_consent(&self) -> Option<&'static str> {
                $(if <$kind as GrantEditor>::needs_consent(&self.$field) { return Some(<$kind as Grant>::NAME); })*
                None
            }

            /// True if the configuration of any kind names a secret.
            pub fn has_secrets(&self) -> bool {
                !self.secret_names().is_empty()
            }

            /// The names of the secrets that the configuration of all kinds names.
            pub fn secret_names(&self) -> Vec<&str> {
                let mut all = Vec::new();
                $(all.extend(<$kind as GrantEditor>::templates(&self.$field).into_iter().flat_map(SecretTemplate::secret_names));)*
                all
            }

            /// The host directories that calls will read. See [`Grant::directories`].
            pub fn directories(&self, ambient: &Ambient) -> Vec<PathBuf> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::directories(&self.$field, ambient));)*
                all
            }

            /// belljar's own directories that calls change. See [`Grant::own_directories`].
            pub fn own_directories(&self, ambient: &Ambient) -> Vec<PathBuf> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::own_directories(&self.$field, ambient));)*
                all
            }

            /// The files and directories of the kernel that belljar reads for calls. See [`Grant::kernel_paths`].
            pub fn kernel_paths(&self) -> Vec<PathBuf> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::kernel_paths(&self.$field));)*
                all
            }

            /// True if nothing is granted.
            pub fn is_empty(&self) -> bool {
                self.describe().is_empty()
            }

            /// One sentence for each grant. See [`GrantEditor::explain`].
            pub fn explain(&self) -> Vec<String> {
                let mut all = Vec::new();
                $(all.extend(<$kind as GrantEditor>::explain(&self.$field));)*
                all
            }

            /// Those of `needs` that the configuration does not grant.
            pub fn missing(&self, needs: &[Need]) -> Vec<Need> {
                let is_met = |need: &Need| match need.kind {
                    $(<$kind as Grant>::NAME => <$kind as GrantEditor>::meets(&self.$field, need),)*
                    _ => false,
                };
                needs.iter().filter(|need| !is_met(need)).cloned().collect()
            }

            /// The TCP ports that calls will connect to. See [`Grant::ports`].
            pub fn ports(&self) -> Vec<u16> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::ports(&self.$field));)*
                all
            }

            /// The TCP ports that consent can open for a call. See [`Grant::CONSENT_PORTS`].
            pub fn consent_ports() -> Vec<u16> {
                [$(<$kind as Grant>::CONSENT_PORTS),*].concat()
            }

            /// For each grant that asks for consent: its line in [`GrantConfig::describe`], and the line of the same
            /// grant without asking. Each line has the name of the kind.
            pub fn consent_lines(&self) -> Vec<((&'static str, String), (&'static str, String))> {
                let mut lines = Vec::new();
                $(let kind = <$kind as Grant>::NAME;
                let all = <$kind as GrantEditor>::consent_lines(&self.$field).into_iter();
                lines.extend(all.map(|(asked, plain)| ((kind, asked), (kind, plain))));)*
                lines
            }

            /// What calls can do to the world. See [`Grant::powers`].
            pub fn powers(&self) -> Powers {
                let mut all = Powers::default();
                $(all = all.and(<$kind as Grant>::powers(&self.$field));)*
                all
            }

            /// The host path of the thing that `consent` names. Show it to the local user only.
            pub fn host_path(&self, consent: &Consent, ambient: &Ambient) -> Option<PathBuf> {
                match consent.grant.as_ref() {
                    $(<$kind as Grant>::NAME => <$kind as Grant>::host_path(&self.$field, &consent.target, ambient),)*
                    _ => None,
                }
            }

            /// The name of the kind and one line, for each grant.
            pub fn describe(&self) -> Vec<(&'static str, String)> {
                let mut lines = Vec::new();
                $(lines.extend(<$kind as GrantEditor>::describe(&self.$field).into_iter().map(|line| (<$kind as Grant>::NAME, line)));)*
                lines
            }
        }

        $(impl<T: HasCallGrants> HasCallState<$kind> for T {
            fn call_state(&mut self) -> &mut <$kind as Grant>::CallState {
                &mut self.call_grants().$field
            }
        })*

        impl MountGrants {
            /// These grants with what all principals of the mount share in `base`, such as the count of connections.
            #[must_use]
            pub fn sharing(mut self, base: &Self) -> Self {
                $(<$kind as Grant>::share(&mut self.$field, &base.$field);)*
                if let Some(sockets) = Arc::get_mut(&mut self.sockets) {
                    sockets.share(&base.sockets);
                }
                self
            }

            /// The names of the kinds of which this mount has at least one grant.
            pub fn kinds(&self) -> Vec<&'static str> {
                let mut kinds = Vec::new();
                $(if <$kind as Grant>::is_granted(&self.$field) { kinds.push(<$kind as Grant>::NAME); })*
                kinds
            }

            /// True if a call of this mount can open files.
            pub fn opens_files(&self) -> bool {
                [$(<$kind as Grant>::opens_files(&self.$field)),*].contains(&true)
            }

            /// True if the next call of this mount may block, and therefore needs a dedicated thread. Asks every kind,
            /// even after the first `true`: the question can make a kind look for a missing directory.
            pub fn may_stall(&self) -> bool {
                [$(<$kind as Grant>::may_stall(&self.$field)),*].contains(&true)
            }

            /// Warnings for the operator about the grants of this mount.
            pub fn warnings(&self) -> Vec<String> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::warnings(&self.$field));)*
                all
            }

            /// The environment variables that calls see: names and values. For a worker process.
            pub fn variables(&self) -> Vec<(String, Zeroizing<String>)> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::variables(&self.$field));)*
                all
            }

            /// The directories of files in memory that calls see.
            fn memory_directories(&self) -> Vec<Arc<dyn MemoryDirectory>> {
                let mut all = Vec::new();
                $(all.extend(<$kind as Grant>::memory_directories(&self.$field));)*
                all
            }

            /// Opens every grant for one call. From then on, the call's record masks the secrets of this mount.
            pub fn open(&self, wasi: &mut WasiCtxBuilder, scope: &CallScope<'_>) -> CallGrants {
                self.mask_in(scope.record);
                let memory = self.memory_directories();
                let scope = &CallScope { memory: &memory, ..*scope };
                CallGrants { $($field: <$kind as Grant>::open(&self.$field, wasi, scope),)* sockets: SocketsCallState::open(&self.sockets, scope), record: scope.record.clone() }
            }
        }
    };
}

/// Makes the grants of a mount of which a secret has one file for each principal.
pub struct PerPrincipalGrants {
    config: GrantConfig,
    ambient: Ambient,
}

impl PerPrincipalGrants {
    /// `None` if all principals share the secrets that `config` names.
    fn find(config: &GrantConfig, ambient: &Ambient) -> Option<Self> {
        let is_needed = ambient.secrets.has_per_principal(config.secret_names());
        is_needed.then(|| Self { config: config.clone(), ambient: ambient.clone() })
    }

    /// The secrets for a call of `principal`. Blocks while it reads.
    ///
    /// # Errors
    /// If the principal has no usable file for one of them.
    pub fn secrets(&self, principal: &str) -> Result<Secrets, PrincipalSecretError> {
        self.ambient.secrets.for_principal(self.config.secret_names(), principal)
    }

    /// The grants with these secrets.
    ///
    /// # Errors
    /// As [`GrantConfig::configure`].
    pub fn configure(&self, secrets: Secrets) -> Result<MountGrants, ConfigureError> {
        self.config.configure(&Ambient { secrets, ..self.ambient.clone() })
    }
}

/// The first kind whose configuration cannot be turned into handles.
#[derive(Debug, thiserror::Error)]
#[error("{kind}: {source}")]
pub struct ConfigureError {
    /// The name of the kind.
    pub kind: &'static str,
    /// The reason.
    pub source: KindError,
}

/// A store that holds a call's grants.
pub trait HasCallGrants: GrantView {
    /// The call's grants.
    fn call_grants(&mut self) -> &mut CallGrants;
}

/// The constants and functions of one kind of grant as values, so that a loop can run over all kinds.
#[derive(Clone, Copy, Debug)]
pub struct GrantKind {
    /// See [`Grant::NAME`].
    pub name: &'static str,
    /// See [`Grant::IMPORTS`].
    pub imports: &'static [&'static str],
    /// See [`Grant::IS_MISSED_SILENTLY`].
    pub is_missed_silently: bool,
    /// See [`Grant::IS_USED_IN_WORKERS`].
    pub is_used_in_workers: bool,
    /// See [`GrantEditor::EXAMPLE`].
    pub example: &'static str,
    /// See [`GrantEditor::FLAG`].
    pub flag: Flag,
    /// See [`GrantEditor::EXTRA_FLAGS`].
    pub extra_flags: &'static [Flag],
    /// See [`GrantEditor::REVOKE_PLACEHOLDER`].
    pub revoke_placeholder: &'static str,
    /// See [`GrantEditor::NEED_SCHEMA`].
    pub need_schema: NeedSchema,
    /// See [`GrantEditor::CONSENT_QUESTION`].
    pub consent_question: &'static str,
    /// See [`GrantEditor::suggest`].
    pub suggest: fn(&str, Option<&Need>) -> Option<GrantSuggestion>,
    /// See [`GrantEditor::grant`].
    pub grant: fn(&mut dyn TableLike, &GrantArgs, &EditDirectories) -> Result<(), EditError>,
    /// See [`GrantEditor::grant_permanently`].
    pub grant_permanently: fn(&mut dyn TableLike, &str) -> Result<(), EditError>,
    /// See [`GrantEditor::revoke`].
    pub revoke: fn(&mut dyn TableLike, &str) -> Result<(), EditError>,
    /// See [`GrantEditor::advise`].
    pub advise: fn(&GrantArgs) -> Vec<String>,
    /// See [`GrantEditor::advise_missing`].
    pub advise_missing: fn(&str, &[&str]) -> Option<String>,
}

impl GrantKind {
    /// How to grant `need` to `mount`: a configuration line and a command. See [`GrantSuggestion::cure`].
    pub fn cure(&self, mount: &str, need: Option<&Need>) -> Option<String> {
        Some((self.suggest)(mount, need)?.cure(mount))
    }

    /// The command that grants `need` to `mount`.
    pub fn command(&self, mount: &str, need: Option<&Need>) -> Option<String> {
        Some((self.suggest)(mount, need)?.command(mount))
    }

    /// The command that would allow `mount` the use that a refusal names, or an example of such a command.
    pub fn command_for(&self, mount: &str, target: &str) -> Option<String> {
        let last = target.rsplit(' ').next().unwrap_or_default();
        // The origin of a URL, without its path.
        let origin = last.split_inclusive('/').take(3).collect::<String>();
        let names = [last, origin.trim_end_matches('/')];
        // A refused path says nothing of the directory that the operator would choose.
        let names = names.into_iter().filter(|_| self.name != <fs::Fs as Grant>::NAME);
        let name = names.filter_map(|name| (self.need_schema.check)(name).ok()).next();
        let need = name.map(|name| Need {
            kind: self.name,
            name: Some(name),
            any: false,
            optional: false,
            example: None,
            reason: None,
        });
        self.command(mount, need.as_ref()).or_else(|| self.command(mount, None))
    }

    /// Finds a kind by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }
}

grants! {
    fs: fs::Fs,
    env: env::Env,
    http: http::Http,
    tcp: tcp::Tcp,
    postgres: postgres::Postgres,
    system: system::System,
    view: view::View,
}

impl<T: HasCallGrants> HasSockets for T {
    fn sockets(&mut self) -> &mut SocketsCallState {
        &mut self.call_grants().sockets
    }
}

impl CallGrants {
    /// The record of the call's decisions and resource usage.
    pub fn record(&self) -> &CallRecord {
        &self.record
    }

    /// The limit on network traffic that the call reached. `None`: no limit was reached.
    pub fn reached_limit(&self) -> Option<Limit> {
        self.record.traffic().reached_limit()
    }

    /// The hooks that send the requests of `wasi:http`.
    pub fn http_hooks(&mut self) -> &mut dyn WasiHttpHooks {
        &mut self.http
    }
}

impl MountGrants {
    /// Makes the grants of each principal. `None`: all principals share these grants. Otherwise no call may use these
    /// grants themselves.
    pub fn per_principal(&self) -> Option<&PerPrincipalGrants> {
        self.per_principal.as_ref()
    }

    /// What a worker process has to know of the grants whose work the front does.
    pub fn network_handover(&self) -> NetworkHandover {
        let directories = self.memory_directories().into_iter().map(|directory| MemoryHandover {
            kind: directory.kind().to_owned(),
            names: directory.names().into_iter().map(str::to_owned).collect(),
        });
        NetworkHandover {
            hidden_headers: self.http.hidden_headers(),
            endpoints: self.sockets.handover(),
            directories: directories.collect(),
        }
    }

    /// Opens what the front does for one call in a worker process. From then on, the call's record masks the secrets of
    /// this mount.
    pub fn broker(&self, scope: &CallScope<'_>) -> Broker {
        self.mask_in(scope.record);
        let late = CallScope { deadline: scope.deadline + ConnectionScope::GRACE, ..*scope };
        let (http, sockets) = (HttpCallState::new(&self.http, &late), SocketsCallState::open(&self.sockets, scope));
        Broker::new(http, sockets, self.memory_directories(), &late)
    }

    /// Masks the mount's secrets in its results. `None`: the mount has no secrets.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_deref()
    }
}
