//! `bench-stream` and `bench-idle`: what supervising a real agent costs, by its output and by the hour.
//!
//! Targets: 300 MB in less than 2 s, with the process under 64 MiB; less than 0.5 % of a core while a peer thinks.

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ground::{Ground, build, number};
use crate::{Failure, Outcome};

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Seconds after the start in which a run may still be busy with itself.
const SETTLE: Duration = Duration::from_secs(5);
const GOALS: &str = "goals:\n- {id: any, type: hard, cmd: 'true', pass_when: exit_code == 0}\n";
/// Input and output tokens of each message.
const TOKENS: u64 = 1100;

/// Runs one turn of a peer that prints a large stream like that of claude.
pub(crate) fn stream(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let bytes = number(args, "--mb", 300)?.saturating_mul(1_000_000);
    let rounds = number(args, "--rounds", 3)?;
    let (dir, peers) = start("stream")?;
    let file = dir.join("stream.jsonl");
    let (written, messages) = write_stream(&file, bytes)?;
    let mut good = true;
    for round in 0..rounds {
        let began = Instant::now();
        drain(&file)?;
        let plain = began.elapsed();
        // The switches that tell that it is a stream of claude's stand where the shell ignores them.
        let cat = [
            "/bin/sh",
            "-c",
            "exec cat \"$0\"",
            &text(&file),
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
        ];
        let ground = ground(&dir.join(format!("round{round}")), &peers, &cat)?;
        let mut run = spawn(&ground)?;
        let peak = peak_kib(&mut run)?;
        let tick = turn(&ground)?;
        let ms = figure(&tick, "/exit/duration_ms")?;
        let tokens = figure(&tick, "/exit/usage/tokens")?;
        if figure(&tick, "/exit/bytes_out")? != written || tokens != messages * TOKENS {
            return Err(format!(
                "not all of the stream was taken in: {tokens} tokens of {messages} messages"
            )
            .into());
        }
        writeln!(
            out,
            "round {round}: {written} bytes, {messages} messages: turn {ms} ms, plain drain {} ms, peak {} MiB",
            plain.as_millis(),
            peak / 1024
        )?;
        good &= ms < 2000 && peak < 64 * 1024;
    }
    fs::remove_dir_all(&dir)?;
    verdict(good, out)
}

/// Runs one turn of a peer that says nothing, and counts the processor time of the loop beside it.
pub(crate) fn idle(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let seconds = number(args, "--seconds", 30)?.max(1);
    let (dir, peers) = start("idle")?;
    let sleep = (SETTLE.as_secs() + seconds + 5).to_string();
    let ground = ground(&dir.join("ground"), &peers, &["/bin/sleep", &sleep])?;
    let mut run = spawn(&ground)?;
    std::thread::sleep(SETTLE);
    let before = cpu_ticks(run.id())?;
    std::thread::sleep(Duration::from_secs(seconds));
    let used = cpu_ticks(run.id())?.saturating_sub(before);
    run.wait()?;
    fs::remove_dir_all(&dir)?;
    // The kernel tells user programs hundredths of a second, whatever its own clock.
    let per_mille_of_percent = used * 1000 / seconds;
    writeln!(
        out,
        "idle: {used} ticks of 10 ms in {seconds} s: {}.{:03} % of a core",
        per_mille_of_percent / 1000,
        per_mille_of_percent % 1000
    )?;
    verdict(per_mille_of_percent < 500, out)
}

fn verdict(good: bool, out: &mut dyn Write) -> Result<Outcome, Failure> {
    if good {
        return Ok(Outcome::Ok);
    }
    writeln!(out, "missed the target")?;
    Ok(Outcome::Negative)
}

