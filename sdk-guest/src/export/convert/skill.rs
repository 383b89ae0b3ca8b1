//! The generated trait of skills, and the types of its interface.

use super::super::Exported;
use super::super::skills::exports::belljar::provider::skill_provider as wit;
use super::{into_all, wit as types};
use crate::provider::call;
use crate::{Skill, SkillPage, Skills};

impl<P: Skills> wit::Guest for Exported<P> {
    fn list_skills(cursor: Option<String>) -> Result<wit::SkillPage, types::ProviderError> {
        let SkillPage { skills, next_cursor } = call(|provider: &P| provider.list_skills(cursor.as_deref()))?;
        Ok(wit::SkillPage { skills: into_all(skills), next_cursor })
    }

    fn get_skill(root: String) -> Result<wit::SkillInfo, types::ProviderError> {
        Ok(call(|provider: &P| provider.get_skill(&root))?.into())
    }
}

impl From<Skill> for wit::SkillInfo {
    fn from(skill: Skill) -> Self {
        let Skill { root, files } = skill;
        wit::SkillInfo { root, files }
    }
}
