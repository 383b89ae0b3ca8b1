//! Tells the caller how far a call is.

/// Reports that `done` of `total` is done, in whatever unit. `note` says what is being done, in at most 200 characters.
///
/// `done` must grow. The host sends at most ten reports a second, and none for a short call. Without a caller who wants to
/// know, and outside of a component, this does nothing.
///
/// ```
/// use belljar_guest::progress;
///
/// let files = ["a.txt", "b.txt"];
/// for (done, file) in (1..).zip(files) {
///     progress::report(f64::from(done), Some(2.0), Some(file));
/// }
/// ```
pub fn report(done: f64, total: Option<f64>, note: Option<&str>) {
    #[cfg(target_family = "wasm")]
    crate::export::progress::belljar::provider::progress::report(done, total, note);
    #[cfg(not(target_family = "wasm"))]
    let _ = (done, total, note);
}
