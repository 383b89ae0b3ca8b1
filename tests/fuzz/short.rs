//! Runs each fuzz target on its whole corpus, and then on a fixed number of mutations with a fixed seed.

use belljar_fuzz::{TARGETS, havoc, target};

/// Makes one test for each target, so that the name of a failed test is the name of its target.
macro_rules! short {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() {
            havoc::short(target(stringify!($name))).unwrap_or_else(|why| panic!("{why}"));
        })*

        #[test]
        fn every_target_is_run() {
            let run = [$(stringify!($name)),*];
            let all: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(run.as_slice(), all);
        }
    };
}

short! {
    reference, base, route, template, matching, listing, reading, cursor, consent, text, cutting, message, profile, compiler, config, lock, grants, authority, origin, path, redactor, filling, schema, form, frontmatter, audit,
}

#[test]
fn a_broken_invariant_is_reported_with_a_small_input() {
    let broken = belljar_fuzz::Target {
        run: |bytes| assert!(!bytes.windows(2).any(|pair| pair == b"??"), "found"),
        ..*target("reference")
    };
    let why = havoc::short(&broken).err().unwrap_or_default();
    assert!(why.contains("found"), "{why}");
    assert!(why.contains("on the input b\"??\""), "{why}");
}
