//! Identifies a file and checks that it can be a provider. Reads only its outermost sections and compiles nothing.

use std::fmt;

use wasmparser::{Chunk, Encoding, Parser, Payload};

use crate::grants::KINDS;
use crate::grants::{Needs, SECTION};
use crate::interfaces::Interfaces;
use crate::model::text;

/// The interface that a provider must export, without its version.
const PROVIDER: &str = "belljar:provider/resource-provider";

/// belljar's package, whose interfaces a component may export.
const PACKAGE: &str = "belljar:provider/";

/// The version of the package that this host supports: any 0.1.x.
const VERSION: &str = "0.1.";

/// Characters of a name in a message.
const MAX_NAME: usize = 120;

/// Imports, and exports, of a component. No provider needs more.
const MAX_ITEMS: usize = 1000;

/// The contents of a component's outermost sections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The names of its imports, sorted and sanitised.
    pub imports: Vec<String>,
    /// The names of its exports, sorted and sanitised.
    pub exports: Vec<String>,
    /// The grants that it declares to need.
    pub needs: Needs,
    /// The reason why its declaration is ignored, if it is.
    pub bad_needs: Option<String>,
}

/// A file cannot be mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAProvider {
    /// The file is not a component. The text says what it is, and the cure.
    NotAComponent(String),
    /// The component is damaged. The text says where.
    Damaged(String),
    /// The component does not export belljar's interface. The text says what it exports.
    WrongWorld(String),
    /// The component imports functions that belljar does not provide.
    UnknownImports(Vec<String>),
}

impl fmt::Display for NotAProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAComponent(what) => f.write_str(what),
            Self::Damaged(why) => write!(f, "a damaged or truncated component: {why}"),
            Self::WrongWorld(why) => write!(f, "a component, but not a provider: {why}"),
            Self::UnknownImports(names) => write!(
                f,
                "a provider that imports {}, which belljar does not provide: a provider may import only WASI 0.2{}",
                names.iter().map(|n| text::quoted(n, MAX_NAME)).collect::<Vec<_>>().join(", "),
                grant_imports().map(|import| format!(", \"{import}\"")).collect::<String>()
            ),
        }
    }
}

impl std::error::Error for NotAProvider {}

impl Profile {
    /// Parses `bytes`.
    ///
    /// # Errors
    /// [`NotAProvider::NotAComponent`] or [`NotAProvider::Damaged`]. [`Profile::check`] reports the other cases.
    pub fn read(bytes: &[u8]) -> Result<Self, NotAProvider> {
        identify(bytes)?;
        let damaged =
            |error: wasmparser::BinaryReaderError| NotAProvider::Damaged(text::excerpt(&error.to_string(), 200));
        let mut profile = Self::default();
        let mut declared = NeedsSections::default();
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
                        profile.imports.push(text::excerpt(import.map_err(damaged)?.name.name, MAX_NAME));
                    }
                }
                Payload::ComponentExportSection(section) => {
                    for export in section {
                        profile.exports.push(text::excerpt(export.map_err(damaged)?.name.name, MAX_NAME));
                    }
                }
                Payload::CustomSection(section) if section.name() == SECTION => declared.outer.push(section.data()),
                Payload::ModuleSection { parser: inner, unchecked_range } => {
                    skip = unchecked_range.end.saturating_sub(unchecked_range.start);
                    let bytes = rest.get(consumed..consumed.saturating_add(skip)).unwrap_or_default();
                    declared.scan_module(inner, bytes);
                }
                Payload::ComponentSection { unchecked_range, .. } => {
                    skip = unchecked_range.end.saturating_sub(unchecked_range.start);
                }
                Payload::End(_) => break,
                _ => {}
            }
            if profile.imports.len().max(profile.exports.len()) > MAX_ITEMS {
                return Err(NotAProvider::Damaged(format!("it has more than {MAX_ITEMS} imports or exports")));
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

    /// Checks that this is a provider that can be linked.
    ///
    /// # Errors
    /// [`NotAProvider::WrongWorld`] or [`NotAProvider::UnknownImports`].
    pub fn check(&self) -> Result<(), NotAProvider> {
        let versions: Vec<&str> =
            self.exports.iter().filter_map(|e| e.strip_prefix(PROVIDER)?.strip_prefix('@')).collect();
        if !versions.iter().any(|v| v.starts_with(VERSION)) {
            let exports = match self.exports.as_slice() {
                [] => "nothing".to_owned(),
                some => some.iter().take(8).map(|e| text::quoted(e, MAX_NAME)).collect::<Vec<_>>().join(", "),
            };
            return Err(NotAProvider::WrongWorld(match versions.first() {
                Some(other) => format!(
                    "it exports {}, and this belljar supports {VERSION}x; build it against that version of the interface",
                    text::quoted(&format!("{PROVIDER}@{other}"), MAX_NAME)
                ),
                None => format!("it exports {exports}, but a provider must export \"{PROVIDER}@0.1.0\""),
            }));
        }
        let foreign: Vec<String> = self.imports.iter().filter(|name| !is_linked(name)).take(8).cloned().collect();
        if !foreign.is_empty() {
            return Err(NotAProvider::UnknownImports(foreign));
        }
        Ok(())
    }

    /// The kinds of grants that it could use, according to its imports.
    pub fn kinds(&self) -> Vec<&'static str> {
        let uses = |prefixes: &[&str]| self.imports.iter().any(|import| prefixes.iter().any(|p| import.starts_with(p)));
        KINDS.iter().filter(|kind| uses(kind.imports)).map(|kind| kind.name).collect()
    }

    /// The kind of grant to which an import belongs.
    pub fn kind_of(import: &str) -> Option<&'static str> {
        let kind = KINDS.iter().find(|kind| kind.imports.iter().any(|prefix| import.starts_with(prefix)));
        kind.map(|kind| kind.name)
    }

    /// The belljar interfaces that it exports.
    pub fn interfaces(&self) -> Interfaces {
        Interfaces::of(&self.exports)
    }
}

