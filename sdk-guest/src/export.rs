//! The border to the component: generated bindings, conversions, and the macro. The only module that knows generated
//! types.

#[cfg(target_family = "wasm")]
mod convert;

/// Exports a provider from a component.
///
/// `export!(Type)` exports the mandatory interface, which needs [`Provider`](crate::Provider). The optional ones are
/// named after a colon and need the trait of the same name: `export!(Type: Completion)`, `export!(Type: Revisions)`,
/// `export!(Type: Completion, Revisions)`. What is not named here is not exported, and the host will not offer it.
///
/// To be used once, at the top of the crate. Only a wasm build exports anything: natively it does no more than check
/// that the traits are there, so the crate builds and its tests run like those of any other.
///
/// The exports are generated code with `unsafe` in it. The macro allows that for itself; a crate with
/// `#![forbid(unsafe_code)]` has to say `deny` instead.
#[macro_export]
macro_rules! export {
    ($provider:ty $(: $($interface:ident),+ $(,)?)?) => {
        const _: () = {
            const fn provides<T: $crate::Provider>() {}
            provides::<$provider>();
        };
        $crate::__export!($provider, Provider);
        $($($crate::__export!($provider, $interface);)+)?
    };
}

/// Declares what the provider needs of its operator: directories, variables, origins.
///
/// `needs!("../needs.toml")` puts that file, whose path starts at the source file, into the component. belljar shows it in
/// `inspect`, `check` and `list`, and makes the commands of its denials from it; it grants nothing. What it may say is in
/// belljar's `docs/providers.md`. To be used once.
#[macro_export]
macro_rules! needs {
    ($file:literal) => {
        const _: () = {
            // On every target, so that a file which is not there is told when tests are built, too.
            #[allow(dead_code, reason = "generated: natively nothing reads it")]
            const NEEDS: &[u8] = include_bytes!($file);
            #[cfg(target_family = "wasm")]
            #[allow(unsafe_code, dead_code, reason = "generated: a custom section, which is never run")]
            #[unsafe(link_section = "belljar:needs")]
            static SECTION: [u8; NEEDS.len()] = *include_bytes!($file);
        };
    };
}

/// Exports one interface, and checks its trait on every target.
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip]
macro_rules! __export {
    ($provider:ty, Provider) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "generated: the border to the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::provider::__export_provider!(Exported with_types_in $crate::__private::provider);
        };
    };
    ($provider:ty, Completion) => {
        const _: () = {
            const fn completes<T: $crate::Completion>() {}
            completes::<$provider>();
        };
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "generated: the border to the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::completion::__export_completion!(Exported with_types_in $crate::__private::completion);
        };
    };
    ($provider:ty, Revisions) => {
        const _: () = {
            const fn revises<T: $crate::Revisions>() {}
            revises::<$provider>();
        };
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "generated: the border to the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::revisions::__export_revisions!(Exported with_types_in $crate::__private::revisions);
        };
    };
    ($provider:ty, $other:ident) => {
        compile_error!(concat!("no interface \"", stringify!($other), "\": there are Completion and Revisions"));
    };
}

/// Carries a provider to the generated traits: they are implemented for this, once, and not in the author's crate.
#[cfg(target_family = "wasm")]
#[derive(Debug)]
pub struct Exported<P>(std::marker::PhantomData<P>);

// One world for each interface, so that each can be exported or not; the linker joins what a crate exports into one.

/// Generated: `resource-provider`.
#[cfg(target_family = "wasm")]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod provider {
    wit_bindgen::generate!({
        path: "../wit",
        world: "belljar:provider/provider",
        pub_export_macro: true,
        export_macro_name: "__export_provider",
    });
}

/// Generated: `completion`.
#[cfg(target_family = "wasm")]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod completion {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package belljar:guest-sdk; world completion { export belljar:provider/completion@0.1.0; }",
        with: { "belljar:provider/types@0.1.0": crate::export::provider::belljar::provider::types },
        pub_export_macro: true,
        export_macro_name: "__export_completion",
    });
}

/// Generated: `revisions`.
#[cfg(target_family = "wasm")]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod revisions {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package belljar:guest-sdk; world revisions { export belljar:provider/revisions@0.1.0; }",
        with: { "belljar:provider/types@0.1.0": crate::export::provider::belljar::provider::types },
        pub_export_macro: true,
        export_macro_name: "__export_revisions",
    });
}
