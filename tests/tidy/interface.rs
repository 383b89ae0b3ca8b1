//! Checks that every item of `wit/` has documentation and `@since`.

use wit_parser::{Docs, Resolve, SourceMap, Stability, Type, TypeDefKind, WorldItem};

use crate::{assert_none, files};

/// Every item without documentation, and every item without `@since` that can have one.
fn violations(resolve: &Resolve) -> Vec<String> {
    let mut found = Vec::new();
    let is_own =
        |id: Option<wit_parser::PackageId>| id.is_some_and(|id| resolve.packages[id].name.namespace == "belljar");

    for (_, world) in resolve.worlds.iter().filter(|(_, world)| is_own(world.package)) {
        check(&world.name, Some(&world.docs), Some(&world.stability), &mut found);
        for (key, item) in world.imports.iter().chain(&world.exports) {
            if let WorldItem::Interface { stability, .. } = item {
                let name = format!("{}: {}", world.name, resolve.name_world_key(key));
                check(&name, None, Some(stability), &mut found);
            }
        }
    }
    for (_, interface) in resolve.interfaces.iter().filter(|(_, interface)| is_own(interface.package)) {
        let name = interface.name.clone().unwrap_or_default();
        check(&name, Some(&interface.docs), Some(&interface.stability), &mut found);
        for function in interface.functions.values() {
            let name = format!("{name}.{}", function.name);
            check(&name, Some(&function.docs), Some(&function.stability), &mut found);
        }
        for (type_name, id) in &interface.types {
            let item = &resolve.types[*id];
            let name = format!("{name}.{type_name}");
            // `use types.{a}` imports a type. The interface `types` documents it.
            let is_imported =
                matches!(item.kind, TypeDefKind::Type(Type::Id(other)) if resolve.types[other].owner != item.owner);
            if is_imported {
                continue;
            }
            check(&name, Some(&item.docs), Some(&item.stability), &mut found);
            for (part, docs) in parts(&item.kind) {
                check(&format!("{name}.{part}"), Some(docs), None, &mut found);
            }
        }
    }
    found
}

/// The parts of a type that have documentation of their own: fields, cases and flags.
fn parts(kind: &TypeDefKind) -> Vec<(&str, &Docs)> {
    match kind {
        TypeDefKind::Record(record) => record.fields.iter().map(|field| (field.name.as_str(), &field.docs)).collect(),
        TypeDefKind::Variant(variant) => variant.cases.iter().map(|case| (case.name.as_str(), &case.docs)).collect(),
        TypeDefKind::Enum(cases) => cases.cases.iter().map(|case| (case.name.as_str(), &case.docs)).collect(),
        TypeDefKind::Flags(flags) => flags.flags.iter().map(|flag| (flag.name.as_str(), &flag.docs)).collect(),
        _ => Vec::new(),
    }
}

fn check(name: &str, docs: Option<&Docs>, stability: Option<&Stability>, found: &mut Vec<String>) {
    if docs.is_some_and(|docs| docs.contents.as_ref().is_none_or(|text| text.trim().is_empty())) {
        found.push(format!("wit: {name} is not documented"));
    }
    if stability.is_some_and(|stability| !matches!(stability, Stability::Stable { .. })) {
        found.push(format!("wit: {name} does not say @since"));
    }
}

/// Parses the files of one package.
fn parse<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Resolve {
    let mut sources = SourceMap::default();
    for (path, text) in files {
        sources.push_str(path, text);
    }
    let package = sources.parse().unwrap_or_else(|(_, error)| panic!("wit: {error:?}"));
    let mut resolve = Resolve::default();
    resolve.push_group(package).unwrap_or_else(|error| panic!("{error:?}"));
    resolve
}

#[test]
fn every_item_is_documented() {
    let own: Vec<_> = files(".wit").into_iter().filter(|file| file.path.starts_with("wit/")).collect();
    assert_none(violations(&parse(own.iter().map(|file| (file.path.as_str(), file.text.as_str())))));
}

#[test]
fn an_item_without_documentation_is_found() {
    let bare = "package belljar:x@0.1.0;
        interface i {
            record r { a: u8 }
            variant v { b }
            enum e { c }
            flags f { d }
            g: func();
        }
        interface j {
            /// Well.
            @since(version = 0.1.0)
            record s {
                /// Said.
                a: u8
            }
        }
        world w { export i; }";
    let found = violations(&parse([("planted.wit", bare)]));
    for item in ["i", "i.r", "i.v", "i.e", "i.f", "i.g", "j", "w"] {
        assert!(found.contains(&format!("wit: {item} is not documented")), "{item}: {found:#?}");
        assert!(found.contains(&format!("wit: {item} does not say @since")), "{item}: {found:#?}");
    }
    for part in ["i.r.a", "i.v.b", "i.e.c", "i.f.d"] {
        assert!(found.contains(&format!("wit: {part} is not documented")), "{part}: {found:#?}");
    }
    assert!(!found.iter().any(|line| line.contains("j.s")), "{found:#?}");
}
