//! `plugins/logs` compared with Python and grep: formats, filters, compression, encodings.

use super::compare;

#[test]
fn logs_are_what_python_reads() {
    compare("logs", "", |case, answer| {
        let text = answer.map_err(str::to_owned)?;
        let (notes, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("[logs: "));
        if let Some(note) = case.expected["note"].as_str()
            && !notes.iter().any(|given| given.contains(note))
        {
            return Err(format!("no note with \"{note}\": {notes:?}"));
        }
        let expected: Vec<&str> =
            case.expected["lines"].as_array().into_iter().flatten().filter_map(|line| line.as_str()).collect();
        match lines == expected {
            true => Ok(()),
            false => Err(format!(
                "{} lines instead of {}: {:?} instead of {:?}; {notes:?}",
                lines.len(),
                expected.len(),
                lines.first(),
                expected.first()
            )),
        }
    });
}
