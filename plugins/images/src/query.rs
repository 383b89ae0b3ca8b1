//! Parses references: a picture, a directory, or what is made of one; and the query.

use belljar_guest::{Error, Result, reference};
use belljar_tree::{Kind, Meta, Path, Start, Tree, join};

use crate::encode::Wanted;
use crate::format::{Format, HEAD};

/// A file that is a picture.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) path: String,
    pub(crate) meta: Meta,
    pub(crate) format: Format,
}

/// What a reference names.
#[derive(Debug)]
pub(crate) enum Place {
    Picture(Picture),
    Info(Picture),
    Directory(Path),
    /// The newest pictures below a directory.
    Latest(Path),
    /// The contact sheet of a directory.
    Sheet(Path),
}

/// The parsed query of a reference.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// The square that a picture fits into, in pixels.
    pub(crate) size: Option<u32>,
    pub(crate) format: Option<Wanted>,
    /// How many of the newest pictures.
    pub(crate) count: usize,
    /// Where a list or a sheet continues.
    pub(crate) start: Start,
}

/// The longest side of a picture that is made.
pub(crate) const MAX_SIZE: u32 = 2048;

/// The most pictures of one read of `latest`.
const MAX_COUNT: usize = 20;

impl Picture {
    /// The file at `path`, if it is a picture.
    pub(crate) fn at(tree: &Tree, path: String, meta: Meta) -> Result<Option<Picture>> {
        let head = tree.read(&path, HEAD.min(meta.size))?;
        Ok(Format::of(&head).map(|format| Picture { path, meta, format }))
    }

    fn required(tree: &Tree, path: String, meta: Meta) -> Result<Picture> {
        let name = path.clone();
        Picture::at(tree, path, meta)?.ok_or_else(|| {
            Error::failed(format_args!(
                "\"{name}\" is no picture: expected the first bytes of JPEG, PNG, GIF, WebP, BMP, TIFF, AVIF, HEIC, JPEG XL, ICO \
                 or SVG"
            ))
        })
    }
}

impl Place {
    /// The place that `encoded` names: a reference without its query. Files and directories come first, so a directory
    /// called `sheet` is read with a `/` at its end, or without.
    pub(crate) fn find(tree: &Tree, encoded: &str) -> Result<Place> {
        let wanted = Path::parse(encoded)?;
        match tree.meta(&wanted.path) {
            Ok(meta) if meta.kind == Kind::Directory => return Ok(Place::Directory(wanted)),
            Ok(meta) if meta.kind == Kind::File && !wanted.is_directory => {
                return Picture::required(tree, wanted.path, meta).map(Place::Picture);
            }
            Ok(_) => return Err(Error::NotFound),
            Err(Error::NotFound) if !wanted.is_directory => {}
            Err(error) => return Err(error),
        }
        let (above, last) = wanted.path.rsplit_once('/').unwrap_or(("", &wanted.path));
        let meta = tree.meta(above)?;
        let directory = || Path { path: above.to_owned(), is_directory: true };
        match (last, meta.kind) {
            ("info", Kind::File) => Picture::required(tree, above.to_owned(), meta).map(Place::Info),
            ("latest", Kind::Directory) => Ok(Place::Latest(directory())),
            ("sheet", Kind::Directory) => Ok(Place::Sheet(directory())),
            _ => Err(Error::NotFound),
        }
    }

    /// The parameters of the place.
    fn parameters(&self) -> &'static [&'static str] {
        match self {
            Place::Picture(_) => &["size", "max", "format"],
            Place::Info(_) => &[],
            Place::Latest(_) => &["n", "size", "max", "format"],
            Place::Directory(_) | Place::Sheet(_) => &["after"],
        }
    }
}

impl Query {
    pub(crate) fn parse(query: &str, place: &Place) -> Result<Query> {
        let mut wanted = Query { count: 1, ..Query::default() };
        let known = place.parameters();
        for (key, value) in reference::pairs(query) {
            let (key, value) = (reference::decode(key)?, reference::decode(value)?);
            if !known.contains(&key.as_str()) {
                let expected =
                    if known.is_empty() { "none".to_owned() } else { format!("\"{}\"", known.join("\", \"")) };
                return Err(Error::invalid(format_args!("unknown parameter \"{key}\": expected {expected}")));
            }
            match (key.as_str(), value.as_str()) {
                // A client that fills in a template may leave a variable empty.
                (_, "") => {}
                ("size" | "max", size) => wanted.size = Some(number(&key, size, MAX_SIZE)?),
                ("n", count) => wanted.count = number(&key, count, u32::try_from(MAX_COUNT).unwrap_or(1))? as usize,
                ("format", "jpeg") => wanted.format = Some(Wanted::Jpeg),
                ("format", "png") => wanted.format = Some(Wanted::Png),
                ("format", other) => {
                    return Err(Error::invalid(format_args!("format \"{other}\": expected jpeg or png")));
                }
                (_, start) => wanted.start = Start::parse(start)?,
            }
        }
        if wanted.format.is_some() && wanted.size.is_none() && matches!(place, Place::Picture(_)) {
            return Err(Error::invalid(
                "\"format\" is for a picture that is made: expected \"size\", too, such as size=512",
            ));
        }
        Ok(wanted)
    }
}

fn number(key: &str, value: &str, most: u32) -> Result<u32> {
    value
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number))
        .ok_or_else(|| Error::invalid(format_args!("{key} \"{value}\": expected a number from 1 to {most}")))
}

/// A picture of a directory, without a look at other files.
pub(crate) fn entry(tree: &Tree, directory: &Path, name: &str) -> Option<Picture> {
    let path = join(&directory.path, name);
    let meta = crate::is_file(tree, &path)?;
    Picture::at(tree, path, meta).ok().flatten()
}
