//! `bench-proxy`: the two proxies of a run, each a process, over their real sockets and hosts on this machine.
//!
//! Targets: 1000 allowed and 1000 denied requests with the right verdicts and without growth, more than 300 MiB a second
//! through a tunnel, less than 50 ms added to the first byte of a model's answer.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ground::{build_all, number};
use crate::{Failure, Outcome};

const RUN: &str = "0123456789abcdef";
const BEARER: &str = "b3a7b3a7b3a7b3a7b3a7b3a7b3a7b3a7";
const HOST: &str = "localhost";
/// Growth that is none: what an allocator keeps.
const GROWTH_KIB: u64 = 4096;

/// Measures both proxies.
pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let (requests, mb) = (number(args, "--requests", 1000)?, number(args, "--mb", 2000)?);
    let rounds = number(args, "--rounds", 100)?.max(1);
    let [controller] = build_all(["peers-ctl"])?;
    let dir = std::env::temp_dir().join(format!("peers-bench-proxy-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    let good = egress(&controller, &dir, (requests, mb), out)? & auth(&controller, &dir, rounds, out)?;
    fs::remove_dir_all(&dir)?;
    if good {
        return Ok(Outcome::Ok);
    }
    writeln!(out, "missed the target")?;
    Ok(Outcome::Negative)
}

/// A proxy that is ready; killed when it is dropped.
struct Proxy(Child);

impl Proxy {
    fn start(controller: &Path, dir: &Path, kind: &str, policy: &Value) -> Result<Self, Failure> {
        let at = |end: &str| dir.join(format!("{kind}.{end}"));
        fs::write(at("json"), policy.to_string())?;
        let listen = format!("claude=unix:{}", socket(dir, kind).display());
        let mut child = Command::new(controller)
            .args(["proxy", kind, "--run", RUN, "--listen", &listen, "--policy"])
            .arg(at("json"))
            .arg("--log")
            .arg(at("log"))
            .env("ANTHROPIC_API_KEY", "a-key")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        if line.starts_with("ready") { Ok(Self(child)) } else { Err("the proxy does not start".into()) }
    }

    fn resident_kib(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Ok(line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or("no VmRSS")?.trim().parse()?)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn socket(dir: &Path, kind: &str) -> PathBuf {
    dir.join("run").join(format!("{kind}.sock"))
}

fn egress(
    controller: &Path,
    dir: &Path,
    (requests, mb): (u64, u64),
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let host = TcpListener::bind("127.0.0.1:0")?;
    let port = host.local_addr()?.port();
    let bytes = mb.saturating_mul(1_000_000);
    std::thread::spawn(move || {
        for client in host.incoming().map_while(Result::ok) {
            // What a client that leaves does not take is nobody's.
            std::thread::spawn(move || answer(client, bytes));
        }
    });
    let private = ["127.0.0.0/8", "::1/128"];
    let policy = json!({"v": 1, "allow": [{"host": HOST, "ports": [port], "private_ok": private}]});
    let proxy = Proxy::start(controller, dir, "egress", &policy)?;
    let at = socket(dir, "egress");
    let target = format!("{HOST}:{port}");
    let mut wrong = 0;
    let mut ask = |n: u64| -> Result<(), Failure> {
        for _ in 0..n {
            let allowed = connect(&at, &target)?;
            wrong += u64::from(!allowed.0.starts_with("HTTP/1.1 200 "));
            wrong += u64::from(!connect(&at, "other.example:443")?.0.starts_with("HTTP/1.1 403 "));
        }
        Ok(())
    };
    // What the first ones leave is kept for the others.
    ask(requests / 10)?;
    let before = proxy.resident_kib()?;
    ask(requests - requests / 10)?;
    let grown = proxy.resident_kib()?.saturating_sub(before);
    writeln!(
        out,
        "egress: {requests} allowed and {requests} denied, {wrong} wrong; {before} KiB, {grown} more at the end"
    )?;
    let (_, mut tunnel) = connect(&at, &target)?;
    let began = Instant::now();
    tunnel.write_all(&hello(HOST))?;
    let taken = drain(&mut tunnel, bytes)?;
    let rate = mib_per_second(taken, began.elapsed());
    writeln!(out, "tunnel: {taken} bytes, {rate} MiB/s (limit 300)")?;
    Ok(wrong == 0 && grown < GROWTH_KIB && rate > 300)
}

/// Reads what names the host, and sends so many bytes to whoever asked with it.
fn answer(mut client: TcpStream, bytes: u64) -> std::io::Result<()> {
    let mut first = [0; 512];
    if client.read(&mut first)? == 0 {
        return Ok(());
    }
    let block = vec![b'x'; 256 * 1024];
    let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
    while left > 0 {
        let piece = block.get(..left.min(block.len())).unwrap_or_default();
        client.write_all(piece)?;
        left -= piece.len();
    }
    Ok(())
}

fn drain(tunnel: &mut UnixStream, bytes: u64) -> Result<u64, Failure> {
    let mut block = vec![0; 256 * 1024];
    let mut taken = 0;
    while taken < bytes {
        match tunnel.read(&mut block)? {
            0 => break,
            count => taken += u64::try_from(count)?,
        }
    }
    Ok(taken)
}

fn mib_per_second(bytes: u64, took: Duration) -> u64 {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    bytes.saturating_mul(1000) / ms / (1024 * 1024)
}

fn connect(at: &Path, target: &str) -> Result<(String, UnixStream), Failure> {
    let mut client = UnixStream::connect(at)?;
    write!(client, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")?;
    Ok((head(&mut client)?, client))
}

fn head(client: &mut impl Read) -> Result<String, Failure> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte)? == 1 {
        head.extend(byte);
    }
    Ok(String::from_utf8(head)?)
}

/// A `ClientHello` that names this host.
fn hello(host: &str) -> Vec<u8> {
    let long = |bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        [&length.to_be_bytes()[..], bytes].concat()
    };
    let name = long(&[&[0][..], &long(host.as_bytes())].concat());
    let extensions = long(&[&[0, 0][..], &long(&name)].concat());
    let body = [&[3, 3][..], &[7; 32], &[0], &long(&[0x13, 1]), &[1, 0], &extensions].concat();
    [&[22, 3, 1][..], &long(&[&[1, 0][..], &long(&body)].concat())].concat()
}

/// How much later the first byte of an answer comes through the proxy than it was sent.
fn auth(controller: &Path, dir: &Path, rounds: u64, out: &mut dyn Write) -> Result<bool, Failure> {
    let service = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", service.local_addr()?);
    let (tell, sent) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut client in service.incoming().map_while(Result::ok) {
            if head(&mut client).is_err() {
                continue;
            }
            let begin =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let first = client.write_all(begin.as_bytes());
            let at = Instant::now();
            let event = first.and_then(|()| client.write_all(b"a\r\ndata: {}\n\n\r\n"));
            // The answer stays open until whoever asked has gone.
            if event.is_err() || tell.send(at).is_err() || client.read(&mut [0; 16]).is_err() {
                return;
            }
        }
    });
    let policy = json!({"v": 1, "peers": [{"name": "claude", "bearer": BEARER, "services": ["anthropic"]}],
        "services": [{"name": "anthropic", "url": url}]});
    let _proxy = Proxy::start(controller, dir, "auth", &policy)?;
    let mut late = Vec::new();
    for _ in 0..rounds {
        let mut client = UnixStream::connect(socket(dir, "auth"))?;
        write!(
            client,
            "POST /anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {BEARER}\r\nContent-Length: 2\r\n\r\n{{}}"
        )?;
        head(&mut client)?;
        let mut seen = Vec::new();
        let mut byte = [0];
        while !seen.ends_with(b"data: {}") && client.read(&mut byte)? == 1 {
            seen.extend(byte);
        }
        late.push(Instant::now().saturating_duration_since(sent.recv()?));
    }
    late.sort_unstable();
    let at = |share: usize| late.get(late.len().saturating_sub(1) * share / 100).copied().unwrap_or_default();
    let (median, most) = (at(50), at(100));
    writeln!(
        out,
        "auth: first event {} us later, the latest of {rounds} {} us (limit 50000)",
        median.as_micros(),
        most.as_micros()
    )?;
    Ok(most < Duration::from_millis(50))
}
