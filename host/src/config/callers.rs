//! `[callers]`: how often one client may call tools and ask for completions.

use super::section::Section;
use crate::admission::callers::{MAX_RATE, Rate};

/// Reads the table.
pub(super) fn read(mut section: Section) -> Result<Rate, String> {
    let mut rate = Rate::default();
    for (key, into) in [("rate", &mut rate.rate), ("burst", &mut rate.burst)] {
        if let Some(value) = section.take::<u64>(key, "a number")? {
            let fits = u32::try_from(value).ok().filter(|_| (1..=MAX_RATE).contains(&value));
            *into = fits.ok_or_else(|| format!("{}{key} = {value}: expected 1 to {MAX_RATE}", section.path()))?;
        }
    }
    section.finish(&[])?;
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rate, String> {
        let mut root = Section::parse(text)?;
        super::read(root.section("callers")?.ok_or("no section")?)
    }

    #[test]
    fn a_rate_is_read_and_what_is_none_is_refused() {
        assert_eq!(read("[callers]\nrate = 5\nburst = 7").unwrap(), Rate { rate: 5, burst: 7 });
        assert_eq!(read("[callers]\nrate = 5").unwrap(), Rate { rate: 5, ..Rate::default() });
        assert_eq!(read("[callers]\nrate = 0").unwrap_err(), "callers.rate = 0: expected 1 to 1000000");
        let unknown = read("[callers]\nrates = 5").unwrap_err();
        assert!(unknown.contains("unknown key \"callers.rates\"") && unknown.contains("\"rate\""), "{unknown}");
    }
}
