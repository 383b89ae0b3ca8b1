//! What the belljar providers of SQL databases share: the outward form of their resources.
//!
//! [`page`] reads the parameters of a page of rows, [`filter`] those called `where` and `sort`, [`setting`] the operator's named statements, and [`name`] writes names
//! as segments of references. [`output`] writes contents, and [`markdown`] the result of a query. This crate knows no database:
//! each provider writes its own SQL.

pub mod filter;
pub mod markdown;
pub mod name;
pub mod output;
pub mod page;
pub mod setting;

/// The first of these names, for an error.
pub fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    /// The most names in an error.
    const MAX: usize = 20;
    let mut quoted: Vec<String> = names.map(|name| format!("\"{name}\"")).take(MAX + 1).collect();
    if quoted.len() > MAX {
        quoted.truncate(MAX);
        quoted.push("...".to_owned());
    }
    match quoted.as_slice() {
        [] => "none, because there is none".to_owned(),
        [only] => only.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// Column names made unique: a repeated name gets a suffix.
pub fn unique_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let mut own = name.to_owned();
        let mut count = 1;
        while all.contains(&own) {
            count += 1;
            own = format!("{name}:{count}");
        }
        all.push(own);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_column_names_get_a_suffix() {
        assert_eq!(unique_names(["a", "a", "b", "a"].into_iter()), ["a", "a:2", "b", "a:3"]);
    }
}
