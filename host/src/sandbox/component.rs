//! What a file is, and whether it can be a provider: read from its outermost sections, without compiling anything.

use std::fmt;

use wasmparser::{Chunk, Encoding, Parser, Payload};

use crate::grants::KINDS;
use crate::grants::needs::{Needs, SECTION};
use crate::model::text;

/// The interface that a provider must export, without its version.
const PROVIDER: &str = "belljar:provider/resource-provider";

/// Our package, whose interfaces a component may export.
const PACKAGE: &str = "belljar:provider/";

/// The version of the package that this host speaks; any 0.1.x is taken.
const VERSION: &str = "0.1.";

/// Names longer than this are cut where they are shown.
const NAME: usize = 120;

/// Imports and exports beyond this number make no sense for a provider.
const MANY: usize = 1000;

/// What a component's outermost sections say about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// What it imports, sorted, sanitised.
    pub imports: Vec<String>,
    /// What it exports, sorted, sanitised.
    pub exports: Vec<String>,
    /// What it declares that it needs.
    pub needs: Needs,
    /// Why its declaration is passed over, if it is.
    pub bad_needs: Option<String>,
}

/// Why a file cannot be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAProvider {
    /// Not a component at all; says what it is instead, and the cure.
    NotAComponent(String),
    /// A component whose bytes are damaged; says where.
    Damaged(String),
    /// A component that does not export our interface; says what it exports.
    WrongWorld(String),
    /// A component that imports something that no mount gets.
    ForeignImports(Vec<String>),
}

