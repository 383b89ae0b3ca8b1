//! The address of an entry: a URL or an RFC 6570 template, and its expansion with the values of a reference.
//!
//! Clients see another template: path variables are segments below the entry's name, and query variables are a query.
//! Values from a client cannot change the host. They cannot change the directory either, because dot segments are refused.

use iri_string::spec::UriSpec;
use iri_string::template::UriTemplateStr;
use iri_string::template::simple_context::SimpleContext;
use percent_encoding::percent_decode_str;
use url::Url;

use belljar_guest::{Error, Result, reference};

/// The address of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The text in the configuration.
    text: String,
    /// The template expanded with placeholders, for checks that need no values.
    sample: Url,
    /// The variables outside of the query, in order.
    path: Vec<String>,
    /// True if the last path variable takes several segments.
    takes_rest: bool,
    /// The variables of the query.
    query: Vec<String>,
}

/// A parsed reference below an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The expanded URL.
    pub(crate) url: Url,
    /// The ID of an item of the feed, if the reference names one.
    pub(crate) item: Option<String>,
}

/// The segment between a feed and one of its items.
pub(crate) const ITEMS: &str = "items";

impl Address {
    /// Parses a URL or a template. The error names the expected form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let expected = |what: &str| Err(format!("url \"{text}\" {what}"));
        // This check also avoids a panic of iri-string 0.7.14 on "%é".
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return expected("has a space or a character that is not ASCII: percent-encode it (a space is %20)");
        }
        let (mut path, mut query, mut takes_rest) = (Vec::new(), Vec::new(), false);
        for expression in expressions(text).map_err(|why| format!("url \"{text}\" {why}"))? {
            let in_query = matches!(expression.operator, Some('?' | '&'));
            for name in expression.names {
                if path.iter().chain(&query).any(|known| known == name) {
                    continue;
                }
                if in_query {
                    query.push(name.to_owned());
                } else {
                    takes_rest = expression.operator == Some('+');
                    path.push(name.to_owned());
                }
            }
        }
        if UriTemplateStr::new(text).is_err() {
            return expected("is not an RFC 6570 template: a variable is written as {name}");
        }
        if !begins_with_its_host(text) {
            return expected("has a variable in its host: write scheme and host as they are, https://api.example/...");
        }
        let mut address = Address { text: text.to_owned(), sample: placeholder()?, path, takes_rest, query };
        let examples: Vec<(&str, String)> = address.variables().map(|name| (name, "x".to_owned())).collect();
        let Ok(sample) = address.expand(&examples) else {
            return expected("is not a whole URL: write it as https://host/path");
        };
        if !matches!(sample.scheme(), "http" | "https") || !sample.has_host() {
            return expected("is not an http or https URL: write it as https://host/path");
        }
        if !sample.username().is_empty() || sample.password().is_some() {
            return expected(
                "has a user name in it: credentials are the host's to add, by  headers = { authorization = \"...\" }  \
                 in the http grant",
            );
        }
        if sample.fragment().is_some() {
            return expected("has a fragment (#...), which is never sent: leave it out");
        }
        address.sample = sample;
        Ok(address)
    }

    /// All variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.path.iter().chain(&self.query).map(String::as_str)
    }

    /// True if the address has variables.
    pub(crate) fn is_template(&self) -> bool {
        self.variables().next().is_some()
    }

    /// The URL, if the address has no variables.
    pub(crate) fn fixed(&self) -> Option<&Url> {
        (!self.is_template()).then_some(&self.sample)
    }

    /// The template that clients see, for an entry of this name.
    pub(crate) fn shown_as(&self, name: &str) -> String {
        let mut shown = name.to_owned();
        for (at, variable) in self.path.iter().enumerate() {
            let operator = if self.takes_rest && at + 1 == self.path.len() { "+" } else { "" };
            shown.push_str(&format!("/{{{operator}{variable}}}"));
        }
        if !self.query.is_empty() {
            shown.push_str(&format!("{{?{}}}", self.query.join(",")));
        }
        shown
    }

    /// Parses a reference below the entry. `below` is the path after the entry's name, without the first `/`. With
    /// `may_have_items`, the last two segments can name an item even if the last variable takes several segments.
    pub(crate) fn place(&self, below: Option<&str>, query: &str, may_have_items: bool) -> Result<Place> {
        let mut segments: Vec<&str> = below.map(|below| below.split('/').collect()).unwrap_or_default();
        let is_item = match segments.as_slice() {
            [.., ITEMS, id] => !id.is_empty() && segments.len() >= self.path.len() + 2,
            _ => false,
        };
        let item = if is_item && (may_have_items || !self.takes_rest) {
            let id = segments.pop().map(str::to_owned);
            segments.pop();
            id
        } else {
            None
        };
        let fits = if self.takes_rest { segments.len() >= self.path.len() } else { segments.len() == self.path.len() };
        if !fits {
            return Err(Error::NotFound);
        }
        let mut values = Vec::new();
        for (at, name) in self.path.iter().enumerate() {
            let until = if self.takes_rest && at + 1 == self.path.len() { segments.len() } else { at + 1 };
            let value = reference::decode(&segments.get(at..until).unwrap_or_default().join("/"))?;
            if value.is_empty() {
                return Err(Error::NotFound);
            }
            check_value(name, &value)?;
            values.push((name.as_str(), value));
        }
        self.check_query(query)?;
        for name in &self.query {
            if let Some(value) = reference::query_value(query, name)? {
                check_value(name, &value)?;
                values.push((name, value));
            }
        }
        Ok(Place { url: self.expand(&values)?, item })
    }

    /// The path and the query of the reference below the entry that gives this URL. `None` if none is found: for other URLs,
    /// and for templates with `{.x}`, `{;x}` or two variables without text between them.
    pub(crate) fn reference_of(&self, url: &Url) -> Option<(Option<String>, String)> {
        let values = self.values_in(url.as_str())?;
        let value = |name: &String| values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let last = self.path.len().saturating_sub(1);
        let mut segments = Vec::new();
        for (at, name) in self.path.iter().enumerate() {
            let takes_rest = self.takes_rest && at == last;
            segments.push(if takes_rest {
                reference::encode(value(name)?)
            } else {
                reference::encode_segment(value(name)?)
            });
        }
        let mut pairs = Vec::new();
        for name in &self.query {
            if let Some((_, value)) = url.query_pairs().find(|(known, _)| known == name) {
                // In a query, "&" ends a value.
                pairs.push(format!("{name}={}", reference::encode_segment(&value).replace('&', "%26")));
            }
        }
        let (below, query) = ((!segments.is_empty()).then(|| segments.join("/")), pairs.join("&"));
        // The expansion decides: it makes the same checks as for any other reference.
        let place = self.place(below.as_deref(), &query, false).ok()?;
        (place.url == *url && place.item.is_none()).then_some((below, query))
    }

    /// The values of the path variables, decoded, as they are spelled in `url`. Stops at the first expression of the query.
    fn values_in<'a>(&'a self, url: &str) -> Option<Vec<(&'a str, String)>> {
        let (mut values, mut text, mut rest) = (Vec::new(), self.text.as_str(), url);
        while let Some((literal, after)) = text.split_once('{') {
            let (inner, tail) = after.split_once('}')?;
            let names = inner.trim_start_matches(['+', '/']);
            if names.starts_with(['?', '&']) {
                break;
            }
            if names.starts_with(['.', ';']) {
                return None;
            }
            rest = rest.strip_prefix(literal)?;
            let following = tail.split('{').next().unwrap_or_default();
            for (at, name) in names.split(',').enumerate() {
                let separator = if inner.starts_with('/') { "/" } else { "," };
                if inner.starts_with('/') || at > 0 {
                    rest = rest.strip_prefix(separator)?;
                }
                let end = match following {
                    "" => rest.find('?'),
                    following if inner.starts_with('+') => rest.rfind(following),
                    following => rest.find(following),
                };
                let end = end.unwrap_or(rest.len());
                let end = if inner.starts_with('+') {
                    end
                } else {
                    rest.find(['/', ',', '?', '&']).map_or(end, |at| end.min(at))
                };
                let (value, after) = rest.split_at_checked(end)?;
                values.push((name, percent_decode_str(value).decode_utf8().ok()?.into_owned()));
                rest = after;
            }
            text = tail;
        }
        Some(values)
    }

    fn check_query(&self, query: &str) -> Result<()> {
        for (name, _) in reference::pairs(query) {
            let name = reference::decode(name)?;
            if !self.query.contains(&name) {
                return Err(match self.query.as_slice() {
                    [] => Error::invalid(format_args!("unknown parameter \"{name}\": this resource has no parameters")),
                    known => Error::invalid(format_args!(
                        "unknown parameter \"{name}\": expected one of \"{}\"",
                        known.join("\", \"")
                    )),
                });
            }
        }
        Ok(())
    }

    fn expand(&self, values: &[(&str, String)]) -> Result<Url> {
        let mut context = SimpleContext::new();
        for (name, value) in values {
            context.insert((*name).to_owned(), value.clone());
        }
        let template = UriTemplateStr::new(&self.text).map_err(Error::failed)?;
        let text = template.expand::<UriSpec, _>(&context).map_err(Error::invalid)?.to_string();
        let url = Url::parse(&text)
            .map_err(|why| Error::invalid(format_args!("the values do not give a valid URL: {why}")))?;
        // The checks of template and values already exclude a different host; the host's grants would stop it as well.
        let is_placeholder = self.sample.scheme() == "about";
        if !is_placeholder && url.origin() != self.sample.origin() {
            return Err(Error::invalid("a value changes the host of the URL"));
        }
        Ok(url)
    }
}

