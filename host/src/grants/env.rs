//! `env`: environment variables. Nothing of belljar's own environment is ever passed on.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml_edit::TableLike;
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;
use zeroize::Zeroizing;

use super::edit::{self, Flag, Gift, Here};
use super::needs::{Need, Needed};
use super::secrets::{Secret, Template};
use super::{Ambient, Grant, Scope, Typed, View};
use crate::model::text;

/// The kind.
pub struct Env;

/// What a mount holds.
pub struct Mount(Vec<Variable>);

struct Variable {
    name: String,
    value: Zeroizing<String>,
    secrets: Vec<Arc<Secret>>,
}

impl Grant for Env {
    const NAME: &'static str = "env";
    const IMPORTS: &'static [&'static str] = &["wasi:cli/environment"];
    const EXAMPLE: &'static str = "env = { NAME = \"value\" }";
    const GIVE: Flag =
        Flag { name: "env", value: "NAME=VALUE", help: "Set an environment variable that the provider sees" };
    const TAKE: &'static str = "NAME";
    const NEED: Needed = Needed { key: "name", check: check_name, is_free: false, has_any: false, has_value: true };
    type Config = BTreeMap<String, Template>;
    type Mount = Mount;
    type Call = ();

    fn link<T: View>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn configure(config: &Self::Config, ambient: &Ambient) -> Result<Mount, String> {
        let read = |(name, value): (&String, &Template)| {
            let (value, secrets) = value.fill(&ambient.secrets)?;
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(format!(
                    "\"{}\" is not a variable that a program can read: no \"=\" in its name, no NUL anywhere",
                    name.escape_debug()
                ));
            }
            Ok(Variable { name: name.clone(), value, secrets })
        };
        config.iter().map(read).collect::<Result<_, _>>().map(Mount)
    }

    fn is_held(mount: &Mount) -> bool {
        !mount.0.is_empty()
    }

    fn describe(config: &Self::Config) -> Vec<String> {
        // Names only: a value may be private.
        config.keys().cloned().collect()
    }

    fn in_words(config: &Self::Config) -> Vec<String> {
        config.keys().map(|name| format!("see the environment variable \"{}\" and its value", shown(name))).collect()
    }

    fn meets(config: &Self::Config, need: &Need) -> bool {
        need.what.as_ref().is_some_and(|name| config.contains_key(name))
    }

    fn typed(_: &str, need: Option<&Need>) -> Option<Typed> {
        let name = need.and_then(|need| need.what.as_deref()).unwrap_or("NAME");
        let value = need.and_then(|need| need.example.as_deref()).unwrap_or("value");
        let line = format!("env = {{ {name} = {} }}", toml::Value::from(value));
        Some(Typed { line, flags: vec!["--env".to_owned(), format!("{name}={value}")], before: None })
    }

    fn give(mount: &mut dyn TableLike, gift: &Gift, _: &Here) -> Result<(), String> {
        let (name, value) = gift.pair(&Self::GIVE)?;
        edit::set_entry(mount, Self::NAME, name, value.into())
    }

    fn take(mount: &mut dyn TableLike, what: &str) -> Result<(), String> {
        edit::remove_entry(mount, Self::NAME, what)
    }

    fn secrets(mount: &Mount) -> Vec<Arc<Secret>> {
        mount.0.iter().flat_map(|variable| &variable.secrets).cloned().collect()
    }

    fn warnings(mount: &Mount) -> Vec<String> {
        let handed = mount.0.iter().flat_map(|variable| variable.secrets.iter().map(|secret| (&variable.name, secret)));
        handed
            .map(|(name, secret)| {
                format!(
                    "\"{name}\" hands the secret \"{}\" to the component itself; where it only goes into requests, put it into the headers of an http grant, and the component never sees it",
                    secret.name()
                )
            })
            .collect()
    }

    fn open(mount: &Mount, wasi: &mut WasiCtxBuilder, _: &Scope<'_>) -> Self::Call {
        for variable in &mount.0 {
            wasi.env(&variable.name, &*variable.value);
        }
    }
}

/// A name that a provider may declare: what every language and every shell takes for one.
fn check_name(name: &str) -> Result<String, String> {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.len() > 64 || !name.bytes().all(is_name) || name.as_bytes().first().is_none_or(u8::is_ascii_digit) {
        return Err("expected the name of a variable: letters, digits and \"_\", 64 at most".to_owned());
    }
    Ok(name.to_owned())
}

fn shown(name: &str) -> String {
    text::excerpt(name, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_values_not_shown() {
        let config = |name: &str, value: &str| {
            BTreeMap::from([(name.to_owned(), Template::try_from(value.to_owned()).unwrap())])
        };
        assert!(Env::configure(&config("A", "secret"), &Ambient::default()).is_ok());
        for bad in ["", "A=B", "A\0"] {
            assert!(Env::configure(&config(bad, "x"), &Ambient::default()).is_err(), "{bad:?}");
        }
        assert!(Env::configure(&config("A", "x\0"), &Ambient::default()).is_err());
        assert_eq!(Env::describe(&config("A", "secret")), ["A"]);
        assert!(!Env::is_held(&Env::configure(&BTreeMap::new(), &Ambient::default()).unwrap()));
    }
}
