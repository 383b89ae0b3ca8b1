//! The `belljar` binary; everything is in the library.

/// The allocator of the C library in the packages, musl's, takes one lock for each call. `cargo xtask bench --only peers`
/// measures the gain over that of glibc.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    belljar::cli::main()
}
