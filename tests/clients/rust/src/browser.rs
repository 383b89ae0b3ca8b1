//! The browser of a person who logs in: follows the redirects of an authorization server, and keeps its cookies.

use std::collections::BTreeMap;

use http::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::Url;
use serde_json::{Map, Value};

use crate::Failure;

/// The most redirects of one authorization. A login and a consent take six.
const MAX_REDIRECTS: usize = 12;

/// The parameters of an authorization that tests compare.
const COMPARED: [&str; 6] =
    ["client_id", "response_type", "code_challenge_method", "redirect_uri", "resource", "scope"];

/// The browser of a person.
pub(crate) struct Browser {
    http: reqwest::Client,
    account: String,
    redirect: &'static str,
    authorizations: Vec<Value>,
}

impl Browser {
    /// The browser of the person `account`. Each authorization ends with a redirect to `redirect`.
    pub(crate) fn new(account: &str, redirect: &'static str) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
        Ok(Self { http, account: account.to_owned(), redirect, authorizations: Vec::new() })
    }

    /// The parameters of each authorization, with the `iss` and `error` of its answer.
    pub(crate) fn authorizations(&self) -> &[Value] {
        &self.authorizations
    }

    /// Follows an authorization URL. Returns the URL of the redirect to the client.
    pub(crate) async fn authorize(&mut self, page: &str) -> Result<String, Failure> {
        let mut url = Url::parse(page)?;
        let asked = parameters(&url);
        url.query_pairs_mut().append_pair("login_hint", &self.account);
        let mut cookies = BTreeMap::new();
        for _ in 0..MAX_REDIRECTS {
            let cookie: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let response = self.http.get(url.clone()).header(COOKIE, cookie.join("; ")).send().await?;
            for line in response.headers().get_all(SET_COOKIE) {
                let pair = line.to_str()?.split(';').next().unwrap_or_default();
                if let Some((name, value)) = pair.split_once('=') {
                    cookies.insert(name.to_owned(), value.to_owned());
                }
            }
            let Some(location) = response.headers().get(LOCATION) else {
                return Err(format!("no redirect, but {}: {}", response.status(), response.text().await?).into());
            };
            url = url.join(location.to_str()?)?;
            if url.as_str().starts_with(self.redirect) {
                self.note(&asked, &parameters(&url));
                return Ok(url.into());
            }
        }
        Err(format!("more than {MAX_REDIRECTS} redirects").into())
    }

    fn note(&mut self, asked: &BTreeMap<String, String>, answer: &BTreeMap<String, String>) {
        let value =
            |all: &BTreeMap<String, String>, name: &str| all.get(name).cloned().map_or(Value::Null, Value::from);
        let mut seen: Map<_, _> = COMPARED.map(|name| (name.to_owned(), value(asked, name))).into_iter().collect();
        seen.insert("has_challenge".to_owned(), asked.contains_key("code_challenge").into());
        seen.extend(["iss", "error"].map(|name| (name.to_owned(), value(answer, name))));
        self.authorizations.push(seen.into());
    }
}

/// The query of a URL.
fn parameters(url: &Url) -> BTreeMap<String, String> {
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}
