//! `resource-provider`, the interface that every provider exports: its description, its lists and its reads.

pub(super) mod conformance;

use serde::{Deserialize, Serialize};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::fields::{self, ENTRY_CHARGE, icon_bytes, meta_bytes, text_bytes};
use super::function::{Function, MountContext, Returned};
use super::generated::resource_provider as generated;
use super::redaction::{self, mask_optional};
use crate::grants::secrets::Redactor;
use crate::model::bounds::{MAX_CONTENTS, MAX_TEMPLATES, MIN_CONTENTS};
use crate::model::{Body, Contents, Description, Guard, Page, ReadError, Reading, Resource, Template, reference, text};
use crate::policy::Action;

/// The name of the interface in `wit/`.
pub(super) const NAME: &str = "resource-provider";

/// The indices of the interface's functions in a component.
pub(super) type ResourceIndices = generated::GuestIndices;

/// A page of a provider's list: the entries, and the provider's cursor of the next page.
pub type EntryPage<T> = (Vec<T>, Option<String>);

/// `describe`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Describe;

impl Function for Describe {
    type Indices = ResourceIndices;
    type Reply = Description;
    type Checked = Description;
    const NAME: &'static str = "describe";
    const ACTION: Action = Action::Describe;

    async fn call<T: Send + 'static>(
        &self,
        indices: &ResourceIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Description> {
        let guest = indices.load(&mut *store, instance)?;
        Ok(Ok(guest.call_describe(store).await?.into()))
    }

    fn bytes(Description { title, version, description }: &Description) -> usize {
        [title, version, description].into_iter().map(|text| text_bytes(text.as_ref())).sum()
    }

    fn redact(Description { title, version, description }: &mut Description, redactor: Option<&Redactor>) {
        if let Some(redactor) = redactor {
            [title, version, description].into_iter().for_each(|text| mask_optional(text, redactor));
        }
    }

    /// Cleans the texts. Empty ones are left out.
    fn check(&self, about: Description, _: &dyn MountContext) -> Result<Description, ReadError> {
        let clean = |text: Option<String>, max| text.map(|t| text::cleaned(t, max)).filter(|t| !t.trim().is_empty());
        Ok(Description {
            title: clean(about.title, 256),
            version: clean(about.version, 64),
            description: clean(about.description, 4096),
        })
    }
}

/// `list-resources`, from the start or from one of the provider's cursors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListResources {
    /// The provider's own cursor, unchanged.
    pub cursor: Option<String>,
}

impl Function for ListResources {
    type Indices = ResourceIndices;
    type Reply = Page;
    /// The unchecked entries. Each is checked when it is cached or served.
    type Checked = EntryPage<Resource>;
    const NAME: &'static str = "list-resources";
    const ACTION: Action = Action::List;

    fn input(&self) -> Option<Vec<&str>> {
        Some(self.cursor.iter().map(String::as_str).collect())
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &ResourceIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Page> {
        let guest = indices.load(&mut *store, instance)?;
        let page = guest.call_list_resources(store, self.cursor.as_deref()).await?;
        Ok(page.map(Into::into).map_err(Into::into))
    }

    fn bytes(page: &Page) -> usize {
        let entry = |r: &Resource| {
            ENTRY_CHARGE
                + r.reference.len()
                + r.name.len()
                + text_bytes(r.title.as_ref())
                + text_bytes(r.description.as_ref())
                + text_bytes(r.mime_type.as_ref())
                + icon_bytes(&r.icons)
                + meta_bytes(&r.meta)
        };
        page.resources.iter().map(entry).sum::<usize>() + text_bytes(page.next.as_ref())
    }

    fn redact(Page { resources, next }: &mut Page, redactor: Option<&Redactor>) {
        let Some(redactor) = redactor else { return };
        mask_optional(next, redactor);
        for entry in resources {
            let Resource { reference, name, title, description, mime_type, size: _, annotations, icons, meta } = entry;
            [reference, name].into_iter().for_each(|text| redactor.mask(text));
            [title, description, mime_type].into_iter().for_each(|text| mask_optional(text, redactor));
            redaction::mask_details(annotations, icons, meta, redactor);
        }
    }

    fn check(&self, page: Page, _: &dyn MountContext) -> Result<EntryPage<Resource>, ReadError> {
        Ok((page.resources, page.next))
    }
}

/// `list-templates`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTemplates;

impl Function for ListTemplates {
    type Indices = ResourceIndices;
    type Reply = Vec<Template>;
    /// The unchecked entries. Each is checked when it is cached or served.
    type Checked = EntryPage<Template>;
    const NAME: &'static str = "list-templates";
    const ACTION: Action = Action::List;

    async fn call<T: Send + 'static>(
        &self,
        indices: &ResourceIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Vec<Template>> {
        let guest = indices.load(&mut *store, instance)?;
        let all = guest.call_list_templates(store).await?;
        Ok(all.map(|all| all.into_iter().map(Into::into).collect()).map_err(Into::into))
    }

