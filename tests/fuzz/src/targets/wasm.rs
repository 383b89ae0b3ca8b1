//! Files that claim to be components: `sandbox::Profile`, and the compiler.

use belljar::sandbox::{NotAProvider, Processors, Profile, compile};
use wasmparser::{Parser, Payload};

use crate::oracle;

/// The most characters of a name in a profile.
const NAME: usize = 120;

/// The profile of a file must agree with that of another parser, for the outermost component.
pub(super) fn profile(bytes: &[u8]) {
    let read = Profile::read(bytes);
    let found = outermost(bytes);
    match &read {
        Ok(profile) => {
            for name in profile.imports.iter().chain(&profile.exports) {
                oracle::assert_plain(name, "a name");
                assert!(name.chars().count() <= NAME, "{name:?}");
            }
            assert!(profile.imports.is_sorted() && profile.exports.is_sorted());
            assert!(profile.imports.len() <= 1000 && profile.exports.len() <= 1000);
            if let Some((imports, exports)) = found {
                assert_eq!((&profile.imports, &profile.exports), (&imports, &exports));
            }
            match profile.check() {
                Ok(()) => {
                    let ours = |name: &String| name.starts_with("belljar:provider/resource-provider@0.1.");
                    assert!(profile.exports.iter().any(ours), "{:?}", profile.exports);
                    let known = |name: &String| name.starts_with("wasi:") || name.starts_with("belljar:provider/");
                    assert!(profile.imports.iter().all(known), "{:?}", profile.imports);
                }
                Err(why) => oracle::assert_plain(&why.to_string(), "a refusal"),
            }
            for need in profile.needs.all() {
                oracle::assert_plain(&need.describe(), "a need");
                assert!(profile.bad_needs.is_none() && !need.describe().contains(['\\', '`']), "{need:?}");
            }
            profile.bad_needs.iter().for_each(|why| oracle::assert_plain(why, "a refused declaration"));
            assert!(
                profile.kinds().len() <= belljar::grants::KINDS.len() && profile.interfaces().optional().len() <= 5
            );
        }
        Err(why) => {
            oracle::assert_plain(&why.to_string(), "a refusal");
            assert!(!matches!(why, NotAProvider::WrongWorld(_) | NotAProvider::UnknownImports(_)), "{why}");
            let few = |(imports, exports): &(Vec<String>, Vec<String>)| imports.len().max(exports.len()) <= 1000;
            assert!(
                is_cut(why) || !found.as_ref().is_some_and(few),
                "{why}, but wasmparser can parse every part of the file"
            );
        }
    }
}

/// True if the profile was refused because a section is longer than the file. wasmparser accepts a nested part that claims to
/// be longer than the file. The profile is read first, and refuses it.
fn is_cut(why: &NotAProvider) -> bool {
    matches!(why, NotAProvider::Damaged(why) if why == "a section is longer than the file")
}

/// The imports and exports of the outermost component. `None` if any part of the file, also a nested one, cannot be parsed.
fn outermost(bytes: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0);
    let cut = |name: &str| belljar::model::text::excerpt(name, NAME);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.ok()? {
            Payload::Version { encoding, .. } if depth == 0 => {
                depth = 1;
                (encoding == wasmparser::Encoding::Component).then_some(())?;
            }
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    imports.push(cut(import.ok()?.name.name));
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    exports.push(cut(export.ok()?.name.name));
                }
            }
            Payload::ComponentImportSection(section) => section.into_iter().try_for_each(|i| i.ok().map(drop))?,
            Payload::ComponentExportSection(section) => section.into_iter().try_for_each(|e| e.ok().map(drop))?,
            _ => {}
        }
    }
    imports.sort();
    exports.sort();
    Some((imports, exports))
}

/// A component that compiles has a profile. For any other file the error is plain text. Neither may end the process.
pub(super) fn compiler(bytes: &[u8]) {
    match compile(bytes, Processors::Own) {
        Ok(code) => {
            assert!(!code.is_empty());
            let profile = Profile::read(bytes);
            assert!(
                profile.as_ref().map_or_else(is_cut, |_| true),
                "the component compiles, but its profile is {profile:?}"
            );
        }
        Err(why) => {
            let why = why.to_string();
            oracle::assert_plain(&why, "a refusal");
            assert!(!why.is_empty() && why.chars().count() <= 600, "{why}");
        }
    }
}
