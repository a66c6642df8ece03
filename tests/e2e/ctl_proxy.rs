//! `peers-ctl proxy`: the real processes, over real sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::support::{Ended, World, program};

const RUN: &str = "0123456789abcdef";
const BEARER: &str = "b3a7b3a7b3a7b3a7b3a7b3a7b3a7b3a7";
const KEY: &str = "sk-ant-api03-the-key-of-the-operator";

/// A proxy that is ready.
struct Proxy {
    child: Child,
    out: BufReader<ChildStdout>,
    ready: String,
}

impl Proxy {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        out.read_line(&mut ready).unwrap();
        if !ready.starts_with("ready: ") {
            let mut said = String::new();
            child.stderr.unwrap().read_to_string(&mut said).unwrap();
            panic!("`{ready}`, {said}");
        }
        Self { child, out, ready }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// What it said on standard error until this stood there.
    fn hears(&mut self, words: &str) -> String {
        let mut said = String::new();
        let mut err = BufReader::new(self.child.stderr.as_mut().unwrap());
        while !said.contains(words) {
            assert!(err.read_line(&mut said).unwrap() > 0, "`{words}` is not in: {said}");
        }
        said
    }

    /// Ends it by SIGTERM: all that it said on standard error.
    fn end(mut self) -> String {
        self.signal("-TERM");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "one line on standard output");
        self.child.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
        rest
    }
}

/// A place for policies, logs and sockets, and a host on the loopback that echoes.
struct Ground {
    world: World,
    port: u16,
}

impl Ground {
    fn new() -> Self {
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = host.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for client in host.incoming() {
                let mut client = client.unwrap();
                std::thread::spawn(move || std::io::copy(&mut client.try_clone().unwrap(), &mut client));
            }
        });
        Self { world: World::bare(), port }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.world.path("run").join(name)
    }

    fn policy(&self, policy: &Value) {
        std::fs::write(self.world.path("policy.json"), policy.to_string()).unwrap();
    }

    /// The host under the name `localhost`.
    fn allow(&self) -> Value {
        let private = ["127.0.0.0/8", "::1/128"];
        json!({"v": 1, "allow": [{"host": "localhost", "ports": [self.port], "private_ok": private}]})
    }

    fn command(&self, which: &str, listen: &[String]) -> Command {
        let mut command = self.world.command(program().with_file_name("peers-ctl"));
        command.args(["proxy", which, "--run", RUN]);
        for at in listen {
            command.args(["--listen", at]);
        }
        command.arg("--policy").arg(self.world.path("policy.json"));
        command.arg("--log").arg(self.world.path("log.jsonl"));
        command
    }

    fn egress(&self) -> Proxy {
        let listen = [format!("claude=unix:{}", self.socket("egress.sock").display())];
        Proxy::start(&mut self.command("egress", &listen))
    }

    /// The answer to a request for a tunnel, and the connection.
    fn connect(&self, target: &str) -> (String, UnixStream) {
        let mut client = UnixStream::connect(self.socket("egress.sock")).unwrap();
        write!(client, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
        (head(&mut client), client)
    }

    /// A tunnel that is open.
    fn tunnel(&self) -> UnixStream {
        let (answer, mut client) = self.connect(&format!("localhost:{}", self.port));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let hello = hello("localhost");
        client.write_all(&hello).unwrap();
        let mut echo = vec![0; hello.len()];
        client.read_exact(&mut echo).unwrap();
        assert_eq!(echo, hello);
        client
    }

    fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.world.path("log.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// What comes before the body.
fn head(client: &mut impl std::io::Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    String::from_utf8(head).unwrap()
}

/// A `ClientHello` that names this host.
pub(crate) fn hello(host: &str) -> Vec<u8> {
    fn block(width: usize, bytes: &[u8]) -> Vec<u8> {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        [&length[4 - width..], bytes].concat()
    }
    let name = block(2, &[&[0][..], &block(2, host.as_bytes())].concat());
    let extensions = [&[0, 0][..], &block(2, &name)].concat();
    let body = [&[3, 3][..], &[7; 32], &[0], &block(2, &[0x13, 1]), &block(1, &[0]), &block(2, &extensions)]
        .concat();
    [&[22, 3, 1][..], &block(2, &[&[1][..], &block(3, &body)].concat())].concat()
}

#[test]
fn an_allowed_tunnel_carries_bytes_and_a_denied_one_says_why_and_both_are_logged() {
    let ground = Ground::new();
    ground.policy(&ground.allow());
    let proxy = ground.egress();
    let socket = ground.socket("egress.sock");
    assert_eq!(proxy.ready, format!("ready: unix:{}\n", socket.display()));
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(socket), mode(ground.world.path("run"))), (0o600, 0o700));
    let (answer, mut denied) = ground.connect("other.example:443");
    let mut body = String::new();
    denied.read_to_string(&mut body).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 ") && body.contains("`peers.allow`"), "{answer}{body}");
    // A client that never ends its head keeps nobody out.
    let mut slow = UnixStream::connect(ground.socket("egress.sock")).unwrap();
    slow.write_all(b"CONNECT localhost").unwrap();
    let mut tunnel = ground.tunnel();
    tunnel.write_all(b"more").unwrap();
    tunnel.shutdown(std::net::Shutdown::Write).unwrap();
    let mut echo = String::new();
    tunnel.read_to_string(&mut echo).unwrap();
    assert_eq!(echo, "more");
    assert_eq!(proxy.end(), "");
    let length = hello("localhost").len() + 4;
    let log = ground.log();
    assert_eq!((&log[0]["verdict"], &log[0]["reason"]), (&json!("deny"), &json!("not-listed")));
    let expected = json!({
        "ts": log[1]["ts"], "run": RUN, "conn": 3, "peer": "claude", "verdict": "allow", "reason": "ok",
        "host": "localhost", "port": ground.port, "addr": log[1]["addr"], "sni": "localhost",
        "up": length, "down": length, "ms": log[1]["ms"],
    });
    assert_eq!(log[1], expected);
}

