//! The type of a plain scalar, by the core schema of YAML 1.2.

use serde_json::{Number, Value};

use super::problem::FrontmatterProblem as Problem;
use crate::model::text;

/// The value of a plain scalar.
pub(super) fn resolve(plain: &str) -> Result<Value, Problem> {
    match plain {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Value::Bool(false)),
        _ => {}
    }
    let inexact = || Problem::Number(text::quoted(plain, 100));
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(plain, ".nan" | ".NaN" | ".NAN") {
        return Err(inexact());
    }
    if is_digits(unsigned) {
        // An octal number in YAML 1.1.
        if unsigned.len() > 1 && unsigned.starts_with('0') {
            return Err(Problem::Ambiguous(text::quoted(plain, 100)));
        }
        let signed = plain.parse::<i64>().map(Number::from);
        let number = signed.or_else(|_| plain.parse::<u64>().map(Number::from));
        return number.map(Value::Number).map_err(|_| inexact());
    }
    if let Some(digits) = plain.strip_prefix("0x").filter(|digits| is_all(digits, |b| b.is_ascii_hexdigit())) {
        return u64::from_str_radix(digits, 16).map(Into::into).map_err(|_| inexact());
    }
    // A text in YAML 1.1.
    if plain.strip_prefix("0o").is_some_and(|digits| is_all(digits, |b| (b'0'..=b'7').contains(&b))) {
        return Err(Problem::Ambiguous(text::quoted(plain, 100)));
    }
    if is_float(unsigned) {
        let number = plain.parse::<f64>().ok().filter(|number| number.is_finite());
        return number.and_then(Number::from_f64).map(Value::Number).ok_or_else(inexact);
    }
    Ok(Value::String(plain.to_owned()))
}

fn is_all(text: &str, is_good: fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(is_good)
}

fn is_digits(text: &str) -> bool {
    is_all(text, |b| b.is_ascii_digit())
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", after)) => is_digits(after),
        Some((before, after)) => is_digits(before) && (after.is_empty() || is_digits(after)),
        None => is_digits(mantissa),
    };
    let is_exponent = |exponent: &str| is_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
    is_mantissa && exponent.is_none_or(is_exponent)
}
