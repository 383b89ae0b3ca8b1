//! Skills: directories with a `SKILL.md`.

/// A skill: a directory and its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The reference of the directory, without a slash at its end. Its last segment is the name in the frontmatter of its
    /// `SKILL.md`.
    pub root: String,
    /// The references of all files below the directory, `SKILL.md` included. At most 512, of 16 MiB together.
    pub files: Vec<String>,
}

/// One page of the list of skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillPage {
    /// The skills of this page.
    pub skills: Vec<Skill>,
    /// The start of the next page; `None` on the last one.
    pub next_cursor: Option<String>,
}

impl Skill {
    /// A skill in the directory `root`, without files.
    pub fn new(root: impl Into<String>) -> Self {
        Skill { root: root.into(), files: Vec::new() }
    }

    /// Adds a file. `path` is relative to the directory and percent-encoded: `SKILL.md`, `examples/one.md`.
    pub fn file(mut self, path: impl AsRef<str>) -> Self {
        self.files.push(format!("{}/{}", self.root, path.as_ref()));
        self
    }
}

impl SkillPage {
    /// A page with these skills. It is the last page, unless [`next_cursor`](SkillPage::next_cursor) sets a cursor.
    pub fn new(skills: impl IntoIterator<Item = Skill>) -> Self {
        SkillPage { skills: skills.into_iter().collect(), next_cursor: None }
    }

    /// Sets the cursor of the next page.
    pub fn next_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.next_cursor = Some(cursor.into());
        self
    }
}
