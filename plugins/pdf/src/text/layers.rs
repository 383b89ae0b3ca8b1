//! Optional content: decides which marked content and forms are hidden (ISO 32000-1, 8.11).

use std::collections::HashSet;

use hayro_syntax::object::{Array, Dict, Name, ObjectIdentifier};
use hayro_syntax::xref::XRef;

/// The layers that are off, and the visibility of the open marked-content sequences.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    off: HashSet<ObjectIdentifier>,
    hidden: Vec<bool>,
}

impl Layers {
    /// The layers of a document, as its default configuration sets them.
    pub(crate) fn of(xref: &XRef) -> Layers {
        let mut layers = Layers::default();
        let properties = xref.get::<Dict<'_>>(xref.root_id()).and_then(|root| root.get::<Dict<'_>>("OCProperties"));
        let Some(properties) = properties else { return layers };
        let Some(config) = properties.get::<Dict<'_>>("D") else { return layers };
        if config.get::<Name<'_>>("BaseState").is_some_and(|state| state.as_str() == "OFF") {
            layers.off.extend(groups(&properties, "OCGs"));
        }
        for group in groups(&config, "ON") {
            layers.off.remove(&group);
        }
        layers.off.extend(groups(&config, "OFF"));
        layers
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden.last().copied().unwrap_or(false)
    }

    /// Marked content that belongs to no layer of its own.
    pub(crate) fn begin_plain(&mut self) {
        self.hidden.push(self.is_hidden());
    }

    /// Marked content of the layer `key` of `dict`.
    pub(crate) fn begin(&mut self, dict: &Dict<'_>, key: &[u8]) {
        let is_off = !self.off.is_empty() && self.is_off(dict, key);
        self.hidden.push(self.is_hidden() || is_off);
    }

    /// A form or an image. Returns true if it names a layer; then [`Layers::end`] must follow.
    pub(crate) fn begin_form(&mut self, dict: &Dict<'_>) -> bool {
        let is_layer = !self.off.is_empty() && dict.contains_key("OC");
        if is_layer {
            self.begin(dict, b"OC");
        }
        is_layer
    }

    pub(crate) fn end(&mut self) {
        self.hidden.pop();
    }

    /// True if the layer, or the membership of layers, is off.
    fn is_off(&self, dict: &Dict<'_>, key: &[u8]) -> bool {
        let Some(layer) = dict.get::<Dict<'_>>(key) else { return false };
        if layer.get::<Name<'_>>("Type").is_none_or(|kind| kind.as_str() != "OCMD") {
            return dict.get_ref(key).is_some_and(|id| self.off.contains(&id.into()));
        }
        let mut members = groups(&layer, "OCGs");
        members.extend(layer.get_ref("OCGs").map(ObjectIdentifier::from).filter(|_| members.is_empty()));
        let is_off = |id: &ObjectIdentifier| self.off.contains(id);
        let policy = layer.get::<Name<'_>>("P");
        !members.is_empty()
            && match policy.as_ref().map_or("AnyOn", Name::as_str) {
                "AllOn" => members.iter().any(is_off),
                "AnyOff" => !members.iter().any(is_off),
                "AllOff" => !members.iter().all(is_off),
                _ => members.iter().all(is_off),
            }
    }
}

/// The references in an array of layers.
fn groups(dict: &Dict<'_>, key: &str) -> Vec<ObjectIdentifier> {
    let array = dict.get::<Array<'_>>(key);
    array.iter().flat_map(Array::raw_iter).filter_map(|item| item.as_obj_ref().map(Into::into)).collect()
}