#[test]
fn sixty_four_tunnels_are_open_at_once_and_the_next_one_is_refused() {
    let ground = Ground::new();
    ground.policy(&ground.allow());
    let proxy = ground.egress();
    let mut tunnels: Vec<UnixStream> = (0..64).map(|_| ground.tunnel()).collect();
    let target = format!("localhost:{}", ground.port);
    let (answer, _) = ground.connect(&target);
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1"), "{answer}");
    for tunnel in &mut tunnels {
        tunnel.write_all(b"still").unwrap();
        tunnel.read_exact(&mut [0; 5]).unwrap();
    }
    drop(tunnels);
    proxy.end();
    let log = ground.log();
    let with = |reason: &str| log.iter().filter(|line| line["reason"] == reason).count();
    assert_eq!((with("ok"), with("limit")), (64, 1));
}

#[test]
fn a_hangup_reads_the_policy_again_and_closes_what_it_no_longer_allows() {
    let ground = Ground::new();
    ground.policy(&ground.allow());
    let mut proxy = ground.egress();
    let mut tunnel = ground.tunnel();
    ground.policy(&json!({"v": 1}));
    proxy.signal("-HUP");
    proxy.hears("the egress policy stays as it was");
    tunnel.write_all(b"still").unwrap();
    tunnel.read_exact(&mut [0; 5]).unwrap();
    ground.policy(&json!({"v": 1, "allow": []}));
    proxy.signal("-HUP");
    assert_eq!(tunnel.read(&mut [0; 1]).unwrap_or(0), 0);
    assert!(ground.connect(&format!("localhost:{}", ground.port)).0.starts_with("HTTP/1.1 403 "));
    proxy.end();
    assert_eq!(ground.log()[0]["reason"], "not-listed");
}

#[test]
fn a_port_of_this_host_has_a_socket_of_its_own() {
    let ground = Ground::new();
    ground.policy(&json!({"v": 1, "allow": []}));
    let listen = [format!("unix:{}", ground.socket("egress.sock").display())];
    let mut command = ground.command("egress", &listen);
    let proxy = Proxy::start(command.args(["--local-port", &ground.port.to_string()]));
    let mut client = UnixStream::connect(ground.socket(&format!("local-{}.sock", ground.port))).unwrap();
    client.write_all(b"plain").unwrap();
    let mut echo = [0; 5];
    client.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"plain");
    proxy.end();
}