fn start(name: &str) -> Result<(std::path::PathBuf, std::path::PathBuf), Failure> {
    if !Path::new("/proc/self/status").exists() {
        return Err("this is measured through /proc, which this system has not".into());
    }
    let peers = build()?;
    let dir = std::env::temp_dir().join(format!("peers-bench-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir)?;
    Ok((dir, peers))
}

/// A repository whose peers are this command, decoded as claude.
fn ground(dir: &Path, peers: &Path, argv: &[&str]) -> Result<Ground, Failure> {
    let ground = Ground::new(dir, peers, 20, GOALS)?;
    let peer = |name: &str| format!("- {{name: {name}, tool: claude, argv: {}}}\n", json!(argv));
    let config = format!("peers:\n{}{}health: {{idle_timeout_s: 600}}\n", peer("ann"), peer("bob"));
    fs::write(ground.repo().join(".peers/config.yaml"), config)?;
    ground.accept()?;
    Ok(ground)
}

fn spawn(ground: &Ground) -> Result<Child, Failure> {
    let mut command = ground.command(&["run", "--max-ticks", "1", "--allow-no-gates"]);
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// The record of the one turn.
fn turn(ground: &Ground) -> Result<Value, Failure> {
    let records = ground.records()?;
    let found =
        records.into_iter().find(|record| record.get("event").and_then(Value::as_str) == Some("tick"));
    found.ok_or_else(|| "the run recorded no turn".into())
}

fn figure(record: &Value, at: &str) -> Result<u64, Failure> {
    record.pointer(at).and_then(Value::as_u64).ok_or_else(|| format!("no figure at {at} in {record}").into())
}

/// A stream in the shape of claude's, with messages of half a KiB to 30 KiB: how many bytes and messages it has.
fn write_stream(file: &Path, bytes: u64) -> Result<(u64, u64), Failure> {
    let mut to = Counted { to: BufWriter::new(fs::File::create(file)?), bytes: 0 };
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": "claude-opus-5-5"});
    writeln!(to, "{init}")?;
    let mut messages: u64 = 0;
    while to.bytes < bytes {
        let length = 512 + (messages.wrapping_mul(2_654_435_761) % 30_000);
        let words =
            "fn main() { let reading = \"of some length\"; } ".repeat(usize::try_from(length / 46 + 1)?);
        let id = format!("msg_{messages:08}");
        let said = json!({"type": "assistant", "session_id": "s", "message": {
            "id": id, "model": "claude-opus-5-5", "role": "assistant",
            "content": [{"type": "text", "text": words}, {"type": "tool_use", "id": format!("toolu_{messages}"),
                "name": "Bash", "input": {"command": "cat src/main.rs"}}],
            "usage": {"input_tokens": 1000, "output_tokens": 100}}});
        let result = json!({"type": "user", "session_id": "s", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": format!("toolu_{messages}"), "content": words}]}});
        writeln!(to, "{said}\n{result}")?;
        messages += 1;
    }
    to.flush()?;
    Ok((to.bytes, messages))
}

struct Counted<W> {
    to: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.to.write(buf)?;
        self.bytes += u64::try_from(n).unwrap_or_default();
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Reads what the same command writes into a pipe, and drops it.
fn drain(file: &Path) -> Result<(), Failure> {
    let mut child = Command::new("/bin/cat").arg(file).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    let mut chunk = vec![0; 64 * 1024];
    while pipe.read(&mut chunk)? > 0 {}
    child.wait()?;
    Ok(())
}

/// The most memory that the process held at once, KiB, read until it ends.
fn peak_kib(run: &mut Child) -> Result<u64, Failure> {
    let mut peak = 0;
    while run.try_wait()?.is_none() {
        if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", run.id())) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
            peak = peak.max(kib.unwrap_or(0));
        }
        std::thread::sleep(LOOK);
    }
    Ok(peak)
}

/// User and system time of a process, in hundredths of a second.
fn cpu_ticks(pid: u32) -> Result<u64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, after) = stat.rsplit_once(')').ok_or("no process")?;
    let mut fields = after.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<u64>().ok());
    next().zip(next()).map(|(user, system)| user + system).ok_or_else(|| "no times of the process".into())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
