//! Finds renamed files among changes, as `git diff --find-renames` does: first equal contents, then similar contents under the
//! same name, then the most similar contents.

use std::collections::HashMap;

use belljar_guest::Result;

use crate::changes::Changed;
use crate::objects::Objects;

/// The least similarity of a renamed file, of [`WHOLE`]: 50 %, and 75 % for a guess by name.
const SIMILAR: u64 = 30_000;
const SIMILAR_BY_NAME: u64 = 45_000;

/// The similarity of equal contents.
const WHOLE: u64 = 60_000;

/// The most pairs of files whose contents are compared, and the most bytes of these files together.
const MAX_PAIRS: usize = 10_000;
const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// The number of hashes of pieces. A prime of Git's own code.
const HASHES: u32 = 107_927;

/// The candidates that are kept for each added file.
const KEPT: usize = 4;

/// Pieces of a file by hash, each with the number of their bytes.
type Pieces = HashMap<u32, u64>;

/// Joins deleted and added files that are one renamed file. Returns false if only equal contents were searched, because there
/// are too many files.
pub(crate) fn find(objects: &Objects, files: &mut Vec<Changed>) -> Result<bool> {
    let at = |wanted: fn(&Changed) -> bool| -> Vec<usize> {
        files.iter().enumerate().filter(|(_, change)| wanted(change)).map(|(at, _)| at).collect()
    };
    let mut deleted = at(|change| change.after.is_none());
    let mut added = at(|change| change.before.is_none());
    if deleted.is_empty() || added.is_empty() {
        return Ok(true);
    }
    let mut pairs: Vec<(usize, usize, u64)> = Vec::new();
    equal(files, &mut deleted, &added, &mut pairs);
    added.retain(|new| !pairs.iter().any(|(_, paired, _)| paired == new));
    let is_regular = |at: &usize| {
        let change = files.get(*at);
        change.and_then(|change| change.before.or(change.after)).is_some_and(|(mode, _)| mode.is_blob())
    };
    deleted.retain(is_regular);
    added.retain(is_regular);
    let mut is_complete = true;
    if !deleted.is_empty() && !added.is_empty() {
        is_complete = deleted.len() * added.len() <= MAX_PAIRS && similar(objects, files, deleted, added, &mut pairs)?;
    }
    let mut joined: Vec<usize> = Vec::new();
    for (old, new, score) in pairs {
        let Some(source) = files.get(old).cloned() else { continue };
        let Some(target) = files.get_mut(new) else { continue };
        target.before = source.before;
        target.renamed = Some((source.path, u32::try_from(score * 100 / WHOLE).unwrap_or(100)));
        joined.push(old);
    }
    let mut at = 0;
    files.retain(|_| {
        at += 1;
        !joined.contains(&(at - 1))
    });
    Ok(is_complete)
}

/// Pairs files of equal contents. Of several sources, one with the same name is best.
fn equal(files: &[Changed], deleted: &mut Vec<usize>, added: &[usize], pairs: &mut Vec<(usize, usize, u64)>) {
    for new in added {
        let Some((target, (mode, id))) = files.get(*new).and_then(|change| Some((change, change.after?))) else {
            continue;
        };
        let fits = |old: &&usize| {
            files.get(**old).and_then(|change| change.before).is_some_and(|(other, other_id)| {
                other_id == id && (other == mode || (mode.is_blob() && other.is_blob()))
            })
        };
        let is_same_name = |old: &&usize| files.get(**old).is_some_and(|old| name(&old.path) == name(&target.path));
        let found = deleted.iter().filter(fits).find(is_same_name).or_else(|| deleted.iter().find(fits)).copied();
        if let Some(old) = found {
            pairs.push((old, *new, WHOLE));
            deleted.retain(|other| *other != old);
        }
    }
}

