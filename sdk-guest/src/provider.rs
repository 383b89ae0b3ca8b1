//! The traits that an author implements. They mirror the interfaces of `wit/provider.wit` in plain Rust.

use crate::{Argument, Error, Info, Page, Reading, Result, Suggestions, Template};

/// A provider of resources.
///
/// A value lives for one call: the host starts a fresh instance, [`open`](Provider::open) makes the value, one method
/// is called, and everything is dropped.
pub trait Provider: Sized {
    /// Makes the value for one call. Read grants and settings here.
    ///
    /// An error here is the error of the call. Not called for [`describe`](Provider::describe).
    fn open() -> Result<Self>;

    /// The description of the provider. Must work without any grant.
    ///
    /// Empty by default.
    fn describe() -> Info {
        Info::default()
    }

    /// Lists resources, a page at a time.
    ///
    /// `cursor` is `None` for the first page. For other pages, it is the [`next_cursor`](Page::next_cursor) of an earlier
    /// page, which another instance returned. [`Page::of`] makes such pages from entries in a stable order.
    ///
    /// Empty by default, for providers whose resources all match a template.
    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let _ = cursor;
        Ok(Page::default())
    }

    /// Lists all templates. Empty by default.
    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(Vec::new())
    }

    /// Reads one resource. `reference` is well formed, but the resource may not exist: return [`Error::NotFound`] then.
    fn read(&self, reference: &str) -> Result<Reading>;
}

/// Suggests values for the variables of templates. Export it with `export!(Type: Completion)`.
pub trait Completion: Provider {
    /// Suggests values for `argument`, a variable of `template` whose value may be incomplete. `resolved` are the variables
    /// that already have a value. [`Suggestions::starting_with`] makes suggestions from a list of known values.
    ///
    /// Without suggestions, return an empty list, not an error.
    fn complete(&self, template: &str, argument: &Argument, resolved: &[Argument]) -> Result<Suggestions>;
}

/// Detects changes cheaply. Export it with `export!(Type: Revisions)`.
///
/// A revision is any text of at most 256 bytes, such as a hash or a time, which the host compares with an earlier one.
pub trait Revisions: Provider {
    /// The revision of the list. It differs from an earlier one if the listed resources or templates differ.
    fn catalog_revision(&self) -> Result<String>;

    /// The revision of one resource. It differs from an earlier one if a read would return other contents.
    fn resource_revision(&self, reference: &str) -> Result<String>;

    /// The revisions of several resources, one result for each and in the same order.
    ///
    /// By default, calls [`resource_revision`](Revisions::resource_revision) for each. Implement this method if computing all
    /// revisions together is cheaper.
    fn resource_revisions(&self, references: &[String]) -> Vec<Result<String>> {
        references.iter().map(|reference| self.resource_revision(reference)).collect()
    }
}

/// Opens the provider and calls one of its methods. Every call from the host goes through this function.
#[cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "only calls from the host use this function"))]
pub(crate) fn call<P: Provider, T>(method: impl FnOnce(&P) -> Result<T>) -> Result<T, Error> {
    method(&P::open()?)
}
