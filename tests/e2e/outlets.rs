//! The ways out of a sandbox, in whole runs: a peer reaches its model and listed hosts by the proxies, holds no login,
//! and reaches nothing else.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::ctl_proxy::hello;
use crate::support::{Ended, World, heard};

const KEY: &str = "sk-ant-api03-the-key-of-the-operator";
/// Where the agent of these tests writes what it saw.
const ASKS: &str = "PEERS_TEST_ASKS";
/// Ports of the test that it tries.
const PORTS: &str = "PEERS_TEST_PORTS";

/// A service of models that answers every request, and tells what it was sent.
fn model() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = head(&mut stream);
            let body = r#"{"id":"m","model":"claude-opus-5-5","usage":{"input_tokens":5,"output_tokens":7}}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            // Whoever hangs up early does not want it.
            let _gone = stream.write_all(answer.as_bytes());
            if tell.send(request).is_err() {
                break;
            }
        }
    });
    (port, told)
}

fn head(stream: &mut TcpStream) -> String {
    let (mut bytes, mut one) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut one).unwrap() == 1 {
        bytes.push(one[0]);
    }
    String::from_utf8(bytes).unwrap().to_ascii_lowercase()
}

/// One request: what came back, or why nothing did.
fn asked(port: u16, request: &str) -> String {
    let answer = TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map(|_| answer)
    });
    answer.unwrap_or_else(|error| format!("error: {error}"))
}

/// A tunnel through the egress proxy to a host that echoes: the answer to the request for it, and what came back.
fn tunnelled(target: &str) -> String {
    let through = || {
        let mut stream = TcpStream::connect(("127.0.0.1", 61128))?;
        write!(stream, "CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n")?;
        let answer = head(&mut stream);
        if !answer.starts_with("http/1.1 200") {
            return Ok(answer);
        }
        let hello = hello(target.split(':').next().unwrap());
        stream.write_all(&hello)?;
        let mut echo = vec![0; hello.len()];
        stream.read_exact(&mut echo).map(|()| if echo == hello { "echoed".to_owned() } else { answer })
    };
    through().unwrap_or_else(|error: std::io::Error| format!("error: {error}"))
}

/// What the agent does in its turn, within the wall. Without that variable it is no test and does nothing.
#[test]
fn the_agent_asks() {
    let Some(file) = std::env::var_os(ASKS) else { return };
    let vars: BTreeMap<String, String> = std::env::vars().collect();
    let text = |name: &str| vars.get(name).cloned().unwrap_or_default();
    let url = text("ANTHROPIC_BASE_URL");
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let model = format!(
        "POST /{path}/v1/messages HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}",
        text("ANTHROPIC_AUTH_TOKEN")
    );
    let port = host.rsplit_once(':').unwrap().1.parse().unwrap();
    let ports: Vec<u16> = text(PORTS).split(',').filter_map(|port| port.parse().ok()).collect();
    let login = std::path::Path::new(&text("HOME")).join(".claude/login");
    let seen = json!({
        "vars": vars,
        "model": asked(port, &model),
        "other": asked(port, &model.replace("/v1/messages", "/v1/organizations")),
        "denied": asked(61128, "CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n\r\n"),
        "tunnels": ports.iter().map(|port| tunnelled(&format!("localhost:{port}"))).collect::<Vec<_>>(),
        "ports": ports.iter().map(|port| asked(*port, "GET / HTTP/1.0\r\n\r\n")).collect::<Vec<_>>(),
        "login": std::fs::read_to_string(login).unwrap_or_default(),
        "state": std::fs::write(format!("{}/x", text("CLAUDE_CONFIG_DIR")), "x").is_ok(),
    });
    std::fs::write(file, seen.to_string()).unwrap();
}

/// A world behind `wall`, if it can be had, where ann is taken for claude.
fn world(wall: &str, more: &str) -> Option<World> {
    let world = World::ready("true");
    if !world.has_wall(wall) {
        return None;
    }
    let exe = std::env::current_exe().unwrap();
    let policy = format!(
        "backend: {wall}\nrequire: 0\npeers:\n  write: [{:?}]\n  read: [{exe:?}]\n{more}",
        world.path("scripts")
    );
    std::fs::write(world.path("home/config/peers/sandbox.yaml"), policy).unwrap();
    // A script that is run by name is known to need no login.
    let argv = json!([
        "/bin/sh",
        "-c",
        "exec \"$0\" fake-peer --script \"$1\"",
        crate::support::program(),
        world.path("scripts/ann.yaml")
    ]);
    let config = world.config("");
    let (first, rest) = config.split_once("    argv: ").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let config = format!("{}    argv: {argv}\n{rest}", first.replacen("tool: plain", "tool: claude", 1));
    world.write(".peers/config.yaml", &config);
    world.accept(&[]);
    std::fs::create_dir(world.path("home/.claude")).unwrap();
    std::fs::write(world.path("home/.claude/login"), KEY).unwrap();
    Some(world)
}

