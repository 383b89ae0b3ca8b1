//! The run-time part of the grant `view`. A call gets nothing of it: clients are told.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;

use crate::grants::ambient::Ambient;
use crate::grants::grant::{CallScope, Grant, HasCallState, Powers};
use crate::model::text;

/// The kind of grant `view`.
pub struct View;

/// What a page may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"connect\", \"resources\", \"frames\" or \"base\"")]
#[schemars(inline)]
pub(super) enum Direction {
    /// Exchange data with these origins.
    Connect,
    /// Load pictures, styles, scripts, fonts and media from them.
    Resources,
    /// Show them in frames.
    Frames,
    /// Resolve its references against them.
    Base,
}

/// The configuration: the origins that a page may use, by direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ViewConfig(pub(super) BTreeMap<Direction, Vec<String>>);

/// Why a page cannot be granted an origin.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// It is no origin.
    #[error(
        "{0} is not an origin of a page; expected a form such as \"https://api.example.com\" or \"https://*.example.com\""
    )]
    Origin(String),
}

impl Direction {
    /// Every direction, with its word in the configuration and its key in `_meta.ui.csp`.
    pub(super) const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Connect, "connect", "connectDomains"),
        (Self::Resources, "resources", "resourceDomains"),
        (Self::Frames, "frames", "frameDomains"),
        (Self::Base, "base", "baseUriDomains"),
    ];
}

impl ViewConfig {
    /// The `_meta.ui` of a page. `None` without a grant: then the page has no network.
    pub fn meta(&self) -> Option<Value> {
        let granted = Direction::ALL.iter().filter_map(|(direction, _, key)| {
            let origins = self.0.get(direction).filter(|origins| !origins.is_empty())?;
            Some(((*key).to_owned(), Value::from(origins.as_slice())))
        });
        let csp: Map<String, Value> = granted.collect();
        (!csp.is_empty()).then(|| serde_json::json!({ "csp": csp }))
    }

    /// Each granted origin, with the word of its direction.
    pub(super) fn origins(&self) -> impl Iterator<Item = (&'static str, &str)> {
        Direction::ALL.iter().flat_map(|(direction, word, _)| {
            self.0.get(direction).into_iter().flatten().map(move |origin| (*word, origin.as_str()))
        })
    }
}

/// True for the origin of a page: scheme, host and port, without anything that would end a directive of a policy.
pub(super) fn is_origin(origin: &str) -> bool {
    let host = ["https://", "wss://", "http://localhost", "http://127.0.0.1"]
        .iter()
        .find_map(|start| origin.strip_prefix(start).filter(|rest| start.starts_with("http:") || !rest.is_empty()));
    origin.len() <= 300
        && host.is_some_and(|host| {
            host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'*'))
                && host.matches('*').count() <= usize::from(host.starts_with("*."))
        })
}

impl Grant for View {
    const NAME: &'static str = "view";
    const IMPORTS: &'static [&'static str] = &[];
    type Config = ViewConfig;
    type MountState = bool;
    type CallState = ();
    type Error = ViewError;

    fn link<T: HasCallState<Self>>(_: &mut Linker<T>) -> wasmtime::Result<()> {
        Ok(())
    }

    fn configure(config: &ViewConfig, _: &Ambient) -> Result<bool, ViewError> {
        match config.origins().find(|(_, origin)| !is_origin(origin)) {
            Some((_, origin)) => Err(ViewError::Origin(text::quoted(origin, 200))),
            None => Ok(!config.0.is_empty()),
        }
    }

    /// The page reaches out, and carries results with it. A call of the provider does not.
    fn powers(_: &ViewConfig) -> Powers {
        Powers::default()
    }

    fn is_granted(granted: &bool) -> bool {
        *granted
    }

    fn open(_: &bool, _: &mut WasiCtxBuilder, _: &CallScope<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::editor::GrantEditor as _;

    fn config(text: &str) -> ViewConfig {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_page_gets_what_is_granted_and_nothing_else() {
        assert_eq!(ViewConfig::default().meta(), None);
        let granted = config("connect = ['https://api.example.com']\nresources = ['https://*.example.com']");
        let csp = serde_json::json!({ "csp": {
            "connectDomains": ["https://api.example.com"], "resourceDomains": ["https://*.example.com"] } });
        assert_eq!(granted.meta(), Some(csp));
        assert_eq!(View::describe(&granted), ["connect https://api.example.com", "resources https://*.example.com"]);
        assert!(View::configure(&granted, &Ambient::default()).is_ok());
        assert!(toml::from_str::<ViewConfig>("camera = ['x']").is_err());
    }

    #[test]
    fn an_origin_cannot_end_a_directive() {
        for good in [
            "https://a.example",
            "https://a.example:8443",
            "https://*.a.example",
            "wss://a.example",
            "http://localhost:3000",
        ] {
            assert!(is_origin(good), "{good}");
        }
        for bad in [
            "",
            "*",
            "https://",
            "https://*",
            "https://a.example/path",
            "https://a.example; script-src *",
            "https://a b",
            "http://a.example",
            "https://a.*.example",
            "data:",
            "'unsafe-eval'",
            "https://a.example\n",
        ] {
            assert!(!is_origin(bad), "{bad}");
            let granted = ViewConfig([(Direction::Connect, vec![bad.to_owned()])].into());
            assert!(View::configure(&granted, &Ambient::default()).is_err(), "{bad}");
        }
    }
}
