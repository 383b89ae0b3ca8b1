//! The conformance checks of `skill-provider`.

use super::frontmatter::Frontmatter;
use super::{GetSkill, ListSkills, SKILL_MD, file_of};
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, shown};
use crate::interfaces::paging::Paging;
use crate::interfaces::resources::Read;
use crate::model::bounds::MAX_SKILL_BYTES;
use crate::model::error::show_bytes;
use crate::model::{Body, ReadError, SkillFiles};

/// The most skills whose files are read.
const MAX_SKILLS: usize = 20;

/// A directory without a skill.
const UNKNOWN: &str = "belljar-conformance/there-is-no-such-skill";

/// Runs the checks of this interface.
pub(in crate::interfaces) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    let skills = run.check_list_skills().await;
    run.check_get_skill(&skills).await;
    run.check_skill_files(&skills).await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_list_skills(&mut self) -> Vec<SkillFiles> {
        let mut check = Check::new("list-skills");
        let (mut skills, mut paging): (Vec<SkillFiles>, _) = (Vec::new(), Paging::default());
        loop {
            let function = ListSkills { cursor: paging.cursor().map(str::to_owned) };
            let page = match self.call(function.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    check.unexpected("list-skills", &error, "a page of skills, or none");
                    break;
                }
            };
            let Ok((page, next)) = self.checked(&function, page) else { break };
            let count = page.len();
            for skill in page {
                match skill {
                    Ok(skill) if skills.iter().any(|other| other.root == skill.root) => {
                        check.bad(format!("the skill {} is listed twice", shown(&skill.root)));
                    }
                    Ok(skill) => skills.push(skill),
                    Err(why) => check.bad(why.to_string()),
                }
            }
            match paging.count_page(count, next) {
                Ok(true) => {}
                Ok(false) => break,
                Err(why) => {
                    check.bad(why.to_string().replace("list-resources", "list-skills"));
                    break;
                }
            }
        }
        if skills.is_empty() {
            check.warn("it exports skill-provider, but lists no skill".to_owned());
        }
        self.found(check.finding(format!("{} skills on {} pages", skills.len(), paging.pages())));
        skills
    }

    async fn check_get_skill(&mut self, skills: &[SkillFiles]) {
        let mut check = Check::new("get-skill");
        for skill in skills.iter().take(MAX_SKILLS) {
            let function = GetSkill { root: skill.root.clone() };
            let what = format!("get-skill of {}", shown(&skill.root));
            match self.call(function.clone()).await {
                Ok(given) => match self.checked(&function, given) {
                    Ok(given) if given == *skill => {}
                    Ok(_) => check.bad(format!("{what} gives other files than list-skills")),
                    Err(error) => check.bad(format!("{what}: {error}")),
                },
                Err(error) => check.unexpected(&what, &error, "the skill that list-skills gave"),
            }
        }
        match self.call(GetSkill { root: UNKNOWN.to_owned() }).await {
            Err(ReadError::NotFound) => {}
            Ok(_) => check.bad("get-skill gives a skill that does not exist; expected `not-found`".to_owned()),
            Err(error) => check.unexpected("get-skill of a skill that does not exist", &error, "`not-found`"),
        }
        self.found(check.finding("the skills of the list, and not-found for another"));
    }

    /// Reads each file as the host does for the list.
    async fn check_skill_files(&mut self, skills: &[SkillFiles]) {
        let mut check = Check::new("skill files");
        let mut count = 0;
        for skill in skills.iter().take(MAX_SKILLS) {
            let mut total = 0;
            for reference in &skill.files {
                count += 1;
                let what = format!("the file {}", shown(reference));
                let reading = match self.call(Read { reference: reference.clone() }).await {
                    Ok(reading) => reading,
                    Err(error) => {
                        check.unexpected(&what, &error, "its contents");
                        continue;
                    }
                };
                let [contents] = reading.contents.as_slice() else {
                    check.bad(format!("{what} has {} parts; expected one", reading.contents.len()));
                    continue;
                };
                total += contents.body.len() as u64;
                if contents.reference != *reference {
                    check.bad(format!("{what} reads as {}", shown(&contents.reference)));
                }
                if *reference == file_of(&skill.root, SKILL_MD) {
                    self.check_skill_md(&skill.root, &contents.body, &mut check);
                }
            }
            if total > MAX_SKILL_BYTES.get() {
                let (total, most) = (show_bytes(total), show_bytes(MAX_SKILL_BYTES.get()));
                check.bad(format!("the skill {} has {total}; the limit is {most}", shown(&skill.root)));
            }
        }
        if count == 0 {
            check.skip("there is no file to read".to_owned());
        }
        self.found(check.finding(format!("{count} files")));
    }

    fn check_skill_md(&self, root: &str, body: &Body, check: &mut Check) {
        let what = format!("the {SKILL_MD} of {}", shown(root));
        let Body::Text(file) = body else {
            check.bad(format!("{what} is not text"));
            return;
        };
        match Frontmatter::parse(file) {
            Err(why) => check.bad(format!("{what}, {why}")),
            Ok(front) => {
                let last = root.rsplit('/').next().unwrap_or_default();
                if front.name != last && !root.is_empty() {
                    check.bad(format!("{what} has the name {}; expected {}", shown(&front.name), shown(last)));
                }
            }
        }
    }
}
