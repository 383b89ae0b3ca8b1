//! Contact sheets: small pictures of a directory as one picture, numbered, with their names as JSON.
//!
//! A sheet ends early if its pictures take much to decode. Then the next sheet begins with the next picture, so none is lost.

mod digits;

use std::time::{Duration, Instant};

use belljar_guest::{Contents, Result, reference};
use belljar_tree::{Kind, Path, Start, Tree};
use serde_json::{Value, json};

use crate::encode::{Wanted, encode};
use crate::facts::Facts;
use crate::format::Format;
use crate::query::{Picture, Query, entry};
use crate::scale::{PIXEL, Raster};
use crate::{Settings, read};

/// Pictures per row.
const COLUMNS: usize = 5;

/// Pictures of a sheet.
const PICTURES: usize = 20;

/// The square of a picture, in pixels.
const CELL: u32 = 160;

/// Pixels between the cells, and around them.
const GAP: u32 = 8;

const PAPER: [u8; PIXEL] = [255, 255, 255, 255];

/// The cell of a picture that cannot be shown.
const EMPTY: [u8; PIXEL] = [224, 224, 224, 255];

/// How long pictures are decoded. An hour in unit tests, which must not depend on the speed of the machine.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 3_600_000 } else { 2000 });

/// The estimated fuel that the pictures of a sheet may take. A call has five thousand million by default, and the estimate may
/// be too low by a half.
const FUEL: u64 = 2_500_000_000;

/// Entries of a directory that are looked at for one sheet.
const MAX_ENTRIES: usize = 1000;

pub(crate) fn read(
    tree: &Tree,
    sheet: &str,
    directory: &Path,
    query: &Query,
    settings: Settings,
) -> Result<Vec<Contents>> {
    let found = tree.below(&directory.path, &query.start, MAX_ENTRIES)?;
    let until = Instant::now() + TIME;
    let (mut cells, mut facts, mut fuel, mut next) = (Vec::new(), Vec::new(), 0, found.next.clone());
    for (index, listed) in found.entries.iter().enumerate() {
        if listed.kind == Kind::Directory {
            continue;
        }
        let Some(picture) = entry(tree, directory, &listed.name) else { continue };
        let known = read::facts(tree, &picture)?;
        let cost = estimate(&known, picture.meta.size);
        let is_full = cells.len() == PICTURES || (!cells.is_empty() && fuel + cost > FUEL) || Instant::now() > until;
        if is_full && let Some(before) = index.checked_sub(1) {
            next = Some(found.after(before));
            break;
        }
        fuel += cost;
        let (cell, error) = match cell(tree, &picture, cost, settings) {
            Ok(cell) => (Some(cell), None),
            Err(why) => (None, Some(why)),
        };
        cells.push(cell);
        facts.push(described(cells.len(), &picture, &known, error));
    }
    let raster = draw(&cells)?;
    let image = encode(&raster, Format::Jpeg, None, Some(Wanted::Jpeg))?;
    let next = next.map(|next| match next {
        Start::Beginning => "sheet".to_owned(),
        next => format!("sheet?after={}", next.text()),
    });
    let text = json!({
        "directory": format!("{}/", directory.path), "columns": COLUMNS.min(cells.len().max(1)), "cell": CELL, "pictures": facts,
        "next": next,
    });
    Ok(vec![
        Contents::blob(sheet, image.bytes).mime_type(image.mime_type),
        Contents::text(sheet, format!("{text:#}\n")).mime_type("application/json"),
    ])
}

/// About how much fuel a picture takes, as measured in the real sandbox.
fn estimate(facts: &Facts, bytes: u64) -> u64 {
    let (width, height) = facts.size.unwrap_or_default();
    let pixels = u64::from(width) * u64::from(height);
    match facts.format {
        Format::Jpeg => pixels * 30 + bytes * 100,
        Format::Png | Format::Gif => pixels * 90 + bytes * 30,
        Format::WebP => pixels * 150 + bytes * 100,
        _ => pixels * 60,
    }
}

/// A small picture. Fails with the reason why there is none.
fn cell(tree: &Tree, picture: &Picture, cost: u64, settings: Settings) -> Result<Raster, String> {
    if cost > FUEL && picture.format.undecoded().is_none() {
        return Err(format!("too large for a sheet: read it with ?size={CELL}"));
    }
    let thumbnail = read::thumbnail(tree, picture, CELL, settings).map_err(|error| error.to_string())?;
    Ok(thumbnail.raster)
}

fn described(number: usize, picture: &Picture, facts: &Facts, error: Option<String>) -> Value {
    let name = belljar_tree::name(&picture.path);
    let mut described = json!({
        "number": number, "name": name, "reference": reference::encode(&picture.path), "format": facts.format.name(),
        "bytes": picture.meta.size,
    });
    if let Some(object) = described.as_object_mut() {
        if let Some((width, height)) = facts.size {
            object.insert("width".to_owned(), json!(width));
            object.insert("height".to_owned(), json!(height));
        }
        object.extend(picture.meta.last_modified().map(|time| ("last_modified".to_owned(), json!(time))));
        object.extend(error.map(|error| ("not_shown".to_owned(), json!(error))));
    }
    described
}

/// The sheet: each picture in the middle of its cell, with its number in the corner.
fn draw(cells: &[Option<Raster>]) -> Result<Raster> {
    let side = |count: usize| u32::try_from(count).unwrap_or(1).max(1) * (CELL + GAP) + GAP;
    let mut sheet = Raster::filled(side(COLUMNS.min(cells.len())), side(cells.len().div_ceil(COLUMNS)), PAPER)?;
    for (index, cell) in cells.iter().enumerate() {
        let at = |position: usize| u32::try_from(position).unwrap_or_default() * (CELL + GAP) + GAP;
        let (left, top) = (at(index % COLUMNS), at(index / COLUMNS));
        match cell {
            Some(raster) => {
                put(&mut sheet, raster, (left + (CELL - raster.width) / 2, top + (CELL - raster.height) / 2))
            }
            None => put(&mut sheet, &Raster::filled(CELL, CELL, EMPTY)?, (left, top)),
        }
        put(&mut sheet, &digits::number(index + 1)?, (left, top));
    }
    Ok(sheet)
}

/// Draws a picture on the sheet.
fn put(sheet: &mut Raster, picture: &Raster, (left, top): (u32, u32)) {
    let width = sheet.width as usize;
    let (target, _) = sheet.pixels.as_chunks_mut::<PIXEL>();
    let rows = target.chunks_exact_mut(width.max(1)).skip(top as usize);
    for (row, source) in rows.zip(picture.rows()) {
        let (pixels, _) = source.as_chunks::<PIXEL>();
        for (pixel, source) in row.iter_mut().skip(left as usize).zip(pixels) {
            let [.., alpha] = *source;
            for (value, colour) in pixel.iter_mut().zip(source).take(3) {
                let mixed =
                    (u32::from(*colour) * u32::from(alpha) + u32::from(*value) * u32::from(255 - alpha) + 127) / 255;
                *value = u8::try_from(mixed).unwrap_or(u8::MAX);
            }
        }
    }
}