#[test]
fn a_proxy_is_confined_and_ends_with_its_input() {
    let ground = Ground::new();
    ground.policy(&json!({"v": 1, "allow": []}));
    let listen = ["127.0.0.1:0".to_owned()];
    let mut command = ground.command("egress", &listen);
    let mut proxy = Proxy::start(command.arg("--with-stdin").stdin(Stdio::piped()));
    assert!(proxy.ready.starts_with("ready: 127.0.0.1:"), "{}", proxy.ready);
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.child.id())).unwrap();
    for fact in ["NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000"] {
        assert!(status.contains(fact), "{fact}: {status}");
    }
    drop(proxy.child.stdin.take());
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_cannot_be_meant_is_one_error_with_its_exit_code() {
    let ground = Ground::new();
    let unix = |path: PathBuf| [format!("unix:{}", path.display())];
    let listen = unix(ground.socket("egress.sock"));
    let said = |command: &mut Command| Ended::of(&command.output().unwrap());
    said(&mut ground.command("egress", &listen)).exits(3).err_has("policy.json does not exist");
    ground.policy(&json!({"v": 1, "allow": [{"host": "*.example.com"}]}));
    said(&mut ground.command("egress", &listen)).exits(3).err_has("{\"suffix\": \"example.com\"}");
    ground.policy(&json!({"v": 1, "allow": []}));
    said(ground.command("egress", &listen).args(["--digest", "00"])).exits(5).err_has("changed since it was");
    for at in ["egress.sock", "unix:egress.sock", "0.0.0.0:1", "nobody/=127.0.0.1:1"] {
        said(&mut ground.command("egress", &[at.to_owned()])).exits(2);
    }
    std::fs::create_dir(ground.world.path("open")).unwrap();
    std::fs::set_permissions(ground.world.path("open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let open = unix(ground.world.path("open/egress.sock"));
    said(&mut ground.command("egress", &open)).exits(5).err_has("open to other users");
    said(&mut ground.command("auth", &["127.0.0.1:0".to_owned()])).exits(2).err_has("no peer is named");
    let claude = ["claude=127.0.0.1:0".to_owned()];
    ground.policy(&json!({"v": 1, "peers": []}));
    said(&mut ground.command("auth", &claude)).exits(3).err_has("peer `claude`: has a socket");
    ground.policy(&peers(&["anthropic"], &json!([])));
    said(&mut ground.command("auth", &claude))
        .exits(6)
        .err_has("no credential for `anthropic`")
        .err_lacks(BEARER);
}

fn peers(services: &[&str], different: &Value) -> Value {
    json!({
        "v": 1,
        "peers": [{"name": "claude", "bearer": BEARER, "services": services}],
        "services": different,
    })
}

/// A service that the test plays: each request that arrives, with its connection.
struct Service {
    url: String,
    asked: Receiver<(String, TcpStream)>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut text = head(&mut stream);
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                stream.read_exact(&mut body).unwrap();
                text.push_str(&String::from_utf8(body).unwrap());
                if tell.send((text, stream)).is_err() {
                    return;
                }
            }
        });
        Self { url, asked }
    }

    fn answer(&self, answer: &str) -> String {
        let (asked, mut stream) = self.asked.recv().unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        asked
    }
}