    fn bytes(all: &Vec<Template>) -> usize {
        let entry = |t: &Template| {
            ENTRY_CHARGE
                + t.template.len()
                + t.name.len()
                + text_bytes(t.title.as_ref())
                + text_bytes(t.description.as_ref())
                + text_bytes(t.mime_type.as_ref())
                + icon_bytes(&t.icons)
                + meta_bytes(&t.meta)
        };
        all.iter().map(entry).sum()
    }

    fn redact(all: &mut Vec<Template>, redactor: Option<&Redactor>) {
        let Some(redactor) = redactor else { return };
        for entry in all {
            let Template { template, name, title, description, mime_type, annotations, icons, meta } = entry;
            [template, name].into_iter().for_each(|text| redactor.mask(text));
            [title, description, mime_type].into_iter().for_each(|text| mask_optional(text, redactor));
            redaction::mask_details(annotations, icons, meta, redactor);
        }
    }

    fn check(&self, all: Vec<Template>, _: &dyn MountContext) -> Result<EntryPage<Template>, ReadError> {
        let (given, most) = (all.len(), MAX_TEMPLATES.get());
        if given > most {
            let why = format!("list-templates gave {given} templates; the limit is {most}");
            return Err(ReadError::BadOutput(why));
        }
        Ok((all, None))
    }
}

/// `read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    /// A checked relative reference ([`reference::check`]).
    pub reference: String,
}

impl Function for Read {
    type Indices = ResourceIndices;
    type Reply = Reading;
    type Checked = Reading;
    const NAME: &'static str = "read";
    const ACTION: Action = Action::Read;

    fn input(&self) -> Option<Vec<&str>> {
        Some(vec![&self.reference])
    }

    fn shown(&self) -> Option<&str> {
        Some(&self.reference)
    }

    fn reference(&self) -> Option<&str> {
        Some(&self.reference)
    }

    async fn call<T: Send + 'static>(
        &self,
        indices: &ResourceIndices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> Returned<Reading> {
        let guest = indices.load(&mut *store, instance)?;
        let reading = guest.call_read(store, &self.reference).await?;
        Ok(reading.map(Into::into).map_err(Into::into))
    }

    fn bytes(reading: &Reading) -> usize {
        reading_bytes(reading)
    }

    fn bodies_mut(reading: &mut Reading) -> Vec<&mut Body> {
        reading.bodies_mut()
    }

    fn redact(reading: &mut Reading, redactor: Option<&Redactor>) {
        redact_reading(reading, redactor);
    }

    /// Checks that each item of the contents is for the requested reference or one below it, and makes their references
    /// absolute.
    fn check(&self, reading: Reading, names: &dyn MountContext) -> Result<Reading, ReadError> {
        check_reading(reading, &self.reference, names)
    }
}

/// The size of a reading in bytes, including a charge for each entry.
pub(super) fn reading_bytes(reading: &Reading) -> usize {
    let entry = |c: &Contents| {
        ENTRY_CHARGE + c.reference.len() + text_bytes(c.mime_type.as_ref()) + c.body.len() + meta_bytes(&c.meta)
    };
    reading.contents.iter().map(entry).sum()
}

/// Masks the secrets in a reading.
pub(super) fn redact_reading(reading: &mut Reading, redactor: Option<&Redactor>) {
    let Reading { contents, fresh_for: _, part: _ } = reading;
    let Some(redactor) = redactor else { return };
    contents.iter_mut().for_each(|one| redaction::mask_contents(one, redactor));
}

/// Checks that each item of the contents is for the requested reference `asked` or one below it, and makes their
/// references absolute.
pub(super) fn check_reading(mut reading: Reading, asked: &str, names: &dyn MountContext) -> Result<Reading, ReadError> {
    let (count, most) = (reading.contents.len(), MAX_CONTENTS.get());
    if count < MIN_CONTENTS.get() {
        let why = "read gave no contents; expected not-found for a resource that does not exist";
        return Err(ReadError::BadOutput(why.to_owned()));
    }
    if count > most {
        return Err(ReadError::BadOutput(format!("read gave {count} contents; the limit is {most}")));
    }
    reading.fresh_for = reading.fresh_for.map(|time| time.min(names.max_fresh()));
    for contents in &mut reading.contents {
        if Guard::ContentsName.is_on() {
            answers(&contents.reference, asked)?;
        }
        let named = names.absolute(&contents.reference);
        contents.reference = named.map_err(|why| ReadError::BadOutput(format!("read gave contents, and {why}")))?;
        contents.mime_type = fields::valid_mime_type(contents.mime_type.take());
        contents.meta = fields::clean_meta(std::mem::take(&mut contents.meta));
    }
    Ok(reading)
}

/// Checks that contents with the reference `given` may answer a read of `asked`.
fn answers(given: &str, asked: &str) -> Result<(), ReadError> {
    if given == asked {
        // `asked` was checked before the call.
        return Ok(());
    }
    let shown = || text::quoted(given, 100);
    reference::check(given)
        .map_err(|why| ReadError::BadOutput(format!("read gave contents for {}, which {why}", shown())))?;
    if !reference::is_same_or_below(asked, given) {
        return Err(ReadError::BadOutput(format!(
            "read of {} gave contents for {}; expected contents for the requested reference or one below it",
            text::quoted(asked, 100),
            shown()
        )));
    }
    Ok(())
}
