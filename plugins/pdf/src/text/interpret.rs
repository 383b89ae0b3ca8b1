//! Interprets the content streams of a page for their text: places the glyphs, and passes them to a [`WordBuilder`].
//!
//! It follows the text operators, transforms, forms, marked content and optional content. Paths, colours and images are not
//! interpreted, which costs a third of the time that a renderer takes.

use std::rc::Rc;

use hayro_font::kurbo::{Affine, Point, Rect, Vec2};
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::{Array, Dict, Name, Object, Rect as PdfRect, Stream, String as Text, dict_or_stream};
use hayro_syntax::page::{Page, Resources};

use crate::strings;
use crate::text::fields;
use crate::text::fonts::{Fonts, TextFont};
use crate::text::layers::Layers;
use crate::text::words::{Frame, Placed, WordBuilder};

/// The deepest nesting of forms.
const MAX_DEPTH: usize = 12;

/// The most operators of a page. A form can draw another form many times.
const MAX_OPERATIONS: usize = 2_000_000;

/// The annotation flags "hidden" and "no view" (ISO 32000-1, table 165).
const HIDDEN: u32 = (1 << 1) | (1 << 5);

/// The graphics state, as far as text needs it.
#[derive(Clone)]
struct State<'a> {
    transform: Affine,
    text: Affine,
    line: Affine,
    font: Option<Rc<TextFont<'a>>>,
    size: f64,
    char_space: f64,
    word_space: f64,
    /// The horizontal scale; 1 is unscaled.
    scale: f64,
    leading: f64,
    rise: f64,
}

/// The replacement text of marked content, until the content ends.
struct Replacement {
    text: String,
    /// The number of open marked-content sequences, the one with the replacement included.
    depth: usize,
    place: Option<(Frame, Placed)>,
}

/// Reads the text of a page.
pub(crate) struct Interpreter<'a, 'f> {
    fonts: &'f Fonts<'a>,
    state: State<'a>,
    saved: Vec<State<'a>>,
    layers: Layers,
    replacement: Option<Replacement>,
    marks: usize,
    operations: usize,
    depth: usize,
    /// The page in device space. Text outside of it is left out.
    bounds: Rect,
    pub(crate) words: WordBuilder,
    pub(crate) images: usize,
    pub(crate) glyphs: usize,
    pub(crate) unknown: usize,
    /// True if the page has more operators than are interpreted.
    pub(crate) is_cut: bool,
}

impl<'a, 'f> Interpreter<'a, 'f> {
    pub(crate) fn new(page: &Page<'a>, fonts: &'f Fonts<'a>) -> Self {
        let transform = Affine::new(page.initial_transform(true).as_coeffs());
        let area = page.media_box();
        let state = State {
            transform,
            text: Affine::IDENTITY,
            line: Affine::IDENTITY,
            font: None,
            size: 1.0,
            char_space: 0.0,
            word_space: 0.0,
            scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        Interpreter {
            fonts,
            state,
            saved: Vec::new(),
            layers: Layers::of(page.xref()),
            replacement: None,
            marks: 0,
            operations: 0,
            depth: 0,
            bounds: transform.transform_rect_bbox(Rect::new(area.x0, area.y0, area.x1, area.y1)),
            words: WordBuilder::default(),
            images: 0,
            glyphs: 0,
            unknown: 0,
            is_cut: false,
        }
    }

    /// Reads the content of the page, then the appearances of its annotations.
    pub(crate) fn page(&mut self, page: &Page<'a>) {
        let initial = self.state.clone();
        self.run(page.typed_operations(), page.resources());
        for annotation in page.raw().get::<Array<'_>>("Annots").iter().flat_map(|all| all.iter::<Dict<'_>>()) {
            self.state = initial.clone();
            if annotation.get::<u32>("F").unwrap_or(0) & HIDDEN != 0 {
                continue;
            }
            let before = self.glyphs;
            self.words.end_word();
            self.annotation(&annotation, page.resources());
            if self.glyphs == before && !self.is_cut {
                self.state.transform = initial.transform;
                self.value(&annotation);
            }
            self.words.end_word();
        }
    }

