//! The component's exports: generated bindings, conversions and the macro. The only module that uses generated types.

#[cfg(target_family = "wasm")]
mod convert;

/// Exports a provider from a component.
///
/// `export!(Type)` exports the mandatory interface, which needs [`Provider`](crate::Provider). The optional interfaces are
/// named after a colon and need the trait of the same name: `export!(Type: Completion)`, `export!(Type: Tools, Prompts)`.
/// They are `Completion`, `Revisions`, `Parts`, `Tools`, `Prompts` and `Skills`. The host offers only the interfaces that are named here.
///
/// Use the macro once, at the top of the crate. Only a wasm build exports anything. A native build only checks that the traits are
/// implemented, so the crate builds and its tests run like those of any other crate.
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

/// Declares the grants and settings that the provider uses: directories, variables, origins.
///
/// `needs!("../needs.toml")` puts that file into the component. The path is relative to the source file. belljar shows the
/// needs in `inspect`, `check` and `list`, and builds the commands in its denials from them; they grant nothing. The format of
/// the file is in belljar's `docs/guide/providers.md`. Use the macro once.
#[macro_export]
macro_rules! needs {
    ($file:literal) => {
        const _: () = {
            // On every target, because a missing file must also fail the build of the tests.
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
        #[allow(unsafe_code, reason = "generated: calls from the host")]
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
        #[allow(unsafe_code, reason = "generated: calls from the host")]
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
        #[allow(unsafe_code, reason = "generated: calls from the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::revisions::__export_revisions!(Exported with_types_in $crate::__private::revisions);
        };
    };
    ($provider:ty, Parts) => {
        const _: () = {
            const fn has_parts<T: $crate::Parts>() {}
            has_parts::<$provider>();
        };
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "generated: calls from the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::parts::__export_parts!(Exported with_types_in $crate::__private::parts);
        };
    };
    ($provider:ty, Tools) => {
        $crate::__export_tools!($provider);
    };
    ($provider:ty, Prompts) => {
        const _: () = {
            const fn prompts<T: $crate::Prompts>() {}
            prompts::<$provider>();
        };
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "generated: calls from the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::prompts::__export_prompts!(Exported with_types_in $crate::__private::prompts);
        };
    };
    ($provider:ty, Skills) => {
        const _: () = {
            const fn has_skills<T: $crate::Skills>() {}
            has_skills::<$provider>();
        };
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "generated: calls from the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::skills::__export_skills!(Exported with_types_in $crate::__private::skills);
        };
    };
    ($provider:ty, $other:ident) => {
        compile_error!(concat!(
            "no interface \"", stringify!($other), "\": expected Completion, Revisions, Parts, Tools, Prompts or Skills"
        ));
    };
}

/// Exports the tools.
#[cfg(feature = "tools")]
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip]
macro_rules! __export_tools {
    ($provider:ty) => {
        const _: () = {
            const fn has_tools<T: $crate::Tools>() {}
            has_tools::<$provider>();
        };
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "generated: calls from the host")]
        const _: () = {
            type Exported = $crate::__private::Exported<$provider>;
            $crate::__private::tools::__export_tools_interface!(Exported with_types_in $crate::__private::tools);
        };
    };
}

/// Names the missing feature.
#[cfg(not(feature = "tools"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_tools {
    ($provider:ty) => {
        compile_error!("tools need the feature \"tools\" of belljar-guest: add `features = [\"tools\"]` to Cargo.toml");
    };
}

/// Implements the generated traits for every provider `P`, so that the author's crate need not.
#[cfg(target_family = "wasm")]
#[derive(Debug)]
pub struct Exported<P>(std::marker::PhantomData<P>);

// One world for each interface, because each is exported separately. The linker merges the worlds that a crate exports.

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
        inline: "package belljar:guest-sdk; world completion { export belljar:provider/completion@0.1.1; }",
        with: { "belljar:provider/types@0.1.1": crate::export::provider::belljar::provider::types },
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
        inline: "package belljar:guest-sdk; world revisions { export belljar:provider/revisions@0.1.1; }",
        with: { "belljar:provider/types@0.1.1": crate::export::provider::belljar::provider::types },
        pub_export_macro: true,
        export_macro_name: "__export_revisions",
    });
}

/// Generated: `parts`.
#[cfg(target_family = "wasm")]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod parts {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package belljar:guest-sdk; world parts { export belljar:provider/parts@0.1.1; }",
        with: { "belljar:provider/types@0.1.1": crate::export::provider::belljar::provider::types },
        pub_export_macro: true,
        export_macro_name: "__export_parts",
    });
}

/// Generated: `prompt-provider`, and the types that tools share with it.
#[cfg(target_family = "wasm")]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod prompts {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package belljar:guest-sdk; world prompts { export belljar:provider/prompt-provider@0.1.1; }",
        with: {
            "belljar:provider/types@0.1.1": crate::export::provider::belljar::provider::types,
            "belljar:provider/call-types@0.1.1": generate,
        },
        pub_export_macro: true,
        export_macro_name: "__export_prompts",
    });
}

/// Generated: `tool-provider`.
#[cfg(all(target_family = "wasm", feature = "tools"))]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod tools {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package belljar:guest-sdk; world tools { export belljar:provider/tool-provider@0.1.1; }",
        with: {
            "belljar:provider/types@0.1.1": crate::export::provider::belljar::provider::types,
            "belljar:provider/call-types@0.1.1": crate::export::prompts::belljar::provider::call_types,
        },
        pub_export_macro: true,
        export_macro_name: "__export_tools_interface",
    });
}

/// Generated: `skill-provider`.
#[cfg(target_family = "wasm")]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod skills {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package belljar:guest-sdk; world skills { export belljar:provider/skill-provider@0.1.1; }",
        with: { "belljar:provider/types@0.1.1": crate::export::provider::belljar::provider::types },
        pub_export_macro: true,
        export_macro_name: "__export_skills",
    });
}

/// Generated: `progress`, which only a component imports that calls it.
#[cfg(target_family = "wasm")]
#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
pub mod progress {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "package belljar:guest-sdk; world progress { import belljar:provider/progress@0.1.1; }",
        with: { "belljar:provider/progress@0.1.1": generate },
    });
}
