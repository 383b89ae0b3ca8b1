//! The fonts of a document: maps character codes to text and advances. The crate `hayro-font` reads them; this module adds the
//! characters that it does not map.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use hayro_font::hayro_cmap::{BfString, CMap, CMapName, CidFamily, load_embedded};
use hayro_font::{CMapResolverFn, Font, FontCache, FontGlyph, FontQuery, FontResolverFn, StandardFont};
use hayro_syntax::object::{Array, Dict, Name, Object, String as Text};
use skrifa::raw::ps::agl;

use crate::text::characters::{self, plain};

/// The fonts of a document, each read once.
pub(crate) struct Fonts<'a> {
    cache: FontCache<'a>,
    programs: FontResolverFn,
    tables: CMapResolverFn,
    known: RefCell<HashMap<usize, Option<Rc<TextFont<'a>>>>>,
}

impl std::fmt::Debug for Fonts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fonts").field("known", &self.known.borrow().len()).finish_non_exhaustive()
    }
}

/// A glyph as text.
#[derive(Debug)]
pub(crate) struct Glyph {
    /// `None` if the font does not say which characters the glyph stands for.
    pub(crate) text: Option<Box<str>>,
    /// The advance along the writing direction, in thousandths of the font size. Negative in vertical fonts.
    pub(crate) advance: f64,
}

/// A font of a document.
pub(crate) struct TextFont<'a> {
    font: Font<'a>,
    dict: Dict<'a>,
    em: f64,
    is_vertical: bool,
    glyphs: RefCell<HashMap<u32, Rc<Glyph>>>,
    collection: OnceCell<Option<Collection>>,
    names: OnceCell<HashMap<u8, String>>,
    reverse: OnceCell<HashMap<u32, String>>,
}

/// The tables of a CJK font that map codes to characters.
struct Collection {
    /// `None` if codes are the numbers of the characters in the collection.
    encoding: Option<CMap>,
    characters: CMap,
}

impl<'a> Fonts<'a> {
    pub(crate) fn new() -> Self {
        Fonts {
            cache: FontCache::new(),
            programs: Arc::new(|query| match query {
                FontQuery::Standard(font) => Some(font.get_font_data()),
                FontQuery::Fallback(font) => Some(font.pick_standard_font().get_font_data()),
            }),
            tables: Arc::new(load_embedded),
            known: RefCell::new(HashMap::new()),
        }
    }

    /// The font of a font dictionary. `None` if the dictionary is too damaged.
    pub(crate) fn font(&self, dict: &Dict<'a>) -> Option<Rc<TextFont<'a>>> {
        // Two dictionaries of a document never begin at the same byte.
        let key = dict.data().as_ptr().addr();
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let font = self.cache.font(dict, &self.programs, &self.tables);
        let font = font.map(|font| Rc::new(TextFont::new(font, dict.clone())));
        self.known.borrow_mut().insert(key, font.clone());
        font
    }

    /// The font of text for which the document names none.
    pub(crate) fn fallback(&self) -> Option<Rc<TextFont<'a>>> {
        let font = self.cache.standard_font(StandardFont::Helvetica, &self.programs)?;
        Some(Rc::new(TextFont::new(font, Dict::empty())))
    }
}

impl<'a> TextFont<'a> {
    fn new(font: Font<'a>, dict: Dict<'a>) -> Self {
        let is_vertical = !font.is_horizontal();
        let em = if is_named(&dict, "Subtype", "Type3") { bitmap_em(&dict) } else { 1.0 };
        TextFont {
            font,
            dict,
            em,
            is_vertical,
            glyphs: RefCell::default(),
            collection: OnceCell::new(),
            names: OnceCell::new(),
            reverse: OnceCell::new(),
        }
    }

    /// The height of the letters in units of the font size. It differs from 1 only in fonts with a unit of their own (Type 3).
    pub(crate) fn em(&self) -> f64 {
        self.em
    }

    pub(crate) fn is_vertical(&self) -> bool {
        self.is_vertical
    }

    /// The character code at `at`, and its length in bytes.
    pub(crate) fn read_code(&self, bytes: &[u8], at: usize) -> (u32, usize) {
        self.font.read_code(bytes, at)
    }

