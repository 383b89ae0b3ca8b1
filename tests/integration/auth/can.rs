//! `belljar can`: what the command says of the rules, and of the keys of the keys file.

use belljar_tests::Site;

use crate::support::{empty, stdout_and_stderr};

/// A site with rules for groups, scopes and one key.
fn site() -> Site {
    let site = empty();
    site.config(
        r#"
[auth]

[auth.scopes]
"logs:read" = { mounts = ["logs"], do = "read" }

[[allow]]
who = { group = "editors" }
what = "belljar://notes/**"

[[allow]]
who = { key = "ci" }
what = "belljar://ci/**"
"#,
    );
    site
}

/// The output of `belljar can`, which must end with this code.
fn can(site: &Site, code: i32, arguments: &[&str]) -> String {
    let output = site.run(&[&["can"], arguments].concat());
    let shown = stdout_and_stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {shown}");
    shown
}

#[test]
fn a_key_is_judged_with_its_own_groups_and_scopes() {
    let site = site();
    // Without a keys file, a key has neither.
    assert!(can(&site, 0, &["key:ci", "read", "belljar://ci/a"]).starts_with("yes: key:ci"));
    assert!(can(&site, 1, &["key:ana", "read", "belljar://notes/a"]).starts_with("no: key:ana"));
    for key in [&["ana", "--group", "editors"][..], &["ben", "--scope", "logs:read"]] {
        assert!(site.run(&[&["key", "new"], key].concat()).status.success());
    }
    assert!(can(&site, 0, &["key:ana", "read", "belljar://notes/a"]).contains("[[allow]] 1"));
    assert!(can(&site, 0, &["key:ben", "read", "belljar://logs/a"]).contains("[auth.scopes] \"logs:read\""));
    assert!(can(&site, 1, &["key:ben", "read", "belljar://notes/a"]).starts_with("no: key:ben"));
    // Flags add to what the file says, and suppose a key that is not there.
    let more = can(&site, 0, &["key:ana", "read", "belljar://logs/a", "--scope", "logs:read"]);
    assert!(more.starts_with("yes: key:ana"), "{more}");
    assert!(can(&site, 0, &["key:ana", "read", "belljar://notes/a", "--scope", "logs:read"]).starts_with("yes"));
    assert!(can(&site, 0, &["key:new", "read", "belljar://notes/a", "--group", "editors"]).starts_with("yes"));
    // A token of the same name has nothing of the key.
    assert!(can(&site, 1, &["ana", "read", "belljar://notes/a"]).starts_with("no: ana"));
}

#[test]
fn a_key_that_cannot_be_used_is_reported() {
    let site = site();
    assert!(site.run(&["key", "new", "ana", "--expires", "1h"]).status.success());
    let unknown = can(&site, 2, &["key:anna", "read", "belljar://notes/a"]);
    assert!(unknown.contains("there is no key \"anna\"; the keys are ana; to make it, run: "), "{unknown}");
    let expired = can(&site, 1, &["key:ana", "read", "belljar://notes/a", "--at", "2999-01-01T00:00:00Z"]);
    assert!(expired.contains("the key \"ana\" has expired") && expired.contains("key revoke ana"), "{expired}");
    let wrong = can(&site, 2, &["key:a b", "read", "belljar://notes/a"]);
    assert!(wrong.contains("\"a b\" is not the name of a key"), "{wrong}");
    site.write("keys.toml", "keyz = 1");
    let broken = can(&site, 1, &["key:ana", "read", "belljar://notes/a"]);
    assert!(broken.contains("did you mean \"key\"?"), "{broken}");
}
