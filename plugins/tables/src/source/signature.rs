//! Recognises files that are no tables by their first bytes, because a file's name may be wrong.

/// Formats that begin with fixed bytes.
const SIGNATURES: [(&[u8], &str); 34] = [
    (b"%PDF", "a PDF document"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
    (b"SQLite format 3", "an SQLite database"),
    (b"PARE", "a Parquet file with an encrypted footer, which cannot be read without its key"),
    (b"ARROW1", "an Arrow (Feather) file: write it as Parquet"),
    (b"FEA1", "a Feather file: write it as Parquet"),
    (b"ORC", "an ORC file: write it as Parquet"),
    (b"Obj\x01", "an Avro file: write it as Parquet"),
    (b"\x89HDF", "an HDF5 file"),
    (b"CDF\x01", "a NetCDF file"),
    (b"CDF\x02", "a NetCDF file"),
    (b"$FL2", "an SPSS file"),
    (b"<stata_dta>", "a Stata file"),
    (b"RDX2", "an R data file"),
    (b"RDX3", "an R data file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x80\x04\x95", "a Python pickle, which could run code: write it as Parquet"),
    (b"\x80\x05\x95", "a Python pickle, which could run code: write it as Parquet"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it first"),
    (b"MSCF", "a CAB archive: unpack it first"),
    (b"LZIP", "packed with lzip: unpack it first"),
    (b"\x1f\x9d", "packed with compress: unpack it first"),
    (b"\x1f\x8b", "packed in a form of gzip that this provider does not know: unpack it first"),
    (b"\x04\x22\x4d\x18", "packed with LZ4: unpack it first"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file, such as sound"),
    (b"\x7fELF", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"\0asm", "a WebAssembly program"),
    (b"MIME-Version:", "a web page in one file (MHTML), as some programs write for Excel: save it as .xlsx or .csv"),
];

/// What a file is, if it is no table. `head` are its first bytes.
pub(crate) fn not_a_table(head: &[u8]) -> Option<&'static str> {
    if let Some((_, actual)) = SIGNATURES.iter().find(|(bytes, _)| head.starts_with(bytes)) {
        return Some(actual);
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("a tar archive: unpack it first");
    }
    markup(head).or_else(|| is_binary(head).then_some("binary data of a form that this provider does not know"))
}

/// Pages and XML documents. They may begin with white space, a byte order mark or a comment.
fn markup(head: &[u8]) -> Option<&'static str> {
    let text: Vec<u8> = match head {
        [0xff, 0xfe, rest @ ..] => rest.iter().step_by(2).copied().collect(),
        [0xfe, 0xff, rest @ ..] => rest.iter().skip(1).step_by(2).copied().collect(),
        [0xef, 0xbb, 0xbf, rest @ ..] => rest.to_vec(),
        _ => head.to_vec(),
    };
    let text = text.to_ascii_lowercase();
    let text = text.trim_ascii_start();
    if !text.starts_with(b"<") {
        return None;
    }
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    let is_page = [&b"<!doctype html"[..], b"<html", b"<table", b"<head", b"<body", b"<meta", b"<div", b"<style"]
        .iter()
        .any(|start| text.starts_with(start));
    if has(b"urn:schemas-microsoft-com:office:spreadsheet") {
        return Some("a workbook in the XML form of Excel 2003: save it as .xlsx or .csv");
    }
    if is_page || has(b"<html") || (text.starts_with(b"<!--") && has(b"<table")) {
        return Some("an HTML page, as some programs write for Excel: save it as .xlsx or .csv");
    }
    let is_xml = text.starts_with(b"<?xml") || text.starts_with(b"<!doctype") || text.starts_with(b"<!--");
    is_xml.then_some("an XML document")
}

/// True if many bytes are control characters that no text has. Text in UTF-16 has zeros in every other byte.
fn is_binary(head: &[u8]) -> bool {
    let odd =
        |byte: &u8| (*byte < 0x20 && !b"\0\t\n\r\x0b\x0c\x1a\x1b\x1c\x1d\x1e\x1f".contains(byte)) || *byte == 0x7f;
    if head.iter().filter(|byte| odd(byte)).count() * 20 > head.len() {
        return true;
    }
    let zeros = |start: usize| head.iter().skip(start).step_by(2).filter(|byte| **byte == 0).count();
    let (even, uneven) = (zeros(0), zeros(1));
    let is_utf16 = even * 8 < uneven || uneven * 8 < even;
    !is_utf16 && (even + uneven) * 4 > head.len() && head.len() > 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_tables_are_named() {
        for (head, expected) in [
            (&b"%PDF-1.7"[..], "PDF"),
            (b"\xef\xbb\xbf\n<!DOCTYPE HTML PUBLIC>", "HTML"),
            (b" <TABLE border=1>", "HTML"),
            (b"\xff\xfe<\0h\0t\0m\0l\0>\0", "HTML"),
            (b"<?xml version=\"1.0\"?><?mso-application progid=\"Excel.Sheet\"?><Workbook xmlns=\"urn:schemas-microsoft-com:office:spreadsheet\">", "2003"),
            (b"<?xml version=\"1.0\"?><a/>", "XML document"),
            (b"\x01\x02\x03\x04\x05\x06\x07\x08abc", "binary"),
        ] {
            let found = not_a_table(head);
            assert!(found.is_some_and(|found| found.contains(expected)), "{found:?}");
        }
        for text in ["a,b\n", "<5,>6\n", "a,x\0y\n1,2\n", "", "\u{1b}[0m,b\n1,2\n"] {
            assert_eq!(not_a_table(text.as_bytes()), None, "{text}");
        }
        let wide: Vec<u8> = "a;b\n1;2\n3;4\n5;6\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(not_a_table(&wide), None);
    }
}