fn ok(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

impl Ground {
    fn auth(&self, change: impl FnOnce(&mut Command)) -> Proxy {
        let listen = [format!("claude=unix:{}", self.socket("auth.sock").display())];
        let mut command = self.command("auth", &listen);
        change(&mut command);
        Proxy::start(&mut command)
    }

    /// With a key, for one service.
    fn with_key(&self, service: &Service) -> Proxy {
        self.policy(&peers(&["anthropic"], &json!([{"name": "anthropic", "url": service.url}])));
        self.auth(|command| {
            command.env("ANTHROPIC_API_KEY", KEY);
        })
    }

    fn ask(&self, bearer: &str) -> UnixStream {
        let mut client = UnixStream::connect(self.socket("auth.sock")).unwrap();
        let body = "{\"model\":\"m\"}";
        write!(
            client,
            "POST /anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {bearer}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        client
    }

    fn told(mut client: UnixStream) -> String {
        let mut all = String::new();
        client.read_to_string(&mut all).unwrap();
        all
    }
}

#[test]
fn a_request_gets_the_key_and_a_wrong_bearer_nothing_and_no_secret_is_said() {
    let ground = Ground::new();
    let service = Service::start();
    let proxy = ground.with_key(&service);
    let told = Ground::told(ground.ask(&BEARER.replace('b', "c")));
    assert!(told.starts_with("HTTP/1.1 401 ") && told.contains("bearer"), "{told}");
    let client = ground.ask(BEARER);
    let asked = service.answer(&ok("{\"model\":\"m\",\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}"));
    assert!(
        asked.starts_with("POST /v1/messages ") && asked.contains(&format!("x-api-key: {KEY}")),
        "{asked}"
    );
    assert!(!asked.contains(BEARER), "{asked}");
    assert!(Ground::told(client).ends_with("\"output_tokens\":4}}"));
    let said = proxy.end();
    let log = std::fs::read_to_string(ground.world.path("log.jsonl")).unwrap();
    assert!(![KEY, BEARER].iter().any(|secret| log.contains(secret) || said.contains(secret)), "{log}{said}");
    let log = ground.log();
    assert_eq!((&log[0]["status"], &log[0]["reason"]), (&json!(401), &json!("bearer")));
    let expected = json!({
        "ts": log[1]["ts"], "run": RUN, "peer": "claude", "route": "anthropic", "model": "m", "status": 200,
        "in": 3, "out": 4, "cache_read": null, "cache_write": null, "counted": 7, "ms": log[1]["ms"],
        "req_id": null,
    });
    assert_eq!(log[1], expected);
}

#[test]
fn an_event_passes_while_the_service_goes_on_and_a_client_that_leaves_ends_it() {
    let ground = Ground::new();
    let service = Service::start();
    let proxy = ground.with_key(&service);
    let mut client = ground.ask(BEARER);
    let (_, mut upstream) = service.asked.recv().unwrap();
    upstream
        .write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .unwrap();
    upstream.write_all(b"a\r\ndata: {}\n\n\r\n").unwrap();
    let mut seen = String::new();
    while !seen.ends_with("data: {}\n\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        seen.push(char::from(byte[0]));
    }
    drop(client);
    assert_eq!(upstream.read(&mut [0; 1]).unwrap_or(0), 0, "the service is let go");
    proxy.end();
    assert_eq!(ground.log()[0]["reason"], "client-gone");
}

#[test]
fn a_hangup_takes_over_bearers_and_the_cap() {
    let ground = Ground::new();
    let service = Service::start();
    let mut proxy = ground.with_key(&service);
    let mut policy = peers(&["anthropic"], &json!([{"name": "anthropic", "url": service.url}]));
    ground.policy(&json!({"v": 1, "peers": [{"name": "other", "bearer": BEARER, "services": []}]}));
    proxy.signal("-HUP");
    proxy.hears("the policy of the auth proxy stays as it was");
    policy["token_cap"] = json!(0);
    ground.policy(&policy);
    proxy.signal("-HUP");
    let asked = service.asked;
    std::thread::spawn(move || {
        for (_, mut stream) in asked {
            stream.write_all(ok("{}").as_bytes()).unwrap();
        }
    });
    // Until it has read the policy, requests go through.
    let answers = std::iter::repeat_with(|| Ground::told(ground.ask(BEARER)));
    let refused = answers.into_iter().find(|told| !told.starts_with("HTTP/1.1 200 ")).unwrap();
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    proxy.end();
}

#[test]
fn a_login_is_renewed_in_its_file_behind_the_walls() {
    let ground = Ground::new();
    let (service, renewing) = (Service::start(), Service::start());
    let dir = ground.world.path("home/.claude");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join(".credentials.json");
    let login = json!({"claudeAiOauth": {
        "accessToken": "old", "refreshToken": "once", "expiresAt": 1_700_000_000_000_i64, "kept": true,
    }});
    std::fs::write(&file, login.to_string()).unwrap();
    ground.policy(&peers(&["anthropic"], &json!([{"name": "anthropic", "url": service.url}])));
    let proxy = ground.auth(|command| {
        command
            .env("AUTH_PROXY_OAUTH_TOKEN_URL", format!("{}/token", renewing.url))
            .env("AUTH_PROXY_OAUTH_ALLOW_LOOPBACK", "1");
    });
    let asked =
        renewing.answer(&ok("{\"access_token\":\"new\",\"refresh_token\":\"twice\",\"expires_in\":3600}"));
    assert!(asked.starts_with("POST /token ") && asked.contains("\"once\""), "{asked}");
    let client = ground.ask(BEARER);
    let asked = service.answer(&ok("{}"));
    assert!(asked.contains("authorization: Bearer new\r\n"), "{asked}");
    assert!(Ground::told(client).starts_with("HTTP/1.1 200 "));
    assert_eq!(proxy.end(), "");
    let renewed: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let tokens = &renewed["claudeAiOauth"];
    assert_eq!(
        (&tokens["accessToken"], &tokens["refreshToken"], &tokens["kept"]),
        (&json!("new"), &json!("twice"), &json!(true))
    );
}

#[test]
fn a_relay_leads_to_a_proxy() {
    let ground = Ground::new();
    ground.policy(&ground.allow());
    let proxy = ground.egress();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'CONNECT other.example:443 HTTP/1.1\\r\\n\\r\\n' >&3; head -1 <&3"
    );
    let map = format!("{port}={}", ground.socket("egress.sock").display());
    ground
        .world
        .peers(&["relay", "--map", &map, "--", "bash", "-c", &script])
        .exits(0)
        .out_has("403 Forbidden");
    proxy.end();
}
