//! Compiles and runs the Rust examples of the documents as documentation tests. The SDK cannot contain these tests:
//! `belljar new` copies the SDK into projects, which have none of these documents.

#[cfg(doctest)]
mod readme {
    #![doc = include_str!("../../../README.md")]
}

#[cfg(doctest)]
mod sdk {
    #![doc = include_str!("../../../sdk-guest/README.md")]
}

#[cfg(doctest)]
mod guide {
    #![doc = include_str!("../../../docs/guide/providers.md")]
}
