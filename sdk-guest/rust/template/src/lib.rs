//! The provider: its list, and the contents of each reference.

// belljar:if prompts
mod prompts;
// belljar:end
// belljar:if tools
mod tools;
// belljar:end
// belljar:if any

// belljar:end
use std::fs;
use std::path::{Path, PathBuf};

use belljar_guest::{
    Annotations, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Template, reference,
};

/// Entries of one page of the list.
const PAGE: usize = 10;

/// The smallest picture: one transparent dot.
const DOT: &[u8] = include_bytes!("dot.png");

#[rustfmt::skip]
const MONTHS: [(&str, u32); 12] = [
    ("January", 31), ("February", 28), ("March", 31), ("April", 30), ("May", 31), ("June", 30), ("July", 31),
    ("August", 31), ("September", 30), ("October", 31), ("November", 30), ("December", 31),
];

/// The host creates a new value for each call; nothing outlives the call.
struct MyProvider {
    /// The directory that the operator may have granted.
    data: PathBuf,
}

impl Provider for MyProvider {
    fn open() -> Result<Self> {
        Ok(MyProvider { data: "/data".into() })
    }

    fn describe() -> Info {
        let about = "A text, a picture, the months of the year, and the files of one directory, if it was granted.";
        Info::new("my-provider").version(env!("CARGO_PKG_VERSION")).description(about)
    }

    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let fixed =
            [Resource::new("hello.txt").mime_type("text/plain"), Resource::new("dot.png").mime_type("image/png")];
        let months = (1..).zip(MONTHS).map(|(month, (name, _))| {
            Resource::new(format!("months/{month}")).name(name).mime_type("application/json")
        });
        Page::at_offset(fixed.into_iter().chain(months).chain(self.files()?), cursor, PAGE)
    }

    fn list_templates(&self) -> Result<Vec<Template>> {
        Ok(vec![
            Template::new("months/{month}")
                .name("month")
                .description("A month of the year: its name and its days; month is 1 to 12")
                .mime_type("application/json"),
            Template::new("files/{name}")
                .name("file")
                .description("A file of the directory \"/data\", by its name; without a name, all files"),
        ])
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let contents = match reference.split_once('/') {
            None if reference == "hello.txt" => {
                Contents::text(reference, "Hello from my-provider.\n").mime_type("text/plain")
            }
            None if reference == "dot.png" => Contents::blob(reference, DOT).mime_type("image/png"),
            Some(("months", month)) => Contents::text(reference, month_json(month)?).mime_type("application/json"),
            Some(("files", "")) => return self.all_files(),
            Some(("files", name)) => self.file(reference, &reference::decode(name)?)?,
            _ => return Err(Error::NotFound),
        };
        Ok(contents.into())
    }
}

impl MyProvider {
    /// The files of the granted directory, by name. Without the grant, the list is empty.
    fn files(&self) -> Result<Vec<Resource>> {
        let Ok(entries) = fs::read_dir(&self.data) else {
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            let meta = entry.metadata()?;
            // A reference cannot carry a name that is not UTF-8.
            if let (true, Ok(name)) = (meta.is_file(), entry.file_name().into_string()) {
                let entry = Resource::new(format!("files/{}", reference::encode_segment(&name)));
                let entry = entry.mime_type(text_type(&name)).name(name).size(meta.len());
                files.push(entry.annotations(Annotations::new().last_modified_at(meta.modified()?)));
            }
        }
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }

    /// Fails if the directory was not granted.
    fn need_directory(&self) -> Result<()> {
        if self.data.is_dir() {
            return Ok(());
        }
        Err(Error::denied("this needs the directory \"/data\", which was not granted"))
    }

    /// All files of the directory, one content each.
    fn all_files(&self) -> Result<Reading> {
        self.need_directory()?;
        let files = self.files()?;
        if files.is_empty() {
            return Err(Error::NotFound);
        }
        let contents: Result<Vec<Contents>> = files.iter().map(|file| self.file(&file.reference, &file.name)).collect();
        Ok(Reading::new(contents?))
    }

    fn file(&self, reference: &str, name: &str) -> Result<Contents> {
        self.need_directory()?;
        let path = self.data.join(name);
        // "/" is part of no file's name, and "" is the directory itself.
        if name.contains('/') || !path.is_file() {
            return Err(Error::NotFound);
        }
        let contents = Contents::from_bytes(reference, fs::read(path)?);
        let media_type = if contents.is_text() { text_type(name) } else { "application/octet-stream" };
        Ok(contents.mime_type(media_type))
    }
}

fn month_json(month: &str) -> Result<String> {
    let number: usize =
        month.parse().map_err(|_| Error::invalid(format_args!("a month is a number from 1 to 12, not \"{month}\"")))?;
    let (name, days) = number.checked_sub(1).and_then(|index| MONTHS.get(index)).ok_or(Error::NotFound)?;
    Ok(format!(r#"{{"month":{number},"name":"{name}","days":{days}}}"#))
}

fn text_type(name: &str) -> &'static str {
    if Path::new(name).extension().is_some_and(|ending| ending == "md") { "text/markdown" } else { "text/plain" }
}

// belljar:if none
belljar_guest::export!(MyProvider);
// belljar:end
// belljar:if any
belljar_guest::export!(
    MyProvider:
// belljar:end
// belljar:if tools
    Tools,
// belljar:end
// belljar:if prompts
    Prompts,
// belljar:end
// belljar:if any
);
// belljar:end
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
