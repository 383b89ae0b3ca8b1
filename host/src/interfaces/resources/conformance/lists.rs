//! Checks of lists: they end, they are stable, and clients get every entry unchanged.

use std::collections::HashSet;

use crate::interfaces::ListEntry;
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, shown};
use crate::interfaces::paging::Paging;
use crate::interfaces::resources::{ListResources, ListTemplates};
use crate::model::template::variables;
use crate::model::{Annotations, Icon, Meta, Page, ReadError, Resource, Template};

/// The most pages that are fetched.
const MAX_PAGES: u32 = 10_000;

/// The number of entries from which no more pages are fetched.
const MAX_ENTRIES: usize = 100_000;

/// A cursor that no provider gives.
const FOREIGN: &str = "belljar-conformance: not one of yours \u{2603}";

/// Runs the checks.
pub(super) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    run.check_lists().await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_lists(&mut self) {
        let is_complete = self.check_paging().await;
        self.check_stability().await;
        self.check_foreign_cursors().await;
        let templates = self.fetch_templates().await;
        self.check_entries(is_complete, templates);
    }

    async fn page(&mut self, cursor: Option<String>, check: &mut Check) -> Option<Page> {
        let what = match &cursor {
            None => "list-resources".to_owned(),
            Some(cursor) => format!("list-resources with the cursor {}", shown(cursor)),
        };
        match self.call(ListResources { cursor }).await {
            Ok(page) => Some(page),
            Err(error) => {
                check.unexpected(&what, &error, "a page");
                None
            }
        }
    }

    /// Fetches all pages. Returns true if the list ends.
    async fn check_paging(&mut self) -> bool {
        let mut check = Check::new("paging ends");
        let (mut paging, mut seen) = (Paging::default(), HashSet::new());
        let is_complete = loop {
            let Some(page) = self.page(paging.cursor().map(str::to_owned), &mut check).await else { break false };
            let new = page.resources.iter().filter(|entry| seen.insert(entry.key().to_owned())).count();
            self.resources.extend(page.resources);
            match paging.count_page(new, page.next) {
                Ok(true) => {}
                Ok(false) => break true,
                Err(why) => {
                    check.bad(format!("{why}; the rest of the list is not served"));
                    break false;
                }
            }
            let pages = paging.pages();
            if pages >= MAX_PAGES || self.resources.len() >= MAX_ENTRIES {
                check.warn(format!(
                    "the list has more than {pages} pages with {} resources; the rest was not checked; use larger pages, or fewer entries and a template",
                    self.resources.len()
                ));
                break false;
            }
        };
        let pages = paging.pages();
        self.found(check.finding(format!("{} resources on {pages} pages", self.resources.len())));
        is_complete
    }

    /// Checks that another instance gives the same first page: a cursor of one instance is used in the next.
    async fn check_stability(&mut self) {
        let mut check = Check::new("lists are stable");
        if let Some(page) = self.page(None, &mut check).await {
            let before = self.resources.iter().map(|entry| &entry.reference);
            let differs = before.zip(page.resources.iter().map(|entry| &entry.reference)).find(|(a, b)| a != b);
            if let Some((before, now)) = differs {
                check.bad(format!(
                    "the first page has {} where it had {} before; expected the same order in each call",
                    shown(now),
                    shown(before)
                ));
            }
        }
        self.found(check.finding("the first page is the same in another instance"));
    }

    async fn check_foreign_cursors(&mut self) {
        let mut check = Check::new("foreign cursors");
        match self.call(ListResources { cursor: Some(FOREIGN.to_owned()) }).await {
            Err(ReadError::Invalid(_)) => {}
            // Only a warning: a provider whose cursor is the last name in sorted order can continue after any text.
            Ok(_) => check.warn(format!(
                "list-resources accepted the foreign cursor {}; the error `invalid` would make mistakes visible",
                shown(FOREIGN)
            )),
            Err(error) => check.unexpected("list-resources with a foreign cursor", &error, "the error `invalid`"),
        }
        self.found(check.finding("refused as `invalid`"));
    }

    async fn fetch_templates(&mut self) -> Check {
        let mut check = Check::new("templates");
        match self.call(ListTemplates).await {
            Ok(templates) => self.templates = templates,
            Err(error) => check.unexpected("list-templates", &error, "a list, which may be empty"),
        }
        check
    }

    fn check_entries(&mut self, is_complete: bool, mut templates: Check) {
        let mut check = Check::new("resources");
        let mut names = HashSet::new();
        for entry in &self.resources {
            if !names.insert(entry.key()) {
                check.bad(format!(
                    "{} is listed twice; expected unique references in the whole list",
                    shown(entry.key())
                ));
            }
            self.check_entry(entry, &mut check);
        }
        let count = self.resources.len();
        let which = if is_complete { "all" } else { "the first" };
        let resources =
            check.finding(format!("{which} {count} have valid, unique references, and clients get them unchanged"));

        let mut names = HashSet::new();
        for entry in &self.templates {
            if !names.insert(entry.key()) {
                templates.bad(format!("the template {} is listed twice", shown(entry.key())));
            }
            if variables(entry.key()).is_empty() {
                templates.warn(format!("the template {} has no variable; list it as a resource", shown(entry.key())));
            }
            self.check_entry(entry, &mut templates);
        }
        let templates = templates.finding(format!("{} with valid RFC 6570 expressions", self.templates.len()));
        self.found(resources);
        self.found(templates);
    }

    /// Checks that clients get every field of an entry unchanged.
    fn check_entry<T: ListEntry + DisplayFields + Clone>(&self, entry: &T, check: &mut Check) {
        let cleaned = match entry.clone().clean() {
            Ok(cleaned) => cleaned,
            Err(why) => return check.bad(format!("{why}; the entry is left out")),
        };
        if let Err(why) = cleaned.check_mount(self.mount) {
            check.bad(format!("{why}; the entry is left out"));
        }
        let (before, after) = (entry.fields(), cleaned.fields());
        for (field, rule, differs) in [
            (
                "name",
                "control, bidi and tag characters are removed, and the text is cut after 256 characters",
                before.name != after.name,
            ),
            (
                "title",
                "control, bidi and tag characters are removed, and the text is cut after 256 characters",
                before.title != after.title,
            ),
            (
                "description",
                "control, bidi and tag characters are removed, and the text is cut after 4,096 characters",
                before.description != after.description,
            ),
            ("mime-type", "it does not have the syntax of RFC 6838", before.mime_type != after.mime_type),
            (
                "annotations",
                "expected a priority from 0.0 to 1.0, and last-modified in RFC 3339 with a time zone",
                before.annotations != after.annotations,
            ),
            (
                "icons",
                "expected an https: or data: URI in src, and sizes such as 48x48 or any",
                before.icons != after.icons,
            ),
            (
                "meta",
                "expected unique keys with the syntax of MCP's _meta and no reserved prefix, and JSON values",
                before.meta != after.meta,
            ),
        ] {
            if differs {
                check.bad(format!("clients do not get the {field} of {} unchanged: {rule}", shown(entry.key())));
            }
        }
        if before.name.trim().is_empty() {
            check.warn(format!("{} has no name; clients get its URI as the name", shown(entry.key())));
        }
    }
}

/// The fields of an entry beside its reference or template.
struct Fields<'a> {
    name: &'a str,
    title: &'a Option<String>,
    description: &'a Option<String>,
    mime_type: &'a Option<String>,
    annotations: Option<&'a Annotations>,
    icons: &'a [Icon],
    meta: &'a Meta,
}

trait DisplayFields {
    fn fields(&self) -> Fields<'_>;
}

/// The annotations; `None` if all of them are empty.
fn non_empty(annotations: &Option<Annotations>) -> Option<&Annotations> {
    annotations.as_ref().filter(|annotations| **annotations != Annotations::default())
}

macro_rules! display_fields {
    ($($kind:ty),*) => {
        $(impl DisplayFields for $kind {
            fn fields(&self) -> Fields<'_> {
                let Self { name, title, description, mime_type, annotations, icons, meta, .. } = self;
                Fields { name, title, description, mime_type, annotations: non_empty(annotations), icons, meta }
            }
        })*
    };
}

display_fields!(Resource, Template);
