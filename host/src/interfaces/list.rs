//! **The list** of interfaces that belljar understands. Each line has the module, the type of its function indices,
//! "optional" for an optional interface, and the functions.

/// Calls the macro `$with` with the list.
macro_rules! for_each_interface {
    ($with:ident) => {
        $with! {
            resources ResourceIndices: Describe, ListResources, ListTemplates, Read;
            completion CompletionIndices "optional": Complete;
            parts PartIndices "optional": ReadPart, ListBelow;
            revisions RevisionIndices "optional": CatalogRevision, ResourceRevisions;
            tools ToolIndices "optional": ListTools, CallTool;
            prompts PromptIndices "optional": ListPrompts, GetPrompt, CompletePrompt;
            skills SkillIndices "optional": ListSkills, GetSkill;
        }
    };
}

pub(super) use super::{completion, parts, prompts, resources, revisions, skills, tools};
pub(super) use for_each_interface;
