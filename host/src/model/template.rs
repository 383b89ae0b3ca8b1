//! RFC 6570 templates: expansion, completion of variables, and matching. Matching finds the value of a variable from an
//! expanded URI.
//!
//! RFC 6570 defines expansion but not matching. A template becomes one regular expression, whose matching time depends
//! only on the length of the URI. It matches exactly the possible expansions, so a found value leads back to the same
//! URI. In an expression with several variables, those after the last defined one may be absent.

use percent_encoding::{percent_decode_str, utf8_percent_encode};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::reference::{NOT_IN_URI, NOT_UNRESERVED};

/// A request for values of one template variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletionInput {
    /// The template, relative, as the provider listed it.
    pub template: String,
    /// The variable's name.
    pub name: String,
    /// The value typed so far.
    pub value: String,
    /// Names and values of the variables that already have one.
    pub resolved: Vec<(String, String)>,
}

/// Suggested values of one template variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestions {
    /// Complete values, best first.
    pub values: Vec<String>,
    /// Number of all matching values, if known.
    pub total: Option<u32>,
}

/// Bytes of the compiled regular expression of one template.
const MAX_PROGRAM: usize = 1 << 20;

/// Variables of a template that can be matched. The cost of a match grows with their number, and no person fills in
/// more.
const MAX_VARIABLES: usize = 16;

/// The pattern of one character of an expanded value: unreserved (RFC 3986 2.3) or percent-encoded.
const PLAIN: &str = r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})";

/// The same for an expression that allows reserved characters.
const RESERVED: &str = r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})";

/// One expression: `{+path}`, `{?q,n}`.
struct TemplateExpression<'t> {
    operator: Option<char>,
    variables: Vec<TemplateVariable<'t>>,
}

/// One variable of an expression.
struct TemplateVariable<'t> {
    name: &'t str,
    /// The prefix length of `{id:3}`, in characters.
    prefix: Option<usize>,
}

impl<'t> TemplateExpression<'t> {
    /// Parses the text between the braces.
    fn read(inside: &'t str) -> Self {
        let operator = inside.chars().next().filter(|c| "+#./;?&".contains(*c));
        let list = operator.map_or(inside, |c| inside.strip_prefix(c).unwrap_or(inside));
        let variable = |item: &'t str| {
            let item = item.strip_suffix('*').unwrap_or(item);
            let (name, prefix) = item.split_once(':').map_or((item, None), |(name, n)| (name, n.parse().ok()));
            TemplateVariable { name, prefix }
        };
        Self { operator, variables: list.split(',').map(variable).collect() }
    }

    fn allows_reserved(&self) -> bool {
        self.operator == Some('+')
    }
}

/// Splits a template: pairs of literal text and the expression after it, and the final literal text.
fn parts(template: &str) -> (Vec<(&str, TemplateExpression<'_>)>, &str) {
    let (mut parts, mut rest) = (Vec::new(), template);
    while let Some((literal, (inside, behind))) =
        rest.split_once('{').and_then(|(literal, rest)| Some((literal, rest.split_once('}')?)))
    {
        parts.push((literal, TemplateExpression::read(inside)));
        rest = behind;
    }
    (parts, rest)
}

/// Expands `template` with the values that `value_of` returns (RFC 6570 3.2).
pub fn expand<'v>(template: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> String {
    let (parts, end) = parts(template);
    let mut out = String::new();
    for (literal, expression) in parts {
        out.push_str(literal);
        let (first, between, is_named) = match expression.operator {
            None | Some('+') => ("", ",", false),
            Some('#') => ("#", ",", false),
            Some('.') => (".", ".", false),
            Some('/') => ("/", "/", false),
            Some(';') => (";", ";", true),
            Some('&') => ("&", "&", true),
            Some(_) => ("?", "&", true),
        };
        let keeps = if matches!(expression.operator, Some('+' | '#')) { NOT_IN_URI } else { NOT_UNRESERVED };
        let given = expression.variables.iter().filter_map(|variable| Some((variable, value_of(variable.name)?)));
        for (at, (variable, value)) in given.enumerate() {
            out.push_str(if at == 0 { first } else { between });
            if is_named {
                out.push_str(variable.name);
                out.push('=');
            }
            let value: String = value.chars().take(variable.prefix.unwrap_or(usize::MAX)).collect();
            out.extend(utf8_percent_encode(&value, keeps));
        }
    }
    out + end
}

