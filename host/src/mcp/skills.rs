//! The methods of skills (SEP-2640): `skills/list`, `skills/get`, `resources/directory/read`.
//!
//! Every result keeps the rules of rmcp's own check: it fails the whole list for one bad entry.

use std::collections::HashSet;

use rmcp::model::{
    CacheScope, DIRECTORY_MIME_TYPE, ErrorData, GetSkillRequestParams, GetSkillResult, ListSkillsResult,
    PaginatedRequestParams, ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, Resource, Skill,
    SkillFrontmatter, SkillResource, SkillResources,
};

use super::context::RequestContext;
use super::cursor::{BadCursor, BelowPosition, CursorKind};
use super::handler::Handler;
use super::{convert, fault, identity};
use crate::catalog::Notice;
use crate::gateway::skills::{DirectoryChild, SCHEME, SkillEntry, SkillList, SkillLookupError, skill_uri};
use crate::model::{MountName, reference, text};
use crate::policy::Action;

impl Handler {
    /// `skills/list`.
    pub(super) async fn skills(
        &self,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<'_>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.require_skills("skills/list")?;
        let work = async {
            let (caller, kind) = (&context.caller, CursorKind::Skills);
            let open = |cursor: String| {
                self.cursors.open(kind, &caller.principal, &cursor).map_err(|why| fault::bad_cursor(&why))
            };
            let start = request.and_then(|request| request.cursor).map(open).transpose()?;
            let quota = self.gateway.count_action(caller, Action::List, None).await.map_err(fault::to_error)?;
            let page = self.gateway.list_skills(caller, start, None).await;
            quota.charge(page.bytes()).await;
            let SkillList { skills, next, mut notices } = page;
            let mut out = ListSkillsResult::with_all_items(valid(&skills, &mut notices));
            out.next_cursor = next.map(|next| self.cursors.seal(kind, &caller.principal, &next));
            out.meta = convert::notices(notices);
            identity::add_server_info(&mut out.meta, context.era);
            if context.era.is_stateless() {
                (out.ttl_ms, out.cache_scope) = (Some(convert::LIST_TTL), Some(CacheScope::Private));
            }
            Ok(out)
        };
        self.run(context, Box::pin(work)).await
    }

    /// `skills/get`.
    pub(super) async fn skill(
        &self,
        request: GetSkillRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.require_skills("skills/get")?;
        let work = async {
            let found = self.gateway.skill(&context.caller, &request.uri).await;
            let entry = found.map_err(|error| no_skill(error, &request.uri, "skill"))?;
            let skill = skill(&entry);
            // The name of the request was routed as it is written, so the entry has the same.
            if skill.uri != request.uri {
                return Err(no_skill(SkillLookupError::Unknown, &request.uri, "skill"));
            }
            skill
                .validate()
                .map_err(|why| no_skill(SkillLookupError::Invalid(excerpt(&why)), &request.uri, "skill"))?;
            let mut out = GetSkillResult::new(skill);
            identity::add_server_info(&mut out.meta, context.era);
            if context.era.is_stateless() {
                (out.ttl_ms, out.cache_scope) = (Some(convert::LIST_TTL), Some(CacheScope::Private));
            }
            Ok(out)
        };
        self.run(context, Box::pin(work)).await
    }

