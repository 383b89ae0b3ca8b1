//! Tests of the spelling of sources.

use super::*;

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn sources_are_read_in_every_documented_spelling() {
    for (typed, reference, origin) in [
        ("ghcr.io/acme/tides:1.2", "ghcr.io/acme/tides:1.2", "https://ghcr.io"),
        ("oci://ghcr.io/acme/tides:1.2", "ghcr.io/acme/tides:1.2", "https://ghcr.io"),
        ("GHCR.io/acme/tides", "ghcr.io/acme/tides:latest", "https://ghcr.io"),
        ("localhost:5000/tides:v1", "localhost:5000/tides:v1", "http://localhost:5000"),
        ("127.0.0.1:5000/a/b/c:v_1.2-x", "127.0.0.1:5000/a/b/c:v_1.2-x", "http://127.0.0.1:5000"),
        ("[::1]:5000/a:1", "[::1]:5000/a:1", "http://[::1]:5000"),
        ("localhost/tides:v1", "localhost/tides:v1", "http://localhost"),
        ("docker.io/acme/tides:1", "docker.io/acme/tides:1", "https://registry-1.docker.io"),
        ("docker.io/tides:1", "docker.io/library/tides:1", "https://registry-1.docker.io"),
        (
            "registry.corp:8443/a__b/c---d/e.f_g:1",
            "registry.corp:8443/a__b/c---d/e.f_g:1",
            "https://registry.corp:8443",
        ),
    ] {
        let Source::Image(image) = Source::parse(typed).unwrap() else { panic!("{typed}") };
        assert_eq!((image.reference().as_str(), image.origin.to_string().as_str()), (reference, origin), "{typed}");
        assert_eq!(Image::parse(&image.reference()).unwrap(), image, "{typed}");
    }
    let pinned = format!("ghcr.io/acme/tides@sha256:{HEX}");
    let Source::Image(image) = Source::parse(&pinned).unwrap() else { panic!() };
    assert_eq!((image.reference(), image.tag.as_deref()), (pinned, None));
    let both = format!("ghcr.io/acme/tides:1.2@sha256:{HEX}");
    let Source::Image(image) = Source::parse(&both).unwrap() else { panic!() };
    assert_eq!((image.reference(), image.tag.as_deref()), (both, Some("1.2")));
    let file = format!("https://a.example/b/x.wasm?v=1#sha256={HEX}");
    let source = Source::parse(&file).unwrap();
    assert_eq!(source.scope(), "a.example/b/x.wasm");
    let Source::File(parsed) = source else { panic!() };
    assert_eq!(parsed.pinned(), file);
}

#[test]
fn other_texts_are_refused_with_the_cure() {
    let long = format!("ghcr.io/{}:1", "a".repeat(256));
    let tagged = format!("ghcr.io/a:{}", "t".repeat(129));
    for (typed, problem) in [
        ("", "it names no registry"),
        ("tides", "it names no registry"),
        ("acme/tides:1", "it names no registry"),
        ("ghcr.io/", "its repository has letters"),
        ("ghcr.io/Acme/tides", "its repository has letters"),
        ("ghcr.io/acme//tides", "its repository has letters"),
        ("ghcr.io/../tides", "its repository has letters"),
        ("ghcr.io/a_/b", "its repository has letters"),
        ("ghcr.io/a..b", "its repository has letters"),
        ("ghcr.io/a?x=1", "its repository has letters"),
        (long.as_str(), "its repository has letters"),
        ("ghcr.io/acme/tides:", "its tag has letters"),
        ("ghcr.io/acme/tides:-x", "its tag has letters"),
        ("ghcr.io/acme/tides:1/../2", "its tag has letters"),
        (tagged.as_str(), "its tag has letters"),
        ("user@ghcr.io/acme/tides:1", "expected \"@sha256:\""),
        ("ghcr.io/acme/tides@sha512:00", "expected \"@sha256:\""),
        ("ghcr.io:0/acme/tides", "its registry is not a host"),
        ("a b.c/acme", "its registry is not a host"),
        ("https://a.example/x.wasm", "a file needs its digest"),
        ("https://a.example/x.wasm#sha256=12", "expected \"#sha256=\""),
        (&format!("http://a.example/x.wasm#sha256={HEX}"), "files are fetched by HTTPS"),
        (&format!("https://u:p@a.example/x.wasm#sha256={HEX}"), "it is not a plain URL"),
    ] {
        let failure = Source::parse(typed).unwrap_err();
        assert!(failure.problem.contains(problem), "{typed}: {}", failure.problem);
        assert!(!failure.cure.is_empty(), "{typed}");
    }
}

#[test]
fn an_upload_needs_a_tag_of_its_own() {
    for typed in ["ghcr.io/acme/tides:1.2.0", "oci://localhost:5000/tides:latest"] {
        assert!(Image::tagged(typed).is_ok(), "{typed}");
    }
    let hex = "0".repeat(64);
    for typed in [
        "ghcr.io/acme/tides".to_owned(),
        "localhost:5000/tides".to_owned(),
        format!("ghcr.io/acme/tides@sha256:{hex}"),
        format!("ghcr.io/acme/tides:1.2@sha256:{hex}"),
        format!("ghcr.io/acme/tides:sha256-{hex}"),
        "https://acme.example/tides.wasm:1".to_owned(),
    ] {
        assert!(Image::tagged(&typed).is_err(), "{typed}");
    }
}
