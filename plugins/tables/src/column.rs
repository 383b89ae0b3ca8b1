//! Columns: by name, by letter as spreadsheets have it, by number; and names for those that have none.

use std::collections::HashSet;

use belljar_guest::{Error, Result};

/// How many columns a spreadsheet can have.
pub(crate) const MOST: usize = 16_384;

/// The letters of a column, counted from 0: `A`, `Z`, `AA`.
pub(crate) fn letters(mut index: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'A' + u8::try_from(index % 26).unwrap_or_default());
        match (index / 26).checked_sub(1) {
            Some(rest) => index = rest,
            None => break,
        }
    }
    letters.iter().rev().map(|letter| char::from(*letter)).collect()
}

/// The column, counted from 0, that letters or a number from 1 stand for.
pub(crate) fn index(text: &str) -> Option<usize> {
    let index = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse::<usize>().ok()?.checked_sub(1)?
    } else if text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        text.bytes().fold(0, |sum, byte| sum * 26 + usize::from(byte.to_ascii_uppercase() - b'A') + 1).checked_sub(1)?
    } else {
        return None;
    };
    (index < MOST).then_some(index)
}

/// Names of `width` columns, from those that a header gives: none twice, and letters where there is none.
pub(crate) fn names(header: &[String], width: usize) -> Vec<String> {
    let given: HashSet<&str> = header.iter().map(String::as_str).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let width = width.max(header.len()).min(MOST);
    let mut names = Vec::with_capacity(width);
    for at in 0..width {
        let name = header.get(at).map(|name| name.trim()).filter(|name| !name.is_empty());
        let mut name = name.map_or_else(|| letters(at), str::to_owned);
        if taken.contains(&name) {
            let free = |name: &String| !taken.contains(name) && !given.contains(name.as_str());
            name = (2..).map(|n| format!("{name}_{n}")).find(free).unwrap_or(name);
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Which columns are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    /// In the order that they were asked for, counted from 0.
    pub(crate) columns: Vec<usize>,
    /// There are more.
    pub(crate) is_cut: bool,
}

/// The columns that `wanted` names, of those with these names; the first `most` when it names none. A part of it is a
/// name, letters, a number, or two of those with a `:` or `-` between them.
pub(crate) fn select(wanted: Option<&str>, names: &[String], most: usize) -> Result<Selection> {
    let Some(wanted) = wanted else {
        return Ok(Selection { columns: (0..names.len().min(most)).collect(), is_cut: names.len() > most });
    };
    let mut columns = Vec::new();
    // A name may hold a comma.
    let parts = if find(wanted, names).is_some() { vec![wanted] } else { wanted.split(',').collect() };
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = range(part, names).ok_or_else(|| {
            let some: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
            let more = if names.len() > some.len() { ", ..." } else { "" };
            Error::invalid(format_args!(
                "no column \"{part}\": there are {}{more}; letters (B), numbers (2) and ranges (B:D, 2-4) will do as well",
                some.join(", ")
            ))
        })?;
        // Beyond the names, a row may have more cells.
        columns.extend(first..=last.min(names.len().max(first).saturating_add(most)));
        columns.truncate(most + 1);
    }
    let is_cut = columns.len() > most;
    columns.truncate(most);
    Ok(Selection { columns, is_cut })
}

fn range(part: &str, names: &[String]) -> Option<(usize, usize)> {
    if let Some(one) = find(part, names) {
        return Some((one, one));
    }
    let (first, last) = part.split_once(':').or_else(|| part.split_once('-'))?;
    let (first, last) = (find(first.trim(), names)?, index(last.trim()).or_else(|| find(last.trim(), names))?);
    (first <= last).then_some((first, last))
}

/// By name, whatever the case if that is clear; then by letters or number.
fn find(text: &str, names: &[String]) -> Option<usize> {
    let same = |name: &String| name.to_lowercase() == text.to_lowercase();
    names
        .iter()
        .position(|name| name == text)
        .or_else(|| names.iter().position(same))
        // A row may have more cells than there are names; letters that are too high are rather a name with a mistake in it.
        .or_else(|| index(text).filter(|at| *at < names.len() || text.starts_with(|c: char| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_numbers_are_the_same_columns() {
        for (at, name) in [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA"), (16_383, "XFD")] {
            assert_eq!((letters(at).as_str(), index(name)), (name, Some(at)));
            assert_eq!(index(&(at + 1).to_string()), Some(at));
        }
        assert_eq!([index("0"), index("XFE"), index(""), index("A1")], [None; 4]);
    }

    #[test]
    fn no_name_is_given_twice() {
        let header = ["a", "a", "", "a_2", " b ", "a"].map(str::to_owned);
        assert_eq!(names(&header, 7), ["a", "a_3", "C", "a_2", "b", "a_4", "G"]);
    }

    #[test]
    fn columns_are_chosen_by_whatever_names_them() {
        let all = ["id", "Name", "x,y", "d"].map(str::to_owned);
        let of = |wanted| select(Some(wanted), &all, 10).map(|selection| selection.columns);
        assert_eq!(of("name,id"), Ok(vec![1, 0]));
        assert_eq!(of("x,y"), Ok(vec![2]));
        assert_eq!(of("B:D"), Ok(vec![1, 2, 3]));
        assert_eq!(of("2-4"), Ok(vec![1, 2, 3]));
        assert_eq!(of("9"), Ok(vec![8]));
        assert_eq!(of("2-99").map(|all| all.len()), Ok(10));
        assert!(matches!(of("nope"), Err(Error::Invalid(why)) if why.contains("\"nope\"") && why.contains("id, Name")));
        assert!(of("D:B").is_err());
        assert_eq!(select(None, &all, 3), Ok(Selection { columns: vec![0, 1, 2], is_cut: true }));
    }
}
