//! Draws the figures of a run: `plot RUN.json PICTURE.svg`. `cargo xtask bench` starts this program.
#![expect(clippy::expect_used, reason = "a tool of the repository ends at the first error")]

use std::path::PathBuf;

use belljar_figures::Run;

fn main() {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [run, picture] = files.as_slice() else {
        unreachable!("\"cargo xtask bench\" gives two files");
    };
    let run: Run = belljar_figures::read(run).expect("a run");
    std::fs::write(picture, belljar_benches::plot::svg(&run).expect("a picture")).expect("a writable place");
}
