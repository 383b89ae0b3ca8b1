//! The `belljar` binary; everything is in the library.

fn main() -> std::process::ExitCode {
    belljar::cli::main()
}
