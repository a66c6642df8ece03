//! `bench-fleet`: `peers-ctl` over many registered loops.
//!
//! One loop is run for as many ticks as asked for; every project is a copy of it, with a store of its own. What
//! is measured is the whole command, from its start to its end.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::ground::{Ground, build_all, number};
use crate::{Failure, Outcome};

/// Goals of which one never is met, so that the loop goes on.
const GOALS: &str = "goals:\n- {id: never, type: hard, cmd: 'test -f never', pass_when: exit_code == 0}\n- {id: always, type: hard, cmd: 'true', pass_when: exit_code == 0}\n";

/// Limits, milliseconds: of a dashboard over a few and over many, of a list over many.
const FEW_MS: f64 = 60.0;
const MANY_MS: f64 = 1500.0;
const LIST_MS: f64 = 100.0;
/// Most of a core that a live dashboard over many takes, per cent.
const LIVE_PERCENT: f64 = 3.0;

pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let few = (number(args, "--projects", 50)?, number(args, "--ticks", 20)?);
    let many = (number(args, "--many", 1000)?, number(args, "--many-ticks", 500)?);
    let rounds = number(args, "--rounds", 5)?;
    let seconds = number(args, "--seconds", 30)?;
    let [peers, ctl] = build_all(["peers-cli", "peers-ctl"])?;
    let dir = std::env::temp_dir().join(format!("peers-fleet-{}", std::process::id()));
    let mut good = true;
    let fleet = Fleet::make(&dir.join("few"), &peers, &ctl, few)?;
    good &= fleet.measure(out, "dashboard", &["dashboard"], rounds, FEW_MS)?;
    fs::remove_dir_all(&fleet.root)?;
    let fleet = Fleet::make(&dir.join("many"), &peers, &ctl, many)?;
    good &= fleet.measure(out, "dashboard", &["dashboard"], rounds, MANY_MS)?;
    good &= fleet.measure(out, "list", &["list"], rounds, LIST_MS)?;
    good &= fleet.live(out, &["dashboard", "--live"], seconds)?;
    good &= fleet.live(out, &["dashboard", "--live", "--json"], seconds)?;
    if number(args, "--keep", 0)? == 0 {
        fs::remove_dir_all(&dir)?;
    } else {
        writeln!(out, "kept at {}", dir.display())?;
    }
    Ok(if good { Outcome::Ok } else { Outcome::Negative })
}

/// Registered projects.
pub(crate) struct Fleet {
    pub(crate) root: PathBuf,
    ctl: PathBuf,
    projects: u64,
    ticks: u64,
}

impl Fleet {
    pub(crate) fn make(
        root: &Path,
        peers: &Path,
        ctl: &Path,
        (projects, ticks): (u64, u64),
    ) -> Result<Self, Failure> {
        fs::create_dir_all(root)?;
        let root = root.canonicalize()?;
        let ground = Ground::new(&root, peers, 20, GOALS)?;
        let config = ground.repo().join(".peers/config.yaml");
        let text = fs::read_to_string(&config)?.replace("goals: {", "goals: {stuck_halt_after: 0, ");
        fs::write(&config, text)?;
        ground.accept()?;
        let most = ticks.to_string();
        ground.peers(&["run", "--max-ticks", &most])?;
        let stores = root.join("home/state/peers");
        let store = only_entry(&stores)?;
        for git in [ground.repo(), store.join("git/control.git")] {
            let gc = Command::new("git")
                .arg("-C")
                .arg(&git)
                .args(["-c", "core.commitGraph=true", "gc", "--quiet"])
                .status()?;
            if !gc.success() {
                return Err("git gc failed".into());
            }
        }
        for logs in ["peers", "prompts", "gates"] {
            let dir = ground.repo().join(".peers/log").join(logs);
            if dir.is_dir() {
                fs::remove_dir_all(&dir)?;
            }
        }
        let mut entries = Vec::new();
        for n in 0..projects {
            let name = format!("p{n:04}");
            let repo = root.join("repos").join(&name);
            fs::create_dir_all(root.join("repos"))?;
            copy(&ground.repo(), &repo)?;
            let id = project_id(&repo)?;
            let own = stores.join(&id);
            copy(&store, &own)?;
            let meta = fs::metadata(&repo)?;
            let file = own.join("project.json");
            let mut project: Value = serde_json::from_slice(&fs::read(&file)?)?;
            for (key, value) in
                [("path", json!(repo)), ("dev", json!(meta.dev())), ("ino", json!(meta.ino()))]
            {
                if let Some(map) = project.as_object_mut() {
                    map.insert(key.to_owned(), value);
                }
            }
            fs::write(&file, project.to_string())?;
            entries.push(json!({"name": name, "path": repo, "path_id": {"dev": meta.dev(), "ino": meta.ino()},
                "state": "stopped", "outcome": "limit", "log_path": format!("logs/{name}.log"),
                "added_at": "2026-01-01T00:00:00Z", "last_started_at": null, "last_stopped_at": "2100-01-01T00:00:00Z",
                "last_exit": null, "labels": {}, "notes": "", "runtime": null}));
        }
        let config = root.join("home/config/peers-ctl");
        fs::create_dir_all(&config)?;
        let registry = json!({"schema": 1, "registry_id": "bench", "revision": 1, "projects": entries});
        fs::write(config.join("projects.json"), registry.to_string())?;
        Ok(Self { root, ctl: ctl.to_owned(), projects, ticks })
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let home = self.root.join("home");
        let mut command = Command::new(&self.ctl);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .args(args)
            .stdin(Stdio::null());
        command
    }