fn placeholder() -> Result<Url, String> {
    Url::parse("about:blank").map_err(|why| why.to_string())
}

/// Refuses dot segments in a value, in every spelling that URLs allow.
fn check_value(name: &str, value: &str) -> Result<()> {
    for part in value.split(['/', '\\']) {
        let decoded = percent_decode_str(part).decode_utf8_lossy();
        if decoded.split(['/', '\\']).any(|part| matches!(part, "." | "..")) {
            return Err(Error::invalid(format_args!("the value of \"{name}\" has a segment \".\" or \"..\"")));
        }
    }
    Ok(())
}

/// A template expression such as `{+a,b}`.
struct Expression<'a> {
    operator: Option<char>,
    names: Vec<&'a str>,
}

/// The expressions of a template of level 3 or below.
fn expressions(text: &str) -> Result<Vec<Expression<'_>>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((inner, tail)) = after.split_once('}') else {
            return Err("has a \"{\" without its \"}\"".to_owned());
        };
        let operator = inner.chars().next().filter(|c| !c.is_ascii_alphanumeric() && *c != '_');
        if let Some(unknown) = operator.filter(|c| !"+./;?&".contains(*c)) {
            return Err(match unknown {
                '#' => "has a fragment ({#...}), which is never sent: leave it out".to_owned(),
                _ => format!("has \"{{{unknown}\": the operators are + . / ; ? &"),
            });
        }
        let names: Vec<&str> = inner.get(operator.map_or(0, char::len_utf8)..).unwrap_or_default().split(',').collect();
        for name in &names {
            if name.contains([':', '*']) {
                return Err(format!(
                    "has \"{name}\": prefixes (:3) and lists (*) are not supported, write the name alone"
                ));
            }
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(format!("has a variable \"{name}\": a name is made of letters, digits and \"_\""));
            }
        }
        found.push(Expression { operator, names });
        rest = tail;
    }
    Ok(found)
}