fn run(world: &World, port: u16, args: &[&str]) -> Ended {
    Ended::of(&command(world, port).args(args).output().unwrap())
}

fn command(world: &World, port: u16) -> Command {
    let mut command = world.command(crate::support::program());
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}/gate"));
    command
}

fn asking(world: &World, ports: &[u16]) {
    let exe = std::env::current_exe().unwrap();
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ask = format!(
        "{PORTS}={} {ASKS}=seen.json {} --exact outlets::the_agent_asks",
        ports.join(","),
        exe.display()
    );
    let steps = json!([{"shell": {"run": ask, "expect": 0}}, {"handoff": "Asked"}]);
    world.script("ann", &json!({"turns": [steps]}).to_string());
}

fn credentials(world: &World) -> Value {
    let dir = world.store().join("runs");
    let record = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    let record: Value = serde_json::from_str(&std::fs::read_to_string(record).unwrap()).unwrap();
    record["credentials"].clone()
}

#[test]
fn behind_each_wall_a_peer_asks_its_model_without_holding_the_key() {
    for wall in ["podman", "bwrap", "landlock"] {
        let Some(world) = world(wall, "") else { continue };
        let (port, told) = model();
        asking(&world, &[]);
        let done = run(&world, port, &["run", "--max-ticks", "1"]);
        let done = done.exits(0);
        let seen: Value = serde_json::from_str(&world.read("seen.json")).unwrap();
        assert!(
            seen["model"].as_str().unwrap().contains("output_tokens\":7"),
            "{wall}: {}\n{}",
            seen["model"],
            done.err
        );
        let sent = told.recv().unwrap();
        assert!(
            sent.starts_with("post /gate/v1/messages ") && sent.contains(&format!("x-api-key: {KEY}")),
            "{sent}"
        );
        assert!(!sent.contains("bearer"), "{sent}");
        assert!(seen["other"].as_str().unwrap().starts_with("HTTP/1.1 403"), "{wall}: {}", seen["other"]);
        if wall != "landlock" {
            let denied = seen["denied"].as_str().unwrap();
            assert!(denied.starts_with("HTTP/1.1 403"), "{wall}: {denied}");
        }
        assert!(!seen.to_string().contains(KEY), "{wall}: {seen}");
        assert_eq!((&seen["login"], &seen["state"]), (&json!(""), &json!(true)), "{wall}");
        // What it used was counted by the proxy; its tool says nothing.
        assert_eq!(world.records("tick")[0]["exit"]["usage"]["tokens"], json!(12), "{wall}");
        assert_eq!(credentials(&world), json!({"ann": "proxy", "ben": "mounted"}));
        done.err_has("`ann` holds no login");
        done.err_lacks("has its tool's own login");
        assert!(proxies(&world).is_empty(), "{wall}");
    }
}

#[test]
fn behind_a_wall_with_a_network_of_its_own_only_listed_hosts_and_ports_are_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listed = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The agent may have hung up.
            let _gone = stream.unwrap().write_all(b"the listed service");
        }
    });
    let Some(world) = world("bwrap", &format!("  local_ports: [{listed}]\n")) else { return };
    let (port, _told) = model();
    asking(&world, &[listed, port]);
    let done = run(&world, port, &["run", "--max-ticks", "1"]).exits(0);
    let seen: Value = serde_json::from_str(&world.read("seen.json")).unwrap();
    assert_eq!(seen["ports"][0], "the listed service", "{}", done.err);
    assert!(seen["ports"][1].as_str().unwrap().starts_with("error: "), "{}", seen["ports"][1]);
    let denied = seen["denied"].as_str().unwrap();
    assert!(denied.starts_with("HTTP/1.1 403") && denied.contains("allow"), "{denied}");
    for name in ["HTTPS_PROXY", "http_proxy"] {
        assert_eq!(seen["vars"][name], "http://127.0.0.1:61128");
    }
    let place = std::fs::read_dir(world.path("home/cache/peers")).unwrap().next().unwrap().unwrap().path();
    let sockets = std::fs::read_to_string(place.join("net/sockets")).unwrap();
    assert!(!PathBuf::from(sockets).exists(), "sockets go with the run");
}

