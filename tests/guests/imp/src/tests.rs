//! What the imp does when it is honest; the tests of bounds see to the rest.

use super::*;

#[test]
fn a_revision_follows_what_is_read() {
    let of = |reference: &str| Imp.resource_revision(reference);
    assert_eq!(of("text/3"), of("text/3"));
    assert_ne!(of("text/3"), of("text/4"));
    assert_ne!(of("tick"), of("tick"));
    assert_eq!(of("nothing"), Err(Error::NotFound));
    let both = Imp.resource_revisions(&["ok".to_owned(), "nothing".to_owned()]);
    assert_eq!(both, [of("ok"), Err(Error::NotFound)]);
    assert_eq!(Imp.catalog_revision(), Imp.catalog_revision());
}

#[test]
fn a_revision_lies_when_it_is_told_to() {
    let all = ["ok".to_owned(), "text/3".to_owned()];
    let told = |how| revisions::resources(how, &all);
    assert_eq!(told("same"), [Ok("same".to_owned()), Ok("same".to_owned())]);
    assert_ne!(told("change"), told("change"));
    assert_eq!((told("short").len(), told("none").len(), told("many").len()), (1, 0, 100_000));
    assert_eq!(told("long")[0].as_ref().unwrap().len(), 10_000);
    assert_eq!(told("not-found"), [Err(Error::NotFound), Err(Error::NotFound)]);
    assert!(told("half")[0].is_ok() && told("half")[1].is_err());
    assert_ne!(revisions::catalog("change"), revisions::catalog("change"));
}

#[test]
fn variables_of_its_templates_are_completed() {
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