/// True if the host of a template ends before its first expression.
fn begins_with_its_host(text: &str) -> bool {
    let Some(brace) = text.find('{') else { return true };
    let (literal, expression) = text.split_at(brace);
    let Some((_, after)) = literal.split_once("://") else { return false };
    let host = after.split(['/', '?']).next().unwrap_or_default();
    !host.is_empty() && (host.len() < after.len() || expression.starts_with("{/") || expression.starts_with("{?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(template: &str, reference: &str) -> Result<String> {
        let (path, query) = reference::split(reference);
        let below = path.split_once('/').map(|(_, below)| below);
        Address::parse(template).map_err(Error::Failed)?.place(below, query, false).map(|place| place.url.to_string())
    }

    fn shown(template: &str) -> String {
        Address::parse(template).unwrap().shown_as("it")
    }

    #[test]
    fn clients_see_segments_and_a_query() {
        assert_eq!(shown("https://a.example/x"), "it");
        assert_eq!(shown("https://a.example/users/{id}/posts{?page,size}"), "it/{id}{?page,size}");
        assert_eq!(shown("https://a.example{/owner,repo}/raw/{+path}?x=1{&ref}"), "it/{owner}/{repo}/{+path}{?ref}");
        assert_eq!(shown("https://a.example/{+path}/by/{id}"), "it/{path}/{id}");
        assert_eq!(shown("https://a.example/{id}/again/{id}{?id}"), "it/{id}");
        assert_eq!(shown("https://a.example/search?q={words}"), "it/{words}");
    }

    #[test]
    fn values_of_a_reference_fill_in_the_template() {
        for (template, reference, expected) in [
            ("https://a.example/x?y=1", "it", "https://a.example/x?y=1"),
            ("https://a.example/u/{id}", "it/7", "https://a.example/u/7"),
            ("https://a.example/u/{id}", "it/a%20b%2Fc%3F", "https://a.example/u/a%20b%2Fc%3F"),
            ("https://a.example/u{?q,n}", "it?q=two%20words&n=3", "https://a.example/u?q=two%20words&n=3"),
            ("https://a.example/u{?q,n}", "it?n=3", "https://a.example/u?n=3"),
            ("https://a.example/u{?q,n}", "it", "https://a.example/u"),
            ("https://a.example/u?k=1{&q}", "it?q=a%26b", "https://a.example/u?k=1&q=a%26b"),
            ("https://a.example{/a,b}", "it/x/y", "https://a.example/x/y"),
            ("https://a.example/raw/{+path}", "it/src/main.rs", "https://a.example/raw/src/main.rs"),
            ("https://a.example/{v}.json", "it/for%C3%AAt", "https://a.example/for%C3%AAt.json"),
            ("https://a.example/s?q={words}", "it/x%26y=1", "https://a.example/s?q=x%26y%3D1"),
        ] {
            assert_eq!(url(template, reference).as_deref(), Ok(expected), "{template} {reference}");
        }
    }

    #[test]
    fn references_of_another_shape_are_not_found() {
        for (template, reference) in [
            ("https://a.example/x", "it/more"),
            ("https://a.example/x", "it/"),
            ("https://a.example/u/{id}", "it"),
            ("https://a.example/u/{id}", "it/"),
            ("https://a.example/u/{id}", "it/1/2"),
            ("https://a.example/{+path}", "it"),
        ] {
            assert_eq!(url(template, reference), Err(Error::NotFound), "{template} {reference}");
        }
    }

    #[test]
    fn no_value_changes_host_or_directory() {
        for value in ["..", "%252e%252e", "a%252F..", "..%2Fa", "a%2F..%2Fb", "%5C..", "%252E.%255Cx"] {
            let all = [
                url("https://a.example/d/{+path}", &format!("it/{value}")),
                url("https://a.example/d/{v}", &format!("it/{value}")),
                url("https://a.example/d{?v}", &format!("it?v={value}")),
            ];
            assert!(all.iter().all(|result| matches!(result, Err(Error::Invalid(_)))), "{value}: {all:?}");
        }
        for value in ["%40evil.example", "%3A80", ".evil.example", "%2F%2Fevil.example%2F", "%5C%5Cevil.example"] {
            for template in ["https://a.example/{+path}", "https://a.example{/path}", "https://a.example/{path}"] {
                let filled = url(template, &format!("it/{value}")).unwrap();
                assert!(filled.starts_with("https://a.example/"), "{template} {value}: {filled}");
            }
        }
    }

    #[test]
    fn a_url_of_an_address_has_a_reference() {
        let of = |template: &str, url: &str| {
            let found = Address::parse(template).unwrap().reference_of(&Url::parse(url).unwrap());
            found.map(|(below, query)| format!("it/{}?{query}", below.unwrap_or_default()))
        };
        for (template, url, expected) in [
            ("https://a.example/x?y=1", "https://a.example/x?y=1", "it/?"),
            ("https://a.example/u/{id}", "https://a.example/u/a%20b%2Fc%3F", "it/a%20b%2Fc%3F?"),
            ("https://a.example/u/{id}/posts{?q,n}", "https://a.example/u/7/posts?n=3", "it/7?n=3"),
            ("https://a.example/u{?q,n}", "https://a.example/u?q=two%20words&n=3", "it/?q=two%20words&n=3"),
            ("https://a.example/u?k=1{&q}", "https://a.example/u?k=1&q=a%26b", "it/?q=a%26b"),
            ("https://a.example{/a,b}", "https://a.example/x/y", "it/x/y?"),
            ("https://a.example/raw/{+path}", "https://a.example/raw/src/main.rs", "it/src/main.rs?"),
            ("https://a.example/{v}.json", "https://a.example/for%C3%AAt.json", "it/for%C3%AAt?"),
            ("https://a.example/s?q={words}", "https://a.example/s?q=x%26y%3D1", "it/x&y=1?"),
        ] {
            assert_eq!(of(template, url).as_deref(), Some(expected), "{template} {url}");
        }
        for (template, url) in [
            ("https://a.example/x", "https://a.example/y"),
            ("https://a.example/x", "https://a.example/x?more=1"),
            ("https://a.example/x", "http://a.example/x"),
            ("https://a.example/u/{id}", "https://a.example/u/1/2"),
            ("https://a.example/u/{id}", "https://b.example/u/1"),
            ("https://a.example/u/{id}", "https://a.example/u/"),
            ("https://a.example/u{?q}", "https://a.example/u?q=1&other=2"),
            ("https://a.example/d/{+path}", "https://a.example/d/a%2F..%2Fb"),
        ] {
            assert_eq!(of(template, url), None, "{template} {url}");
        }
    }

    #[test]
    fn an_unknown_parameter_is_invalid() {
        let Err(Error::Invalid(why)) = url("https://a.example/u{?q,n}", "it?page=2") else {
            panic!("an unknown parameter was accepted")
        };
        assert_eq!(why, "unknown parameter \"page\": expected one of \"q\", \"n\"");
        assert!(matches!(url("https://a.example/u", "it?page=2"), Err(Error::Invalid(_))));
    }

    #[test]
    fn items_are_distinguished_from_variables() {
        let place = |template: &str, below: &str, may| {
            let place = Address::parse(template).unwrap().place(Some(below), "", may).unwrap();
            (place.url.path().to_owned(), place.item)
        };
        let id = Some("0123456789abcdef".to_owned());
        assert_eq!(place("https://a.example/f", "items/0123456789abcdef", false), ("/f".into(), id.clone()));
        assert_eq!(place("https://a.example/{t}", "x/items/0123456789abcdef", false), ("/x".into(), id.clone()));
        let rest = "https://a.example/{+p}";
        assert_eq!(place(rest, "x/y/items/0123456789abcdef", true), ("/x/y".into(), id));
        assert_eq!(place(rest, "x/items/0123456789abcdef", false), ("/x/items/0123456789abcdef".into(), None));
        assert_eq!(place(rest, "items/a", true), ("/items/a".into(), None));
    }

    #[test]
    fn errors_say_the_expected_form() {
        for (text, why) in [
            ("a.example/x", "not a whole URL"),
            ("/x", "not a whole URL"),
            ("ftp://a.example/x", "not an http or https URL"),
            ("https:///{x}", "host"),
            ("https://{host}/x", "variable in its host"),
            ("https://a.example{x}/", "variable in its host"),
            ("https://a.{tld}/", "variable in its host"),
            ("{+url}", "variable in its host"),
            ("https://me:pw@a.example/", "credentials are the host's"),
            ("https://a.example/#top", "fragment"),
            ("https://a.example/{#top}", "fragment"),
            ("https://a.example/{x", "without its"),
            ("https://a.example/x}", "RFC 6570"),
            ("https://a.example/{}", "a name is made of"),
            ("https://a.example/{x:3}", "not supported"),
            ("https://a.example/{x*}", "not supported"),
            ("https://a.example/{=x}", "the operators are"),
            ("https://a.example/é", "percent-encode"),
            ("https://a.example/%é", "percent-encode"),
            ("https://a.example/a b", "percent-encode"),
            ("", "not a whole URL"),
        ] {
            let message = Address::parse(text).unwrap_err();
            assert!(message.contains(why) && message.contains(&format!("\"{text}\"")), "{text}: {message}");
        }
    }
}
