//! `policy.cedar`: policies in the language Cedar, beside the rules of `belljar.toml`.
//!
//! A policy that permits adds to what the rules allow. A policy that forbids takes away, whatever the rules say. The
//! policies are checked against `cedar.cedarschema` before belljar starts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use cedar_policy::{
    ActionConstraint, Authorizer, Context, Decision, Effect, Entities, Entity, EntityId, EntityTypeName, EntityUid,
    ParseErrors, Policy, PolicyId, PolicySet, PrincipalConstraint, Request, ResourceConstraint, RestrictedExpression,
    Schema, ValidationMode, Validator,
};

use miette::Diagnostic as _;

use super::access::{Action, Target};
use super::principal::{Principal, PrincipalKind};
use super::spelling::{canonical, plain_reference};

/// The text of the schema.
pub const SCHEMA: &str = include_str!("cedar.cedarschema");

/// The most bytes of `policy.cedar`.
pub const MAX_BYTES: usize = 1 << 20;

/// The policies of `policy.cedar`.
pub struct CedarPolicies {
    text: String,
    policies: PolicySet,
    schema: Schema,
    authorizer: Authorizer,
    types: EntityTypes,
    has_forbids: bool,
}

/// The names of the entity types, parsed once.
struct EntityTypes {
    group: EntityTypeName,
    caller: EntityTypeName,
    mount: EntityTypeName,
    folder: EntityTypeName,
    resource: EntityTypeName,
    action: EntityTypeName,
}

/// What the policies say about one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CedarOpinion {
    /// A policy permits it, and none forbids it. Gives the ids of the policies that permit it.
    Permitted(Vec<String>),
    /// A policy forbids it, or could not be evaluated. Gives the ids of these policies.
    Forbidden(Vec<String>),
    /// No policy applies.
    Silent,
}

/// Why `policy.cedar` is refused.
#[derive(Debug, thiserror::Error)]
pub enum CedarError {
    /// The file is too long.
    #[error("it has {0} bytes; at most {MAX_BYTES} are allowed")]
    Length(usize),
    /// It is not Cedar.
    #[error("{0}")]
    Syntax(String),
    /// It does not fit the schema.
    #[error("{}", .0.join("; "))]
    Schema(Vec<String>),
    /// The schema in this program is invalid. This is a bug in belljar.
    #[error("the schema of belljar is invalid: {0}")]
    Internal(String),
}

impl PartialEq for CedarPolicies {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for CedarPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CedarPolicies").field(&self.text).finish()
    }
}

/// What the head of a policy is compared with.
struct Head<'a> {
    caller: EntityUid,
    groups: HashSet<EntityUid>,
    /// `None`: any action.
    action: Option<EntityUid>,
    mount: EntityUid,
    /// The start of the URIs.
    start: String,
    types: &'a EntityTypes,
}

impl EntityTypes {
    /// The complaint about a folder or resource whose id is not in the canonical spelling: no resource would match it.
    fn spelled_otherwise(&self, uid: &EntityUid) -> Option<String> {
        if *uid.type_name() != self.folder && *uid.type_name() != self.resource {
            return None;
        }
        let id = uid.id().unescaped();
        let (scheme, rest) = id.split_once("://").map_or(("", id), |(scheme, rest)| (scheme, rest));
        let (path, query) =
            rest.split_once('?').map_or((rest, ""), |(path, _)| (path, rest.get(path.len()..).unwrap_or_default()));
        let separator = if scheme.is_empty() { "" } else { "://" };
        let right = format!("{scheme}{separator}{}{query}", canonical(path.as_bytes(), false));
        (right != id).then(|| format!("{uid} is no resource as belljar compares it; write \"{right}\""))
    }
}

