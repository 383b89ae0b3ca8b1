//! Tests of the hostile guest's honest answers. `tests/integration/` tests the attacks.

use super::*;

#[test]
fn a_revision_changes_with_the_contents() {
    let of = |reference: &str| HostileGuest.resource_revision(reference);
    assert_eq!(of("text/3"), of("text/3"));
    assert_ne!(of("text/3"), of("text/4"));
    assert_ne!(of("tick"), of("tick"));
    assert_eq!(of("nothing"), Err(Error::NotFound));
    let both = HostileGuest.resource_revisions(&["ok".to_owned(), "nothing".to_owned()]);
    assert_eq!(both, [of("ok"), Err(Error::NotFound)]);
    assert_eq!(HostileGuest.catalog_revision(), HostileGuest.catalog_revision());
}

#[test]
fn settings_select_wrong_revisions() {
    let all = ["ok".to_owned(), "text/3".to_owned()];
    let revisions_of = |how| revisions::resources(how, &all);
    assert_eq!(revisions_of("same"), [Ok("same".to_owned()), Ok("same".to_owned())]);
    assert_ne!(revisions_of("change"), revisions_of("change"));
    assert_eq!((revisions_of("short").len(), revisions_of("none").len(), revisions_of("many").len()), (1, 0, 100_000));
    assert_eq!(revisions_of("long")[0].as_ref().unwrap().len(), 10_000);
    assert_eq!(revisions_of("not-found"), [Err(Error::NotFound), Err(Error::NotFound)]);
    assert!(revisions_of("half")[0].is_ok() && revisions_of("half")[1].is_err());
    assert_ne!(revisions::catalog("change"), revisions::catalog("change"));
}

#[test]
fn variables_of_templates_are_completed() {
    let complete = |how, template, name, value, resolved: &[Argument]| {
        suggest::complete(how, template, &Argument::new(name, value), resolved).unwrap().values
    };
    let errors = "errors/{kind}/{words}";
    assert_eq!(complete("", errors, "kind", "d", &[]), ["denied"]);
    assert_eq!(complete("", errors, "words", "", &[Argument::new("kind", "denied")]).len(), 4);
    assert_eq!(complete("", errors, "words", "", &[Argument::new("kind", "not-found")]), [""; 0]);
    assert_eq!(complete("many", errors, "kind", "", &[]).len(), 100_000);
    assert!(suggest::complete("", errors, &Argument::new("other", ""), &[]).is_err());
}
