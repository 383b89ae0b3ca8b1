//! `[[auth.issuers]]`: the authorization servers whose access tokens are accepted.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::grants::http::service_url::{ServiceUrl, ServiceUrlError};
use crate::grants::network::networks::networks;
use crate::grants::secrets::{PrincipalPath, SecretSource};
use crate::model::text;

/// The signature algorithms of `algorithms` (RFC 7518, RFC 8037, RFC 9864). All are asymmetric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAlgorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// Ed25519, by its old name.
    EdDsa,
    /// Ed25519.
    Ed25519,
}

impl TokenAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 10] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
        Self::Ed25519,
    ];

    /// The algorithms of an issuer whose configuration names none.
    pub const DEFAULT: [Self; 5] = [Self::Es256, Self::Rs256, Self::EdDsa, Self::Ps256, Self::Es384];

    /// The name in the header `alg` of a token.
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
            Self::Ed25519 => "Ed25519",
        }
    }

    /// The names of [`Self::DEFAULT`].
    fn default_names() -> [&'static str; 5] {
        Self::DEFAULT.map(Self::name)
    }
}

impl<'de> Deserialize<'de> for TokenAlgorithm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        known.ok_or_else(|| {
            let reason = match name.starts_with("HS") {
                true => "is symmetric: whoever can check such a token can also make one",
                false => "is not a signature algorithm that belljar knows",
            };
            let names = Self::ALL.map(Self::name).join(", ");
            D::Error::custom(format!("\"{}\" {reason}; use one of {names}", text::excerpt(&name, 40)))
        })
    }
}

impl JsonSchema for TokenAlgorithm {
    fn schema_name() -> Cow<'static, str> {
        "TokenAlgorithm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::name) })
    }
}

/// The URL of an issuer, exactly as it stands in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerUrl {
    text: String,
    url: ServiceUrl,
}

impl IssuerUrl {
    /// The text, as in the claim `iss`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same as a URL.
    pub fn url(&self) -> &ServiceUrl {
        &self.url
    }
}

impl TryFrom<String> for IssuerUrl {
    type Error = IssuerUrlError;

    fn try_from(text: String) -> Result<Self, IssuerUrlError> {
        let url: ServiceUrl = text.parse()?;
        match url.query {
            Some(_) => Err(IssuerUrlError::Query),
            None => Ok(Self { text, url }),
        }
    }
}

/// Why a text is not the URL of an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssuerUrlError {
    /// The text is not the URL of a service.
    #[error(transparent)]
    Url(#[from] ServiceUrlError),
    /// The URL has a query (RFC 8414, section 2).
    #[error("it has a query, and issuers have none; remove \"?\" and what follows")]
    Query,
}

/// A URL in the file.
struct UrlText(ServiceUrl);

impl<'de> Deserialize<'de> for UrlText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// An issuer in the file.
struct IssuerText(IssuerUrl);

impl<'de> Deserialize<'de> for IssuerText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IssuerUrl::try_from(String::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

/// Where the keys of an issuer are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySetSource {
    /// In the issuer's metadata (RFC 8414, OpenID Connect Discovery).
    #[default]
    Discover,
    /// At a URL.
    Url(ServiceUrl),
    /// In a file.
    File(PathBuf),
}

impl<'de> Deserialize<'de> for KeySetSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        match written.as_str() {
            "discover" => Ok(Self::Discover),
            url if url.contains("://") => url.parse().map(Self::Url).map_err(D::Error::custom),
            "" => Err(D::Error::custom("it is empty; write \"discover\", a URL or a file")),
            _ => Ok(Self::File(written.into())),
        }
    }
}