impl Head<'_> {
    fn is_caller(&self, policy: &Policy) -> bool {
        let types = self.types;
        match policy.principal_constraint() {
            PrincipalConstraint::Any => true,
            PrincipalConstraint::Eq(uid) => uid == self.caller,
            PrincipalConstraint::In(uid) => uid == self.caller || self.groups.contains(&uid),
            PrincipalConstraint::Is(kind) => kind == types.caller,
            PrincipalConstraint::IsIn(kind, uid) => {
                kind == types.caller && (uid == self.caller || self.groups.contains(&uid))
            }
        }
    }

    /// True if the policy's head matches every resource with such a URI, for the one action.
    fn must_match(&self, policy: &Policy) -> bool {
        let types = self.types;
        let is_action = match (policy.action_constraint(), &self.action) {
            (ActionConstraint::Any, _) => true,
            (ActionConstraint::Eq(uid), Some(own)) => uid == *own,
            (ActionConstraint::In(uids), Some(own)) => uids.contains(own),
            (_, None) => false,
        };
        let has_all = |uid: &EntityUid| {
            let is_start = || plain(self.start.as_bytes()).starts_with(&plain(uid.id().unescaped().as_bytes()));
            *uid == self.mount || (*uid.type_name() == types.folder && is_start())
        };
        let is_resource = match policy.resource_constraint() {
            ResourceConstraint::Any => true,
            ResourceConstraint::Is(kind) => kind == types.resource,
            ResourceConstraint::In(uid) => has_all(&uid),
            ResourceConstraint::IsIn(kind, uid) => kind == types.resource && has_all(&uid),
            ResourceConstraint::Eq(_) => false,
        };
        self.is_caller(policy) && is_action && is_resource
    }

    fn may_match(&self, policy: &Policy) -> bool {
        let types = self.types;
        let is_action = match (policy.action_constraint(), &self.action) {
            (ActionConstraint::Any, _) | (_, None) => true,
            (ActionConstraint::Eq(uid), Some(own)) => uid == *own,
            (ActionConstraint::In(uids), Some(own)) => uids.contains(own),
        };
        let is_resource = match policy.resource_constraint() {
            ResourceConstraint::Any => true,
            ResourceConstraint::Eq(uid) | ResourceConstraint::In(uid) => self.may_hold(&uid),
            ResourceConstraint::Is(kind) => kind == types.resource,
            ResourceConstraint::IsIn(kind, uid) => kind == types.resource && self.may_hold(&uid),
        };
        self.is_caller(policy) && is_action && is_resource
    }

    /// True if some resource with such a URI may be the entity `uid`, or may be in it.
    fn may_hold(&self, uid: &EntityUid) -> bool {
        let id = uid.id().unescaped();
        match uid.type_name() {
            kind if *kind == self.types.mount => *uid == self.mount,
            kind if *kind == self.types.folder || *kind == self.types.resource => {
                // A resource has two spellings, and a policy may name either.
                let (id, start) = (plain(id.as_bytes()), plain(self.start.as_bytes()));
                id.starts_with(&start) || start.starts_with(&id)
            }
            _ => false,
        }
    }
}

impl CedarPolicies {
    /// The text that they were parsed from.
    pub fn source(&self) -> &str {
        &self.text
    }

    /// Parses the text of `policy.cedar`, and checks it against the schema.
    ///
    /// # Errors
    /// The first syntax error, or each violation of the schema.
    pub fn parse(text: &str) -> Result<Self, CedarError> {
        if text.len() > MAX_BYTES {
            return Err(CedarError::Length(text.len()));
        }
        let internal = |error: &dyn std::fmt::Display| CedarError::Internal(error.to_string());
        let (schema, _) = Schema::from_cedarschema_str(SCHEMA).map_err(|error| internal(&error))?;
        let policies = PolicySet::from_str(text).map_err(|error| CedarError::Syntax(described(&error, text)))?;
        let policies = named(policies)?;
        let checked = Validator::new(schema.clone()).validate(&policies, ValidationMode::Strict);
        if !checked.validation_passed() {
            return Err(CedarError::Schema(checked.validation_errors().map(ToString::to_string).collect()));
        }
        let name = |name: &str| EntityTypeName::from_str(name).map_err(|error| internal(&error));
        let types = EntityTypes {
            group: name("Group")?,
            caller: name("Caller")?,
            mount: name("Mount")?,
            folder: name("Folder")?,
            resource: name("Resource")?,
            action: name("Action")?,
        };
        let odd: Vec<String> = policies
            .policies()
            .flat_map(Policy::entity_literals)
            .filter_map(|uid| types.spelled_otherwise(&uid))
            .collect();
        if !odd.is_empty() {
            return Err(CedarError::Schema(odd));
        }
        let has_forbids = policies.policies().any(|policy| policy.effect() == Effect::Forbid);
        Ok(Self { text: text.to_owned(), policies, schema, authorizer: Authorizer::new(), types, has_forbids })
    }

    /// True if a policy forbids anything.
    pub fn has_forbids(&self) -> bool {
        self.has_forbids
    }

