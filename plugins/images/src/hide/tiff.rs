//! Removes the GPS directory from Exif data, which has the form of a TIFF file.
//!
//! The entry that leads to the directory is taken out of its own directory, and the directory with all its values becomes
//! zeros. All other offsets stay valid.

use belljar_guest::Result;

use super::Budget;

/// The tags of entries that lead to other directories: Exif, and parts of a TIFF.
const DIRECTORIES: [u16; 2] = [0x8769, 0x014a];

/// The tag of the entry that leads to the GPS directory.
const GPS: u16 = 0x8825;

/// The most directories that are visited. A file has about five; a loop of offsets would have no end.
const MAX_DIRECTORIES: usize = 64;

/// The length of an entry.
const ENTRY: usize = 12;

/// Exif data, and the order of its bytes.
struct Data<'a> {
    bytes: &'a mut [u8],
    big: bool,
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: usize,
    tag: u16,
    kind: u16,
    count: u32,
    /// The value, or its offset.
    value: u32,
}

/// Removes the GPS directory of the data that begins with a TIFF header. Does nothing to other bytes. True if there was one.
/// Fails if the data has more entries than `budget` allows.
pub(crate) fn blank(bytes: &mut [u8], budget: &mut Budget) -> Result<bool> {
    let big = match bytes {
        [b'I', b'I', b'*', 0, ..] => false,
        [b'M', b'M', 0, b'*', ..] => true,
        _ => return Ok(false),
    };
    let mut data = Data { bytes, big };
    let (mut found, mut visited) = (false, Vec::new());
    let mut next: Vec<usize> = data.long(4).map(|offset| offset as usize).into_iter().collect();
    while let Some(at) = next.pop() {
        if visited.len() == MAX_DIRECTORIES || visited.contains(&at) {
            continue;
        }
        visited.push(at);
        while let Some(entry) = data.entries(at).into_iter().find(|entry| entry.tag == GPS) {
            budget.spend(usize::from(data.short(at).unwrap_or_default()))?;
            data.clear_directory(entry.value as usize);
            data.remove(at, entry.at);
            found = true;
        }
        let entries = data.entries(at);
        budget.spend(entries.len())?;
        let below = entries.iter().filter(|entry| DIRECTORIES.contains(&entry.tag));
        next.extend(below.flat_map(|entry| data.offsets(entry)));
        next.extend(
            data.long(at + 2 + entries.len() * ENTRY).filter(|offset| *offset != 0).map(|offset| offset as usize),
        );
    }
    Ok(found)
}

impl Data<'_> {
    fn short(&self, at: usize) -> Option<u16> {
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u16::from_be_bytes(*bytes) } else { u16::from_le_bytes(*bytes) })
    }

    fn long(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) })
    }

    /// The entries of the directory at `at` that are within the data.
    fn entries(&self, at: usize) -> Vec<Entry> {
        let count = usize::from(self.short(at).unwrap_or_default());
        let entry = |index: usize| {
            let at = at.checked_add(2 + index * ENTRY)?;
            Some(Entry {
                at,
                tag: self.short(at)?,
                kind: self.short(at + 2)?,
                count: self.long(at + 4)?,
                value: self.long(at + 8)?,
            })
        };
        (0..count).map_while(entry).collect()
    }

    /// The offsets that an entry leads to: one, or a few of a list.
    fn offsets(&self, entry: &Entry) -> Vec<usize> {
        if entry.count <= 1 {
            return vec![entry.value as usize];
        }
        let count = (entry.count as usize).min(MAX_DIRECTORIES);
        (0..count)
            .filter_map(|index| self.long((entry.value as usize).checked_add(index * 4)?))
            .map(|offset| offset as usize)
            .collect()
    }

    /// Fills the directory at `at` and its values with zeros.
    fn clear_directory(&mut self, at: usize) {
        for entry in self.entries(at) {
            let size = (entry.count as usize).saturating_mul(size(entry.kind));
            if size > 4 {
                self.clear(entry.value as usize, size);
            }
            self.clear(entry.at, ENTRY);
        }
        self.clear(at, 2);
    }

    fn clear(&mut self, at: usize, length: usize) {
        let end = at.saturating_add(length).min(self.bytes.len());
        if let Some(part) = self.bytes.get_mut(at..end) {
            part.fill(0);
        }
    }

    /// Takes the entry at `entry` out of the directory at `at`: the following entries and the offset of the next directory
    /// move up.
    fn remove(&mut self, at: usize, entry: usize) {
        let Some(count) = self.short(at) else { return };
        let end = (at + 2 + usize::from(count) * ENTRY + 4).min(self.bytes.len());
        if entry + ENTRY <= end {
            self.bytes.copy_within(entry + ENTRY..end, entry);
            self.clear(end - ENTRY, ENTRY);
        }
        let count = count.saturating_sub(1);
        let bytes = if self.big { count.to_be_bytes() } else { count.to_le_bytes() };
        if let Some(place) = self.bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&bytes);
        }
    }
}

/// The bytes of one value of a type (TIFF 6.0, section 2).
fn size(kind: u16) -> usize {
    match kind {
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 => 8,
        _ => 1,
    }
}
