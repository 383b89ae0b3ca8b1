//! Runs each fuzz target on its whole corpus, and then on a fixed number of mutations with a fixed seed.

use belljar_fuzz::{TARGETS, target};
use belljar_fuzz_run::havoc;

belljar_fuzz_run::short! {
    TARGETS;
    reference, base, route, template, matching, listing, reading, cursor, consent, text, cutting, message, profile,
    compiler, config, lock, grants, authority, origin, path, redactor, filling, schema, form, frontmatter, audit,
    database_server, database_statement, worker, front,
}

#[test]
fn a_broken_invariant_is_reported_with_a_small_input() {
    let broken = belljar_fuzz_run::Target {
        run: |bytes| assert!(!bytes.windows(2).any(|pair| pair == b"??"), "found"),
        ..*target("reference")
    };
    let why = havoc::short(&broken).err().unwrap_or_default();
    assert!(why.contains("found"), "{why}");
    assert!(why.contains("on the input b\"??\""), "{why}");
}
