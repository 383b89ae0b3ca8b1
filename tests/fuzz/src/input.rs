//! Splits an input into fields at the byte 0xFF, which UTF-8 never contains. So people can read the seeds.

/// The rest of an input.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next field; empty when there is none.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0xFF);
        let (field, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest.get(1..).unwrap_or_default();
        field
    }

    /// The next field as text.
    pub(crate) fn text(&mut self) -> String {
        text(self.bytes())
    }

    /// The next field as text. `None` if the field is empty.
    pub(crate) fn option(&mut self) -> Option<String> {
        Some(self.text()).filter(|text| !text.is_empty())
    }

    /// The next field as a number: its first eight bytes.
    pub(crate) fn number(&mut self) -> u64 {
        let mut number = [0; 8];
        number.iter_mut().zip(self.bytes()).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Bytes as text. Invalid UTF-8 is replaced: belljar's code never gets it from guests or clients.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