/// Pairs files of similar contents. Returns false if there are too many bytes to compare.
fn similar(
    objects: &Objects,
    files: &[Changed],
    mut deleted: Vec<usize>,
    mut added: Vec<usize>,
    pairs: &mut Vec<(usize, usize, u64)>,
) -> Result<bool> {
    let mut contents: HashMap<usize, (u64, Pieces)> = HashMap::new();
    let mut bytes = 0;
    for at in deleted.iter().chain(&added) {
        let Some((_, id)) = files.get(*at).and_then(|change| change.before.or(change.after)) else { continue };
        // A file that is absent is similar to none.
        let Some((_, size)) = objects.header(&id)? else { continue };
        bytes += size;
        if bytes > MAX_BYTES {
            return Ok(false);
        }
        let Some(object) = objects.find(&id)? else { continue };
        objects.add_work(size * 20);
        contents.insert(*at, (size, pieces(&object.data)));
    }
    let score = |old: usize, new: usize| -> u64 {
        let (Some((size, one)), Some((other_size, other))) = (contents.get(&old), contents.get(&new)) else { return 0 };
        let longer = (*size).max(*other_size);
        let difference = size.abs_diff(*other_size);
        if longer * (WHOLE - SIMILAR) < difference * WHOLE || *size == 0 || *other_size == 0 {
            return 0;
        }
        objects.add_work(one.len() as u64 * 60);
        let common: u64 = one.iter().map(|(hash, count)| other.get(hash).map_or(0, |found| *found.min(count))).sum();
        common * WHOLE / longer
    };
    let path = |at: usize| files.get(at).map(|change| change.path.as_slice()).unwrap_or_default();
    // A name that only one deleted and one added file have is likely the same file.
    let unique = |all: &[usize]| {
        let mut names: HashMap<Vec<u8>, Option<usize>> = HashMap::new();
        for at in all {
            names.entry(name(path(*at)).to_vec()).and_modify(|other| *other = None).or_insert(Some(*at));
        }
        names
    };
    let (old_names, new_names) = (unique(&deleted), unique(&added));
    for old in deleted.clone() {
        let key = name(path(old));
        let (Some(Some(_)), Some(Some(new))) = (old_names.get(key), new_names.get(key)) else { continue };
        let score = score(old, *new);
        if score >= SIMILAR_BY_NAME {
            pairs.push((old, *new, score));
            deleted.retain(|other| *other != old);
            added.retain(|other| other != new);
        }
    }
    let mut candidates: Vec<(u64, bool, usize, usize)> = Vec::new();
    for new in &added {
        let mut best: Vec<(u64, bool, usize, usize)> = deleted
            .iter()
            .map(|old| (score(*old, *new), name(path(*old)) == name(path(*new)), *old, *new))
            .filter(|(score, ..)| *score >= SIMILAR)
            .collect();
        best.sort_by_key(|(score, is_same_name, ..)| std::cmp::Reverse((*score, *is_same_name)));
        candidates.extend(best.into_iter().take(KEPT));
    }
    candidates.sort_by_key(|(score, is_same_name, ..)| std::cmp::Reverse((*score, *is_same_name)));
    for (score, _, old, new) in candidates {
        if deleted.contains(&old) && added.contains(&new) {
            pairs.push((old, new, score));
            deleted.retain(|other| *other != old);
            added.retain(|other| *other != new);
        }
    }
    Ok(true)
}

/// The pieces of a file: lines, or 64 bytes of a longer line.
fn pieces(data: &[u8]) -> Pieces {
    let is_text = !crate::patch::is_binary(data);
    let mut pieces = Pieces::new();
    let (mut one, mut other, mut length) = (0u32, 0u32, 0u64);
    let mut bytes = data.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        // The end of a line may be CR LF or LF.
        if is_text && byte == b'\r' && bytes.peek() == Some(&b'\n') {
            continue;
        }
        let before = one;
        one = (one << 7 ^ other >> 25).wrapping_add(u32::from(byte));
        other = other << 7 ^ before >> 25;
        length += 1;
        if length == 64 || byte == b'\n' || bytes.peek().is_none() {
            let hash = one.wrapping_add(other.wrapping_mul(0x61)) % HASHES;
            *pieces.entry(hash).or_default() += length;
            (one, other, length) = (0, 0, 0);
        }
    }
    pieces
}

fn name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
