//! Lists: that they end, that they are the same twice, and that every entry can be shown as it is.

use std::collections::HashSet;

use super::{Check, Probe, shown};
use crate::catalog::listing::Listed;
use crate::catalog::paging::Paging;
use crate::model::template::variables;
use crate::model::{Annotations, Answer, Icon, Meta, Operation, Page, ReadError, Resource, Template};

/// Pages that are walked.
const MOST_PAGES: u32 = 10_000;

/// Entries that are walked and looked at.
const MOST_ENTRIES: usize = 100_000;

/// A cursor that no provider gives.
const FOREIGN: &str = "belljar-conformance: not one of yours \u{2603}";

impl Probe<'_> {
    pub(super) async fn lists(&mut self) {
        let is_whole = self.walks().await;
        self.is_stable().await;
        self.refuses_foreign_cursors().await;
        let templates = self.gives_templates().await;
        self.entries(is_whole, templates);
    }

    async fn page(&mut self, cursor: Option<String>, check: &mut Check) -> Option<Page> {
        let what = match &cursor {
            None => "list-resources".to_owned(),
            Some(cursor) => format!("list-resources with the cursor {}", shown(cursor)),
        };
        match self.ask(Operation::List { cursor }).await {
            Ok(Answer::Page(page)) => Some(page),
            other => {
                check.unexpected(&what, other, "a page");
                None
            }
        }
    }

    /// Whether the list comes to an end.
    async fn walks(&mut self) -> bool {
        let mut check = Check::new("paging ends");
        let (mut paging, mut seen) = (Paging::default(), HashSet::new());
        let is_whole = loop {
            let Some(page) = self.page(paging.cursor().map(str::to_owned), &mut check).await else { break false };
            let new = page.resources.iter().filter(|entry| seen.insert(entry.key().to_owned())).count();
            self.resources.extend(page.resources);
            match paging.turn(new, page.next) {
                Ok(true) => {}
                Ok(false) => break true,
                Err(why) => {
                    check.bad(format!("{why}; the rest is not served"));
                    break false;
                }
            }
            let pages = paging.pages();
            if pages >= MOST_PAGES || self.resources.len() >= MOST_ENTRIES {
                check.warn(format!(
                    "there are more than {pages} pages with {} resources; the rest was not looked at: larger pages, or fewer entries and a template",
                    self.resources.len()
                ));
                break false;
            }
        };
        let pages = paging.pages();
        self.found(check.finding(format!("{} resources on {pages} pages", self.resources.len())));
        is_whole
    }

    /// Whether the first page is the same in another instance: a cursor goes on in it.
    async fn is_stable(&mut self) {
        let mut check = Check::new("lists are stable");
        if let Some(page) = self.page(None, &mut check).await {
            let before = self.resources.iter().map(|entry| &entry.reference);
            let differs = before.zip(page.resources.iter().map(|entry| &entry.reference)).find(|(a, b)| a != b);
            if let Some((before, now)) = differs {
                check.bad(format!(
                    "the first page has {} where it had {} before; the order has to be the same in each call",
                    shown(now),
                    shown(before)
                ));
            }
        }
        self.found(check.finding("the first page is the same in another instance"));
    }

    async fn refuses_foreign_cursors(&mut self) {
        let mut check = Check::new("foreign cursors");
        match self.ask(Operation::List { cursor: Some(FOREIGN.to_owned()) }).await {
            Err(ReadError::Invalid(_)) => {}
            // One that holds a position in an order finds a place for any text.
            Ok(Answer::Page(_)) => check.warn(format!(
                "list-resources took the cursor {} for one of its own; with the error `invalid`, mistakes are seen",
                shown(FOREIGN)
            )),
            other => check.unexpected("list-resources with a foreign cursor", other, "the error `invalid`"),
        }
        self.found(check.finding("refused as `invalid`"));
    }

    async fn gives_templates(&mut self) -> Check {
        let mut check = Check::new("templates");
        match self.ask(Operation::Templates).await {
            Ok(Answer::Templates(templates)) => self.templates = templates,
            other => {
                check.unexpected("list-templates", other, "a list, which may be empty");
            }
        }
        check
    }

    fn entries(&mut self, is_whole: bool, mut templates: Check) {
        let mut check = Check::new("resources");
        let mut names = HashSet::new();
        for entry in &self.resources {
            if !names.insert(entry.key()) {
                check.bad(format!("{} is listed twice; a reference is unique in the whole list", shown(entry.key())));
            }
            self.entry(entry, &mut check);
        }
        let count = self.resources.len();
        let what = if is_whole { "all" } else { "the first" };
        let resources =
            check.finding(format!("{what} {count} have valid, unique references and are shown as they are"));

        let mut names = HashSet::new();
        for entry in &self.templates {
            if !names.insert(entry.key()) {
                templates.bad(format!("the template {} is listed twice", shown(entry.key())));
            }
            if variables(entry.key()).is_empty() {
                templates.warn(format!("the template {} has no variable; list it as a resource", shown(entry.key())));
            }
            self.entry(entry, &mut templates);
        }
        let templates = templates.finding(format!("{} with valid RFC 6570 expressions", self.templates.len()));
        self.found(resources);
        self.found(templates);
    }

    /// Whether what clients are shown of an entry is what the provider gave.
    fn entry<T: Listed + Shown + Clone>(&self, entry: &T, check: &mut Check) {
        let mended = match entry.clone().clean() {
            Ok(mended) => mended,
            Err(why) => return check.bad(format!("{why}; it is left out")),
        };
        if let Err(why) = mended.belongs(self.mount, &self.snapshot) {
            check.bad(format!("{why}; it is left out"));
        }
        let (before, after) = (entry.fields(), mended.fields());
        for (field, rule, differs) in [
            (
                "name",
                "control, bidi and tag characters are taken out, and more than 256 characters cut",
                before.name != after.name,
            ),
            (
                "title",
                "control, bidi and tag characters are taken out, and more than 256 characters cut",
                before.title != after.title,
            ),
            (
                "description",
                "control, bidi and tag characters are taken out, and more than 4,096 characters cut",
                before.description != after.description,
            ),
            ("mime-type", "it is not one of RFC 6838", before.mime_type != after.mime_type),
            (
                "annotations",
                "a priority is from 0.0 to 1.0, last-modified is RFC 3339 with a time zone",
                before.annotations != after.annotations,
            ),
            ("icons", "src is an https: or data: URI, sizes are as 48x48 or any", before.icons != after.icons),
            (
                "meta",
                "keys are those of MCP's _meta without a reserved prefix, each once, values are JSON",
                before.meta != after.meta,
            ),
        ] {
            if differs {
                check.bad(format!("the {field} of {} is not shown as it is: {rule}", shown(entry.key())));
            }
        }
        if before.name.trim().is_empty() {
            check.warn(format!("{} has no name; its URI is shown", shown(entry.key())));
        }
    }
}

/// What is shown of an entry beside where it is.
struct Fields<'a> {
    name: &'a str,
    title: &'a Option<String>,
    description: &'a Option<String>,
    mime_type: &'a Option<String>,
    annotations: Option<&'a Annotations>,
    icons: &'a [Icon],
    meta: &'a Meta,
}

trait Shown {
    fn fields(&self) -> Fields<'_>;
}

/// Annotations that say nothing are none.
fn telling(annotations: &Option<Annotations>) -> Option<&Annotations> {
    annotations.as_ref().filter(|annotations| **annotations != Annotations::default())
}

macro_rules! shown {
    ($($kind:ty),*) => {
        $(impl Shown for $kind {
            fn fields(&self) -> Fields<'_> {
                let Self { name, title, description, mime_type, annotations, icons, meta, .. } = self;
                Fields { name, title, description, mime_type, annotations: telling(annotations), icons, meta }
            }
        })*
    };
}

shown!(Resource, Template);
