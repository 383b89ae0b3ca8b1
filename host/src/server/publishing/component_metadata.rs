//! What a component says of itself: the sections of the tool conventions that describe it, the tools that made it, and the list of
//! crates that `cargo auditable` writes. All of it is the word of whoever built the component.

use serde::Deserialize;
use wasmparser::{KnownCustom, Parser, Payload};

use crate::model::text;

/// The most characters of a description, and of another text.
const MAX_TEXT: usize = 600;

/// The section of `cargo auditable`.
const CRATES: &str = ".dep-v0";

/// The most bytes of a list of crates.
const MAX_CRATES_BYTES: usize = 8 << 20;

/// The most crates, and the most tools, that are kept.
const MAX_PARTS: usize = 10_000;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ComponentMetadata {
    pub(crate) version: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) licence: Option<String>,
    /// The URL of the source code.
    pub(crate) source: Option<String>,
    pub(crate) homepage: Option<String>,
    /// The commit of the source code.
    pub(crate) revision: Option<String>,
    pub(crate) authors: Option<String>,
    pub(crate) tools: Vec<BuildTool>,
    pub(crate) crates: Vec<BuiltCrate>,
}

/// An entry of a section "producers".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuildTool {
    /// `language`, `processed-by` or `sdk`.
    pub(crate) field: String,
    pub(crate) name: String,
    pub(crate) version: String,
}

/// A crate that is in the component.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct BuiltCrate {
    pub(crate) name: String,
    pub(crate) version: String,
    /// `crates.io`, `git`, `local`, `registry`, or another word.
    #[serde(default)]
    pub(crate) source: String,
    /// `build` for a crate that only the build used.
    #[serde(default)]
    pub(crate) kind: Option<String>,
}

impl ComponentMetadata {
    /// Reads the sections. A section that is damaged says nothing.
    pub(crate) fn read(component: &[u8]) -> Self {
        let mut found = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(component) {
            let Ok(payload) = payload else { break };
            match payload {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::CustomSection(section) if section.name() == CRATES => found.add_crates(section.data()),
                Payload::CustomSection(section) => match section.as_known() {
                    KnownCustom::Producers(producers) => found.add_tools(producers),
                    // What stands further inside describes a part.
                    KnownCustom::Unknown if depth == 0 => found.describe(section.name(), section.data()),
                    _ => {}
                },
                _ => {}
            }
        }
        found
    }

    fn describe(&mut self, name: &str, data: &[u8]) {
        let field = match name {
            "version" => &mut self.version,
            "description" => &mut self.description,
            "licenses" => &mut self.licence,
            "source" => &mut self.source,
            "homepage" => &mut self.homepage,
            "revision" => &mut self.revision,
            "authors" => &mut self.authors,
            _ => return,
        };
        let words = std::str::from_utf8(data).ok().map(|words| text::excerpt(words.trim(), MAX_TEXT));
        *field = words.filter(|words| !words.is_empty());
    }

    fn add_tools(&mut self, producers: wasmparser::ProducersSectionReader<'_>) {
        for field in producers.into_iter().filter_map(Result::ok) {
            for value in field.values.into_iter().filter_map(Result::ok) {
                let [field, name, version] =
                    [field.name, value.name, value.version].map(|words| text::excerpt(words, MAX_TEXT));
                let tool = BuildTool { field, name, version };
                if !self.tools.contains(&tool) && self.tools.len() < MAX_PARTS {
                    self.tools.push(tool);
                }
            }
        }
    }

    fn add_crates(&mut self, zlib: &[u8]) {
        #[derive(Deserialize)]
        struct List {
            packages: Vec<BuiltCrate>,
        }
        let json = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(zlib, MAX_CRATES_BYTES).ok();
        let list = json.and_then(|json| serde_json::from_slice(&json).ok());
        let Some(List { packages }) = list else { return };
        self.crates
            .extend(packages.into_iter().take(MAX_PARTS.saturating_sub(self.crates.len())).map(BuiltCrate::cleaned));
        self.crates.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
        self.crates.dedup_by(|one, other| (&one.name, &one.version) == (&other.name, &other.version));
    }

    /// The SDK, if the component names one: its name and version.
    pub(crate) fn sdk(&self) -> Option<String> {
        let sdk = self.tools.iter().find(|tool| tool.field == "sdk")?;
        Some(format!("{} {}", sdk.name, sdk.version).trim().to_owned())
    }
}

impl BuiltCrate {
    fn cleaned(self) -> Self {
        let Self { name, version, source, kind } = self;
        let [name, version, source] = [name, version, source].map(|words| text::excerpt(&words, MAX_TEXT));
        Self { name, version, source, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_the_outermost_component_describe_it() {
        let component = wat::parse_str(
            r#"(component
                (core module (@custom "version" "0.0.1") (@producers (processed-by "wit-component" "0.244.0")))
                (@custom "version" "1.2.0") (@custom "licenses" "MIT\n") (@custom "description" "\ff")
                (@custom "homepage" "https://acme.example") (@custom "other" "x")
                (@custom "producers" "\01\03sdk\01\04belj\030.1"))"#,
        )
        .unwrap();
        let found = ComponentMetadata::read(&component);
        assert_eq!((found.version.as_deref(), found.licence.as_deref()), (Some("1.2.0"), Some("MIT")));
        assert_eq!((found.description.as_deref(), found.homepage.is_some()), (None, true));
        assert_eq!(found.sdk().as_deref(), Some("belj 0.1"));
        assert_eq!(found.tools.len(), 2, "{:?}", found.tools);
    }

    #[test]
    fn crates_of_cargo_auditable_are_read() {
        let json = r#"{"packages":[{"name":"b","version":"1","source":"crates.io","kind":"build"},{"name":"a","version":"2","source":"local","root":true}]}"#;
        // Stored, without compression.
        let (length, sum) = (u16::try_from(json.len()).unwrap(), 0x1a39_2ac1_u32);
        let mut zlib = vec![0x78, 0x01, 0x01];
        zlib.extend(length.to_le_bytes());
        zlib.extend((!length).to_le_bytes());
        zlib.extend(json.as_bytes());
        zlib.extend(sum.to_be_bytes());
        let mut found = ComponentMetadata::default();
        found.add_crates(&zlib);
        found.add_crates(&zlib);
        let names: Vec<&str> = found.crates.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        found.add_crates(b"x");
        assert_eq!(found.crates.len(), 2);
    }
}