    /// The median of several calls.
    fn measure(
        &self,
        out: &mut dyn Write,
        what: &str,
        args: &[&str],
        rounds: u64,
        limit: f64,
    ) -> Result<bool, Failure> {
        let mut took = Vec::new();
        for _ in 0..rounds.max(1) {
            let began = Instant::now();
            let output = self.command(args).stderr(Stdio::piped()).output()?;
            took.push(began.elapsed().as_secs_f64() * 1000.0);
            if !output.status.success() {
                return Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)).into());
            }
            let shown = String::from_utf8_lossy(&output.stdout).matches("p00").count();
            if shown == 0 {
                return Err(format!("{what} shows no project").into());
            }
        }
        let first = took.first().copied().unwrap_or_default();
        took.sort_by(f64::total_cmp);
        let median = took.get(took.len() / 2).copied().unwrap_or_default();
        let good = median < limit;
        let verdict = if good { "" } else { "  OVER" };
        writeln!(
            out,
            "{what:<9} {:>5} projects, {:>4} ticks each: {median:>8.1} ms (first {first:.1}, limit {limit:.0}){verdict}",
            self.projects, self.ticks
        )?;
        Ok(good)
    }

    /// The share of a core that a live dashboard takes once it has looked at everything.
    fn live(&self, out: &mut dyn Write, args: &[&str], seconds: u64) -> Result<bool, Failure> {
        let what = args.get(1..).unwrap_or_default().join(" ");
        let mut child = self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(Duration::from_secs(10));
        let before = cpu(child.id())?;
        let began = Instant::now();
        std::thread::sleep(Duration::from_secs(seconds));
        let used = cpu(child.id())?.saturating_sub(before);
        let passed = began.elapsed().as_secs_f64();
        child.kill()?;
        child.wait()?;
        // Clock ticks of 10 ms.
        #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a small number of ticks")]
        let percent = used as f64 / passed;
        let good = percent < LIVE_PERCENT;
        let verdict = if good { "" } else { "  OVER" };
        writeln!(
            out,
            "{what:<13} {:>5} projects, {:>4} ticks each: {percent:>8.2} % of a core (limit {LIVE_PERCENT:.0}){verdict}",
            self.projects, self.ticks
        )?;
        Ok(good)
    }
}

/// User and system time of a process so far, in clock ticks.
pub(crate) fn cpu(pid: u32) -> Result<u64, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<&str> = after.split(' ').collect();
    let field = |n: usize| fields.get(n).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    Ok(field(11) + field(12))
}

fn only_entry(dir: &Path) -> Result<PathBuf, Failure> {
    let mut found = fs::read_dir(dir)?.flatten().map(|entry| entry.path());
    found.next().ok_or_else(|| "there is no trusted store".into())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let status = Command::new("cp").arg("-a").arg("--reflink=auto").arg(from).arg(to).status()?;
    if status.success() { Ok(()) } else { Err("cp failed".into()) }
}

/// 16 hex digits of the SHA-256 of a path.
fn project_id(path: &Path) -> Result<String, Failure> {
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(path.as_os_str().as_encoded_bytes())?;
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.get(..16).map(str::to_owned).ok_or_else(|| "sha256sum said nothing".into())
}
