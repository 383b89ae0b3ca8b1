//! Pictures in granted directories: the list, the bytes, thumbnails, facts, the newest ones, and contact sheets.
//!
//! This module implements the provider. `query` parses references, and `read`, `info`, `latest`, `sheet` and `index` build
//! the answers. `format` finds the type of a file by its contents, and `facts` reads headers. `decode` makes a small raster of
//! a picture, without ever holding more than the sandbox has. `hide` removes positions from bytes.

mod browse;
mod complete;
mod decode;
mod encode;
mod exif;
mod facts;
mod format;
mod hide;
mod index;
mod info;
mod latest;
mod orient;
mod query;
mod read;
mod scale;
mod sheet;

use belljar_guest::{
    Argument, Completion, Error, Info, Page, PartialReading, Parts, Provider, Range, Reading, Result, Revisions,
    Suggestions, Template,
};
use belljar_tree::{Bounds, Kind, Tree};

use decode::Caps;
use query::{Place, Query};

/// The provider.
#[derive(Debug)]
pub struct Images {
    tree: Tree,
    settings: Settings,
}

/// What the operator decided.
#[derive(Debug, Clone, Copy)]
struct Settings {
    /// True if positions may be shown.
    shows_gps: bool,
    caps: Caps,
}

/// The most bytes of an answer for a host that reads no parts: the default limit of results.
const MAX_ANSWER: u64 = 8 * 1024 * 1024;

const PICTURE: &str = "{+path}{?size,format}";
const INFO: &str = "{+path}/info";
const LATEST: &str = "latest{?n,size}";
const LATEST_BELOW: &str = "{+path}/latest{?n,size}";
const SHEET: &str = "sheet{?after}";
const SHEET_BELOW: &str = "{+path}/sheet{?after}";

impl Provider for Images {
    fn open() -> Result<Self> {
        let setting = |name: &str| std::env::var(name).ok();
        let settings = Settings::parse(setting("GPS").as_deref(), setting(decode::SETTING).as_deref())?;
        Ok(Images { tree: Tree::open_granted()?, settings })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "Pictures".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description("The pictures of the granted directories: bytes, thumbnails, facts, contact sheets")
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        self.page(cursor, browse::PAGE)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        let newest =
            "The {n} newest pictures (1 without {n}, at most 20), each so that it fits into a square of {size} pixels";
        let sheet = "A contact sheet: small pictures of a directory in one, and their names as JSON; {after} continues";
        Ok(vec![
            Template::new(PICTURE).name("picture").title("A picture").description(
                "The picture at {path}. With {size}, it fits into a square of so many pixels and is upright; {format} is jpeg or \
                 png. A directory reads as a list",
            ),
            Template::new(INFO).name("info").title("Facts of a picture").mime_type("application/json").description(
                "Format, dimensions, colours, frames and Exif data of the picture at {path}",
            ),
            Template::new(LATEST).name("latest").title("The newest pictures").description(newest),
            Template::new(LATEST_BELOW)
                .name("latest-below")
                .title("The newest pictures below a directory")
                .description(format!("{newest}, below the directory {{path}}")),
            Template::new(SHEET).name("sheet").title("A contact sheet").description(sheet),
            Template::new(SHEET_BELOW)
                .name("sheet-below")
                .title("A contact sheet of a directory")
                .description(format!("{sheet}. The directory is {{path}}")),
        ])
    }

    /// For hosts that read no parts.
    fn read(&self, reference: &str) -> Result<Reading> {
        Ok(Reading::new(self.read_part(reference, None, MAX_ANSWER)?.contents))
    }
}

impl Parts for Images {
    fn read_part(&self, reference: &str, range: Option<Range>, most: u64) -> Result<PartialReading> {
        let (path, query) = belljar_guest::reference::split(reference);
        let place = Place::find(&self.tree, path)?;
        let query = Query::parse(query, &place)?;
        let whole = match &place {
            Place::Picture(picture) => match (query.size, range) {
                (None, Some(_)) => {
                    let bytes = read::original(&self.tree, picture, self.settings)?;
                    let contents =
                        belljar_guest::Contents::blob(reference, bytes).mime_type(picture.format.mime_type());
                    return PartialReading::cut(contents, range, most);
                }
                _ => read::picture(&self.tree, reference, picture, &query, self.settings, most)?,
            },
            Place::Info(picture) => vec![info::read(&self.tree, reference, picture, self.settings)?],
            Place::Directory(directory) => vec![index::read(&self.tree, reference, directory, &query)?],
            Place::Latest(directory) => latest::read(&self.tree, reference, directory, &query, self.settings, most)?,
            Place::Sheet(directory) => sheet::read(&self.tree, reference, directory, &query, self.settings)?,
        };
        if range.is_none() {
            return Ok(PartialReading::whole(Reading::new(whole)));
        }
        let [contents] = <[_; 1]>::try_from(whole).map_err(|_| {
            Error::invalid(
                "only a whole picture and a text have parts: read this resource without \"bytes\" and \"lines\"",
            )
        })?;
        PartialReading::cut(contents, range, most)
    }

    fn list_below(&self, reference: &str, cursor: Option<&str>) -> Result<Page> {
        self.below(reference, cursor, browse::PAGE)
    }
}

impl Completion for Images {
    fn complete(&self, template: &str, argument: &Argument, _resolved: &[Argument]) -> Result<Suggestions> {
        complete::complete(&self.tree, template, argument)
    }
}

impl Revisions for Images {
    /// Counts all files: the types of so many would take too long to find out.
    fn catalog_revision(&self) -> Result<String> {
        belljar_tree::list_revision(&self.tree, Bounds::default(), |_| true)
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        let (path, query) = belljar_guest::reference::split(reference);
        let place = Place::find(&self.tree, path)?;
        let query = Query::parse(query, &place)?;
        match &place {
            Place::Picture(picture) | Place::Info(picture) => Ok(picture.meta.revision()),
            Place::Latest(directory) => latest::revision(&self.tree, directory, &query),
            Place::Directory(directory) | Place::Sheet(directory) => index::revision(&self.tree, directory, &query),
        }
    }
}

impl Settings {
    fn parse(gps: Option<&str>, max_pixels: Option<&str>) -> Result<Settings> {
        let shows_gps = match gps.unwrap_or_default().trim() {
            "show" => true,
            "" | "hide" => false,
            other => return Err(Error::failed(format_args!("the setting GPS is \"{other}\": expected show or hide"))),
        };
        Ok(Settings { shows_gps, caps: Caps::parse(max_pixels)? })
    }
}

/// True if a path leads to a regular file.
fn is_file(tree: &Tree, path: &str) -> Option<belljar_tree::Meta> {
    tree.meta(path).ok().filter(|meta| meta.kind == Kind::File)
}

belljar_guest::export!(Images: Completion, Revisions, Parts);
belljar_guest::needs!("../needs.toml");

/// The parsers of bytes that strangers wrote, for the fuzz targets.
#[cfg(not(target_os = "wasi"))]
#[doc(hidden)]
pub mod fuzzing;

#[cfg(test)]
mod tests;