    /// True if a policy without conditions forbids `action` of `principal` on every resource of `target`'s mount whose
    /// reference begins with `prefix`.
    pub fn forbids_all_below(&self, principal: &Principal, action: Action, target: Target<'_>, prefix: &str) -> bool {
        if !self.has_forbids {
            return false;
        }
        let head = self.head(principal, action, target, prefix);
        let forbids = |policy: &Policy| {
            policy.effect() == Effect::Forbid && !policy.has_non_scope_constraint() && head.must_match(policy)
        };
        self.policies.policies().any(forbids)
    }

    fn head(&self, principal: &Principal, action: Action, target: Target<'_>, prefix: &str) -> Head<'_> {
        Head {
            caller: uid(&self.types.caller, &principal.to_string()),
            groups: principal.groups().iter().map(|group| uid(&self.types.group, group)).collect(),
            action: action.word().map(|name| uid(&self.types.action, name)),
            mount: uid(&self.types.mount, target.mount.as_str()),
            start: [target.base, prefix].concat(),
            types: &self.types,
        }
    }

    /// The ids of the policies that may permit `action` of `principal` on some resource of `target`'s mount whose
    /// reference begins with `prefix`. Looks at the heads of the policies only, not at their conditions, so it may name
    /// too many and never too few. [`Action::Describe`] stands for any action.
    pub fn permitting<'s>(
        &'s self,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
        prefix: &str,
    ) -> impl Iterator<Item = String> + use<'s> {
        self.matching(Effect::Permit, self.head(principal, action, target, prefix))
    }

    /// The ids of the policies that may forbid `action` of `principal` on some resource of `target`'s mount. Looks at the
    /// heads only, as [`CedarPolicies::permitting`] does.
    pub fn forbidding<'s>(
        &'s self,
        principal: &Principal,
        action: Action,
        target: Target<'_>,
    ) -> impl Iterator<Item = String> + use<'s> {
        self.matching(Effect::Forbid, self.head(principal, action, target, ""))
    }

    fn matching<'s>(&'s self, effect: Effect, head: Head<'s>) -> impl Iterator<Item = String> + use<'s> {
        let may = move |policy: &&Policy| policy.effect() == effect && head.may_match(policy);
        self.policies.policies().filter(may).map(|policy| policy.id().to_string())
    }

    /// What the policies say about `action` of `principal` on `target` at the time `at`.
    pub fn decide(&self, principal: &Principal, action: Action, target: Target<'_>, at: SystemTime) -> CedarOpinion {
        let Some(action) = action.word() else { return CedarOpinion::Silent };
        match self.evaluate(principal, action, target, at) {
            Ok(opinion) => opinion,
            // A request that cannot be described to Cedar is not allowed by accident.
            Err(why) => CedarOpinion::Forbidden(vec![why]),
        }
    }

    fn evaluate(
        &self,
        principal: &Principal,
        action: &str,
        target: Target<'_>,
        at: SystemTime,
    ) -> Result<CedarOpinion, String> {
        let types = &self.types;
        let caller = uid(&types.caller, &principal.to_string());
        let resource_uri = [target.base, target.reference.unwrap_or_default()].concat();
        let resource = uid(&types.resource, &resource_uri);
        let mut entities = self.caller_entities(principal, &caller)?;
        entities.extend(self.resource_entities(target, &resource_uri, &resource)?);
        let entities = Entities::from_entities(entities, Some(&self.schema)).map_err(|error| error.to_string())?;
        let time = RestrictedExpression::new_datetime(timestamp(at));
        let context = Context::from_pairs([("time".to_owned(), time)]).map_err(|error| error.to_string())?;
        let request = Request::new(caller, uid(&types.action, action), resource, context, Some(&self.schema));
        let request = request.map_err(|error| error.to_string())?;
        let response = self.authorizer.is_authorized(&request, &self.policies, &entities);
        let reasons: Vec<String> = response.diagnostics().reason().map(ToString::to_string).collect();
        let failed: Vec<String> = response.diagnostics().errors().map(ToString::to_string).collect();
        // Cedar skips a policy that fails. If it was a policy that forbids, skipping it would allow the request.
        if !failed.is_empty() {
            return Ok(CedarOpinion::Forbidden(failed));
        }
        Ok(match response.decision() {
            Decision::Allow => CedarOpinion::Permitted(reasons),
            Decision::Deny if reasons.is_empty() => CedarOpinion::Silent,
            Decision::Deny => CedarOpinion::Forbidden(reasons),
        })
    }

    /// The caller and its groups.
    fn caller_entities(&self, principal: &Principal, caller: &EntityUid) -> Result<Vec<Entity>, String> {
        let groups: HashSet<EntityUid> = principal.groups().iter().map(|group| uid(&self.types.group, group)).collect();
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let scopes = RestrictedExpression::new_set(principal.scopes().iter().map(|scope| text(scope)));
        let mut attributes = HashMap::from([
            ("kind".to_owned(), text(kind_name(principal.kind()))),
            ("subject".to_owned(), text(principal.subject())),
            ("scopes".to_owned(), scopes),
        ]);
        attributes.extend(principal.issuer().map(|issuer| ("issuer".to_owned(), text(issuer))));
        attributes.extend(principal.client().map(|client| ("client".to_owned(), text(client))));
        let mut all: Vec<Entity> =
            groups.iter().map(|group| Entity::new_no_attrs(group.clone(), HashSet::new())).collect();
        all.push(Entity::new(caller.clone(), attributes, groups).map_err(|error| error.to_string())?);
        Ok(all)
    }

    /// The resource, the folders above it, and its mount.
    fn resource_entities(&self, target: Target<'_>, uri: &str, resource: &EntityUid) -> Result<Vec<Entity>, String> {
        let types = &self.types;
        let mount = uid(&types.mount, target.mount.as_str());
        let mut parent = mount.clone();
        let mut all = vec![Entity::new_no_attrs(mount, HashSet::new())];
        for end in folder_ends(target.base, target.reference.unwrap_or_default()) {
            let folder = uid(&types.folder, uri.get(..end).unwrap_or(uri));
            all.push(Entity::new_no_attrs(folder.clone(), HashSet::from([parent])));
            parent = folder;
        }
        let attributes = HashMap::from([("uri".to_owned(), RestrictedExpression::new_string(uri.to_owned()))]);
        let own = Entity::new(resource.clone(), attributes, HashSet::from([parent]));
        all.push(own.map_err(|error| error.to_string())?);
        Ok(all)
    }
}