impl fmt::Display for NotAProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAComponent(what) => f.write_str(what),
            Self::Damaged(why) => write!(f, "a damaged or truncated component: {why}"),
            Self::WrongWorld(why) => write!(f, "a component, but not a provider: {why}"),
            Self::ForeignImports(names) => write!(
                f,
                "a provider that imports {}, which belljar does not give: a provider imports WASI 0.2 and nothing else",
                names.iter().map(|n| text::quoted(n, NAME)).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

impl std::error::Error for NotAProvider {}

impl Profile {
    /// Reads `bytes`.
    ///
    /// # Errors
    /// [`NotAProvider::NotAComponent`] or [`NotAProvider::Damaged`]; whether it is a provider is [`Profile::check`].
    pub fn read(bytes: &[u8]) -> Result<Self, NotAProvider> {
        identify(bytes)?;
        let damaged =
            |error: wasmparser::BinaryReaderError| NotAProvider::Damaged(text::excerpt(&error.to_string(), 200));
        let mut profile = Self::default();
        let mut declared = Declared::default();
        let mut parser = Parser::new(0);
        let mut rest = bytes;
        loop {
            let (consumed, payload) = match parser.parse(rest, true).map_err(damaged)? {
                Chunk::Parsed { consumed, payload } => (consumed, payload),
                Chunk::NeedMoreData(_) => return Err(NotAProvider::Damaged("it ends too early".to_owned())),
            };
            let mut skip = 0;
            match payload {
                Payload::ComponentImportSection(section) => {
                    for import in section {
                        profile.imports.push(text::excerpt(import.map_err(damaged)?.name.name, NAME));
                    }
                }
                Payload::ComponentExportSection(section) => {
                    for export in section {
                        profile.exports.push(text::excerpt(export.map_err(damaged)?.name.name, NAME));
                    }
                }
                Payload::CustomSection(section) if section.name() == SECTION => declared.outer.push(section.data()),
                Payload::ModuleSection { parser: inner, unchecked_range } => {
                    skip = unchecked_range.end.saturating_sub(unchecked_range.start);
                    let bytes = rest.get(consumed..consumed.saturating_add(skip)).unwrap_or_default();
                    declared.look_into(inner, bytes);
                }
                Payload::ComponentSection { unchecked_range, .. } => {
                    skip = unchecked_range.end.saturating_sub(unchecked_range.start);
                }
                Payload::End(_) => break,
                _ => {}
            }
            if profile.imports.len().max(profile.exports.len()) > MANY {
                return Err(NotAProvider::Damaged(format!("more than {MANY} imports or exports")));
            }
            rest = rest
                .get(consumed.saturating_add(skip)..)
                .ok_or_else(|| NotAProvider::Damaged("a section is longer than the file".to_owned()))?;
        }
        profile.imports.sort();
        profile.exports.sort();
        match declared.read() {
            Ok(needs) => profile.needs = needs,
            Err(why) => profile.bad_needs = Some(why),
        }
        Ok(profile)
    }

    /// Whether this is a provider that can be linked.
    ///
    /// # Errors
    /// [`NotAProvider::WrongWorld`] or [`NotAProvider::ForeignImports`].
    pub fn check(&self) -> Result<(), NotAProvider> {
        let versions: Vec<&str> =
            self.exports.iter().filter_map(|e| e.strip_prefix(PROVIDER)?.strip_prefix('@')).collect();
        if !versions.iter().any(|v| v.starts_with(VERSION)) {
            let exports = match self.exports.as_slice() {
                [] => "nothing".to_owned(),
                some => some.iter().take(8).map(|e| text::quoted(e, NAME)).collect::<Vec<_>>().join(", "),
            };
            return Err(NotAProvider::WrongWorld(match versions.first() {
                Some(other) => format!(
                    "it exports {}, and this belljar speaks {VERSION}x; build it against that version of the interface",
                    text::quoted(&format!("{PROVIDER}@{other}"), NAME)
                ),
                None => format!("it exports {exports}, and a provider exports \"{PROVIDER}@0.1.0\""),
            }));
        }
        let foreign: Vec<String> = self.imports.iter().filter(|name| !is_given(name)).take(8).cloned().collect();
        if !foreign.is_empty() {
            return Err(NotAProvider::ForeignImports(foreign));
        }
        Ok(())
    }

    /// The kinds of grants that it could use, by what it imports.
    pub fn kinds(&self) -> Vec<&'static str> {
        let uses = |prefixes: &[&str]| self.imports.iter().any(|import| prefixes.iter().any(|p| import.starts_with(p)));
        KINDS.iter().filter(|kind| uses(kind.imports)).map(|kind| kind.name).collect()
    }

    /// The kind of grant that an import is for.
    pub fn kind_of(import: &str) -> Option<&'static str> {
        let kind = KINDS.iter().find(|kind| kind.imports.iter().any(|prefix| import.starts_with(prefix)));
        kind.map(|kind| kind.name)
    }

    /// Our optional interfaces that it exports: `completion`, `revisions`.
    pub fn optional(&self) -> Vec<&str> {
        let interface = |e: &'static str| move |name: &&str| name.starts_with(e);
        let ours: Vec<&str> = self.exports.iter().filter_map(|e| e.strip_prefix(PACKAGE)).collect();
        ["completion@0.1.", "revisions@0.1."]
            .iter()
            .filter_map(|e| ours.iter().find(|n| interface(e)(n)).map(|n| n.split('@').next().unwrap_or(n)))
            .collect()
    }
}

/// Where a component may declare what it needs: in itself, where a tool has put it, or in a core module of it, where a
/// compiler has.
#[derive(Default)]
struct Declared<'b> {
    outer: Vec<&'b [u8]>,
    inner: Vec<&'b [u8]>,
}

impl<'b> Declared<'b> {
    /// Looks for declarations in the sections of a core module. Damage is not told here: it does not compile.
    fn look_into(&mut self, mut parser: Parser, mut rest: &'b [u8]) {
        while let Ok(Chunk::Parsed { consumed, payload }) = parser.parse(rest, true) {
            let mut skip = 0;
            match payload {
                Payload::CustomSection(section) if section.name() == SECTION => self.inner.push(section.data()),
                Payload::CodeSectionStart { size, .. } => {
                    parser.skip_section();
                    skip = usize::try_from(size).unwrap_or(usize::MAX);
                }
                Payload::End(_) => return,
                _ => {}
            }
            let Some(next) = rest.get(consumed.saturating_add(skip)..) else { return };
            rest = next;
        }
    }

