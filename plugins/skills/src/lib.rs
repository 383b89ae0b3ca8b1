//! Serves a directory of skills: every directory with a `SKILL.md`, and all files below it.
//!
//! This module implements the provider. It is the only module that knows resources and references. `belljar_tree` decides
//! which files are visible, and their order. `front` reads the front matter of a `SKILL.md`, for the list only: the host parses
//! it again, and computes the digests of the files.

mod front;

use std::collections::HashMap;
use std::fmt::Write as _;

use belljar_guest::{
    Annotations, Contents, Error, Info, Page, Provider, Reading, Resource, Result, Revisions, Skill, SkillPage, Skills,
    reference,
};
use belljar_tree::{Bounds, Kind, MAX_REFERENCE_BYTES, Meta, Path, Step, Tree, Walk, join, name};

use front::Front;

/// The provider.
#[derive(Debug)]
pub struct SkillDirectory {
    tree: Tree,
}

/// The file that makes a directory a skill.
const SKILL: &str = "SKILL.md";

/// Files per page of the list.
const PAGE: usize = 1000;

/// Skills per page of the list of skills. The host reads all their files.
const SKILLS: usize = 50;

/// The most files of a skill, and their most bytes together. The host leaves out larger ones.
const MAX_SKILL: (usize, u64) = (512, 16 * 1024 * 1024);

/// How many bytes of a `SKILL.md` are searched for its front matter.
const HEAD: u64 = 8 * 1024;

/// The prefix of every cursor.
const CURSOR: &str = "after:";

const MARKDOWN: &str = "text/markdown";

impl Provider for SkillDirectory {
    fn open() -> Result<Self> {
        Ok(SkillDirectory { tree: Tree::open_granted()? })
    }

    fn describe() -> Info {
        Info::new(std::env::var("TITLE").unwrap_or_else(|_| "Skills".to_owned()))
            .version(env!("CARGO_PKG_VERSION"))
            .description("Skills: directories with instructions for models, and the files that they need")
    }

    /// The files of all skills.
    fn list_resources(&self, cursor: Option<&str>) -> Result<Page> {
        let start = position(cursor)?;
        let mut walk = Walk::new(&self.tree, start, PAGE);
        let (mut resources, mut last, mut known) = (Vec::new(), String::new(), HashMap::new());
        loop {
            let path = match walk.next()? {
                Step::File(path) => path,
                Step::Paused(position) => return Ok(Page::new(resources).next_cursor(cursor_at(&position))),
                Step::End => return Ok(Page::new(resources)),
            };
            if resources.len() == PAGE {
                return Ok(Page::new(resources).next_cursor(cursor_at(&last)));
            }
            if self.is_in_skill(&path, &mut known)
                && let Some(meta) = self.file(&path)
            {
                resources.extend(self.resource(&path, &meta));
            }
            last = path;
        }
    }

    fn read(&self, reference: &str) -> Result<Reading> {
        let (path, query) = reference::split(reference);
        let wanted = Path::parse(path)?;
        let meta = if wanted.path.is_empty() { None } else { Some(self.served(&wanted)?) };
        // An absent file is `NotFound`, even with a query.
        if !query.is_empty() {
            return Err(Error::invalid("a skill has no parameters: leave out the query"));
        }
        let Some(meta) = meta else { return Ok(self.overview(reference)?.into()) };
        if meta.size > MAX_SKILL.1 {
            return Err(Error::failed(format_args!(
                "the file has {} bytes: all files of a skill together have at most {}",
                meta.size, MAX_SKILL.1
            )));
        }
        let contents = Contents::from_bytes(reference, self.tree.read(&wanted.path, meta.size)?);
        let media = media(name(&wanted.path), contents.is_text());
        Ok(contents.mime_type(media).into())
    }
}