#[test]
fn a_listed_host_is_reached_through_the_egress_proxy_and_no_other_port_of_it() {
    let echo = TcpListener::bind("127.0.0.1:0").unwrap();
    let listed = echo.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in echo.incoming() {
            let mut client = client.unwrap();
            std::thread::spawn(move || std::io::copy(&mut client.try_clone().unwrap(), &mut client));
        }
    });
    for (wall, private) in [("podman", true), ("bwrap", true), ("bwrap", false)] {
        let networks = if private { "  private: [127.0.0.0/8, '::1/128']\n" } else { "" };
        let more = format!("  allow: ['localhost:{listed}']\n{networks}");
        let Some(world) = world(wall, &more) else { continue };
        let (port, _told) = model();
        asking(&world, &[listed, port]);
        let done = run(&world, port, &["run", "--max-ticks", "1"]).exits(0);
        let seen: Value = serde_json::from_str(&world.read("seen.json")).unwrap();
        let first = if private { "echoed" } else { "http/1.1 403" };
        for (tunnel, due) in [(0, first), (1, "http/1.1 403")] {
            let told = seen["tunnels"][tunnel].as_str().unwrap();
            assert!(told.starts_with(due), "{wall}, {private}: {told}\n{}", done.err);
        }
        // Nothing but the proxy leads there.
        assert!(seen["ports"][0].as_str().unwrap().starts_with("error: "), "{wall}: {}", seen["ports"][0]);
    }
}

/// The processes of the proxies of this world.
fn proxies(world: &World) -> Vec<String> {
    let own = world.path("home").to_str().unwrap().to_owned();
    let all =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let is_one = |pid: &String| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(" proxy ") && line.contains(&own)
    };
    all.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).filter(is_one).collect()
}

#[test]
fn a_proxy_that_dies_ends_the_turn_and_counts_for_nobody_and_a_second_time_the_run() {
    let Some(world) = world("bwrap", "") else { return };
    let (port, _told) = model();
    let pipe = world.fifo("scripts/pipe");
    // Until it is ended.
    let hang = format!("echo up > {0}; cat {0}", pipe.display());
    world.script("ann", &json!({"after": "repeat", "turns": [[{"shell": hang}]]}).to_string());
    let child = command(&world, port)
        .args(["run", "--max-ticks", "6"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..2 {
        heard(&pipe);
        let all = proxies(&world);
        assert_eq!(all.len(), 2, "one of each kind");
        assert!(Command::new("kill").arg("-9").arg(&all[0]).status().unwrap().success());
    }
    let done = Ended::waited(child).exits(6);
    assert_eq!(done.last_line(), "Stopped: error:sandbox", "{}", done.err);
    let ticks = world.records("tick");
    let outcomes: Vec<String> =
        ticks.iter().map(|tick| format!("{} {}", tick["peer"], tick["outcome"]).replace('"', "")).collect();
    assert_eq!(outcomes, ["ann interrupted", "ann interrupted"], "{}", done.err);
    assert!(ticks[0].to_string().contains("sandbox-lost"), "{}", ticks[0]);
    assert!(proxies(&world).is_empty());
    // The next run takes up what was left open.
    world.script("ann", "turns:\n- - write: {path: ann.txt, text: x}\n  - handoff: Work\n");
    run(&world, port, &["run", "--max-ticks", "1"]).exits(0);
}

#[test]
fn what_an_agent_may_download_is_kept_from_turn_to_turn_and_no_gate_reads_it() {
    let Some(world) = world("bwrap", "  allow: [rust]\n") else { return };
    let shell = |more: &[&str], script: &str| {
        let all = [&["sandbox", "shell"], more, &["-c", script]].concat();
        world.peers(&all)
    };
    let made = "mkdir -p \"$CARGO_HOME/registry\" && echo x > \"$CARGO_HOME/registry/mark\" && echo \"at $CARGO_HOME\"";
    let made = shell(&[], made).exits(0);
    let at = made.out.lines().find_map(|line| line.strip_prefix("at ")).unwrap().to_owned();
    shell(
        &[],
        &format!("cat {at}/registry/mark && echo x > \"$GOMODCACHE/y\" && echo x > \"$npm_config_cache/y\""),
    )
    .exits(0);
    let gate = shell(&["--gate"], &format!("cat {at}/registry/mark"));
    assert_ne!(gate.code, Some(0), "{}", gate.out);
}
