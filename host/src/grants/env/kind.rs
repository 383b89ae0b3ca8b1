//! The run-time part of the grant `env`.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;
use zeroize::Zeroizing;

use crate::grants::ambient::Ambient;
use crate::grants::grant::{CallScope, Grant, HasCallState, Powers};
use crate::grants::secrets::{Secret, SecretError, SecretTemplate};

/// The kind of grant `env`.
pub struct Env;

/// Why a variable cannot be granted.
#[derive(Debug, thiserror::Error)]
pub enum VariableError {
    /// A secret in the value cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// No program could read a variable of this name or value. Holds the name.
    #[error(
        "\"{}\" is not a variable that a program can read: no \"=\" in its name, no NUL anywhere",
        .0.escape_debug()
    )]
    Unreadable(String),
}

/// The variables of a mount.
pub struct EnvMountState(Vec<Variable>);

struct Variable {
    name: String,
    value: Zeroizing<String>,
    secrets: Vec<Arc<Secret>>,
}

impl Grant for Env {
    const NAME: &'static str = "env";
    const IMPORTS: &'static [&'static str] = &["wasi:cli/environment"];
    type Config = BTreeMap<String, SecretTemplate>;
    type MountState = EnvMountState;
    type CallState = ();
    type Error = VariableError;

    fn link<T: HasCallState<Self>>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn configure(config: &Self::Config, ambient: &Ambient) -> Result<EnvMountState, VariableError> {
        let read = |(name, value): (&String, &SecretTemplate)| {
            let (value, secrets) = value.fill(&ambient.secrets)?;
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(VariableError::Unreadable(name.clone()));
            }
            Ok(Variable { name: name.clone(), value, secrets })
        };
        config.iter().map(read).collect::<Result<_, _>>().map(EnvMountState)
    }

    /// A setting does nothing by itself.
    fn powers(_: &BTreeMap<String, SecretTemplate>) -> Powers {
        Powers::default()
    }

    fn is_granted(mount: &EnvMountState) -> bool {
        !mount.0.is_empty()
    }

    fn variables(mount: &EnvMountState) -> Vec<(String, Zeroizing<String>)> {
        mount.0.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect()
    }

    fn secrets(mount: &EnvMountState) -> Vec<Arc<Secret>> {
        mount.0.iter().flat_map(|variable| &variable.secrets).cloned().collect()
    }

    fn warnings(mount: &EnvMountState) -> Vec<String> {
        let handed = mount.0.iter().flat_map(|variable| variable.secrets.iter().map(|secret| (&variable.name, secret)));
        handed
            .map(|(name, secret)| {
                format!(
                    "\"{name}\" hands the secret \"{}\" to the component itself; if only requests need it, put it into the headers of an http grant, which hides it from the component",
                    secret.name()
                )
            })
            .collect()
    }

    fn open(mount: &EnvMountState, wasi: &mut WasiCtxBuilder, _: &CallScope<'_>) -> Self::CallState {
        for variable in &mount.0 {
            wasi.env(&variable.name, &*variable.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::editor::GrantEditor as _;

    #[test]
    fn names_are_checked_and_values_are_hidden() {
        let config = |name: &str, value: &str| {
            BTreeMap::from([(name.to_owned(), SecretTemplate::try_from(value.to_owned()).unwrap())])
        };
        assert!(Env::configure(&config("A", "secret"), &Ambient::default()).is_ok());
        for bad in ["", "A=B", "A\0"] {
            assert!(Env::configure(&config(bad, "x"), &Ambient::default()).is_err(), "{bad:?}");
        }
        assert!(Env::configure(&config("A", "x\0"), &Ambient::default()).is_err());
        assert_eq!(Env::describe(&config("A", "secret")), ["A"]);
        assert!(!Env::is_granted(&Env::configure(&BTreeMap::new(), &Ambient::default()).unwrap()));
    }
}