impl Skills for SkillDirectory {
    fn list_skills(&self, cursor: Option<&str>) -> Result<SkillPage> {
        let start = position(cursor)?;
        let mut walk = Walk::new(&self.tree, start, SKILLS).only(|name| name == SKILL);
        let (mut skills, mut last) = (Vec::new(), String::new());
        loop {
            let path = match walk.next()? {
                Step::File(path) => path,
                Step::Paused(position) => return Ok(SkillPage::new(skills).next_cursor(cursor_at(&position))),
                Step::End => return Ok(SkillPage::new(skills)),
            };
            if skills.len() == SKILLS {
                return Ok(SkillPage::new(skills).next_cursor(cursor_at(&last)));
            }
            if let Some(root) = root_of(&path).filter(|_| self.file(&path).is_some()) {
                match self.skill(root) {
                    Ok(skill) => skills.push(skill),
                    Err(why) => log(root, &why),
                }
            }
            last = path;
        }
    }

    fn get_skill(&self, root: &str) -> Result<Skill> {
        let wanted = Path::parse(root)?;
        let manifest = join(&wanted.path, SKILL);
        match root_of(&manifest) {
            Some(root) if self.file(&manifest).is_some() => self.skill(root),
            _ => Err(Error::NotFound),
        }
    }
}

impl Revisions for SkillDirectory {
    fn catalog_revision(&self) -> Result<String> {
        belljar_tree::list_revision(&self.tree, Bounds::default(), |_| true)
    }

    fn resource_revision(&self, reference: &str) -> Result<String> {
        let wanted = Path::parse(reference::split(reference).0)?;
        if wanted.path.is_empty() {
            return self.catalog_revision();
        }
        Ok(self.served(&wanted)?.revision())
    }
}

impl SkillDirectory {
    /// The metadata of a regular file. `None` for anything else.
    fn file(&self, path: &str) -> Option<Meta> {
        self.tree.meta(path).ok().filter(|meta| meta.kind == Kind::File)
    }

    /// The metadata of a requested file of a skill. Other files of the directory are not served.
    fn served(&self, wanted: &Path) -> Result<Meta> {
        let meta = self.tree.meta(&wanted.path)?;
        let is_served = meta.kind == Kind::File && !wanted.is_directory;
        if is_served && self.is_in_skill(&wanted.path, &mut HashMap::new()) { Ok(meta) } else { Err(Error::NotFound) }
    }

    /// True if a directory above the file is a skill. `known` has the answers for directories that were looked up before.
    fn is_in_skill(&self, path: &str, known: &mut HashMap<String, bool>) -> bool {
        let mut directory = path;
        while let Some((parent, _)) = directory.rsplit_once('/') {
            directory = parent;
            let is_skill = match known.get(directory) {
                Some(is_skill) => *is_skill,
                None => {
                    let manifest = join(directory, SKILL);
                    let is_skill = root_of(&manifest).is_some() && self.file(&manifest).is_some();
                    known.insert(directory.to_owned(), is_skill);
                    is_skill
                }
            };
            if is_skill {
                return true;
            }
        }
        false
    }