    /// Writes the text of an annotation whose appearance has none into its rectangle.
    fn value(&mut self, annotation: &Dict<'a>) -> Option<()> {
        let area = annotation.get::<PdfRect>("Rect")?;
        let lines = fields::lines(annotation);
        // The height of a line is not known: the text fills the rectangle.
        let em = (area.height() / (1.2 * lines.len().max(1) as f64)).clamp(4.0, 12.0);
        let [a, b, c, d, ..] = self.state.transform.as_coeffs();
        let frame = Frame::new(Vec2::new(a, b), em * Vec2::new(c, d).hypot());
        for (at, line) in lines.iter().enumerate() {
            let down =
                if lines.len() == 1 { f64::midpoint(area.height(), 0.7 * em) } else { (at + 1) as f64 * 1.2 * em };
            let count = line.chars().count();
            self.glyphs += count;
            let (start, base) = frame.project(self.state.transform * Point::new(area.x0, area.y1 - down));
            let width = (count as f64 * 0.5 * em).min(area.width()) * Vec2::new(a, b).hypot();
            self.words.set_frame(frame);
            self.words.add(line.trim(), Placed { start, end: start + width, base });
            self.words.end_word();
        }
        Some(())
    }

    fn annotation(&mut self, annotation: &Dict<'a>, resources: &Resources<'a>) -> Option<()> {
        let form = match annotation.get::<Dict<'_>>("AP")?.get::<Object<'_>>("N")? {
            Object::Stream(form) => form,
            Object::Dict(states) => states.get::<Stream<'_>>(annotation.get::<Name<'_>>("AS")?)?,
            _ => return None,
        };
        let area = annotation.get::<PdfRect>("Rect")?;
        let own = form.dict().get::<PdfRect>("BBox")?;
        let matrix = matrix_of(form.dict());
        // ISO 32000-1, 12.5.5: the transformed box of the appearance fills the rectangle of the annotation.
        let shown = matrix.transform_rect_bbox(Rect::new(own.x0, own.y0, own.x1, own.y1));
        let (wide, high) = (area.width() / shown.width(), area.height() / shown.height());
        let (wide, high) = (if wide.is_finite() { wide } else { 1.0 }, if high.is_finite() { high } else { 1.0 });
        self.state.transform *=
            Affine::new([wide, 0.0, 0.0, high, area.x0 - wide * shown.x0, area.y0 - high * shown.y0]);
        self.form(&form, resources);
        Some(())
    }

    /// Draws a form in the present state.
    fn form(&mut self, form: &Stream<'a>, resources: &Resources<'a>) -> Option<()> {
        if self.depth >= MAX_DEPTH || self.is_cut {
            return None;
        }
        let is_layer = self.layers.begin_form(form.dict());
        if !self.layers.is_hidden()
            && let Ok(content) = form.decoded_data()
        {
            let own = form.dict().get::<Dict<'_>>("Resources").map(Resources::new);
            self.depth += 1;
            let (before, saved) = (self.state.clone(), std::mem::take(&mut self.saved));
            self.state.transform *= matrix_of(form.dict());
            self.run(TypedIter::new(&content), own.as_ref().unwrap_or(resources));
            self.saved = saved;
            self.state = before;
            self.depth -= 1;
        }
        if is_layer {
            self.layers.end();
        }
        Some(())
    }

    fn run(&mut self, mut operations: TypedIter<'_>, resources: &Resources<'a>) {
        let marks = self.marks;
        while let Some(operation) = operations.next() {
            self.operations += 1;
            if self.operations > MAX_OPERATIONS {
                self.is_cut = true;
                return;
            }
            match operation {
                TypedInstruction::SaveState(_) if self.saved.len() < 512 => self.saved.push(self.state.clone()),
                TypedInstruction::RestoreState(_) => {
                    if let Some(before) = self.saved.pop() {
                        self.state = before;
                    }
                }
                TypedInstruction::Transform(m) => {
                    let m = [m.0.as_f64(), m.1.as_f64(), m.2.as_f64(), m.3.as_f64(), m.4.as_f64(), m.5.as_f64()];
                    self.state.transform *= Affine::new(m);
                }
                TypedInstruction::BeginText(_) => {
                    self.state.text = Affine::IDENTITY;
                    self.state.line = Affine::IDENTITY;
                }
                TypedInstruction::SetTextMatrix(m) => {
                    let m = [m.0.as_f64(), m.1.as_f64(), m.2.as_f64(), m.3.as_f64(), m.4.as_f64(), m.5.as_f64()];
                    self.state.text = Affine::new(m);
                    self.state.line = self.state.text;
                }
                TypedInstruction::TextFont(font) => {
                    self.state.size = font.1.as_f64();
                    self.state.font = resources.get_font(font.0).and_then(|dict| self.fonts.font(&dict));
                }
                TypedInstruction::SetGraphicsState(state) => {
                    let font = resources.get_ext_g_state(state.0).and_then(|dict| dict.get::<Array<'_>>("Font"));
                    let mut parts = font.iter().flat_map(|font| font.iter::<Object<'_>>());
                    if let (Some(Object::Dict(font)), Some(Object::Number(size))) = (parts.next(), parts.next()) {
                        self.state.font = self.fonts.font(&font);
                        self.state.size = size.as_f64();
                    }
                }
                TypedInstruction::ShowText(text) => self.show(text.0.as_bytes()),
                TypedInstruction::ShowTexts(texts) => {
                    for part in texts.0.iter::<Object<'_>>() {
                        match part {
                            Object::Number(step) => self.step(step.as_f64()),
                            Object::String(text) => self.show(text.as_bytes()),
                            _ => {}
                        }
                    }
                }
                TypedInstruction::NextLineAndShowText(text) => {
                    self.next_line(0.0, -self.state.leading);
                    self.show(text.0.as_bytes());
                }
                TypedInstruction::ShowTextWithParameters(text) => {
                    self.state.word_space = text.0.as_f64();
                    self.state.char_space = text.1.as_f64();
                    self.next_line(0.0, -self.state.leading);
                    self.show(text.2.as_bytes());
                }
                TypedInstruction::NextLine(by) => self.next_line(by.0.as_f64(), by.1.as_f64()),
                TypedInstruction::NextLineAndSetLeading(by) => {
                    self.state.leading = -by.1.as_f64();
                    self.next_line(by.0.as_f64(), by.1.as_f64());
                }
                TypedInstruction::NextLineUsingLeading(_) => self.next_line(0.0, -self.state.leading),
                TypedInstruction::HorizontalScaling(scale) => self.state.scale = scale.0.as_f64() / 100.0,
                TypedInstruction::TextLeading(leading) => self.state.leading = leading.0.as_f64(),
                TypedInstruction::CharacterSpacing(space) => self.state.char_space = space.0.as_f64(),
                TypedInstruction::WordSpacing(space) => self.state.word_space = space.0.as_f64(),
                TypedInstruction::TextRise(rise) => self.state.rise = rise.0.as_f64(),
                TypedInstruction::XObject(object) => {
                    if let Some(stream) = resources.get_x_object(object.0) {
                        self.object(&stream, resources);
                    }
                }
                TypedInstruction::InlineImage(_) if !self.layers.is_hidden() => self.images += 1,
                TypedInstruction::BeginMarkedContent(_) => {
                    self.marks += 1;
                    self.layers.begin_plain();
                }
                TypedInstruction::BeginMarkedContentWithProperties(mark) => self.begin_mark(mark.0, mark.1, resources),
                TypedInstruction::EndMarkedContent(_) if self.marks > marks => self.end_mark(),
                _ => {}
            }
        }
        while self.marks > marks {
            self.end_mark();
        }
    }

    fn object(&mut self, stream: &Stream<'a>, resources: &Resources<'a>) {
        if self.layers.is_hidden() {
            return;
        }
        match stream.dict().get::<Name<'_>>("Subtype").as_ref().map(Name::as_str) {
            Some("Form") => {
                self.form(stream, resources);
            }
            Some("Image") => {
                let is_layer = self.layers.begin_form(stream.dict());
                self.images += usize::from(!self.layers.is_hidden());
                if is_layer {
                    self.layers.end();
                }
            }
            _ => {}
        }
    }

    fn begin_mark(&mut self, tag: &Name<'_>, properties: &Object<'_>, resources: &Resources<'a>) {
        self.marks += 1;
        let inline = dict_or_stream(properties).map(|(dict, _)| dict);
        let named = match properties {
            Object::Name(name) => Some(name),
            _ => None,
        };
        if tag.as_str() == "OC" {
            match named {
                Some(name) => self.layers.begin(&resources.properties, name.as_ref()),
                None => self.layers.begin_plain(),
            }
            return;
        }
        self.layers.begin_plain();
        if self.replacement.is_some() {
            return;
        }
        let text = match named {
            Some(name) => resources
                .properties
                .get::<Dict<'_>>(name)
                .and_then(|dict| dict.get::<Text<'_>>("ActualText"))
                .map(|text| strings::decode_raw(text.as_bytes())),
            None => inline
                .and_then(|dict| dict.get::<Text<'_>>("ActualText"))
                .map(|text| strings::decode_raw(text.as_bytes())),
        };
        if let Some(text) = text {
            self.replacement = Some(Replacement { text, depth: self.marks, place: None });
        }
    }

    fn end_mark(&mut self) {
        if self.replacement.as_ref().is_some_and(|replacement| replacement.depth == self.marks)
            && let Some(Replacement { text, place: Some((frame, placed)), .. }) = self.replacement.take()
        {
            self.words.set_frame(frame);
            self.words.add(&text, placed);
        }
        self.marks -= 1;
        self.layers.end();
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.state.line *= Affine::translate((x, y));
        self.state.text = self.state.line;
    }

    /// Moves by `step` thousandths of the font size, against the writing direction.
    fn step(&mut self, step: f64) {
        let by = -step / 1000.0 * self.state.size;
        let by = match &self.state.font {
            Some(font) if font.is_vertical() => (0.0, by),
            _ => (by * self.state.scale, 0.0),
        };
        self.state.text *= Affine::translate(by);
    }

    fn show(&mut self, bytes: &[u8]) {
        let font = match self.state.font.clone() {
            Some(font) => font,
            None if bytes.is_ascii() => match self.fonts.fallback() {
                Some(font) => self.state.font.insert(font).clone(),
                None => return,
            },
            None => return,
        };
        let State { transform, text, size, scale, char_space, word_space, rise, .. } = self.state;
        let matrix = transform * text;
        let [a, b, c, d, e, f] = matrix.as_coeffs();
        let is_vertical = font.is_vertical();
        let along =
            if is_vertical { Vec2::new(-c, -d) * size.signum() } else { Vec2::new(a, b) * (size * scale).signum() };
        let length = along.hypot();
        let em = Vec2::new(c, d).hypot() * size.abs() * font.em();
        let is_placed = length > 1e-9 && em > 1e-9 && em.is_finite() && length.is_finite();
        let is_shown = is_placed && !self.layers.is_hidden();
        let frame = Frame::new(along, em);
        if is_shown && self.replacement.is_none() {
            self.words.set_frame(frame);
        }
        let mut at = 0;
        let mut moved = 0.0;
        while at < bytes.len() {
            let (code, read) = font.read_code(bytes, at);
            at += read.max(1);
            let glyph = font.glyph(code);
            let space = char_space + if code == 32 && read == 1 { word_space } else { 0.0 };
            let advance = glyph.advance / 1000.0 * size;
            let step = if is_vertical { advance + space } else { (advance + space) * scale };
            if is_shown {
                let (x, y) = if is_vertical { (0.0, moved + rise) } else { (moved, rise) };
                let origin = Point::new(a * x + c * y + e, b * x + d * y + f);
                let length = length
                    * if is_vertical { -advance } else { advance * scale }
                    * size.signum()
                    * if is_vertical { 1.0 } else { scale.signum() };
                self.glyphs += 1;
                let (start, base) = frame.project(origin);
                let placed = Placed { start, end: start + length.max(0.0), base };
                if let Some(replacement) = &mut self.replacement {
                    replacement.cover(frame, placed);
                } else if self.bounds.inflate(2.0, 2.0).contains(origin) {
                    match &glyph.text {
                        Some(text) => self.words.add(text, placed),
                        None => {
                            self.unknown += 1;
                            self.words.add("\u{fffd}", placed);
                        }
                    }
                }
            }
            moved += step;
        }
        self.state.text *= Affine::translate(if is_vertical { (0.0, moved) } else { (moved, 0.0) });
    }
}

impl Replacement {
    /// Extends the place of the replacement by a glyph of the replaced content.
    fn cover(&mut self, frame: Frame, placed: Placed) {
        match &mut self.place {
            None => self.place = Some((frame, placed)),
            // Only the first line: a place has one line.
            Some((first, place)) if first.is_parallel(&frame) && (place.base - placed.base).abs() < first.em() => {
                place.start = place.start.min(placed.start);
                place.end = place.end.max(placed.end);
            }
            Some(_) => {}
        }
    }
}

fn matrix_of(dict: &Dict<'_>) -> Affine {
    dict.get::<[f64; 6]>("Matrix").map_or(Affine::IDENTITY, Affine::new)
}