/// The policies, each named by its annotation `@id` if it has one.
fn named(policies: PolicySet) -> Result<PolicySet, CedarError> {
    if policies.num_of_templates() > 0 {
        let why = "it contains a template (\"?principal\" or \"?resource\"), and belljar does not link templates";
        return Err(CedarError::Schema(vec![why.to_owned()]));
    }
    let renamed = policies.policies().map(|policy| match policy.annotation("id") {
        Some(id) => policy.new_id(PolicyId::new(id)),
        None => policy.clone(),
    });
    PolicySet::from_policies(renamed).map_err(|error| CedarError::Schema(vec![error.to_string()]))
}

/// A syntax error with its line.
fn described(error: &ParseErrors, text: &str) -> String {
    let first = error.iter().next();
    let offset = first.and_then(|error| error.labels()?.next().map(|label| label.offset()));
    let line = offset.and_then(|offset| text.get(..offset)).map(|before| before.matches('\n').count() + 1);
    match line {
        Some(line) => format!("line {line}: {error}"),
        None => error.to_string(),
    }
}

/// The folders above a resource, each by its length as a start of the resource's URI: the base of its mount, and each
/// segment of the path that ends with a slash.
fn folder_ends(base: &str, reference: &str) -> impl Iterator<Item = usize> {
    // A slash in a query separates nothing.
    let path = reference.split_once('?').map_or(reference, |(path, _)| path);
    let ends = path.match_indices('/').map(move |(at, _)| base.len() + at + 1);
    std::iter::once(base.len()).chain(ends)
}

/// The plain spelling of a URI: see `spelling.rs`.
fn plain(uri: &[u8]) -> Cow<'_, [u8]> {
    plain_reference(uri, false)
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

/// The time as text of RFC 3339, in milliseconds.
fn timestamp(at: SystemTime) -> String {
    let millis = at.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0));
    let time = chrono::DateTime::from_timestamp_millis(millis).unwrap_or_default();
    time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

fn kind_name(kind: PrincipalKind) -> &'static str {
    match kind {
        PrincipalKind::Local => "local",
        PrincipalKind::Anonymous => "anonymous",
        PrincipalKind::Belljar => "belljar",
        PrincipalKind::Key => "key",
        PrincipalKind::Token => "token",
    }
}

#[cfg(test)]
mod tests;
