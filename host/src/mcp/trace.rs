//! The trace context of a request (SEP-414): its `traceparent` goes into the record, and never to a provider.

/// `traceparent`, if it has the form of W3C Trace Context, 3.2.2: version, trace id, parent id and flags, in small
/// hexadecimal digits.
pub(super) fn checked(traceparent: &str) -> Option<&str> {
    let parts: Vec<&str> = traceparent.split('-').collect();
    let [version, trace, parent, flags] = parts.as_slice() else { return None };
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_zero = |part: &str| part.bytes().all(|b| b == b'0');
    let has_form = is_hex(version, 2) && is_hex(trace, 32) && is_hex(parent, 16) && is_hex(flags, 2);
    (has_form && *version == "00" && !is_zero(trace) && !is_zero(parent)).then_some(traceparent)
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn a_trace_is_one_of_the_standard_form() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        assert_eq!(checked(good), Some(good));
        for bad in [
            "",
            "00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-x",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-\n1",
        ] {
            assert_eq!(checked(bad), None, "{bad}");
        }
    }
}
