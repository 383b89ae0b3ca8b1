//! The principals that a rule is for.

use std::fmt;

use super::principal::{Principal, PrincipalKind};

/// The users that are no subjects of tokens: the operating system's user, and HTTP clients without authentication.
const OWN_USERS: [(&str, PrincipalKind); 2] =
    [("local", PrincipalKind::Local), ("anonymous", PrincipalKind::Anonymous)];

/// The principals that a rule is for. Every list that is not empty is a condition, and one of its entries must hold.
/// Without any list: everybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// `local`, `anonymous`, or subjects of tokens.
    pub users: Vec<String>,
    /// Issuers of tokens.
    pub issuers: Vec<String>,
    /// Groups of a key or a token.
    pub groups: Vec<String>,
    /// Scopes of a key or a token.
    pub scopes: Vec<ScopeSet>,
    /// Names of keys.
    pub keys: Vec<String>,
}

/// Scopes that are needed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeSet(Vec<String>);

/// Why conditions for a principal are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhoError {
    /// No principal can meet them.
    #[error("nobody has both a key and a {0}; write one rule for each")]
    Nobody(&'static str),
    /// The user of this machine, and anonymous clients, have neither groups nor scopes.
    #[error("\"{user}\" has no {what}; write one rule for each")]
    Bare {
        /// The user.
        user: String,
        /// `group` or `scope`.
        what: &'static str,
    },
    /// A name that no principal has, in the form that stands in the record or that a pattern has.
    #[error("\"{given}\" matches nobody; {cure}")]
    Name {
        /// The name, safe to print.
        given: String,
        /// What to write.
        cure: String,
    },
    /// A scope is empty or has a character that scopes do not have.
    #[error(
        "\"{0}\" is not a scope; a scope is printable ASCII without spaces, quotation marks and backslashes (RFC 6749, 3.3); scopes that are needed together are separated by one space"
    )]
    Scope(String),
}

impl ScopeSet {
    /// The scopes in `text`, separated by single spaces.
    ///
    /// # Errors
    /// [`WhoError::Scope`]
    pub fn new(text: &str) -> Result<Self, WhoError> {
        let is_scope = |scope: &str| {
            !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
        };
        let mut scopes = Vec::new();
        for scope in text.split(' ') {
            if !is_scope(scope) {
                return Err(WhoError::Scope(crate::model::text::excerpt(scope, 80)));
            }
            if !scopes.iter().any(|known| known == scope) {
                scopes.push(scope.to_owned());
            }
        }
        Ok(Self(scopes))
    }

    /// The scopes, each once.
    pub fn scopes(&self) -> &[String] {
        &self.0
    }

    fn is_held_by(&self, principal: &Principal, more: &[String]) -> bool {
        self.0.iter().all(|scope| principal.scopes().contains(scope) || more.contains(scope))
    }
}

impl Who {
    /// Checks that a principal can meet all conditions.
    ///
    /// # Errors
    /// The first reason why no principal meets them.
    pub fn check(&self) -> Result<(), WhoError> {
        let shown = |text: &str| crate::model::text::excerpt(text, 80);
        let fail = |given: &str, cure: String| Err(WhoError::Name { given: shown(given), cure });
        let lists = [&self.users, &self.issuers, &self.groups, &self.keys];
        if let Some(star) = lists.into_iter().flatten().find(|one| one.contains('*')) {
            return fail(star, "names have no wildcards: leave the key out, or write  who = \"anyone\"".to_owned());
        }
        for name in self.users.iter().chain(&self.keys) {
            if let Some(key) = name.strip_prefix("key:") {
                return fail(name, format!("for an API key, write  key = \"{}\"", shown(key)));
            }
        }
        for user in &self.users {
            if let Some((subject, issuer)) = user.rsplit_once('@').filter(|(_, issuer)| issuer.contains("://")) {
                let (subject, issuer) = (shown(subject), shown(issuer));
                return fail(user, format!("write  user = \"{subject}\", issuer = \"{issuer}\""));
            }
        }
        if let Some(list) = self.scopes.iter().flat_map(|set| &set.0).find(|scope| scope.contains(',')) {
            return fail(
                list,
                "scopes that are needed together are separated by a space; others stand in an array".to_owned(),
            );
        }
        let is_own = |user: &&String| OWN_USERS.iter().any(|(name, _)| name == user);
        if let Some(user) = self.users.iter().find(is_own).filter(|_| self.users.len() == 1 && self.issuers.is_empty())
        {
            let what = if !self.groups.is_empty() { "group" } else { "scope" };
            if !self.groups.is_empty() || !self.scopes.is_empty() {
                return Err(WhoError::Bare { user: user.clone(), what });
            }
        }
        match (self.keys.is_empty(), self.users.is_empty(), self.issuers.is_empty()) {
            (false, false, _) => Err(WhoError::Nobody("user")),
            (false, _, false) => Err(WhoError::Nobody("issuer")),
            _ => Ok(()),
        }
    }

