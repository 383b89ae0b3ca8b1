//! Variables of templates that are being filled in; and templates read backwards: which value of a variable a URI was made
//! with.
//!
//! RFC 6570 says how a template is expanded, not how what was expanded is matched. A template becomes one regular
//! expression, whose time grows with the URI and with nothing else, whatever a provider wrote. It matches exactly what the
//! template can expand to, so that a value that is found leads back to where it was found; of a list of variables in one
//! expression, those behind the last that is given may be absent.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use regex::{Regex, RegexBuilder};

/// A variable of a template that is being filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completing {
    /// The template, relative, as the provider listed it.
    pub template: String,
    /// The variable's name.
    pub name: String,
    /// What it has so far.
    pub value: String,
    /// Names and values of the variables that are filled in already.
    pub resolved: Vec<(String, String)>,
}

/// What the value of a variable could become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// Whole values, best first.
    pub values: Vec<String>,
    /// How many there are in all, where that is known.
    pub total: Option<u32>,
}

/// Bytes that the compiled expression of one template may take.
const MAX_PROGRAM: usize = 1 << 20;

/// Variables of a template that is matched: what a match costs grows with them, and nobody fills in more.
const MAX_VARIABLES: usize = 16;

/// What a value looks like when it is expanded: unreserved characters (RFC 3986 2.3) and percent-encoding.
const PLAIN: &str = r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})";

/// The same for an expression that lets reserved characters through.
const RESERVED: &str = r"(?:[A-Za-z0-9._~:/?@!$&'()*+,;=\[\]-]|%[0-9A-Fa-f]{2})";

/// One expression: `{+path}`, `{?q,n}`.
struct Expression<'t> {
    operator: Option<char>,
    variables: Vec<Variable<'t>>,
}

/// One variable of an expression.
struct Variable<'t> {
    name: &'t str,
    /// The characters of its value that are taken: `{id:3}`.
    prefix: Option<usize>,
}

impl<'t> Expression<'t> {
    /// Reads what stands between the braces.
    fn read(inside: &'t str) -> Self {
        let operator = inside.chars().next().filter(|c| "+#./;?&".contains(*c));
        let list = operator.map_or(inside, |c| inside.strip_prefix(c).unwrap_or(inside));
        let variable = |item: &'t str| {
            let item = item.strip_suffix('*').unwrap_or(item);
            let (name, prefix) = item.split_once(':').map_or((item, None), |(name, n)| (name, n.parse().ok()));
            Variable { name, prefix }
        };
        Self { operator, variables: list.split(',').map(variable).collect() }
    }

    fn allows_reserved(&self) -> bool {
        self.operator == Some('+')
    }
}

/// The literal text before each expression with that expression, and the literal text behind the last.
fn parts(template: &str) -> (Vec<(&str, Expression<'_>)>, &str) {
    let (mut parts, mut rest) = (Vec::new(), template);
    while let Some((literal, (inside, behind))) =
        rest.split_once('{').and_then(|(literal, rest)| Some((literal, rest.split_once('}')?)))
    {
        parts.push((literal, Expression::read(inside)));
        rest = behind;
    }
    (parts, rest)
}

/// What `template` expands to where `value_of` gives the values of its variables (RFC 6570, 3.2).
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
        let keeps = if matches!(expression.operator, Some('+' | '#')) { KEPT } else { UNRESERVED };
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

/// What is escaped in a value.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The same where reserved characters, and what is escaped already, are let through.
const KEPT: &AsciiSet = &UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'#')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b'%');

/// The names of a template's variables, each once, in their order.
pub fn variables(template: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for variable in parts(template).0.into_iter().flat_map(|(_, expression)| expression.variables) {
        if !names.contains(&variable.name) {
            names.push(variable.name);
        }
    }
    names
}

/// Finds values of one variable.
pub struct Matcher {
    regex: Regex,
    /// The variable that each group holds, by its place among all, and whether reserved characters pass in it.
    groups: Vec<(usize, bool)>,
    wanted: usize,
}

impl Matcher {
    /// For the variable `wanted` of `template`, where those that `fixed` names have these values. `None` where the variable
    /// is not one of the template's, or never stands there whole, or where the template is one that cannot be matched.
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
                        // What was cut says nothing about the whole.
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

    /// The value with which `uri` was made, decoded; `None` where it was not made with the template, or with none.
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
                // One variable has one value, wherever it stands.
                Some(other) if *other != value => return None,
                own => *own = Some(value),
            }
        }
        values.into_iter().nth(self.wanted)?.filter(|value| !value.is_empty())
    }
}

/// Adds what an expression expands to; `value` gives what each of its variables does.
fn write<'t>(
    pattern: &mut String,
    expression: &Expression<'t>,
    value: &mut dyn FnMut(&Variable<'t>) -> Option<String>,
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
        // Without an operator, the first may be there and empty, which is as good as absent.
        if at > 0 || !first.is_empty() {
            pattern.push_str("(?:");
            open += 1;
        }
        pattern.push_str(if at == 0 { first } else { between });
        let value = value(variable)?;
        match (is_named, expression.operator) {
            // Of these, an empty one has no equals sign.
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

/// The expansion of a known value, as an expression that matches it with hexadecimal digits in either case.
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

/// The value behind `raw`. Where reserved characters pass, one that is encoded nevertheless is not the same as one that is
/// not: then the value is what stands there.
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
    fn finds_what_the_uri_was_made_with() {
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
    fn what_is_known_is_held() {
        let template = "b://t/{year}/{+rest}";
        assert_eq!(value(template, "rest", &[("year", "2026")], "b://t/2026/a"), Some("a".into()));
        assert_eq!(value(template, "rest", &[("year", "2025")], "b://t/2026/a"), None);
        assert_eq!(value("b://t/{a}-{b}", "b", &[("a", "x-y")], "b://t/x-y-z"), Some("z".into()));
        assert_eq!(value("b://t/{a}/{b}", "b", &[("a", "\u{e9} /")], "b://t/%c3%A9%20%2f/z"), Some("z".into()));
        assert_eq!(value("b://t/{a:2}/{b}", "b", &[("a", "2026")], "b://t/20/z"), Some("z".into()));
        assert_eq!(value("b://t/{+a}/{b}", "b", &[("a", "x/%20[y")], "b://t/x/%20[y/z"), Some("z".into()));
        // What is asked for is not known, whatever is said.
        assert_eq!(value("b://t/{a}", "a", &[("a", "1")], "b://t/2"), Some("2".into()));
    }

    #[test]
    fn a_template_that_would_take_too_much_is_not_matched() {
        assert!(Matcher::new(&format!("b://t/{}", "{x:1000}{y}".repeat(8)), "y", &[]).is_none());
        assert!(Matcher::new(&format!("b://t/{}", "{y}".repeat(MAX_VARIABLES + 1)), "y", &[]).is_none());
    }

    #[test]
    fn the_worst_template_takes_milliseconds() {
        let names = (0..MAX_VARIABLES).map(|n| format!("{{+v{n}}}")).collect::<String>();
        let matcher = Matcher::new(&format!("b://t/{names}!"), "v7", &[]).unwrap();
        let uri = format!("b://t/{}", "!x".repeat(1000));
        let began = std::time::Instant::now();
        for _ in 0..20 {
            assert_eq!(matcher.value(&uri), None);
        }
        assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
    }
}