/// `[[auth.issuers]]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "a table such as { issuer = \"https://login.example\" }")]
pub(super) struct IssuerTable {
    /// The URL of the issuer, exactly as in the claim `iss` of its tokens, also with or without a "/" at its end.
    #[schemars(with = "String", example = "https://login.example")]
    issuer: IssuerText,
    /// Where the issuer's keys are: "discover" (its metadata says it), a URL, or the path of a file (JWK set).
    #[serde(default)]
    #[schemars(
        with = "String",
        extend("default" = "discover"),
        example = "https://login.example/jwks.json",
        example = "jwks.json"
    )]
    jwks: KeySetSource,
    /// The signature algorithms that the issuer's tokens may have. Only asymmetric ones.
    #[schemars(extend("default" = TokenAlgorithm::default_names()), example = ["ES256"])]
    algorithms: Option<Vec<TokenAlgorithm>>,
    /// The text that the claim `aud` of a token must contain.
    #[schemars(example = "https://mcp.example/mcp")]
    #[schemars(extend("x-taplo" = { "docs": { "defaultValue": "`url` of [serve]" } }))]
    audience: Option<String>,
    /// Whether tokens of the type `JWT`, or without a type, are accepted beside `at+jwt` (RFC 9068).
    #[schemars(example = true, extend("default" = false))]
    plain_jwt: Option<bool>,
    /// The claim with the groups of the subject: its name, or a JSON pointer to it.
    #[schemars(example = &"roles", example = "/realm_access/roles", extend("default" = DEFAULT_GROUPS))]
    groups: Option<String>,
    /// Private addresses and networks to which belljar may connect for this issuer. Public ones need no entry.
    #[serde(default, deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", example = ["10.0.0.0/8"])]
    networks: Vec<IpNet>,
    /// Where tokens that are no JWT are checked (RFC 7662). For one issuer only.
    introspect: Option<IntrospectionTable>,
}

/// The claim with the groups, if the configuration names none.
const DEFAULT_GROUPS: &str = "groups";

/// `introspect` of an issuer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(
    expecting = "a table such as { url = \"https://login.example/introspect\", client-id = \"belljar\", client-secret = \"NAME\" }"
)]
struct IntrospectionTable {
    /// The URL of the introspection endpoint.
    #[schemars(with = "String", example = "https://login.example/introspect")]
    url: UrlText,
    /// The name under which the issuer knows belljar.
    #[schemars(example = &"belljar")]
    client_id: String,
    /// The name of a secret in [secrets]: belljar's password at the issuer.
    #[schemars(example = &"introspection")]
    client_secret: String,
}

/// One issuer, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerConfig {
    /// The URL of the issuer.
    pub issuer: IssuerUrl,
    /// Where its keys are. A file's path is absolute.
    pub keys: KeySetSource,
    /// The algorithms of its tokens.
    pub algorithms: Vec<TokenAlgorithm>,
    /// The text that `aud` must contain. `None`: the URL of this server.
    pub audience: Option<String>,
    /// True if a token may have the type `JWT`, or none.
    pub allows_plain_jwt: bool,
    /// The claim with the groups.
    pub groups: String,
    /// Networks of the issuer that are not public.
    pub networks: Vec<IpNet>,
    /// Where tokens that are no JWT are checked.
    pub introspection: Option<IntrospectionConfig>,
}

/// The introspection endpoint of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntrospectionConfig {
    /// The URL.
    pub url: ServiceUrl,
    /// belljar's name at the issuer.
    pub client: String,
    /// The name of the secret that is belljar's password.
    pub secret: String,
}

impl IssuerConfig {
    /// The TCP ports to which belljar connects for this issuer.
    pub fn ports(&self) -> Vec<u16> {
        let keys = match &self.keys {
            KeySetSource::Discover => Some(self.issuer.url.origin.port),
            KeySetSource::Url(url) => Some(url.origin.port),
            KeySetSource::File(_) => None,
        };
        keys.into_iter().chain(self.introspection.iter().map(|own| own.url.origin.port)).collect()
    }

    /// The file with its keys.
    pub(super) fn key_set_file(&self) -> Option<&PathBuf> {
        match &self.keys {
            KeySetSource::File(path) => Some(path),
            _ => None,
        }
    }
}

/// Why the issuers cannot be used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerProblem {
    /// The issuer.
    issuer: String,
    rule: IssuerRule,
}

/// A rule for issuers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum IssuerRule {
    Twice,
    NoAlgorithm,
    EmptyText(&'static str),
    Introspection(String),
    UnknownSecret(String),
    PrincipalSecret(String),
}