    /// `resources/directory/read`.
    pub(super) async fn directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        if !request.uri.starts_with(SCHEME) {
            return self.below(request, context).await;
        }
        self.require_skills("resources/directory/read")?;
        // A skill has at most 512 files, so each directory has one page, and this server never gave a cursor for it.
        if request.cursor.is_some() {
            return Err(fault::bad_cursor(&BadCursor::Foreign));
        }
        let work = async {
            let children = self.gateway.skill_directory(&context.caller, &request.uri).await;
            let children = children.map_err(|error| no_skill(error, &request.uri, "directory of a skill"))?;
            let mut out = ReadResourceDirectoryResult::with_all_items(children.into_iter().map(child).collect());
            identity::add_server_info(&mut out.meta, context.era);
            // SEP-2640 does not ask for these members, but the TypeScript client 2.4 refuses a result without them.
            if context.era.is_stateless() {
                (out.ttl_ms, out.cache_scope) = (Some(convert::LIST_TTL), Some(CacheScope::Private));
            }
            Ok(out)
        };
        self.run(context, Box::pin(work)).await
    }

    /// `resources/directory/read` of a URI below the base of a mount.
    async fn below(
        &self,
        request: ReadResourceDirectoryRequestParams,
        context: &RequestContext<'_>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        let work = async {
            let (principal, kind) = (&context.caller.principal, CursorKind::Below);
            let open = |cursor: String| {
                let position = self.cursors.open_below(kind, principal, &cursor, &request.uri);
                position.map_err(|why| fault::bad_cursor(&why))
            };
            let position = request.cursor.map(open).transpose()?;
            let cursor = position.and_then(|position| position.cursor);
            let page = self.gateway.list_below(&context.caller, &request.uri, cursor).await.map_err(fault::to_error)?;
            let name = page.mount.name.clone();
            let entries = page.entries.into_iter().map(|entry| convert::resource((entry, name.clone())));
            let mut out = ReadResourceDirectoryResult::with_all_items(entries.collect());
            out.next_cursor = page.next.map(|cursor| {
                let next = BelowPosition { uri: request.uri.clone(), cursor: Some(cursor), ..BelowPosition::default() };
                self.cursors.seal_below(kind, principal, &next)
            });
            out.meta = convert::notices(page.notice.into_iter().map(|notice| (name.clone(), notice)).collect());
            identity::add_server_info(&mut out.meta, context.era);
            if context.era.is_stateless() {
                (out.ttl_ms, out.cache_scope) = (Some(convert::LIST_TTL), Some(CacheScope::Private));
            }
            Ok(out)
        };
        self.run(context, Box::pin(work)).await
    }

    fn require_skills(&self, method: &str) -> Result<(), ErrorData> {
        if self.gateway.may_have_skills() { Ok(()) } else { Err(fault::method_not_found(method)) }
    }
}

/// The error of a request for something that is no skill or directory.
fn no_skill(error: SkillLookupError, uri: &str, expected: &str) -> ErrorData {
    let uri = text::quoted(uri, reference::MAX_URI);
    match error {
        SkillLookupError::Unknown => {
            fault::no_skill(&format!("there is no {expected} {uri}; skills/list names all skills"))
        }
        SkillLookupError::Invalid(why) => fault::no_skill(&format!("{uri} is no valid skill: {why}")),
        SkillLookupError::Failed(fault) => fault::to_error(fault),
    }
}

fn excerpt(why: &impl ToString) -> String {
    text::excerpt(&why.to_string(), 400)
}

/// The entry of a skill.
fn skill(entry: &SkillEntry) -> Skill {
    let front = &entry.skill.frontmatter;
    let mut frontmatter = SkillFrontmatter::new(front.name.as_str(), front.description.as_str());
    frontmatter.extra = front.others.clone();
    let file = |file: &crate::catalog::skills::SkillFile| {
        SkillResource::new(skill_uri(&entry.mount, &file.reference), format!("sha256:{}", file.digest.hex()), file.size)
    };
    Skill::new(entry.uri(), frontmatter, SkillResources::Files(entry.skill.files.iter().map(file).collect()))
}

/// The entries that keep the rules, each name once. Adds notices about the others.
fn valid(skills: &[SkillEntry], notices: &mut Vec<(MountName, Notice)>) -> Vec<Skill> {
    let mut seen = HashSet::new();
    let mut all = Vec::with_capacity(skills.len());
    for entry in skills {
        let skill = skill(entry);
        let problem = match skill.validate() {
            Err(why) => Some(excerpt(&why)),
            Ok(()) => {
                let is_new = seen.insert(reference::unescaped(&skill.uri).into_owned());
                (!is_new).then(|| format!("{} is listed twice", text::quoted(&skill.uri, 200)))
            }
        };
        match problem {
            None => all.push(skill),
            Some(first) => {
                tracing::warn!(mount = %entry.mount, "in the list of skills: {first}");
                notices.push((entry.mount.clone(), Notice::Entries { count: 1, first }));
            }
        }
    }
    all
}

fn child(given: DirectoryChild) -> Resource {
    let mut out = Resource::new(given.uri, given.name);
    out.description = given.description;
    out.size = given.size;
    out.mime_type = if given.is_directory { Some(DIRECTORY_MIME_TYPE.to_owned()) } else { given.mime_type };
    out
}