    pub(crate) fn glyph(&self, code: u32) -> Rc<Glyph> {
        if let Some(glyph) = self.glyphs.borrow().get(&code) {
            return glyph.clone();
        }
        let advance = self.font.code_advance(code);
        let advance = if self.is_vertical { advance.y } else { advance.x };
        let glyph = Rc::new(Glyph { text: self.text_of(code), advance });
        self.glyphs.borrow_mut().insert(code, glyph.clone());
        glyph
    }

    fn text_of(&self, code: u32) -> Option<Box<str>> {
        let glyph = self.font.glyph(self.font.map_code(code), code);
        let known = match &glyph {
            FontGlyph::Outline(glyph) => glyph.as_unicode(),
            FontGlyph::Type3(glyph) => glyph.as_unicode(),
        };
        match known {
            Some(BfString::Char(c)) if !matches!(c, '\0' | '\u{fffd}') => return Some(plain(c, &mut [0; 4]).into()),
            Some(BfString::String(text)) => return Some(characters::plain_text(&text).into()),
            Some(BfString::Char(_)) | None => {}
        }
        let text = match &glyph {
            FontGlyph::Type3(_) => self.named(code),
            FontGlyph::Outline(glyph) if is_named(&self.dict, "Subtype", "Type0") => {
                self.collected(code).or_else(|| self.reversed(glyph)).or_else(|| self.identical(code))
            }
            FontGlyph::Outline(glyph) => self.named(code).or_else(|| self.reversed(glyph)),
        };
        text.map(|text| characters::plain_text(&text).into()).or_else(|| match &glyph {
            // A glyph without an outline is a space.
            FontGlyph::Outline(glyph) => glyph.outline().segments().next().is_none().then(|| " ".into()),
            FontGlyph::Type3(_) => None,
        })
    }

    /// The text of a glyph whose name holds a number.
    fn named(&self, code: u32) -> Option<String> {
        let names = self.names.get_or_init(|| differences(&self.dict));
        let name = names.get(&u8::try_from(code).ok()?)?;
        let is_cork = names.keys().any(|code| *code >= 128) || !names.keys().any(|code| (11..16).contains(code));
        characters::numbered_name(name, code, is_cork).or_else(|| {
            // Names without a meaning, for codes that are letters.
            let letters = names.keys().filter(|code| code.is_ascii_alphanumeric()).count();
            let is_text = 2 * letters > names.len() && is_named(&self.dict, "Subtype", "Type3");
            is_text.then(|| characters::text_code(code, is_cork).filter(|_| code > 32).map(str::to_owned))?
        })
    }

    /// The text of a code in a font that the document does not embed, and whose codes are not numbered by a collection.
    fn identical(&self, code: u32) -> Option<String> {
        let below = self.dict.get::<Array<'_>>("DescendantFonts")?.iter::<Dict<'_>>().next()?;
        let descriptor = below.get::<Dict<'_>>("FontDescriptor").unwrap_or_default();
        let is_embedded = ["FontFile", "FontFile2", "FontFile3"].iter().any(|key| descriptor.contains_key(key));
        let character = char::from_u32(code).filter(|c| !is_embedded && (c.is_alphanumeric() || c.is_ascii_graphic()));
        character.map(String::from)
    }

    /// The text of a code in a character collection for Chinese, Japanese or Korean.
    fn collected(&self, code: u32) -> Option<String> {
        let encoding = self.dict.get::<Name<'_>>("Encoding");
        if let Some(text) = encoding.as_ref().and_then(|name| characters::unicode_encoding(name.as_str(), code)) {
            return Some(text);
        }
        let collection = self.collection.get_or_init(|| Collection::of(&self.dict)).as_ref()?;
        let number = match &collection.encoding {
            None => code,
            Some(encoding) => (1..=4).find_map(|length| encoding.lookup_cid_code(code, length))?,
        };
        match collection.characters.lookup_bf_string(number)? {
            BfString::Char(c) => Some(c.to_string()),
            BfString::String(text) => Some(text),
        }
    }

    /// The text of a glyph, from the tables of the embedded font that map characters to glyphs, or name the glyphs.
    fn reversed(&self, glyph: &hayro_font::OutlineGlyph) -> Option<String> {
        let reverse = self.reverse.get_or_init(|| {
            let program = glyph.font_data().and_then(|found| skrifa::Font::new(found.data, 0));
            program.map(|program| characters_of_glyphs(&program)).unwrap_or_default()
        });
        reverse.get(&glyph.glyph_id().to_u32()).cloned()
    }
}

