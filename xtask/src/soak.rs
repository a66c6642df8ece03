//! `soak-kill`: `peers run` is killed with SIGKILL at random moments and started again. At the end
//! the record must be whole: see [`verify`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::ground::{Ground, build, number, wall};
use crate::{Failure, Outcome};

/// Longest wait before a kill, milliseconds.
const SPREAD_MS: u64 = 150;
/// A start must end by itself within this.
const PATIENCE: Duration = Duration::from_mins(5);

pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let runs = number(args, "--runs", 20)?;
    let kills = number(args, "--kills", 10)?;
    let ticks = number(args, "--ticks", 30)?;
    let mut seed = number(args, "--seed", 1)?.max(1);
    let peers = build()?;
    let began = Instant::now();
    writeln!(out, "soak-kill: {runs} runs, {kills} kills each, {ticks} ticks, seed {seed}")?;
    let mut wrong = 0;
    let (mut killed, mut recovered, mut total) = (0, 0, 0);
    for n in 0..runs {
        let dir = tempdir(n)?;
        let ground = Ground::new(
            &dir,
            &peers,
            20,
            "goals:\n- {id: never, type: hard, cmd: 'test -f never', pass_when: exit_code == 0}\n",
        )?;
        ground.behind(wall(args))?;
        let mut cut_short = false;
        for _ in 0..kills {
            let left = ticks.saturating_sub(done(&ground));
            if left == 0 {
                break;
            }
            let wait = Duration::from_millis(random(&mut seed) % SPREAD_MS);
            cut_short = start_and_kill(&ground, left, wait)?;
            killed += u64::from(cut_short);
        }
        let left = ticks.saturating_sub(done(&ground));
        // Each kill is followed by a restart: a recovered tick counts for no cap, so that the last kill may
        // have struck one tick beyond it.
        if left > 0 || cut_short {
            finish(&ground, left.max(1))?;
        }
        let findings = verify(&ground)?;
        for finding in &findings {
            writeln!(out, "run {n}: {finding}")?;
        }
        let records = ground.records()?;
        recovered += count(&records, |r| r.get("recovered") == Some(&Value::Bool(true)));
        total += count(&records, |r| r.get("event").and_then(Value::as_str) == Some("tick"));
        if findings.is_empty() {
            fs::remove_dir_all(&dir)?;
        } else {
            wrong += 1;
            writeln!(out, "run {n}: kept at {}", dir.display())?;
        }
    }
    writeln!(
        out,
        "{killed} kills, {total} ticks, {recovered} recovered, {wrong} runs with findings, {:.0} s",
        began.elapsed().as_secs_f64()
    )?;
    Ok(if wrong == 0 { Outcome::Ok } else { Outcome::Negative })
}

fn tempdir(n: u64) -> Result<std::path::PathBuf, Failure> {
    let dir = std::env::temp_dir().join(format!("peers-soak-{}-{n}", std::process::id()));
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// xorshift: the same seed gives the same kills.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

fn count(records: &[Value], wanted: impl Fn(&Value) -> bool) -> u64 {
    u64::try_from(records.iter().filter(|r| wanted(r)).count()).unwrap_or(u64::MAX)
}

fn done(ground: &Ground) -> u64 {
    let text = fs::read_to_string(ground.repo().join(".peers/state.json")).unwrap_or_default();
    let state: Value = serde_json::from_str(&text).unwrap_or_default();
    state.get("iteration").and_then(Value::as_u64).unwrap_or(0)
}

/// Returns whether the process was still there to be killed.
fn start_and_kill(ground: &Ground, left: u64, wait: Duration) -> Result<bool, Failure> {
    let max = left.to_string();
    let mut child = ground
        .command(&["run", "--max-ticks", &max])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(wait);
    let alive = child.try_wait()?.is_none();
    if alive {
        child.kill()?;
    }
    child.wait()?;
    Ok(alive)
}

fn finish(ground: &Ground, left: u64) -> Result<(), Failure> {
    let max = left.to_string();
    let mut child = ground
        .command(&["run", "--max-ticks", &max])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            return Err("the last run does not end".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("the last run failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}

/// Journal verified, fold equals snapshot; ticks contiguous; every commit of exactly one tick; no
/// process of any tick alive.
fn verify(ground: &Ground) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    if let Err(error) = ground.peers(&["state", "check"]) {
        findings.push(error.to_string());
    }
    let records = ground.records()?;
    let event = |r: &Value, name: &str| r.get("event").and_then(Value::as_str) == Some(name);
    let mut next = 1;
    let mut owners: BTreeMap<String, u32> = BTreeMap::new();
    let mut runs = BTreeSet::new();
    for record in &records {
        if let Some(id) = record.get("run_id").and_then(Value::as_str) {
            runs.insert(id.to_owned());
        }
        let mut own = |key: &str| {
            for id in record.get(key).and_then(Value::as_array).into_iter().flatten() {
                *owners.entry(id.as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        };
        if event(record, "tick") {
            let number = record.get("iteration").and_then(Value::as_u64).unwrap_or(0);
            if number != next {
                findings.push(format!("tick {number} where {next} was due"));
            }
            next = number + 1;
            for key in ["commits", "foreign", "own"] {
                own(key);
            }
        }
        if event(record, "run-started") || event(record, "tick-started") {
            own("operator");
        }
    }
    let base = ground.git(&["rev-list", "-1", "peers-baseline"])?;
    let range = format!("{base}..HEAD");
    for commit in ground.git(&["rev-list", &range])?.lines() {
        let ours = ground.git(&["log", "-1", "--format=%an", commit])? == "peers-init";
        match owners.get(commit).copied().unwrap_or(0) {
            1 => {}
            0 if ours => {}
            n => findings.push(format!("commit {commit} stands in {n} records")),
        }
    }
    for entry in fs::read_dir("/proc")?.flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        let text = String::from_utf8_lossy(&environ);
        if text.split('\0').any(|v| v.strip_prefix("PEERS_RUN_ID=").is_some_and(|id| runs.contains(id))) {
            findings.push(format!("process {} of a tick is alive", entry.file_name().to_string_lossy()));
        }
    }
    Ok(findings)
}
