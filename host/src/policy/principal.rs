//! Principals, and the evidence for them.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// The evidence of a transport about the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The operating system user who runs this belljar: on standard input, or at the command line.
    OwnUser,
    /// An HTTP connection. It is known only to come from this machine.
    Loopback,
    /// belljar itself, when it polls resources for its watchers.
    Polling,
    /// An API key whose secret the request carried.
    Key(KeyIdentity),
    /// An access token that its issuer signed, or that its issuer declared active.
    Token(TokenIdentity),
}

/// The identity that belongs to an API key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyIdentity {
    /// The name of the key.
    pub name: String,
    /// The groups that the operator gave to the key.
    pub groups: Vec<String>,
    /// The scopes of the key.
    pub scopes: Vec<String>,
}

/// The identity in an access token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenIdentity {
    /// The issuer, as in the claim `iss`.
    pub issuer: String,
    /// The subject, as in the claim `sub`. Unique for its issuer only.
    pub subject: String,
    /// The client that acts for the subject: the claim `client_id` (RFC 9068, section 2.2).
    pub client: Option<String>,
    /// The groups of the subject.
    pub groups: Vec<String>,
    /// The scopes that the token grants.
    pub scopes: Vec<String>,
}

/// The proven identity of a caller. Only [`authenticate`] creates one. A clone is cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<Identity>);

/// Identifies a principal in counts. It depends on the kind, the issuer and the subject alone, so the count goes on when
/// a token is renewed or comes through another client. Equal in every replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalId([u8; 16]);

impl PrincipalId {
    /// 128 bits of a cryptographic hash: nobody can choose a subject whose id is that of another principal.
    fn of(kind: PrincipalKind, issuer: Option<&str>, subject: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        // The length keeps the parts apart: "a" at "bc" is another principal than "ab" at "c".
        let issuer = issuer.unwrap_or_default();
        hasher.update(&[kind as u8]).update(&(issuer.len() as u64).to_le_bytes());
        hasher.update(issuer.as_bytes()).update(subject.as_bytes());
        let mut id = [0; 16];
        hasher.finalize_xof().fill(&mut id);
        Self(id)
    }

    /// The id as bytes.
    pub fn bytes(self) -> [u8; 16] {
        self.0
    }
}

/// The parts of a principal.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Identity {
    id: PrincipalId,
    kind: PrincipalKind,
    issuer: Option<String>,
    subject: String,
    client: Option<String>,
    groups: Vec<String>,
    scopes: Vec<String>,
}

/// How a principal was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PrincipalKind {
    /// The operating system user who runs this belljar.
    Local,
    /// Nobody in particular: an HTTP client on this machine, without authentication.
    Anonymous,
    /// belljar itself.
    Belljar,
    /// The holder of an API key.
    Key,
    /// The subject of an access token.
    Token,
}

impl Principal {
    /// How it was authenticated.
    pub fn kind(&self) -> PrincipalKind {
        self.0.kind
    }

    /// The id under which its requests are counted.
    pub fn id(&self) -> PrincipalId {
        self.0.id
    }

    /// The issuer of its token. `None` without a token.
    pub fn issuer(&self) -> Option<&str> {
        self.0.issuer.as_deref()
    }

    /// `local`, `anonymous`, `belljar`, the name of its key, or the subject of its token.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The client that its token was issued to.
    pub fn client(&self) -> Option<&str> {
        self.0.client.as_deref()
    }

    /// A text that no other principal has: its kind, issuer and subject. Unlike the displayed text, no choice of a subject
    /// makes it equal to that of another principal. Groups and scopes do not count: they may differ from token to token.
    pub fn identity(&self) -> String {
        format!("{:?} {:?} {:?}", self.kind(), self.issuer(), self.subject())
    }

    /// Its groups, in the order of the evidence.
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// Its scopes, in the order of the evidence.
    pub fn scopes(&self) -> &[String] {
        &self.0.scopes
    }

    /// True if it is `other`, with the same scopes or more: the same account, client and groups.
    pub fn extends(&self, other: &Self) -> bool {
        let is_same = (self.id(), self.client(), self.groups()) == (other.id(), other.client(), other.groups());
        is_same && other.scopes().iter().all(|scope| self.scopes().contains(scope))
    }
}

