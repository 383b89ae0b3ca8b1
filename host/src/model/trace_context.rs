//! The place of a request in a trace (W3C Trace Context, section 3.2).

use data_encoding::HEXLOWER;

/// The span of another program: the parent of a span, or one that it is linked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteSpan {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
    /// True if the other program records the trace.
    pub is_sampled: bool,
}

/// The span of a request that is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: [u8; 16],
    /// The span of the request.
    pub span: [u8; 8],
    /// The span of the client, if the request names one.
    pub parent: Option<[u8; 8]>,
    /// The span that the HTTP request names. It may be that of a proxy.
    pub link: Option<RemoteSpan>,
    /// The id of the JSON-RPC request.
    pub request_id: String,
}

impl RemoteSpan {
    /// Parses a `traceparent`: version, trace, parent and flags, in small hexadecimal digits.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let (Some("00"), Some(trace), Some(span), Some(flags), None) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let trace: [u8; 16] = HEXLOWER.decode(trace.as_bytes()).ok()?.try_into().ok()?;
        let span: [u8; 8] = HEXLOWER.decode(span.as_bytes()).ok()?.try_into().ok()?;
        let [flags]: [u8; 1] = HEXLOWER.decode(flags.as_bytes()).ok()?.try_into().ok()?;
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

impl TraceContext {
    /// The `traceparent` that names `span` of this trace as the parent.
    pub fn traceparent(&self, span: [u8; 8]) -> String {
        format!("00-{}-{}-01", HEXLOWER.encode(&self.trace), HEXLOWER.encode(&span))
    }

    /// The trace, as text.
    pub fn trace_id(&self) -> String {
        HEXLOWER.encode(&self.trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_one_of_the_standard_form() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        let parent = RemoteSpan::parse(good).unwrap();
        assert!(parent.is_sampled && !RemoteSpan::parse(&good.replace("-01", "-00")).unwrap().is_sampled);
        let own = TraceContext {
            trace: parent.trace,
            span: [1; 8],
            parent: Some(parent.span),
            link: None,
            request_id: "1".to_owned(),
        };
        assert_eq!(own.traceparent(parent.span), good);
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
            assert_eq!(RemoteSpan::parse(bad), None, "{bad}");
        }
    }
}
