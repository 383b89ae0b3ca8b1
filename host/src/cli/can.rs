//! `belljar can`: explains a decision of the policy.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use serde_json::{Value, json};

use super::{output, table};
use crate::auth::api_key;
use crate::auth::key_entry::KeyName;
use crate::config::Config;
use crate::model::{MountName, command, reference, text};
use crate::policy::{
    Action, Evidence, Explanation, KeyIdentity, Principal, Rule, RuleOrigin, Target, TokenIdentity, authenticate,
};
use crate::server::api_keys::{self, ApiKeysError};
use crate::server::configuration::{self, ConfigurationError};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;

/// The end of the help.
pub(super) const HELP: &str = "WHO is one of:\n  local               the user of this machine: on standard input and at the command line\n  anonymous           an HTTP client without authentication\n  key:NAME            the holder of an API key, with the scopes and groups that the keys file gives it\n  SUBJECT[@ISSUER]    the subject of an access token\n\nFor call and prompt, URI is the name of the tool or prompt: notes_search, or belljar://notes/search below\nthe base of its mount. Who is denied a part of a mount for reading may use none of its tools and prompts.\n\nExamples:\n  belljar can local read belljar://notes/plan.md\n  belljar can key:ci list belljar://logs/\n  belljar can key:ci call notes_search\n  belljar can alice@https://login.example read belljar://logs/a --group oncall --at 2026-11-23T09:00:00Z\n\nThe exit code is 0 for yes and 1 for no.";

/// The most rules that an answer shows.
const MAX_RULES: usize = 5;

/// The request that is judged.
#[derive(Args)]
pub(super) struct CanArgs {
    /// The principal: local, anonymous, key:NAME, or SUBJECT[@ISSUER].
    #[arg(value_name = "WHO")]
    who: String,
    /// The action: list, read, search, complete, subscribe, call or prompt.
    #[arg(value_name = "ACTION")]
    action: String,
    /// The URI of a resource, the base of a mount, or the name of a tool or a prompt.
    #[arg(value_name = "URI")]
    uri: String,
    /// The time of the request, such as 2026-11-23T09:00:00Z (default: now).
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// A scope of the key or token, beside those of the keys file. Can be repeated.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// A group of the key or token, beside those of the keys file. Can be repeated.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
}

