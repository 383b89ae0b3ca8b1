//! The operation of a call, as far as admission must tell calls apart.

/// The operation of a call. The module that knows the callable functions implements it.
pub trait Operation: Sync {
    /// The function's name.
    fn name(&self) -> &'static str;

    /// True if it reads a resource. Times of reads and of other calls are measured separately.
    fn is_read(&self) -> bool;

    /// True if it calls a tool. Calls of tools have limits of their own.
    fn is_tool_call(&self) -> bool {
        false
    }

    /// All input that a caller can choose, in order. `None` for a batch, of which any item may be the cause of a
    /// failure.
    fn caller_input(&self) -> Option<Vec<&str>>;

    /// The input that the log shows beside the function, if there is one.
    fn log_text(&self) -> Option<&str>;
}

#[cfg(test)]
pub(super) mod tests {
    use super::Operation;

    /// An operation for tests.
    #[derive(Debug)]
    pub(in crate::limits) struct TestOperation {
        pub(in crate::limits) name: &'static str,
        pub(in crate::limits) input: Option<Vec<&'static str>>,
    }

    impl Operation for TestOperation {
        fn name(&self) -> &'static str {
            self.name
        }

        fn is_read(&self) -> bool {
            self.name == "read"
        }

        fn caller_input(&self) -> Option<Vec<&str>> {
            self.input.clone()
        }

        fn log_text(&self) -> Option<&str> {
            None
        }
    }
}