    /// The skill in a directory, with all files below it.
    fn skill(&self, root: &str) -> Result<Skill> {
        let (most, most_bytes) = MAX_SKILL;
        let mut walk = Walk::new(&self.tree, format!("{root}/"), most);
        let mut skill = Skill::new(reference::encode(root));
        let mut bytes = 0;
        loop {
            let path = match walk.next()? {
                Step::File(path) => path,
                Step::End => break,
                Step::Paused(_) => return Err(Error::failed("it has too many directories")),
            };
            let Some(inside) = path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) else { break };
            let Some(meta) = self.file(&path) else { continue };
            bytes += meta.size;
            if skill.files.len() == most || bytes > most_bytes {
                return Err(Error::failed(format_args!(
                    "it has more than {most} files, or more than {most_bytes} bytes"
                )));
            }
            skill = skill.file(reference::encode(inside));
        }
        Ok(skill)
    }

    /// The list's entry for a file. `None` if its reference is longer than the host accepts.
    fn resource(&self, path: &str, meta: &Meta) -> Option<Resource> {
        let mut resource = Resource::new(reference::encode(path)).name(name(path)).size(meta.size);
        resource.mime_type = Some(media(name(path), true).to_owned()).filter(|_| is_text_name(name(path)));
        if name(path) == SKILL {
            let front = self.front(path, meta);
            resource.name = root_of(path).map_or(SKILL, name).to_owned();
            resource.description = front.description;
        }
        resource.annotations = meta.last_modified().map(|time| Annotations::new().last_modified(time));
        (resource.reference.len() <= MAX_REFERENCE_BYTES).then_some(resource)
    }

    /// The front matter of a `SKILL.md`.
    fn front(&self, path: &str, meta: &Meta) -> Front {
        let head = self.tree.read(path, meta.size.min(HEAD)).unwrap_or_default();
        Front::parse(&String::from_utf8_lossy(&head))
    }

    /// The skills of the first page, with links.
    fn overview(&self, reference: &str) -> Result<Contents> {
        let page = self.list_skills(None)?;
        let mut text = "# Skills\n\n".to_owned();
        for skill in &page.skills {
            let path = join(&reference::decode(&skill.root)?, SKILL);
            let front = self.file(&path).map(|meta| self.front(&path, &meta)).unwrap_or_default();
            let about = front.description.map(|about| format!(": {about}")).unwrap_or_default();
            let link = skill.root.replace('(', "%28").replace(')', "%29");
            let _ = writeln!(text, "- [{}]({link}/{SKILL}){about}", name(&skill.root));
        }
        if page.skills.is_empty() {
            text.push_str("(none: a skill is a directory with a SKILL.md, below the granted directory)\n");
        }
        if page.next_cursor.is_some() {
            text.push_str("\nThere are more skills; the list of skills has all of them.\n");
        }
        Ok(Contents::text(reference, text).mime_type(MARKDOWN))
    }
}

/// The directory of a `SKILL.md`. `None` if its name cannot be the name of a skill: 1 to 64 of `a-z`, `0-9` and `-`, without
/// a hyphen at an edge or two in a row.
fn root_of(manifest: &str) -> Option<&str> {
    let (root, _) = manifest.rsplit_once('/')?;
    let last = name(root);
    let plain = last.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let hyphens = last.starts_with('-') || last.ends_with('-') || last.contains("--");
    (plain && !hyphens && (1..=64).contains(&last.len())).then_some(root)
}

/// The cursor of the page after a path.
fn cursor_at(path: &str) -> String {
    format!("{CURSOR}{}", reference::encode(path))
}

/// The path after which a page begins.
fn position(cursor: Option<&str>) -> Result<String> {
    let Some(cursor) = cursor else { return Ok(String::new()) };
    let path = cursor.strip_prefix(CURSOR).ok_or_else(|| {
        Error::invalid(format_args!(
            "the cursor does not begin with \"{CURSOR}\": use one from a list of this provider"
        ))
    })?;
    reference::decode(path)
}

/// The media type of a file, by its extension. Text never gets the type of a binary format.
fn media(name: &str, is_text: bool) -> &'static str {
    let by_name = mime_guess::from_path(name).first_raw();
    match (by_name, is_text) {
        (Some(media), true) if is_text_name(name) => media,
        (_, true) => "text/plain",
        (Some(media), false) => media,
        (None, false) => "application/octet-stream",
    }
}

/// True if the extension of a name belongs to a text format.
fn is_text_name(name: &str) -> bool {
    const FORMATS: [&str; 7] = ["json", "xml", "javascript", "toml", "yaml", "x-sh", "sql"];
    mime_guess::from_path(name)
        .first_raw()
        .is_some_and(|media| media.starts_with("text/") || FORMATS.iter().any(|format| media.ends_with(format)))
}

/// Writes a message to the operator: stderr goes to the host's log.
#[expect(clippy::print_stderr, reason = "stderr goes to the host's log")]
fn log(root: &str, why: &Error) {
    eprintln!("the skill \"{root}\" is left out: {why}");
}

belljar_guest::export!(SkillDirectory: Revisions, Skills);
belljar_guest::needs!("../needs.toml");

#[cfg(test)]
mod tests;
