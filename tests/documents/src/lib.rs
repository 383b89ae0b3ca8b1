//! The Rust examples of the documents, compiled and run as documentation tests. They are no part of the SDK, which is copied into
//! projects that have none of these documents.

#[cfg(doctest)]
mod front {
    #![doc = include_str!("../../../README.md")]
}

#[cfg(doctest)]
mod sdk {
    #![doc = include_str!("../../../sdk-guest/README.md")]
}

#[cfg(doctest)]
mod guide {
    #![doc = include_str!("../../../docs/providers.md")]
}