    /// True if the rule is for `principal`, if it also had the scopes `more`.
    pub(super) fn is_met_by(&self, principal: &Principal, more: &[String]) -> bool {
        self.is_met_without_scopes(principal)
            && (self.scopes.is_empty() || self.scopes.iter().any(|set| set.is_held_by(principal, more)))
    }

    /// The scopes that `principal` needs to meet all conditions: the smallest of the sets, of equal ones the first.
    /// `None`: it meets the conditions, or scopes alone do not help.
    pub(super) fn needed_scopes(&self, principal: &Principal) -> Option<&ScopeSet> {
        let has_credential = matches!(principal.kind(), PrincipalKind::Key | PrincipalKind::Token);
        if !has_credential || !self.is_met_without_scopes(principal) || self.is_met_by(principal, &[]) {
            return None;
        }
        self.scopes.iter().min_by_key(|set| set.0.len())
    }

    fn is_met_without_scopes(&self, principal: &Principal) -> bool {
        let is_one = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        (self.users.is_empty() || self.users.iter().any(|user| self.is_user(user, principal)))
            && (self.issuers.is_empty() || principal.issuer().is_some_and(|issuer| is_one(&self.issuers, issuer)))
            && (self.groups.is_empty() || principal.groups().iter().any(|group| self.groups.contains(group)))
            && (self.keys.is_empty()
                || (principal.kind() == PrincipalKind::Key && is_one(&self.keys, principal.subject())))
    }

    /// True if `principal` is the user of this name. A token whose subject happens to be `local` is not the local user:
    /// only a rule that names its issuer is for it.
    fn is_user(&self, user: &str, principal: &Principal) -> bool {
        match OWN_USERS.iter().find(|(name, _)| *name == user) {
            Some((_, kind)) if self.issuers.is_empty() => principal.kind() == *kind,
            _ => principal.kind() == PrincipalKind::Token && principal.subject() == user,
        }
    }
}