/// The text of a template before its first expression.
pub fn literal_start(template: &str) -> &str {
    template.split('{').next().unwrap_or_default()
}

/// The beginning of every expansion of `template` with the values that `value_of` returns, and true if this is the whole
/// expansion: then every variable has a value.
pub fn known_start<'v>(template: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> (String, bool) {
    let mut rest = template;
    let mut known = 0;
    while let Some((literal, (inside, behind))) =
        rest.split_once('{').and_then(|(literal, rest)| Some((literal, rest.split_once('}')?)))
    {
        let is_known = TemplateExpression::read(inside).variables.iter().all(|one| value_of(one.name).is_some());
        if !is_known {
            let end = known + literal.len();
            return (expand(template.get(..end).unwrap_or_default(), value_of), false);
        }
        known += literal.len() + inside.len() + 2;
        rest = behind;
    }
    (expand(template, value_of), true)
}

/// The names of a template's variables in their order, without repetitions.
pub fn variables(template: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for variable in parts(template).0.into_iter().flat_map(|(_, expression)| expression.variables) {
        if !names.contains(&variable.name) {
            names.push(variable.name);
        }
    }
    names
}

/// Finds the value of one variable in expanded URIs.
pub struct Matcher {
    regex: Regex,
    /// For each capture group: the index of its variable, and whether reserved characters are allowed in it.
    groups: Vec<(usize, bool)>,
    wanted: usize,
}

impl Matcher {
    /// A matcher for the variable `wanted` of `template`; the variables in `fixed` have the given values. `None` if the
    /// template has no such variable, or only prefixes of it, or is too complex to match.
    pub fn new(template: &str, wanted: &str, fixed: &[(String, String)]) -> Option<Self> {
        let names = variables(template);
        let wanted = names.iter().position(|name| *name == wanted)?;
        let (parts, end) = parts(template);
        if parts.iter().map(|(_, expression)| expression.variables.len()).sum::<usize>() > MAX_VARIABLES {
            return None;
        }
        let (mut pattern, mut groups) = (r"\A".to_owned(), Vec::new());
        for (literal, expression) in &parts {
            pattern.push_str(&regex::escape(literal));
            write(&mut pattern, expression, &mut |variable| {
                let place = names.iter().position(|name| *name == variable.name)?;
                match fixed.iter().find(|(name, _)| name == variable.name && place != wanted) {
                    Some((_, value)) => Some(literal_value(value, variable.prefix, expression.allows_reserved())),
                    None => {
                        let one = if expression.allows_reserved() { RESERVED } else { PLAIN };
                        // A prefix does not determine the whole value.
                        if let Some(most) = variable.prefix {
                            return Some(format!("{one}{{0,{}}}", most.min(1000)));
                        }
                        groups.push((place, expression.allows_reserved()));
                        Some(format!("({one}*)"))
                    }
                }
            })?;
        }
        pattern.push_str(&regex::escape(end));
        pattern.push_str(r"\z");
        if !groups.iter().any(|(place, _)| *place == wanted) {
            return None;
        }
        let regex = RegexBuilder::new(&pattern).size_limit(MAX_PROGRAM).dfa_size_limit(MAX_PROGRAM).build().ok()?;
        Some(Self { regex, groups, wanted })
    }

    /// The decoded value of the variable in `uri`. `None` if the template does not expand to `uri`, or the value is
    /// empty.
    pub fn value(&self, uri: &str) -> Option<String> {
        let captures = self.regex.captures(uri)?;
        let mut values: Vec<Option<String>> = Vec::new();
        for (at, (place, reserved)) in self.groups.iter().enumerate() {
            let Some(found) = captures.get(at + 1) else { continue };
            let value = decoded(found.as_str(), *reserved)?;
            if values.len() <= *place {
                values.resize(place + 1, None);
            }
            match values.get_mut(*place)? {
                // All occurrences of a variable have the same value.
                Some(other) if *other != value => return None,
                own => *own = Some(value),
            }
        }
        values.into_iter().nth(self.wanted)?.filter(|value| !value.is_empty())
    }
}