impl fmt::Display for IssuerProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "auth.issuers: \"{}\": ", self.issuer)?;
        match &self.rule {
            IssuerRule::Twice => write!(f, "this issuer is there twice; remove one"),
            IssuerRule::NoAlgorithm => write!(f, "no token could have a signature; add one:  algorithms = [\"ES256\"]"),
            IssuerRule::EmptyText(key) => write!(f, "{key} is empty; write its value, or remove the key"),
            IssuerRule::Introspection(other) => write!(
                f,
                "\"{other}\" has  introspect  too, and a token without a form does not say which issuer to ask; remove one"
            ),
            // The text itself may be the password, so it is not repeated.
            IssuerRule::UnknownSecret(known) => write!(
                f,
                "\"introspect.client-secret\" is not the name of a secret; {known}; to add one, put the password into a file that only you can read, add  NAME = {{ file = \"FILE\" }}  to [secrets], and write  client-secret = \"NAME\""
            ),
            IssuerRule::PrincipalSecret(name) => write!(
                f,
                "\"introspect.client-secret\" is the secret \"{name}\", of which each principal has its own; name one that belongs to belljar"
            ),
        }
    }
}

/// Checks the issuers against each other and against the secrets. `place` makes a path absolute.
///
/// # Errors
/// The first issuer that breaks a rule.
pub(super) fn check(
    tables: Vec<IssuerTable>,
    secrets: &BTreeMap<String, SecretSource>,
    place: impl Fn(PathBuf) -> PathBuf,
) -> Result<Vec<IssuerConfig>, IssuerProblem> {
    let mut names = BTreeSet::new();
    let mut introspects: Option<String> = None;
    let mut all = Vec::new();
    for table in tables {
        let IssuerTable { issuer, jwks, algorithms, audience, plain_jwt, groups, networks, introspect } = table;
        let name = issuer.0.text.clone();
        let wrong = |rule| IssuerProblem { issuer: text::excerpt(&name, 200), rule };
        let texts = [("audience", &audience), ("groups", &groups)];
        if let Some((key, _)) = texts.into_iter().find(|(_, text)| text.as_ref().is_some_and(String::is_empty)) {
            return Err(wrong(IssuerRule::EmptyText(key)));
        }
        if !names.insert(name.clone()) {
            return Err(wrong(IssuerRule::Twice));
        }
        if algorithms.as_ref().is_some_and(Vec::is_empty) {
            return Err(wrong(IssuerRule::NoAlgorithm));
        }
        let introspection = introspect.map(|own| IntrospectionConfig {
            url: own.url.0,
            client: own.client_id,
            secret: own.client_secret,
        });
        if let Some(own) = &introspection {
            if let Some(other) = introspects.replace(name.clone()) {
                return Err(wrong(IssuerRule::Introspection(text::excerpt(&other, 200))));
            }
            match secrets.get(&own.secret) {
                None => return Err(wrong(IssuerRule::UnknownSecret(known_secrets(secrets)))),
                Some(SecretSource::File(path)) if !matches!(PrincipalPath::find(path), Ok(None)) => {
                    return Err(wrong(IssuerRule::PrincipalSecret(own.secret.clone())));
                }
                Some(_) => {}
            }
        }
        let keys = match jwks {
            KeySetSource::File(path) => KeySetSource::File(place(path)),
            other => other,
        };
        all.push(IssuerConfig {
            issuer: issuer.0,
            keys,
            algorithms: algorithms.unwrap_or_else(|| TokenAlgorithm::DEFAULT.to_vec()),
            audience,
            allows_plain_jwt: plain_jwt.unwrap_or(false),
            groups: groups.unwrap_or_else(|| DEFAULT_GROUPS.to_owned()),
            networks,
            introspection,
        });
    }
    Ok(all)
}

/// The names of the declared secrets, for a message.
pub(super) fn known_secrets(secrets: &BTreeMap<String, SecretSource>) -> String {
    let names: Vec<String> = secrets.keys().take(10).map(|name| format!("\"{name}\"")).collect();
    match names.as_slice() {
        [] => "[secrets] has none".to_owned(),
        names => format!("[secrets] has {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
