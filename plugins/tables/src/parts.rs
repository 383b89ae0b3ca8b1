//! Parts of tables: lines are rows. Lists the tables and directories below a reference.

use belljar_guest::{
    Annotations, Body, Contents, Error, Extent, Page, PartialReading, Parts, Positions, Provider as _, Range, Resource,
    Result, Unit, reference,
};
use belljar_tree::{Kind as FileKind, MAX_REFERENCE_BYTES, join, name, smallest};

use crate::place::{self, Place, SCHEMA};
use crate::query::Query;
use crate::source::{Kind, is_served};
use crate::{Tables, read, resource, sheet_resource, tools};

/// The most entries in a page of a directory.
const PAGE: usize = 1000;

impl Parts for Tables {
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let (path, query) = reference::split(reference);
        if path.is_empty() || reference == tools::VIEW {
            let reading = self.read(reference)?;
            let contents = reading.contents.into_iter().next().ok_or(Error::NotFound)?;
            return PartialReading::cut(contents, range, most);
        }
        let place = place::find(&self.tree, path)?;
        let mut query = Query::parse(query)?;
        if place.inside.last().is_some_and(|last| last == SCHEMA) {
            let (contents, _) = read::read(&self.tree, reference, &place, &query)?;
            return PartialReading::cut(contents, range, most);
        }
        // Rows that the reference names are the resource itself.
        let is_whole = range.is_none() && query.rows.is_some();
        if let Some(range) = range {
            within(&mut query, range)?;
        }
        let (contents, extent) = self.fitting(reference, &place, &mut query, most)?;
        if let (Some(extent), Some(_)) = (extent, range)
            && extent.more
            && extent.end == extent.start
        {
            let (first, last) = query.bounds();
            return Err(Error::failed(format_args!(
                "row {first} is too far from the beginning of \"{path}\" for one read: expected ?rows={first}-{last}, whose \
                 answer has a link that goes on where the read stopped"
            )));
        }
        match (extent, range) {
            // A list of sheets.
            (None, Some(range)) if !query.is_search() => PartialReading::cut(contents, Some(range), most),
            (Some(extent), _) if !is_whole && (range.is_some() || extent.more || extent.start > 0) => {
                Ok(PartialReading::part(contents, extent))
            }
            _ => Ok(PartialReading::whole(contents)),
        }
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        let path = reference::decode(reference.trim_end_matches('/'))?;
        let after = cursor.map(reference::decode).transpose()?;
        if !path.is_empty() && self.tree.meta(&path)?.kind != FileKind::Directory {
            let place = place::find(&self.tree, reference.trim_end_matches('/'))?;
            return self.sheets_below(&place);
        }
        let is_listed = |entry: &belljar_tree::Entry| match entry.kind {
            FileKind::Directory | FileKind::Symlink => true,
            FileKind::File => is_served(&entry.name),
            FileKind::Other => false,
        };
        let entries = self.tree.entries(&path)?.filter(is_listed);
        let found =
            smallest(entries.filter(|entry| after.as_deref().is_none_or(|after| entry.key().as_str() > after)), PAGE);
        let next = found.entries.last().filter(|_| found.seen > found.entries.len()).map(belljar_tree::Entry::key);
        let mut resources = Vec::new();
        for entry in &found.entries {
            let inner = join(&path, &entry.name);
            let Ok(meta) = self.tree.meta(&inner) else { continue };
            match meta.kind {
                FileKind::Directory => resources.extend(directory(&inner, &meta)),
                FileKind::File if is_served(&entry.name) => resources.extend(resource(&inner, &meta)),
                _ => {}
            }
        }
        let page = Page::new(resources);
        Ok(match next {
            Some(next) => page.next_cursor(reference::encode_segment(&next)),
            None => page,
        })
    }
}

impl Tables {
    /// Reads rows, and fewer of them if they do not fit.
    fn fitting(
        &self,
        reference: &str,
        place: &Place,
        query: &mut Query,
        most: u64,
    ) -> Result<(Contents, Option<Extent>)> {
        loop {
            let read = read::read(&self.tree, reference, place, query)?;
            let size = match &read.0.body {
                Body::Text(text) => text.len(),
                Body::Blob(bytes) => bytes.len(),
            };
            let (first, last) = query.bounds();
            if size as u64 <= most || first == last || query.range.is_some() || read.1.is_none() {
                return Ok(read);
            }
            let extent = read.1.map_or(1, |extent| extent.end.saturating_sub(extent.start)).min(last - first + 1);
            query.last = None;
            let first = read.1.map_or(first, |extent| extent.start + 1);
            query.rows = Some((first, first + (extent / 2).max(1) - 1));
        }
    }

    /// The sheets of a workbook.
    fn sheets_below(&self, place: &Place) -> Result<Page> {
        let kind = Kind::of(&mut self.tree.open(&place.path)?, name(&place.path))?;
        if !place.inside.is_empty() || !matches!(kind, Kind::Book(_)) {
            return Err(Error::NotFound);
        }
        let book = read::open_book(&self.tree, place, kind)?;
        let sheets = book.sheets.iter();
        Ok(Page::new(sheets.filter_map(|sheet| sheet_resource(&place.path, &place.meta, sheet)).collect::<Vec<_>>()))
    }
}

/// Makes a range the rows of a query.
fn within(query: &mut Query, range: Range) -> Result<()> {
    if range.unit == Unit::Bytes {
        return Err(Error::invalid(
            "a table is made from its file and has no bytes of its own: expected rows, such as ?lines=1-100; a mount of the \
             provider \"files\" gives the bytes of the file",
        ));
    }
    if query.rows.is_some() || query.range.is_some() {
        return Err(Error::invalid(
            "\"lines\" are rows of the table: leave out \"rows\" and \"range\", or leave out \"lines\"",
        ));
    }
    match range.positions {
        Positions::Span { start, end } => {
            let last = end.unwrap_or(u64::MAX).max(start.saturating_add(1));
            query.rows = Some((start.saturating_add(1), last));
        }
        Positions::Last(count) => query.last = Some(count.clamp(1, crate::query::MAX_ROWS)),
    }
    Ok(())
}

/// The list's entry for a directory.
fn directory(path: &str, meta: &belljar_tree::Meta) -> Option<Resource> {
    let mut resource = Resource::new(format!("{}/", reference::encode(path)))
        .name(name(path))
        .title(path)
        .mime_type("inode/directory");
    resource.annotations = meta.last_modified().map(|time| Annotations::new().last_modified(time));
    (resource.reference.len() <= MAX_REFERENCE_BYTES).then_some(resource)
}