/// Appends the pattern of an expression; `value` returns the pattern of each variable.
fn write<'t>(
    pattern: &mut String,
    expression: &TemplateExpression<'t>,
    value: &mut dyn FnMut(&TemplateVariable<'t>) -> Option<String>,
) -> Option<()> {
    let (first, between, is_named) = match expression.operator {
        None | Some('+') => ("", ",", false),
        Some('.') => (r"\.", r"\.", false),
        Some('/') => ("/", "/", false),
        Some(';') => (";", ";", true),
        Some('?') => (r"\?", "&", true),
        Some('&') => ("&", "&", true),
        Some(_) => return None,
    };
    let mut open = 0;
    for (at, variable) in expression.variables.iter().enumerate() {
        // Without an operator, an empty first value looks the same as an absent one.
        if at > 0 || !first.is_empty() {
            pattern.push_str("(?:");
            open += 1;
        }
        pattern.push_str(if at == 0 { first } else { between });
        let value = value(variable)?;
        match (is_named, expression.operator) {
            // After `;`, an empty value has no equals sign.
            (true, Some(';')) => pattern.push_str(&format!("{}(?:={value})?", regex::escape(variable.name))),
            (true, _) => pattern.push_str(&format!("{}={value}", regex::escape(variable.name))),
            (false, _) => pattern.push_str(&value),
        }
    }
    pattern.push_str(&")?".repeat(open));
    Some(())
}

fn is_unreserved(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-._~".contains(&b)
}

fn is_reserved(b: u8) -> bool {
    b":/?#[]@!$&'()*+,;=".contains(&b)
}

/// A pattern for the expansion of a known value. Hexadecimal digits match in either case.
fn literal_value(value: &str, prefix: Option<usize>, reserved: bool) -> String {
    let value: String = value.chars().take(prefix.unwrap_or(usize::MAX)).collect();
    let bytes = value.as_bytes();
    let mut out = String::new();
    for (at, b) in bytes.iter().enumerate() {
        let hex = |ahead: usize| bytes.get(at + ahead).is_some_and(u8::is_ascii_hexdigit);
        let passes = is_unreserved(*b) || (reserved && (is_reserved(*b) || (*b == b'%' && hex(1) && hex(2))));
        if passes {
            out.push_str(&regex::escape(char::from(*b).encode_utf8(&mut [0; 4])));
        } else {
            out.push('%');
            for digit in format!("{b:02X}").chars() {
                out.push_str(&format!("[{digit}{}]", digit.to_ascii_lowercase()));
            }
        }
    }
    out
}

