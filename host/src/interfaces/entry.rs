//! The entries of providers' lists: resources and templates.

use super::fields::{
    MAX_SAFE_INTEGER, clean_annotations, clean_description, clean_icons, clean_meta, clean_name, name_or_uri,
    unless_unguarded, valid_mime_type,
};
use super::function::{AbsoluteNameError, MountContext};
use crate::model::{Resource, Template, reference, text};

/// Why an entry is left out of a listing. The texts are sanitised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Its name breaks a rule. Holds the rule.
    #[error("{0}")]
    Malformed(String),
    /// Its absolute name would be routed to another mount.
    #[error(transparent)]
    Name(#[from] AbsoluteNameError),
}

/// An entry of a provider's list.
pub trait ListEntry: Sized {
    /// Cleans the texts of the entry, and removes the fields that break a rule. The name stays relative.
    ///
    /// # Errors
    /// If the entry as a whole must be left out.
    fn clean(self) -> Result<Self, EntryError>;

    /// Checks that the name of a clean entry is routed to its mount.
    ///
    /// # Errors
    /// If the name belongs to another mount or is too long.
    fn check_mount(&self, names: &dyn MountContext) -> Result<(), EntryError>;

    /// Makes the name of a clean entry absolute.
    ///
    /// # Errors
    /// If the name belongs to another mount or is too long.
    fn into_absolute(self, names: &dyn MountContext) -> Result<Self, EntryError>;

    /// Cleans the entry and makes its name absolute: the form that clients see.
    ///
    /// # Errors
    /// If the entry as a whole must be left out.
    fn check(self, names: &dyn MountContext) -> Result<Self, EntryError> {
        self.clean()?.into_absolute(names)
    }

    /// The name, which is unique in the list.
    fn key(&self) -> &str;

    /// The approximate size of the entry in a response, in bytes.
    fn weight(&self) -> usize;
}

impl ListEntry for Resource {
    fn clean(mut self) -> Result<Self, EntryError> {
        let shown = |r: &str| text::quoted(r, 80);
        reference::check(&self.reference)
            .map_err(|why| EntryError::Malformed(format!("the reference {} {why}", shown(&self.reference))))?;
        self.name = clean_name(self.name);
        self.title = self.title.map(clean_name);
        self.description = self.description.map(clean_description);
        self.mime_type = valid_mime_type(self.mime_type);
        self.size = unless_unguarded(self.size, |size| size.filter(|size| *size <= MAX_SAFE_INTEGER));
        self.annotations = unless_unguarded(self.annotations, |given| given.and_then(clean_annotations));
        self.icons = unless_unguarded(self.icons, clean_icons);
        self.meta = clean_meta(self.meta);
        Ok(self)
    }

    fn check_mount(&self, names: &dyn MountContext) -> Result<(), EntryError> {
        names.absolute(&self.reference)?;
        Ok(())
    }

    fn into_absolute(mut self, names: &dyn MountContext) -> Result<Self, EntryError> {
        self.reference = names.absolute(&self.reference)?;
        self.name = name_or_uri(self.name, &self.reference);
        Ok(self)
    }

    fn key(&self) -> &str {
        &self.reference
    }

    fn weight(&self) -> usize {
        160 + self.reference.len()
            + self.name.len()
            + self.title.as_ref().map_or(0, String::len)
            + self.description.as_ref().map_or(0, String::len)
            + self.meta.iter().map(|(k, v)| k.len() + v.len()).sum::<usize>()
            + self.icons.iter().map(|icon| icon.src.len()).sum::<usize>()
    }
}

impl ListEntry for Template {
    fn clean(mut self) -> Result<Self, EntryError> {
        let shown = |t: &str| text::quoted(t, 80);
        reference::check_template(&self.template)
            .map_err(|why| EntryError::Malformed(format!("the template {} {why}", shown(&self.template))))?;
        self.name = clean_name(self.name);
        self.title = self.title.map(clean_name);
        self.description = self.description.map(clean_description);
        self.mime_type = valid_mime_type(self.mime_type);
        self.annotations = unless_unguarded(self.annotations, |given| given.and_then(clean_annotations));
        self.icons = unless_unguarded(self.icons, clean_icons);
        self.meta = clean_meta(self.meta);
        Ok(self)
    }

    fn check_mount(&self, names: &dyn MountContext) -> Result<(), EntryError> {
        // The literal prefix contains at least the mount's base. If it also contains another mount's base, that mount
        // would answer the reads, so the template is refused.
        let (literal, expression) = self.template.split_once('{').unwrap_or((&self.template, ""));
        names.absolute(literal)?;
        // Expressions with these operators expand to a literal first character (RFC 6570, 3.2).
        if let Some(operator) = expression.chars().next().filter(|operator| "/.;?&".contains(*operator)) {
            names.absolute(&format!("{literal}{operator}"))?;
        }
        Ok(())
    }

    fn into_absolute(mut self, names: &dyn MountContext) -> Result<Self, EntryError> {
        self.check_mount(names)?;
        self.template.insert_str(0, names.base());
        self.name = name_or_uri(self.name, &self.template);
        Ok(self)
    }

    fn key(&self) -> &str {
        &self.template
    }

    fn weight(&self) -> usize {
        160 + self.template.len() + self.name.len() + self.description.as_ref().map_or(0, String::len)
    }
}