    /// The declaration. That of the component itself counts before those of its modules.
    fn read(self) -> Result<Needs, String> {
        let all = if self.outer.is_empty() { self.inner } else { self.outer };
        match all.as_slice() {
            [] => Ok(Needs::default()),
            [one] => Needs::parse(one),
            several => Err(format!("it is declared {} times", several.len())),
        }
    }
}

/// Whether an import is linked. The linker has the last word on types; this is for a clear message before compiling.
fn is_given(import: &str) -> bool {
    let Some((package, version)) = import.rsplit_once('@') else { return false };
    let known =
        ["wasi:io/", "wasi:clocks/", "wasi:random/", "wasi:cli/", "wasi:filesystem/", "wasi:sockets/", "wasi:http/"];
    (known.iter().any(|k| package.starts_with(k)) && version.starts_with("0.2."))
        || (package.starts_with(PACKAGE) && version.starts_with(VERSION))
}

/// Says what bytes are that are not a component.
fn identify(bytes: &[u8]) -> Result<(), NotAProvider> {
    let is = |what: &str| Err(NotAProvider::NotAComponent(what.to_owned()));
    if bytes.is_empty() {
        return is("an empty file; it may still be being written");
    }
    if bytes.starts_with(b"\0asm") {
        if bytes.len() < 8 {
            return is("the first bytes of a WebAssembly file, and nothing more; it may still be being written");
        }
        return match Parser::new(0).parse(bytes, true) {
            Ok(Chunk::Parsed { payload: Payload::Version { encoding: Encoding::Component, .. }, .. }) => Ok(()),
            Ok(Chunk::Parsed { payload: Payload::Version { encoding: Encoding::Module, .. }, .. }) => is(
                "a core WebAssembly module, not a component; build it for wasm32-wasip2, or make a component of it with \"wasm-tools component new\"",
            ),
            _ => {
                let version = bytes.get(4..8).unwrap_or_default();
                Err(NotAProvider::NotAComponent(format!(
                    "WebAssembly of an unknown binary version ({}); components have 0d 00 01 00",
                    hex(version)
                )))
            }
        };
    }
    let magics: &[(&[u8], &str)] = &[
        (
            b"\x7fELF",
            "a native ELF file (an executable or precompiled code), not WebAssembly; belljar compiles components itself",
        ),
        (b"MZ", "a Windows executable, not WebAssembly"),
        (b"PK", "a ZIP archive, not WebAssembly; unpack it"),
        (b"\x1f\x8b", "a gzip file, not WebAssembly; unpack it"),
        (b"%PDF", "a PDF document, not WebAssembly"),
        (b"#!", "a script, not WebAssembly"),
    ];
    if let Some((_, what)) = magics.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return is(what);
    }
    let head = bytes.get(..bytes.len().min(512)).unwrap_or_default();
    let text_len = match std::str::from_utf8(head) {
        Ok(text) => text.len(),
        // A character may be cut at the end of what was looked at.
        Err(error) if head.len().saturating_sub(error.valid_up_to()) < 4 => error.valid_up_to(),
        Err(_) => 0,
    };
    if text_len > 0 && !head.contains(&0) {
        let start = String::from_utf8_lossy(head);
        return if start.trim_start().starts_with("(component") || start.trim_start().starts_with("(module") {
            is("WebAssembly text, not a binary; assemble it with \"wasm-tools parse\"")
        } else {
            Err(NotAProvider::NotAComponent(format!(
                "a text file, not WebAssembly; it begins {}",
                text::quoted(&start, 24)
            )))
        };
    }
    Err(NotAProvider::NotAComponent(format!(
        "not WebAssembly; it begins with the bytes {}",
        hex(bytes.get(..bytes.len().min(8)).unwrap_or_default())
    )))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> String {
        match Profile::read(bytes).and_then(|p| p.check()) {
            Ok(()) => "a provider".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn says_what_it_is() {
        assert!(read(b"").starts_with("an empty file"));
        assert!(read(b"\0asm").contains("still be being written"));
        assert!(read(&wat::parse_str("(module)").unwrap()).starts_with("a core WebAssembly module"));
        assert!(read(b"\0asm\x0c\0\x01\0").contains("unknown binary version"));
        assert!(read(b"(component)").starts_with("WebAssembly text"));
        assert!(read(b"hello world").contains("begins \"hello world\""));
        assert!(read("héllo".repeat(200).as_bytes()).starts_with("a text file"));
        assert!(read(b"\x89\0\xff\x13").contains("bytes 89 00 ff 13"));
        assert!(read(b"\x7fELF\x02").contains("ELF"));
        assert!(read(b"PK\x03\x04").contains("ZIP"));
    }

    #[test]
    fn looks_past_nested_parts() {
        let wat = r#"(component
            (core module (func (export "x")))
            (component (export "inner" (type 0)) (type (func)))
            (import "foo:bar/baz@1.0.0" (instance))
            (import "wasi:cli/environment@0.2.3" (instance))
            (export "run" (instance 0)))"#;
        let bytes = wat::parse_str(wat).unwrap_or_else(|_| {
            wat::parse_str(
                r#"(component
            (core module (func (export "x")))
            (component)
            (import "foo:bar/baz@1.0.0" (instance))
            (import "wasi:cli/environment@0.2.3" (instance))
            (export "run" (instance 0)))"#,
            )
            .unwrap()
        });
        let profile = Profile::read(&bytes).unwrap();
        assert_eq!(profile.imports, ["foo:bar/baz@1.0.0", "wasi:cli/environment@0.2.3"]);
        assert_eq!(profile.exports, ["run"]);
        assert_eq!(profile.kinds(), ["env"]);
        assert!(profile.check().unwrap_err().to_string().contains("exports \"run\""));
        for cut in 1..bytes.len() {
            let _ = Profile::read(&bytes[..cut]);
        }
        assert!(matches!(Profile::read(&bytes[..bytes.len() - 3]), Err(NotAProvider::Damaged(_))));
    }

    #[test]
    fn declarations_are_found_where_tools_and_compilers_leave_them() {
        let module = |text: &str| format!(r#"(core module (@custom "belljar:needs" "{text}") (func) (func))"#);
        let outer = |text: &str| format!(r#"(@custom "belljar:needs" "{text}")"#);
        let read = |inside: &str| Profile::read(&wat::parse_str(format!("(component {inside})")).unwrap()).unwrap();
        let paths = |profile: &Profile| -> Vec<String> {
            profile.needs.all().iter().filter_map(|need| need.what.clone()).collect()
        };
        let (one, two) = ("[[fs]]\\npath = '/one'", "[[fs]]\\npath = '/two'");
        assert_eq!(paths(&read(&module(one))), ["/one"]);
        assert_eq!(paths(&read(&outer(two))), ["/two"]);
        assert_eq!(paths(&read(&(module(one) + &outer(two)))), ["/two"], "the component's own counts");
        assert_eq!(paths(&read(&format!("(component {})", outer(one)))), [""; 0], "no further down");
        for bad in [module(one) + &module(two), outer("x"), outer("\\ff"), outer(one) + &outer(one)] {
            let profile = read(&bad);
            assert!(profile.needs.is_empty() && profile.bad_needs.is_some(), "{bad}");
        }
        assert_eq!(read("").bad_needs, None);
    }

    #[test]
    fn versions_and_foreign_imports() {
        let provider = |version: &str, import: &str| {
            let wat = format!(
                r#"(component (import "{import}" (instance $i)) (export "belljar:provider/resource-provider@{version}" (instance $i)))"#
            );
            read(&wat::parse_str(wat).unwrap())
        };
        assert_eq!(provider("0.1.7", "wasi:io/poll@0.2.0"), "a provider");
        assert!(provider("0.2.0", "wasi:io/poll@0.2.0").contains("speaks 0.1.x"));
        assert!(
            provider("0.1.0", "wasi:io/poll@0.3.0").contains("\"wasi:io/poll@0.3.0\", which belljar does not give")
        );
        assert!(provider("0.1.0", "evil:host/shell@0.1.0").contains("evil:host/shell"));
    }
}