/// Decodes `raw`. Where reserved characters are allowed, an encoded one differs from a literal one: such a value is
/// returned as it is.
fn decoded(raw: &str, reserved: bool) -> Option<String> {
    let value = percent_decode_str(raw).decode_utf8().ok()?;
    if reserved {
        let mut encoded = raw.split('%').skip(1).filter_map(|rest| u8::from_str_radix(rest.get(..2)?, 16).ok());
        if encoded.any(|b| b == b'%' || is_reserved(b)) {
            return Some(raw.to_owned());
        }
    }
    Some(value.into_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_start_of_an_expansion_ends_at_the_first_unknown_variable() {
        let start = |template: &str| {
            known_start(template, |name| match name {
                "a" => Some("x y"),
                "b" => Some("p/q"),
                _ => None,
            })
        };
        let is = |text: &str, is_whole: bool| (text.to_owned(), is_whole);
        assert_eq!(start("logs/{a}/{+b}.txt"), is("logs/x%20y/p/q.txt", true));
        assert_eq!(start("logs/{a}/{c}/{b}"), is("logs/x%20y/", false));
        assert_eq!(start("{c}"), is("", false));
        assert_eq!(start("logs{?a,c}"), is("logs", false));
        assert_eq!(start("plain"), is("plain", true));
        assert_eq!(literal_start("logs/{a}/x"), "logs/");
        assert_eq!(literal_start("logs"), "logs");
    }

    use super::*;

    fn value(template: &str, wanted: &str, fixed: &[(&str, &str)], uri: &str) -> Option<String> {
        let fixed: Vec<_> = fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Matcher::new(template, wanted, &fixed)?.value(uri)
    }

    #[test]
    fn names_each_variable_once() {
        assert_eq!(variables("a/{x}/{+y:3}{?x,z*}"), ["x", "y", "z"]);
        assert!(variables("plain").is_empty());
    }

    #[test]
    fn finds_the_value_in_an_expanded_uri() {
        for (template, wanted, uri, expected) in [
            ("b://t/{id}/data", "id", "b://t/12/data", Some("12")),
            ("b://t/{id}/data", "id", "b://t/a%20b/data", Some("a b")),
            ("b://t/{id}/data", "id", "b://t/%c3%a9/data", Some("\u{e9}")),
            ("b://t/{id}/data", "id", "b://t/1/2/data", None),
            ("b://t/{id}/data", "id", "b://t//data", None),
            ("b://t/{id}/data", "id", "b://t/1/data/", None),
            ("b://t/{id}", "id", "b://t/a@b", None),
            ("b://t/{+path}", "path", "b://t/2026/a%20b.md", Some("2026/a b.md")),
            ("b://t/{+path}", "path", "b://t/a%2Fb", Some("a%2Fb")),
            ("b://t/{+path}", "path", "b://t/100%25", Some("100%25")),
            ("b://t/{y}-{m}", "m", "b://t/2026-11", Some("11")),
            ("b://t/{y}/{+rest}", "y", "b://t/2026/11/x.md", Some("2026")),
            ("b://t/{y}/{+rest}", "rest", "b://t/2026/11/x.md", Some("11/x.md")),
            ("b://t{/a,b}", "a", "b://t/1", Some("1")),
            ("b://t{/a,b}", "b", "b://t/1/2", Some("2")),
            ("b://t{/a,b}", "b", "b://t/1", None),
            ("b://t/x{.ext}", "ext", "b://t/x.md", Some("md")),
            ("b://t/s{?q,n}", "n", "b://t/s?q=1&n=2", Some("2")),
            ("b://t/s{?q,n}", "q", "b://t/s?q=1", Some("1")),
            ("b://t/s{?q,n}", "q", "b://t/s&q=1", None),
            ("b://t/s?a=1{&q}", "q", "b://t/s?a=1&q=2", Some("2")),
            ("b://t/s{;q}", "q", "b://t/s;q=2", Some("2")),
            ("b://t/s{;q}", "q", "b://t/s;q", None),
            ("b://t/{x}/{x}", "x", "b://t/1/1", Some("1")),
            ("b://t/{x}/{x}", "x", "b://t/1/2", None),
            ("b://t/{x}{z}", "nope", "b://t/1", None),
            ("b://t/{x:2}/{x}", "x", "b://t/ab/abc", Some("abc")),
            ("b://t/{x:2}", "x", "b://t/ab", None),
            ("b://t/{#x}", "x", "b://t/#ab", None),
            ("b://t/(.*){x}", "x", "b://t/(.*)y", Some("y")),
        ] {
            assert_eq!(value(template, wanted, &[], uri).as_deref(), expected, "{template} {wanted} {uri}");
        }
    }

    #[test]
    fn fixed_variables_must_match() {
        let template = "b://t/{year}/{+rest}";
        assert_eq!(value(template, "rest", &[("year", "2026")], "b://t/2026/a"), Some("a".into()));
        assert_eq!(value(template, "rest", &[("year", "2025")], "b://t/2026/a"), None);
        assert_eq!(value("b://t/{a}-{b}", "b", &[("a", "x-y")], "b://t/x-y-z"), Some("z".into()));
        assert_eq!(value("b://t/{a}/{b}", "b", &[("a", "\u{e9} /")], "b://t/%c3%A9%20%2f/z"), Some("z".into()));
        assert_eq!(value("b://t/{a:2}/{b}", "b", &[("a", "2026")], "b://t/20/z"), Some("z".into()));
        assert_eq!(value("b://t/{+a}/{b}", "b", &[("a", "x/%20[y")], "b://t/x/%20[y/z"), Some("z".into()));
        // The wanted variable is never fixed, even if `fixed` names it.
        assert_eq!(value("b://t/{a}", "a", &[("a", "1")], "b://t/2"), Some("2".into()));
    }

    #[test]
    fn a_too_complex_template_is_not_matched() {
        assert!(Matcher::new(&format!("b://t/{}", "{x:1000}{y}".repeat(8)), "y", &[]).is_none());
        assert!(Matcher::new(&format!("b://t/{}", "{y}".repeat(MAX_VARIABLES + 1)), "y", &[]).is_none());
    }

    #[test]
    fn the_worst_template_is_matched_without_backtracking() {
        let names = (0..MAX_VARIABLES).map(|n| format!("{{+v{n}}}")).collect::<String>();
        let matcher = Matcher::new(&format!("b://t/{names}!"), "v7", &[]).unwrap();
        let uri = format!("b://t/{}", "!x".repeat(1000));
        // With backtracking, the time would grow with the sixteenth power of the length: this call would not return.
        assert_eq!(matcher.value(&uri), None);
    }
}
