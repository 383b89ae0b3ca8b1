//! `plugins/files` compared with Python's `os` and `open`: contents, ranges, names.

use super::compare;

#[test]
fn files_are_what_python_reads() {
    compare("files", "", |case, answer| {
        let text = answer.map_err(str::to_owned)?;
        if let Some(names) = case.expected["labels"].as_array() {
            let missing: Vec<&str> = names
                .iter()
                .filter_map(|name| name.as_str())
                .filter(|name| !text.contains(&format!("- [{name}](")))
                .collect();
            let count = text.lines().filter(|line| line.starts_with("- [")).count();
            return match missing.is_empty() && count == names.len() {
                true => Ok(()),
                false => Err(format!("{count} of {} entries, without {missing:?}", names.len())),
            };
        }
        let expected = case.expected["text"].as_str().or(case.expected["blob"].as_str()).unwrap_or_default();
        match text == expected {
            true => Ok(()),
            false => Err(format!("{} bytes instead of {}", text.len(), expected.len())),
        }
    });
}