impl fmt::Display for Who {
    /// As in the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scopes: Vec<String> = self.scopes.iter().map(|set| set.0.join(" ")).collect();
        let lists = [
            ("user", &self.users),
            ("issuer", &self.issuers),
            ("group", &self.groups),
            ("scope", &scopes),
            ("key", &self.keys),
        ];
        let conditions = lists.iter().filter(|(_, list)| !list.is_empty()).map(|(key, list)| match list.as_slice() {
            [only] => format!("{key} = {only:?}"),
            list => format!("{key} = {list:?}"),
        });
        match conditions.collect::<Vec<_>>().as_slice() {
            [] => f.write_str("\"anyone\""),
            conditions => write!(f, "{{ {} }}", conditions.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Evidence, KeyIdentity, TokenIdentity, authenticate};

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|item| (*item).to_owned()).collect()
    }

    fn token(issuer: &str, subject: &str, groups: &[&str], scopes: &[&str]) -> Principal {
        let identity = TokenIdentity {
            issuer: issuer.into(),
            subject: subject.into(),
            client: None,
            groups: list(groups),
            scopes: list(scopes),
        };
        authenticate(Evidence::Token(identity))
    }

    fn who(users: &[&str], issuers: &[&str], groups: &[&str], scopes: &[&str], keys: &[&str]) -> Who {
        let scopes = scopes.iter().map(|scope| ScopeSet::new(scope).unwrap()).collect();
        Who { users: list(users), issuers: list(issuers), groups: list(groups), scopes, keys: list(keys) }
    }

    #[test]
    fn conditions_are_met_by_their_principals_only() {
        let (local, anonymous) = (authenticate(Evidence::OwnUser), authenticate(Evidence::Loopback));
        let key = authenticate(Evidence::Key(KeyIdentity {
            name: "ci".into(),
            groups: list(&["bots"]),
            scopes: list(&["a", "b"]),
        }));
        let alice = token("https://i", "alice", &["oncall", "dev"], &["a"]);
        let impostor = token("https://i", "local", &[], &[]);
        let named_ci = token("https://i", "ci", &[], &[]);
        let all = [
            ("local", &local),
            ("anonymous", &anonymous),
            ("key", &key),
            ("alice", &alice),
            ("impostor", &impostor),
            ("named-ci", &named_ci),
        ];
        for (conditions, expected) in [
            (who(&[], &[], &[], &[], &[]), "local anonymous key alice impostor named-ci"),
            (who(&["local"], &[], &[], &[], &[]), "local"),
            (who(&["anonymous"], &[], &[], &[], &[]), "anonymous"),
            (who(&["local"], &["https://i"], &[], &[], &[]), "impostor"),
            (who(&["alice", "local"], &[], &[], &[], &[]), "local alice"),
            (who(&["alice"], &["https://other"], &[], &[], &[]), ""),
            (who(&["ci"], &[], &[], &[], &[]), "named-ci"),
            (who(&[], &[], &[], &[], &["ci"]), "key"),
            (who(&[], &["https://i"], &[], &[], &[]), "alice impostor named-ci"),
            (who(&[], &[], &["oncall", "bots"], &[], &[]), "key alice"),
            (who(&[], &[], &["oncall"], &["a"], &[]), "alice"),
            (who(&[], &[], &[], &["a"], &[]), "key alice"),
            (who(&[], &[], &[], &["a b"], &[]), "key"),
            (who(&[], &[], &[], &["c", "a"], &[]), "key alice"),
            (who(&["alice"], &[], &["bots"], &[], &[]), ""),
        ] {
            let met: Vec<&str> =
                all.iter().filter(|(_, one)| conditions.is_met_by(one, &[])).map(|(name, _)| *name).collect();
            assert_eq!(met.join(" "), expected, "{conditions}");
        }
    }

    #[test]
    fn needed_scopes_are_the_smallest_set() {
        let alice = token("https://i", "alice", &["oncall"], &["a"]);
        let needed = |conditions: &Who| conditions.needed_scopes(&alice).map(|set| set.scopes().join(" "));
        for (conditions, expected) in [
            (who(&[], &[], &[], &["b"], &[]), Some("b")),
            (who(&[], &[], &[], &["a b"], &[]), Some("a b")),
            (who(&[], &[], &[], &["x y", "b", "c"], &[]), Some("b")),
            (who(&[], &[], &[], &["a"], &[]), None),
            (who(&[], &[], &["admins"], &["b"], &[]), None),
            (who(&[], &[], &["oncall"], &["b"], &[]), Some("b")),
            (who(&["bob"], &[], &[], &["b"], &[]), None),
        ] {
            assert_eq!(needed(&conditions).as_deref(), expected, "{conditions}");
        }
        let local = authenticate(Evidence::OwnUser);
        assert_eq!(who(&[], &[], &[], &["b"], &[]).needed_scopes(&local), None, "the local user cannot get a scope");
    }

    #[test]
    fn impossible_conditions_are_refused() {
        assert!(who(&["alice"], &[], &[], &[], &["ci"]).check().is_err());
        for (conditions, cure) in [
            (who(&["alice@https://i.example"], &[], &[], &[], &[]), "user = \"alice\", issuer = \"https://i.example\""),
            (who(&["key:ana"], &[], &[], &[], &[]), "key = \"ana\""),
            (who(&[], &[], &[], &[], &["key:ana"]), "key = \"ana\""),
            (who(&["*"], &[], &[], &[], &[]), "who = \"anyone\""),
            (who(&[], &[], &["on*"], &[], &[]), "who = \"anyone\""),
            (who(&[], &[], &[], &["a:read,b:read"], &[]), "separated by a space"),
            (who(&["local"], &[], &["leads"], &[], &[]), "\"local\" has no group"),
            (who(&["anonymous"], &[], &[], &["a"], &[]), "\"anonymous\" has no scope"),
        ] {
            let why = conditions.check().unwrap_err().to_string();
            assert!(why.contains(cure), "{conditions}: {why}");
        }
        assert!(who(&["alice@example.com"], &[], &[], &[], &[]).check().is_ok(), "a subject may be an address of mail");
        assert!(who(&["local", "alice"], &[], &["leads"], &[], &[]).check().is_ok());
        assert!(who(&[], &["https://i"], &[], &[], &["ci"]).check().is_err());
        assert!(who(&[], &[], &["x"], &["y"], &["ci"]).check().is_ok());
        for bad in ["", "a  b", " a", "a\"", "a\\", "é", "a\tb"] {
            assert!(ScopeSet::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(ScopeSet::new("a b a").unwrap().scopes(), list(&["a", "b"]));
    }
}
