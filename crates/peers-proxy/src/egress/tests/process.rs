//! The proxy as a process of its own, which a signal asks to read its policy again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use peers_sys::digest::sha256_hex;
use peers_sys::identity::{Pid, ProcIdentity};
use peers_sys::signal::{Signal, signal_verified};

use super::super::{Listen, Serves, Start, open};
use super::world::{hello, run_id};
use crate::listen::Endpoint;
use crate::process::Lifetime;

const TEST: &str =
    "egress::tests::process::a_policy_with_another_digest_is_not_read_again_and_the_old_one_stays_in_force";
/// Where the proxy of this process has its files.
const PLACE: &str = "PEERS_PROXY_TEST_PLACE";
const DIGEST: &str = "PEERS_PROXY_TEST_DIGEST";

/// What the child is: the proxy, until its input ends.
fn serve(dir: &Path) {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let start = Start {
        run: run_id(),
        listen: vec![Listen { at: Endpoint::Unix(dir.join("run/egress.sock")), serves: Serves::Proxy(None) }],
        policy: dir.join("policy.json"),
        digest: std::env::var(DIGEST).ok(),
        log: dir.join("log.jsonl"),
        lifetime: Lifetime::OfStdin,
    };
    let proxy = open(start).unwrap();
    writeln!(std::io::stderr(), "ready").unwrap();
    proxy.run();
}

/// The proxy as a child, and what it says.
struct Proxy {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Proxy {
    fn start(dir: &Path, digest: Option<&str>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", TEST, "--nocapture", "--test-threads=1"]).env(PLACE, dir);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(digest) = digest {
            command.env(DIGEST, digest);
        }
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut proxy = Self { child, said };
        proxy.hears("ready");
        proxy
    }

    /// What it said until this stood there.
    fn hears(&mut self, words: &str) -> String {
        let mut said = String::new();
        while !said.contains(words) {
            assert!(self.said.read_line(&mut said).unwrap() > 0, "`{words}` is not in: {said}");
        }
        said
    }

    fn hang_up(&self) {
        let pid = Pid::new(i32::try_from(self.child.id()).unwrap()).unwrap();
        signal_verified(&ProcIdentity::of(pid).unwrap(), Signal::Hup).unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_policy_with_another_digest_is_not_read_again_and_the_old_one_stays_in_force() {
    if let Some(dir) = std::env::var_os(PLACE) {
        return serve(Path::new(&dir));
    }
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = host.local_addr().unwrap().port();
    let old = format!(
        r#"{{"v": 1, "allow": [{{"host": "localhost", "ports": [{port}], "private_ok": ["127.0.0.0/8", "::1/128"]}}]}}"#
    );
    for digest in [Some(sha256_hex(old.as_bytes())), None] {
        let dir = tempfile::tempdir().unwrap();
        let put = |policy: &str| std::fs::write(dir.path().join("policy.json"), policy).unwrap();
        let connect = || {
            let mut client = UnixStream::connect(dir.path().join("run/egress.sock")).unwrap();
            write!(client, "CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut status = [0; 13];
            client.read_exact(&mut status).unwrap();
            (String::from_utf8_lossy(&status).into_owned(), client)
        };
        put(&old);
        let mut proxy = Proxy::start(dir.path(), digest.as_deref());
        let (status, mut tunnel) = connect();
        assert_eq!(status, "HTTP/1.1 200 ");
        let hello = hello(Some("localhost"));
        let mut arrived = vec![0; hello.len()];
        tunnel.write_all(&hello).unwrap();
        let (mut upstream, _) = host.accept().unwrap();
        upstream.read_exact(&mut arrived).unwrap();
        assert_eq!(arrived, hello);
        put(r#"{"v": 1, "allow": []}"#);
        proxy.hang_up();
        if digest.is_some() {
            let said = proxy.hears("the egress policy stays as it was");
            assert!(said.contains("changed since it was"), "{said}");
            assert_eq!(connect().0, "HTTP/1.1 200 ");
            drop(host.accept().unwrap());
            tunnel.write_all(b"still").unwrap();
            upstream.read_exact(&mut [0; 5]).unwrap();
        } else {
            // Without a digest the same file is taken, and what is no longer allowed is closed.
            assert_eq!(upstream.read(&mut [0; 1]).unwrap_or(0), 0);
            assert_eq!(connect().0, "HTTP/1.1 403 ");
        }
        proxy.end();
    }
}