/// The sections in which a component declares its needs. `outer`: in the component itself, written by a tool. `inner`:
/// in its core modules, written by a compiler.
#[derive(Default)]
struct NeedsSections<'b> {
    outer: Vec<&'b [u8]>,
    inner: Vec<&'b [u8]>,
}

impl<'b> NeedsSections<'b> {
    /// Collects declarations from the sections of a core module. Ignores damage here: the compiler reports it.
    fn scan_module(&mut self, mut parser: Parser, mut rest: &'b [u8]) {
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

    /// The declaration. One in the component itself takes precedence over those in its modules.
    fn read(self) -> Result<Needs, String> {
        let all = if self.outer.is_empty() { self.inner } else { self.outer };
        match all.as_slice() {
            [] => Ok(Needs::default()),
            [one] => Needs::parse(one).map_err(|error| error.to_string()),
            several => Err(format!("it is declared {} times", several.len())),
        }
    }
}

/// Import prefixes that grants provide beside WASI.
fn grant_imports() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.imports).filter(|import| !import.starts_with("wasi:")).copied()
}

/// True if an import is linked. The linker checks the types; this check gives a clear message before compilation.
fn is_linked(import: &str) -> bool {
    let Some((name, version)) = import.rsplit_once('@') else { return false };
    match name.strip_prefix("wasi:") {
        // These are linked for all components, granted or not.
        Some(name) => {
            let known = ["io/", "clocks/", "random/", "cli/", "filesystem/", "sockets/", "http/"];
            known.iter().any(|package| name.starts_with(package)) && version.starts_with("0.2.")
        }
        None => (name.starts_with(PACKAGE) && version.starts_with(VERSION)) || Profile::kind_of(import).is_some(),
    }
}

/// Identifies bytes that are not a component.
fn identify(bytes: &[u8]) -> Result<(), NotAProvider> {
    let is = |what: &str| Err(NotAProvider::NotAComponent(what.to_owned()));
    if bytes.is_empty() {
        return is("an empty file; it may still be being written");
    }
    if bytes.starts_with(b"\0asm") {
        if bytes.len() < 8 {
            return is("only the first bytes of a WebAssembly file; it may still be being written");
        }
        return match Parser::new(0).parse(bytes, true) {
            Ok(Chunk::Parsed { payload: Payload::Version { encoding: Encoding::Component, .. }, .. }) => Ok(()),
            Ok(Chunk::Parsed { payload: Payload::Version { encoding: Encoding::Module, .. }, .. }) => is(
                "a core WebAssembly module, not a component; build it for wasm32-wasip2, or turn it into a component with \"wasm-tools component new\"",
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
        // The last character may be cut at the end of `head`.
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
    fn identifies_other_files() {
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
    fn reads_only_the_outermost_sections() {
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
    fn needs_are_found_in_the_component_and_in_its_modules() {
        let module = |text: &str| format!(r#"(core module (@custom "belljar:needs" "{text}") (func) (func))"#);
        let outer = |text: &str| format!(r#"(@custom "belljar:needs" "{text}")"#);
        let read = |inside: &str| Profile::read(&wat::parse_str(format!("(component {inside})")).unwrap()).unwrap();
        let paths = |profile: &Profile| -> Vec<String> {
            profile.needs.all().iter().filter_map(|need| need.name.clone()).collect()
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
        assert!(provider("0.2.0", "wasi:io/poll@0.2.0").contains("supports 0.1.x"));
        assert!(
            provider("0.1.0", "wasi:io/poll@0.3.0").contains("\"wasi:io/poll@0.3.0\", which belljar does not provide")
        );
        assert!(provider("0.1.0", "evil:host/shell@0.1.0").contains("evil:host/shell"));
    }
}
