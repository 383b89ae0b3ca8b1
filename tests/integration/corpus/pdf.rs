//! The text of PDF pages, compared with PDFium: the same words in the same order.

use serde_json::Value;

#[test]
fn pdf_has_the_words_that_pdfium_finds() {
    super::compare("pdf", "", |case, answer| {
        let text = answer.map_err(str::to_owned)?;
        let (_, text) = text.split_once("]\n\n").ok_or_else(|| format!("no heading in {text:?}"))?;
        let found: Vec<&str> = text.split_whitespace().collect();
        let expected: Vec<&str> = case.expected.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        (found == expected).then_some(()).ok_or_else(|| format!("{found:?}, expected {expected:?}"))
    });
}