impl fmt::Display for Principal {
    /// `local`, `anonymous`, `belljar`, `key:NAME`, or `SUBJECT@ISSUER`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind(), self.issuer()) {
            (PrincipalKind::Key, _) => write!(f, "key:{}", self.subject()),
            (_, Some(issuer)) => write!(f, "{}@{issuer}", self.subject()),
            _ => f.write_str(self.subject()),
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The principals without an identity of their own.
static LOCAL: LazyLock<Principal> = LazyLock::new(|| Principal::named(PrincipalKind::Local, "local"));
static ANONYMOUS: LazyLock<Principal> = LazyLock::new(|| Principal::named(PrincipalKind::Anonymous, "anonymous"));
static BELLJAR: LazyLock<Principal> = LazyLock::new(|| Principal::named(PrincipalKind::Belljar, "belljar"));

impl Principal {
    fn named(kind: PrincipalKind, subject: &str) -> Self {
        let (groups, scopes) = (Vec::new(), Vec::new());
        let id = PrincipalId::of(kind, None, subject);
        Self(Arc::new(Identity { id, kind, issuer: None, subject: subject.to_owned(), client: None, groups, scopes }))
    }
}

/// The principal that `evidence` proves.
pub fn authenticate(evidence: Evidence) -> Principal {
    match evidence {
        Evidence::OwnUser => LOCAL.clone(),
        Evidence::Loopback => ANONYMOUS.clone(),
        Evidence::Polling => BELLJAR.clone(),
        Evidence::Key(KeyIdentity { name: subject, groups, scopes }) => Principal(Arc::new(Identity {
            id: PrincipalId::of(PrincipalKind::Key, None, &subject),
            kind: PrincipalKind::Key,
            issuer: None,
            subject,
            client: None,
            groups,
            scopes,
        })),
        Evidence::Token(TokenIdentity { issuer, subject, client, groups, scopes }) => Principal(Arc::new(Identity {
            id: PrincipalId::of(PrincipalKind::Token, Some(&issuer), &subject),
            kind: PrincipalKind::Token,
            issuer: Some(issuer),
            subject,
            client,
            groups,
            scopes,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_that_look_alike_have_different_identities() {
        let key = |name: &str| authenticate(Evidence::Key(KeyIdentity { name: name.into(), ..KeyIdentity::default() }));
        let token = |issuer: &str, subject: &str| {
            let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
            authenticate(Evidence::Token(TokenIdentity { issuer, subject, ..TokenIdentity::default() }))
        };
        let all = [
            authenticate(Evidence::OwnUser),
            authenticate(Evidence::Loopback),
            key("local"),
            key("a"),
            token("b", "key:a"),
            token("c@d", "a"),
            token("d", "a@c"),
            token("d\") \"a", "c"),
        ];
        assert_eq!(all[5].to_string(), "a@c@d");
        assert_eq!(all[6].to_string(), "a@c@d", "these two are displayed alike");
        for (at, one) in all.iter().enumerate() {
            assert!(all.iter().skip(at + 1).all(|other| one.identity() != other.identity()), "{one}");
        }
        let scoped = KeyIdentity { name: "a".into(), scopes: vec!["x".into()], groups: Vec::new() };
        assert_eq!(authenticate(Evidence::Key(scoped)).identity(), key("a").identity());
    }

    fn token(issuer: &str, subject: &str, client: Option<&str>) -> Principal {
        authenticate(Evidence::Token(TokenIdentity {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            client: client.map(str::to_owned),
            ..TokenIdentity::default()
        }))
    }

    #[test]
    fn only_more_scopes_extend_a_principal() {
        let token = |subject: &str, client: &str, groups: &[&str], scopes: &[&str]| {
            let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
            authenticate(Evidence::Token(TokenIdentity {
                issuer: "i".to_owned(),
                subject: subject.to_owned(),
                client: Some(client.to_owned()),
                groups: owned(groups),
                scopes: owned(scopes),
            }))
        };
        let opened = token("s", "c", &["g"], &["a", "b"]);
        for scopes in [["a", "b"].as_slice(), &["b", "a"], &["x", "b", "a"]] {
            assert!(token("s", "c", &["g"], scopes).extends(&opened), "{scopes:?}");
        }
        for other in [
            token("s", "c", &["g"], &["a", "x"]),
            token("s", "c", &["g"], &[]),
            token("s", "c", &["g", "h"], &["a", "b", "x"]),
            token("s", "c", &[], &["a", "b", "x"]),
            token("s", "d", &["g"], &["a", "b", "x"]),
            token("t", "c", &["g"], &["a", "b", "x"]),
        ] {
            assert!(!other.extends(&opened), "{other:?}");
        }
    }

    #[test]
    fn the_id_is_that_of_issuer_and_subject() {
        assert_eq!(token("i", "s", None).id(), token("i", "s", Some("c")).id());
        let key =
            |name: &str| authenticate(Evidence::Key(KeyIdentity { name: name.to_owned(), ..KeyIdentity::default() }));
        let others = [
            token("i", "t", None),
            token("is", "", None),
            token("", "is", None),
            key("s"),
            key("local"),
            authenticate(Evidence::OwnUser),
            authenticate(Evidence::Loopback),
        ];
        let mut ids: Vec<_> = others.iter().map(Principal::id).chain([token("i", "s", None).id()]).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 8);
    }
}
