//! The traits that an author implements. They mirror the interfaces of `wit/provider.wit`, in plain Rust.

use crate::{Argument, Error, Info, Page, Reading, Result, Suggestions, Template};

/// A provider of resources.
///
/// A value lives for one call: the host starts a fresh instance, [`open`](Provider::open) makes the value, one method
/// is called, and everything is dropped.
pub trait Provider: Sized {
    /// Makes the value for one call, and is the place to look at grants and settings.
    ///
    /// An error here is the error of the call, whichever it is. Not called for [`describe`](Provider::describe).
    fn open() -> Result<Self>;

    /// What the provider says of itself. Must work without any grant.
    ///
    /// Says nothing by default.
    fn describe() -> Info {
        Info::default()
    }

    /// Lists resources, a page at a time.
    ///
    /// `cursor` is `None` for the first page, and otherwise the [`next_cursor`](Page::next_cursor) of an earlier one,
    /// which another instance gave. [`Page::of`] does it for whatever can be had in a stable order.
    ///
    /// Lists nothing by default, which is right for a provider whose resources are all found by template.
    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let _ = cursor;
        Ok(Page::default())
    }

    /// Lists all templates. There are none by default.
    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(Vec::new())
    }

    /// Reads one resource. `reference` is well formed, but may be one that was never listed: answer
    /// [`Error::NotFound`] then.
    fn read(&self, reference: &str) -> Result<Reading>;
}

/// Suggests values for the variables of templates. Export it with `export!(Type: Completion)`.
pub trait Completion: Provider {
    /// Suggests values for `argument`, a variable of `template` that is being filled in; `resolved` are the variables
    /// that have their value already. [`Suggestions::starting_with`] does it for a list of known values.
    ///
    /// Nothing to suggest is an empty list, not an error.
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions>;
}

/// Tells cheaply whether something changed. Export it with `export!(Type: Revisions)`.
///
/// A revision is any text of at most 256 bytes, such as a hash or a time, which the host compares with an earlier one.
pub trait Revisions: Provider {
    /// The revision of the list: differs when the resources or templates that are listed differ.
    fn catalog_revision(&self) -> Result<String>;

    /// The revision of one resource: differs when reading it would give something else.
    fn resource_revision(&self, reference: &str) -> Result<String>;

    /// The revisions of several resources, one result for each and in the same order.
    ///
    /// Asks for one after the other by default; implement it when asking together is cheaper.
    fn resource_revisions(&self, references: &[String]) -> Vec<Result<String>> {
        references.iter().map(|reference| self.resource_revision(reference)).collect()
    }
}

/// Opens the provider and does one call on it: the way of every call that comes from the host.
#[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "only the host's calls come this way"))]
pub(crate) fn call<P: Provider, T>(method: impl FnOnce(&P) -> Result<T>) -> Result<T, Error> {
    method(&P::open()?)
}
