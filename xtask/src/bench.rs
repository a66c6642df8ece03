//! `bench`: what the loop costs on top of what it runs.
//!
//! Overhead of a tick = slope of wall time between a short and a long run, minus the same peer and
//! the same gates spawned bare. Behind a wall also what it adds to one gate, and behind `bwrap` what the git directory
//! of a turn costs.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ground::{Ground, build, number, wall};
use crate::{Failure, Outcome};

/// Gates of one tick.
const GATES: usize = 9;
/// Gates more, to tell what one of them costs.
const MORE: usize = 20;
/// Ticks of the short run.
const SHORT: u64 = 5;

pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let ticks = number(args, "--ticks", 40)?;
    let files = usize::try_from(number(args, "--files", 200)?)?;
    let peers = build()?;
    let dir = std::env::temp_dir().join(format!("peers-bench-{}", std::process::id()));
    let goals = goals(GATES);
    let mut best: Option<(f64, f64)> = None;
    for round in 0..3 {
        let short_ground = Ground::new(&dir.join(format!("short{round}")), &peers, files, &goals)?;
        let long_ground = Ground::new(&dir.join(format!("long{round}")), &peers, files, &goals)?;
        for ground in [&short_ground, &long_ground] {
            ground.behind(wall(args))?;
        }
        let short = timed(&short_ground, SHORT)?;
        let long = timed(&long_ground, SHORT + ticks)?;
        let slope = ms(long.saturating_sub(short)) / as_f64(ticks);
        let bare = ms(bare(&long_ground, ticks)?) / as_f64(ticks);
        writeln!(
            out,
            "round {round}: {slope:.1} ms a tick, bare {bare:.1} ms, overhead {:.1} ms",
            slope - bare
        )?;
        if best.is_none_or(|(s, b)| slope - bare < s - b) {
            best = Some((slope, bare));
        }
    }
    let each = match wall(args) {
        "none" => None,
        wall => Some((a_gate(&dir, &peers, "none")?, a_gate(&dir, &peers, wall)?)),
    };
    fs::remove_dir_all(&dir)?;
    if let Some((slope, bare)) = best {
        writeln!(
            out,
            "tick overhead: {:.1} ms ({ticks} ticks, {GATES} gates `true`, {files} files, fake peer that commits, sandbox {}; best of 3)",
            slope - bare,
            wall(args)
        )?;
    }
    if let Some((none, each)) = each {
        writeln!(
            out,
            "a gate: {each:.1} ms, behind none {none:.1} ms: {:.1} ms for {} (one after the other; best of 3)",
            each - none,
            wall(args)
        )?;
    }
    if wall(args) == "bwrap" {
        turn_git(out)?;
    }
    Ok(Outcome::Ok)
}

/// So many gates that pass.
fn goals(gates: usize) -> String {
    let mut goals = String::from("goals:\n");
    for n in 0..gates {
        // Writing to a string does not fail.
        let _ = writeln!(goals, "- {{id: g{n}, type: hard, cmd: 'true', pass_when: exit_code == 0}}");
    }
    // With all gates green the next turn would be the skeptic's; a soft goal that nobody reviews keeps the run going.
    goals.push_str("- {id: reviewed, type: soft, prompt: look, reviewer: other, review_interval: 100000}\n");
    goals
}

/// What one more gate costs behind this wall, in milliseconds: what a loop does once a tick has no part in it.
fn a_gate(dir: &Path, peers: &Path, wall: &str) -> Result<f64, Failure> {
    let mut best = f64::MAX;
    for round in 0..3 {
        let mut took = [Duration::ZERO; 2];
        for (took, gates) in took.iter_mut().zip([1, 1 + MORE]) {
            let ground = Ground::new(&dir.join(format!("{wall}{gates}-{round}")), peers, 200, &goals(gates))?;
            let file = ground.repo().join(".peers/config.yaml");
            let config = fs::read_to_string(&file)?;
            fs::write(file, config.replace("idle_halt_after: 1000", "idle_halt_after: 1000, parallel: 1"))?;
            ground.accept()?;
            ground.behind(wall)?;
            *took = timed(&ground, SHORT)?;
        }
        let [one, many] = took;
        best = best.min(ms(many.saturating_sub(one)) / as_f64(SHORT * u64::try_from(MORE)?));
    }
    Ok(best)
}

/// Prints what the git directory of a turn costs a tick.
fn turn_git(out: &mut dyn Write) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(cargo)
        .args(["bench", "--quiet", "-p", "peers-git", "--bench", "turn_git", "--", "5000", "100000"])
        .stderr(Stdio::inherit())
        .output()?;
    if !done.status.success() {
        return Err(format!("the bench of the turn git ended with {}", done.status).into());
    }
    Ok(out.write_all(&done.stdout)?)
}

fn timed(ground: &Ground, ticks: u64) -> Result<Duration, Failure> {
    let max = ticks.to_string();
    let began = Instant::now();
    let said = ground.peers(&["run", "--max-ticks", &max])?;
    let took = began.elapsed();
    if !said.contains("Stopped: max_ticks") {
        return Err(format!("the run ended otherwise:\n{said}").into());
    }
    Ok(took)
}

/// The same peer and gates, spawned bare, one after the other as the loop's gates on two cores would not be.
fn bare(ground: &Ground, ticks: u64) -> Result<Duration, Failure> {
    let began = Instant::now();
    for tick in 0..ticks {
        let status = Command::new(&ground.peers)
            .args(["fake-peer", "--script"])
            .arg(ground.script())
            .current_dir(ground.repo())
            .env("PEERS_ITERATION", (10_000 + tick).to_string())
            .env("PEERS_PEER_NAME", "ann")
            .envs([("GIT_AUTHOR_NAME", "ann"), ("GIT_AUTHOR_EMAIL", "ann@peers.local")])
            .envs([("GIT_COMMITTER_NAME", "ann"), ("GIT_COMMITTER_EMAIL", "ann@peers.local")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(format!("the bare peer failed: {status}").into());
        }
        let mut gates = Vec::new();
        for _ in 0..GATES {
            gates.push(Command::new("/bin/sh").args(["-c", "true"]).stdin(Stdio::null()).spawn()?);
            if gates.len() == 2 {
                for mut gate in gates.drain(..) {
                    gate.wait()?;
                }
            }
        }
        for mut gate in gates {
            gate.wait()?;
        }
    }
    Ok(began.elapsed())
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "small counts")]
fn as_f64(n: u64) -> f64 {
    n as f64
}