pub(super) fn run(at: &LocationArgs, request: &CanArgs, as_json: bool) -> Result<ExitCode, Failure> {
    let action: Action = request.action.parse().map_err(Failure::misused)?;
    let time = request.at.as_deref().map_or_else(|| Ok(SystemTime::now()), parse_time)?;
    let mut config = configuration::file(at)?;
    configuration::read_policies(&mut config).map_err(ConfigurationError::from)?;
    let principal = principal(request, &config, time)?;
    let (mount, base, reference) = match by_public_name(&config, action, &request.uri) {
        Some(found) => found,
        None => route(&config, &request.uri)?,
    };
    reference::check(&reference).map_err(|why| Failure::Misused(format!("the URI {why}")))?;
    // A list, a search or a watch of a base is about the mount as a whole.
    let is_whole = reference.is_empty() && action != Action::Read;
    let target = Target { mount: &mount, base: &base, reference: Some(reference.as_str()).filter(|_| !is_whole) };
    let rules = config.decider();
    let explanation = rules.explain(&principal, action, target, time);
    let is_partial =
        is_whole && explanation.is_allowed() && !rules.visibility(&principal, action, target, time).is_all();
    match as_json {
        true => output::print_json(&to_json(request, &principal, &mount, &explanation, is_partial))?,
        false => table::print(&to_text(request, &principal, &mount, &explanation, is_partial))?,
    }
    if !request.who.contains(':') && has_key(&config.api_keys, &request.who) {
        let who = &request.who;
        let note = format!("\"{who}\" is the subject of a token here; for the API key of this name, write key:{who}\n");
        output::message(true, &note)?;
    }
    Ok(if explanation.is_allowed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The principal that the command line describes. A key of the keys file has the scopes and groups of its entry, and those
/// of the command line.
fn principal(request: &CanArgs, config: &Config, at: SystemTime) -> Result<Principal, Failure> {
    let CanArgs { who, scopes, groups, .. } = request;
    let (scopes, groups) = (scopes.clone(), groups.clone());
    let own = match who.as_str() {
        "local" => Some(Evidence::OwnUser),
        "anonymous" => Some(Evidence::Loopback),
        _ => None,
    };
    if let Some(own) = own {
        return match scopes.is_empty() && groups.is_empty() {
            true => Ok(authenticate(own)),
            false => {
                Err(Failure::Misused(format!("\"{who}\" has no scopes and no groups; only keys and tokens have them")))
            }
        };
    }
    if let Some(name) = who.strip_prefix("key:") {
        let name = KeyName::new(name).map_err(Failure::misused)?;
        let is_supposed = !scopes.is_empty() || !groups.is_empty();
        let mut key = key_identity(config, name.as_str(), at, is_supposed)?;
        key.scopes.extend(scopes);
        key.groups.extend(groups);
        return Ok(authenticate(Evidence::Key(key)));
    }
    if who.starts_with(api_key::PREFIX) {
        return Err(Failure::misused(
            "this is an API key; expected its name, as in key:NAME; to see the names, run: belljar key list",
        ));
    }
    // A subject may be an address of mail. An issuer is a URL.
    let (subject, issuer) = match who.rsplit_once('@') {
        Some((subject, issuer)) if issuer.contains("://") => (subject, issuer),
        _ => (who.as_str(), ""),
    };
    if subject.is_empty() {
        return Err(Failure::misused("the subject is empty; expected local, anonymous, key:NAME or SUBJECT[@ISSUER]"));
    }
    let (subject, issuer) = (subject.to_owned(), issuer.to_owned());
    Ok(authenticate(Evidence::Token(TokenIdentity { issuer, subject, client: None, groups, scopes })))
}

/// True if the keys file has a key of this name.
fn has_key(path: &Path, name: &str) -> bool {
    let text = api_keys::read_text(path).ok().flatten();
    let keys = text.and_then(|text| api_keys::parse(path, Some(&text)).ok());
    keys.is_some_and(|keys| keys.entries().iter().any(|entry| entry.identity.name == name))
}

/// The holder of a key, as the keys file describes it at this time. Without a keys file, a key without scopes and groups;
/// also for an unknown key that `is_supposed` to exist.
///
/// # Errors
/// The file cannot be read, has no such key, or the key has expired.
fn key_identity(config: &Config, name: &str, at: SystemTime, is_supposed: bool) -> Result<KeyIdentity, Failure> {
    let path = &config.api_keys;
    let supposed = KeyIdentity { name: name.to_owned(), ..KeyIdentity::default() };
    let Some(text) = api_keys::read_text(path)? else { return Ok(supposed) };
    let keys = api_keys::parse(path, Some(&text))?;
    let entries = keys.entries();
    match entries.iter().find(|entry| entry.identity.name == name) {
        Some(entry) if entry.is_expired(at) => Err(ApiKeysError::Expired { name: name.to_owned() }.into()),
        Some(entry) => Ok(entry.identity.clone()),
        None if is_supposed => Ok(supposed),
        None => {
            let names: Vec<&str> = entries.iter().map(|entry| entry.identity.name.as_str()).collect();
            let known = match names.is_empty() {
                true => "there are no keys".to_owned(),
                false => format!("the keys are {}", names.join(", ")),
            };
            let cure = command::line(["key", "new", name]);
            Err(Failure::Misused(format!("there is no key \"{name}\"; {known}; to make it, run: {cure}")))
        }
    }
}

/// A time in RFC 3339. Without an offset: UTC.
fn parse_time(time: &str) -> Result<SystemTime, Failure> {
    let with_offset = chrono::DateTime::parse_from_rfc3339(time).map(SystemTime::from);
    with_offset.or_else(|_| humantime::parse_rfc3339_weak(time)).map_err(|_| {
        let time = text::excerpt(time, 80);
        Failure::Misused(format!(
            "--at \"{time}\" is not a time; expected one such as 2026-11-23T09:00:00Z, or 2026-11-23T10:00:00+01:00"
        ))
    })
}

/// The mount, its base and the own name of a tool or a prompt, from its public name. `None` if `name` is a URI, or if no
/// mount can have such a name.
fn by_public_name(config: &Config, action: Action, name: &str) -> Option<(MountName, String, String)> {
    if !matches!(action, Action::Call | Action::Prompt) || name.contains(':') {
        return None;
    }
    let (prefix, own) = name.split_once('_')?;
    let configured = config.mounts.iter().find(|(_, mount)| !prefix.is_empty() && mount.tool_prefix == prefix);
    if let Some((name, mount)) = configured {
        let base = mount.uri.clone().unwrap_or_else(|| default_base(name));
        return Some((name.clone(), base, own.to_owned()));
    }
    // Any name can become a mount, unless the configuration gives it another prefix.
    let name = MountName::new(prefix).ok().filter(|name| !config.mounts.contains_key(name))?;
    let base = default_base(&name);
    Some((name, base, own.to_owned()))
}

/// The mount that the URI would belong to, its base, and the reference. Any name can become a mount, so a URI below
/// `belljar://` has one whether it is served or not.
fn route(config: &Config, uri: &str) -> Result<(MountName, String, String), Failure> {
    let named = config.mounts.iter().map(|(name, mount)| {
        let base = mount.uri.clone().unwrap_or_else(|| default_base(name));
        (name.clone(), base)
    });
    let default = uri.strip_prefix("belljar://").and_then(|rest| rest.split_once('/')).and_then(|(name, _)| {
        let name = MountName::new(name).ok().filter(|name| !config.mounts.contains_key(name))?;
        let base = default_base(&name);
        Some((name, base))
    });
    let found =
        named.chain(default).filter(|(_, base)| uri.starts_with(base.as_str())).max_by_key(|(_, base)| base.len());
    let (name, base) = found.ok_or_else(|| {
        Failure::Misused(format!(
            "\"{}\" belongs to no mount; expected a URI such as \"belljar://notes/plan.md\", or one below the  uri  of a mount",
            text::excerpt(uri, 80)
        ))
    })?;
    let reference = uri.strip_prefix(base.as_str()).unwrap_or_default().to_owned();
    Ok((name, base, reference))
}

fn default_base(name: &MountName) -> String {
    format!("belljar://{name}/")
}

fn to_text(
    request: &CanArgs,
    principal: &Principal,
    mount: &MountName,
    explanation: &Explanation,
    is_partial: bool,
) -> String {
    let (style, word, verb) = match explanation.is_allowed() {
        true => (table::GOOD, "yes", "may"),
        false => (table::BAD, "no", "may not"),
    };
    let part = if is_partial { "a part of " } else { "" };
    let (action, uri) = (&request.action, text::excerpt(&request.uri, reference::MAX_URI));
    // Without an issuer, the subject is one of any issuer.
    let principal = match principal.issuer() {
        Some("") => principal.subject().to_owned(),
        _ => principal.to_string(),
    };
    let principal = text::excerpt(&principal, 200);
    let mut out = String::new();
    let answer = table::styled(style, word);
    let _ = writeln!(out, "{answer}: {principal} {verb} {action} {part}\"{uri}\" (mount \"{mount}\")");
    let (why, rules) = reason(explanation);
    let _ = writeln!(out, "  {why}");
    for (rule, note) in rules.iter().take(MAX_RULES) {
        let _ = writeln!(out, "    {}: {rule}{note}", rule.origin);
    }
    if rules.len() > MAX_RULES {
        let _ = writeln!(out, "    and {} more", rules.len() - MAX_RULES);
    }
    out
}

/// The reason in words, and the rules that it is about, each with a note.
fn reason(explanation: &Explanation) -> (String, Vec<(&Rule, String)>) {
    match explanation {
        Explanation::NoRules => ("the configuration has no rules: everybody may do everything".to_owned(), Vec::new()),
        Explanation::Allowed(rules) => ("allowed by".to_owned(), without_notes(rules)),
        Explanation::Denied(rules) => ("denied by".to_owned(), without_notes(rules)),
        Explanation::DeniedPart { rules, policies } => {
            let policies = match policies.as_slice() {
                [] => String::new(),
                ids => format!(" {} of the policies{}", quoted(ids), if rules.is_empty() { "" } else { " and" }),
            };
            let why = "tools and prompts see the whole mount, and a part of it is denied for reading by";
            (format!("{why}{policies}"), without_notes(rules))
        }
        Explanation::Permitted(ids) => (format!("permitted by {} of the policies", quoted(ids)), Vec::new()),
        Explanation::Forbidden(ids) => (format!("forbidden by {} of the policies", quoted(ids)), Vec::new()),
        Explanation::Scope { scopes, rule } => {
            let scopes: Vec<String> = scopes.iter().map(|scope| format!("\"{scope}\"")).collect();
            (format!("needs the scope {}, by", scopes.join(" and ")), vec![(rule, String::new())])
        }
        Explanation::NoRule(near) if near.is_empty() => ("no rule allows it".to_owned(), Vec::new()),
        Explanation::NoRule(near) => {
            let note = |key: &str| format!("  ({key} does not hold)");
            let rules = near.iter().map(|(rule, obstacle)| (rule, note(obstacle.key()))).collect();
            ("no rule allows it; these would if one condition were another:".to_owned(), rules)
        }
    }
}

/// The ids of policies, in quotes.
fn quoted(ids: &[String]) -> String {
    ids.iter().map(|id| text::quoted(id, 200)).collect::<Vec<_>>().join(", ")
}

fn without_notes(rules: &[Rule]) -> Vec<(&Rule, String)> {
    rules.iter().map(|rule| (rule, String::new())).collect()
}

fn to_json(
    request: &CanArgs,
    principal: &Principal,
    mount: &MountName,
    explanation: &Explanation,
    is_partial: bool,
) -> Value {
    let rules = |rules: &[Rule]| rules.iter().map(rule_to_json).collect::<Vec<_>>();
    let mut value = json!({
        "allowed": explanation.is_allowed(),
        "partial": is_partial,
        "principal": principal.to_string(),
        "action": request.action,
        "uri": request.uri,
        "mount": mount.as_str(),
    });
    let reason = match explanation {
        Explanation::NoRules => json!({ "reason": "no-rules" }),
        Explanation::Allowed(found) => json!({ "reason": "allowed", "rules": rules(found) }),
        Explanation::Denied(found) => json!({ "reason": "denied", "rules": rules(found) }),
        Explanation::DeniedPart { rules: found, policies } => {
            json!({ "reason": "denied-part", "rules": rules(found), "policies": policies })
        }
        Explanation::Permitted(ids) => json!({ "reason": "permitted", "policies": ids }),
        Explanation::Forbidden(ids) => json!({ "reason": "forbidden", "policies": ids }),
        Explanation::Scope { scopes, rule } => {
            json!({ "reason": "scope", "scopes": scopes, "rules": [rule_to_json(rule)] })
        }
        Explanation::NoRule(near) => {
            let near = near.iter().map(|(rule, obstacle)| json!({ "rule": rule_to_json(rule), "key": obstacle.key() }));
            json!({ "reason": "no-rule", "near": near.collect::<Vec<_>>() })
        }
    };
    if let (Value::Object(value), Value::Object(reason)) = (&mut value, reason) {
        value.extend(reason);
    }
    value
}

fn rule_to_json(rule: &Rule) -> Value {
    let (number, line, scope) = match &rule.origin {
        RuleOrigin::Allow(number) | RuleOrigin::Deny(number) => (Some(number.number), number.line, None),
        RuleOrigin::Scope(scope) => (None, None, Some(scope)),
    };
    json!({ "table": rule.origin.table(), "number": number, "line": line, "scope": scope, "text": rule.to_string() })
}
