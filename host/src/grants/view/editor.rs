//! Configuration text, flags and descriptions of `view` grants.

use toml_edit::{Array, Item, TableLike, Value};

use super::kind::{Direction, View, ViewConfig, is_origin};
use crate::grants::edit::{EditDirectories, EditError, Flag, GrantArgs, TomlShape};
use crate::grants::editor::{GrantEditor, GrantSuggestion};
use crate::grants::grant::Grant;
use crate::grants::kind_error::KindError;
use crate::grants::need::{Need, NeedSchema};
use crate::model::text;

impl GrantEditor for View {
    const EXAMPLE: &'static str = "view = { connect = [\"https://api.example.com\"] }";
    const SUMMARY: &'static str = "Origins that the pages of the mount's tools may use in the browser of a person: connect, resources, frames, base. A page sees the results of tools and can carry them to these origins.";
    const FLAG: Flag = Flag {
        name: "view",
        value: "DIRECTION=ORIGIN",
        help: "Let the pages of the mount's tools use ORIGIN: connect=https://api.example.com, or resources=, frames=, base=",
    };
    const REVOKE_PLACEHOLDER: &'static str = "DIRECTION=ORIGIN";
    const NEED_SCHEMA: NeedSchema =
        NeedSchema { key: "origin", check: check_origin, may_omit: true, accepts_any: false, accepts_example: false };

    fn describe(config: &ViewConfig) -> Vec<String> {
        config.origins().map(|(word, origin)| format!("{word} {}", text::excerpt(origin, 300))).collect()
    }

    fn explain(config: &ViewConfig) -> Vec<String> {
        let one = |(word, origin): (&str, &str)| {
            let verb = match word {
                "connect" => "exchange data with",
                "resources" => "load pictures, styles and scripts from",
                "frames" => "show pages of",
                _ => "resolve references against",
            };
            format!(
                "let the pages of its tools {verb} \"{}\", from the browser of a person",
                text::excerpt(origin, 300)
            )
        };
        config.origins().map(one).collect()
    }

    fn meets(config: &ViewConfig, need: &Need) -> bool {
        let mut origins = config.origins();
        match need.name.as_deref() {
            Some(wanted) => origins.any(|(_, origin)| origin == wanted),
            None => origins.next().is_some(),
        }
    }

    fn suggest(_: &str, need: Option<&Need>) -> Option<GrantSuggestion> {
        let origin = need.map_or(Some("https://api.example.com"), |need| need.name.as_deref())?;
        let line = format!("view = {{ connect = [{}] }}", toml::Value::from(origin));
        Some(GrantSuggestion {
            line,
            flags: vec!["--view".to_owned(), format!("connect={origin}")],
            prerequisite: None,
        })
    }

    fn grant(mount: &mut dyn TableLike, args: &GrantArgs, _: &EditDirectories) -> Result<(), EditError> {
        let (word, origin) = args.pair(&Self::FLAG)?;
        let expected = || EditError::Value {
            flag: Self::NAME,
            value: text::excerpt(&format!("{word}={origin}"), 200),
            expected: "connect, resources, frames or base, then = and an origin such as https://api.example.com",
        };
        let occupied = |key: String, expected| EditError::Occupied { key, expected };
        if !Direction::ALL.iter().any(|(_, known, _)| *known == word) || !is_origin(origin) {
            return Err(expected());
        }
        let view =
            mount.entry(Self::NAME).or_insert_with(|| Item::Value(Value::InlineTable(toml_edit::InlineTable::new())));
        let table = view.as_table_like_mut().ok_or_else(|| occupied(Self::NAME.to_owned(), TomlShape::Table))?;
        let origins = table.entry(word).or_insert_with(|| Item::Value(Value::Array(Array::new())));
        let origins =
            origins.as_array_mut().ok_or_else(|| occupied(format!("{}.{word}", Self::NAME), TomlShape::List))?;
        if !origins.iter().any(|known| known.as_str() == Some(origin)) {
            origins.push(origin);
        }
        Ok(())
    }

    fn revoke(mount: &mut dyn TableLike, name: &str) -> Result<(), EditError> {
        let there = granted(mount);
        let missing = || EditError::Absent { key: Self::NAME, name: text::excerpt(name, 300), there: there.clone() };
        let (word, origin) = name.split_once('=').ok_or_else(missing)?;
        let view = mount.get_mut(Self::NAME).and_then(Item::as_table_like_mut).ok_or_else(missing)?;
        let origins = view.get_mut(word).and_then(Item::as_array_mut).ok_or_else(missing)?;
        let at = origins.iter().position(|known| known.as_str() == Some(origin)).ok_or_else(missing)?;
        origins.remove(at);
        if origins.is_empty() {
            view.remove(word);
        }
        if view.is_empty() {
            mount.remove(Self::NAME);
        }
        Ok(())
    }
}

/// The granted origins, as `belljar revoke` takes them.
fn granted(mount: &dyn TableLike) -> Vec<String> {
    let Some(view) = mount.get(View::NAME).and_then(Item::as_table_like) else { return Vec::new() };
    let of_word = |(word, origins): (&str, &Item)| {
        let origins: Vec<_> = origins.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        origins.into_iter().map(|origin| format!("{word}={origin}")).collect::<Vec<_>>()
    };
    view.iter().flat_map(of_word).collect()
}

/// The origin is not allowed in a declaration.
#[derive(Debug, thiserror::Error)]
#[error("expected the origin of a page, such as https://api.example.com")]
struct NotAnOrigin;

fn check_origin(origin: &str) -> Result<String, KindError> {
    if is_origin(origin) { Ok(origin.to_owned()) } else { Err(NotAnOrigin.into()) }
}