impl Collection {
    fn of(dict: &Dict<'_>) -> Option<Collection> {
        let mut below = dict.get::<Array<'_>>("DescendantFonts")?.iter::<Dict<'_>>().next()?;
        let encoding = match dict.get::<Object<'_>>("Encoding")? {
            Object::Name(name) => match CMapName::from_bytes(name.as_ref()) {
                CMapName::IdentityH | CMapName::IdentityV => None,
                name => Some(CMap::parse(load_embedded(name)?, load_embedded)?),
            },
            Object::Stream(stream) => Some(CMap::parse(&stream.decoded_data().ok()?, load_embedded)?),
            _ => return None,
        };
        let own = encoding.as_ref().and_then(|encoding| encoding.metadata().character_collection.clone());
        let family = own.map(|own| own.family).filter(|family| family.ucs2_cmap().is_some()).or_else(|| {
            below = below.get::<Dict<'_>>("CIDSystemInfo")?;
            let text = |key: &str| below.get::<Text<'_>>(key);
            Some(CidFamily::from_registry_ordering(text("Registry")?.as_bytes(), text("Ordering")?.as_bytes()))
        })?;
        let characters = CMap::parse(load_embedded(family.ucs2_cmap()?)?, load_embedded)?;
        Some(Collection { encoding, characters })
    }
}

/// The characters of the glyphs of a font program, by glyph number.
fn characters_of_glyphs(program: &skrifa::Font) -> HashMap<u32, String> {
    let mut found: HashMap<u32, String> = HashMap::new();
    for (character, glyph) in program.charmap().unicodes() {
        // Symbol fonts have their codes in the private area from U+F000.
        let character = if (0xf020..=0xf07e).contains(&character) { character - 0xf000 } else { character };
        let is_private = (0xe000..=0xf8ff).contains(&character);
        if let Some(character) = char::from_u32(character).filter(|c| !c.is_control() && !is_private) {
            found.entry(glyph.to_u32()).or_insert_with(|| character.to_string());
        }
    }
    for (glyph, name) in program.glyph_names() {
        if !name.is_synthesized() {
            let text: String = agl::name_to_chars(name.as_str()).collect();
            if !text.is_empty() {
                found.entry(glyph.to_u32()).or_insert(text);
            }
        }
    }
    found
}

pub(crate) fn is_named(dict: &Dict<'_>, key: &str, name: &str) -> bool {
    dict.get::<Name<'_>>(key).is_some_and(|found| found.as_str() == name)
}

/// The glyph names that a font dictionary gives to codes.
fn differences(dict: &Dict<'_>) -> HashMap<u8, String> {
    let mut names = HashMap::new();
    let array = dict.get::<Dict<'_>>("Encoding").and_then(|encoding| encoding.get::<Array<'_>>("Differences"));
    let mut code = 0_i64;
    for entry in array.iter().flat_map(|array| array.iter::<Object<'_>>()) {
        match entry {
            Object::Number(number) => code = number.as_i64(),
            Object::Name(name) => {
                if let Ok(code) = u8::try_from(code) {
                    names.insert(code, name.as_str().to_owned());
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    names
}

/// The height of the letters of a Type 3 font, in units of the font size: twice the mean width.
fn bitmap_em(dict: &Dict<'_>) -> f64 {
    let matrix = dict.get::<[f64; 6]>("FontMatrix").unwrap_or([0.001, 0.0, 0.0, 0.001, 0.0, 0.0]);
    let widths: Vec<f64> = dict.get::<Array<'_>>("Widths").iter().flat_map(|all| all.iter::<f64>()).collect();
    let drawn: Vec<f64> = widths.iter().map(|width| width.abs()).filter(|width| *width > 0.0).collect();
    let mean = drawn.iter().sum::<f64>() / drawn.len().max(1) as f64;
    let [a, _, _, d, ..] = matrix;
    // The matrix may stretch letters: `a` scales widths, `d` heights.
    let em = 2.0 * mean * if a == 0.0 { d.abs() } else { a.abs() };
    if em.is_finite() && em > 0.0 { em } else { 1.0 }
}
