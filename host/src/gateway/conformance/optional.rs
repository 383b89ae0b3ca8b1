//! The optional interfaces, where the component exports them.

use super::{Check, Probe, is_crash, shown};
use crate::gateway::check;
use crate::model::template::variables;
use crate::model::{Answer, Completing, Operation, ReadError, reference};

/// Variables that are completed.
const VARIABLES: usize = 20;

/// Listed resources that are asked for together.
const TOGETHER: usize = 5;

/// A reference that leads nowhere.
const NOWHERE: &str = "belljar-conformance-there-is-no-such-thing";

impl Probe<'_> {
    pub(super) async fn optional(&mut self) {
        if self.mount.completes {
            self.completes().await;
        }
        if self.mount.revises {
            self.tells_the_catalogs_revision().await;
            self.tells_revisions().await;
        }
    }

    async fn completes(&mut self) {
        let mut check = Check::new("completion");
        let templates = self.templates.iter().map(|entry| entry.template.clone());
        let mut wishes: Vec<(String, String)> = Vec::new();
        for template in templates {
            wishes.extend(variables(&template).into_iter().map(|name| (template.clone(), name.to_owned())));
        }
        wishes.truncate(VARIABLES);
        let mut offered = 0;
        for (template, name) in &wishes {
            for value in ["", "a", "\u{2603}%\"'"] {
                let (template, name, value) = (template.clone(), name.clone(), value.to_owned());
                let what = format!("complete of {} in {}", shown(&name), shown(&template));
                let wish = Completing { template, name, value, resolved: Vec::new() };
                match self.ask(Operation::Complete(wish.clone())).await {
                    Ok(Answer::Suggestions(given)) => {
                        offered += given.values.len();
                        let shown = check::suggestions(given.clone(), &wish, self.mount, &self.snapshot);
                        if given.values != shown.values && given.values.len() <= 100 {
                            check.warn(format!("{what} gives values that are not shown as they are: twice, too long, with control characters, or of another mount"));
                        }
                    }
                    Err(error @ (ReadError::Unavailable(_) | ReadError::Down(_))) => {
                        check.warn(format!("{what}: {error}"))
                    }
                    other => check.unexpected(&what, other, "suggestions, or none"),
                }
            }
        }
        if wishes.is_empty() {
            check.warn("it completes, and lists no template with a variable".to_owned());
        }
        self.found(check.finding(format!("{offered} suggestions for {} variables", wishes.len())));
    }

    async fn tells_the_catalogs_revision(&mut self) {
        let mut check = Check::new("catalog-revision");
        let mut told = Vec::new();
        for _ in 0..2 {
            match self.ask(Operation::CatalogRevision).await {
                Ok(Answer::Revision(revision)) => match check::revision(revision) {
                    Ok(revision) => told.push(revision),
                    Err(error) => check.bad(error.to_string()),
                },
                Err(error @ (ReadError::Unavailable(_) | ReadError::Down(_))) => {
                    check.warn(format!("catalog-revision: {error}"))
                }
                other => check.unexpected("catalog-revision", other, "a revision"),
            }
        }
        if let [before, after] = told.as_slice()
            && before != after
        {
            check.warn("it differs from one call to the next: the list is fetched anew each time".to_owned());
        }
        self.found(check.finding("the same twice"));
    }

    async fn tells_revisions(&mut self) {
        let mut check = Check::new("resource-revisions");
        let listed = self.resources.iter().map(|entry| &entry.reference).filter(|name| reference::check(name).is_ok());
        let mut asked: Vec<String> = listed.take(TOGETHER).cloned().collect();
        asked.push(NOWHERE.to_owned());
        let is_covered = self.is_covered(NOWHERE);
        match self.ask(Operation::Revisions { references: asked.clone() }).await {
            Ok(Answer::Revisions(given)) => match check::revisions(given, asked.len()) {
                Err(error) => check.bad(error.to_string()),
                Ok(given) => {
                    for (name, one) in asked.iter().zip(&given) {
                        match one {
                            Ok(_) if name == NOWHERE && !is_covered => {
                                check.bad(format!(
                                    "{} is not there, and has a revision; expected `not-found`",
                                    shown(name)
                                ));
                            }
                            Err(ReadError::NotFound) if name != NOWHERE => {
                                check.bad(format!("{} is listed, and its revision is `not-found`", shown(name)));
                            }
                            Err(error) if is_crash(error) => check.bad(format!("{}: {error}", shown(name))),
                            _ => {}
                        }
                    }
                    self.come_in_order(&asked, &given, &mut check).await;
                }
            },
            other => check.unexpected("resource-revisions", other, "one result for each reference"),
        }
        match self.ask(Operation::Revisions { references: Vec::new() }).await {
            Ok(Answer::Revisions(none)) if none.is_empty() => {}
            other => check.unexpected("resource-revisions of nothing", other, "an empty list"),
        }
        self.found(check.finding(format!("one for each of {} references, in order", asked.len())));
    }

    /// Asked the other way round, the answers come the other way round.
    async fn come_in_order(&mut self, asked: &[String], given: &[Result<String, ReadError>], check: &mut Check) {
        let references = asked.iter().rev().cloned().collect();
        let Ok(Answer::Revisions(again)) = self.ask(Operation::Revisions { references }).await else { return };
        let is_there = |one: &Result<String, ReadError>| one.is_ok();
        let order: Vec<bool> = given.iter().map(is_there).collect();
        if order != again.iter().rev().map(is_there).collect::<Vec<_>>() {
            check.bad("asked in the other order, the results are not in the order of the references".to_owned());
        }
    }
}
