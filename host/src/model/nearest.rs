//! The nearest of known names, for an error about an unknown one.

/// The name of `known` that is spelt almost as `name`: at most a third of its letters differ.
pub fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distance = |one: &&str| strsim::osa_distance(name, one);
    known.into_iter().min_by_key(distance).filter(|one| distance(one) <= one.len().div_ceil(3))
}
