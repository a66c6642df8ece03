//! `bench-cockpit`: the cockpit over many loops that run, on a real terminal.
//!
//! Every project is a copy of one that ran; its run lock is held here, so that its loop counts as one that runs.
//! Events are records that are appended to each journal. A key is painted when the chosen row has moved on the
//! terminal, as a terminal reads it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::fleet::{Fleet, cpu};
use crate::ground::{build_all, number};
use crate::terminal::Terminal;
use crate::{Failure, Outcome};

/// Limits: per cent of a core without events and with them, MiB, milliseconds from key to paint.
const STILL: f64 = 3.0;
const BUSY: f64 = 15.0;
const MIB: f64 = 100.0;
const PAINT: f64 = 50.0;

pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let loops = number(args, "--loops", 100)?;
    let events = number(args, "--events", 10)?;
    let seconds = number(args, "--seconds", 30)?;
    let keys = number(args, "--keys", 300)?;
    let [peers, ctl] = build_all(["peers-cli", "peers-ctl"])?;
    let dir = std::env::temp_dir().join(format!("peers-cockpit-{}", std::process::id()));
    let fleet = Fleet::make(&dir, &peers, &ctl, (loops, 20))?;
    let stores = stores(&fleet)?;
    let held = stores.iter().map(|store| hold(store)).collect::<Result<Vec<_>, _>>()?;
    let mut good = true;
    let mut limit =
        |out: &mut dyn Write, what: &str, value: f64, most: f64, unit: &str| -> Result<(), Failure> {
            let over = if value < most { "" } else { "  OVER" };
            good &= value < most;
            writeln!(out, "{what:<42} {value:>8.2} {unit} (limit {most:.0}){over}")?;
            Ok(())
        };
    let mut terminal = Terminal::start(&fleet.command(&["tui"]), (50, 160))?;
    terminal.until("that all run", |screen| screen.contents().contains(&format!("●{loops} run")))?;
    terminal.rest(Duration::from_secs(10));
    let still = share(&mut terminal, seconds)?;
    limit(out, &format!("{loops} loops that run, no events"), still, STILL, "% of a core")?;
    let quiet = painted(&mut terminal, keys)?;
    limit(out, "key to paint, no events: 99th percentile", quiet, PAINT, "ms")?;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (stores, stop) = (stores.clone(), Arc::clone(&stop));
        std::thread::spawn(move || append(&stores, events, &stop))
    };
    terminal.rest(Duration::from_secs(5));
    let busy = share(&mut terminal, seconds)?;
    limit(out, &format!("{loops} loops, {events} events a second each"), busy, BUSY, "% of a core")?;
    let loud = painted(&mut terminal, keys)?;
    limit(out, "key to paint, with events: 99th percentile", loud, PAINT, "ms")?;
    limit(out, "memory at most", peak(terminal.id())?, MIB, "MiB")?;
    stop.store(true, Ordering::Relaxed);
    let wrote = writer.join().map_err(|_| "the writer of events panicked")??;
    writeln!(out, "{wrote} events were written")?;
    drop((terminal, held));
    fs::remove_dir_all(&dir)?;
    Ok(if good { Outcome::Ok } else { Outcome::Negative })
}

/// The trusted stores of its projects.
fn stores(fleet: &Fleet) -> Result<Vec<PathBuf>, Failure> {
    let registry = fleet.root.join("home/config/peers-ctl/projects.json");
    let registry: Value = serde_json::from_slice(&fs::read(registry)?)?;
    let known: Vec<&str> = registry["projects"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["path"].as_str())
        .collect();
    let mut stores = Vec::new();
    for entry in fs::read_dir(fleet.root.join("home/state/peers"))? {
        let dir = entry?.path();
        let Ok(bytes) = fs::read(dir.join("project.json")) else { continue };
        let project: Value = serde_json::from_slice(&bytes)?;
        if project["path"].as_str().is_some_and(|path| known.contains(&path)) {
            stores.push(dir);
        }
    }
    Ok(stores)
}

/// Holds the run lock of a store.
fn hold(store: &Path) -> Result<File, Failure> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(store.join("run.lock"))?;
    file.try_lock().map_err(|error| error.to_string())?;
    write!(file, "{{\"pid\":{},\"run_id\":\"00000000000000aa\"}}", std::process::id())?;
    Ok(file)
}

/// Appends so many records a second to each journal until it is told to stop; all journals are the same before.
fn append(stores: &[PathBuf], events: u64, stop: &AtomicBool) -> Result<u64, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let first = stores.first().ok_or("there is no store")?.join("journal/000001.jsonl");
    let text = fs::read_to_string(&first).map_err(|e| said(&e))?;
    let mut last = text.lines().last().unwrap_or_default().to_owned();
    let line: Value = serde_json::from_str(&last).map_err(|e| said(&e))?;
    let mut seq = line["seq"].as_u64().unwrap_or_default();
    let mut files = Vec::new();
    for store in stores {
        let path = store.join("journal/000001.jsonl");
        files.push(OpenOptions::new().append(true).open(path).map_err(|e| said(&e))?);
    }
    let mut wrote = 0;
    let pause = Duration::from_secs(1)
        .checked_div(u32::try_from(events).unwrap_or(1))
        .unwrap_or(Duration::from_secs(1));
    let mut due = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        seq += 1;
        let mut prev = String::new();
        for byte in Sha256::digest(last.as_bytes()) {
            let _infallible = std::fmt::Write::write_fmt(&mut prev, format_args!("{byte:02x}"));
        }
        last = format!(
            "{{\"v\":1,\"seq\":{seq},\"ts\":\"2026-12-01T00:00:00.000Z\",\"run_id\":null,\"prev\":\"{prev}\",\"event\":\"operator\",\"op\":\"resumed\",\"by\":\"bench\"}}"
        );
        for file in &mut files {
            file.write_all(format!("{last}\n").as_bytes()).map_err(|e| said(&e))?;
            wrote += 1;
        }
        due += pause;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(wrote)
}

/// The share of a core that it takes, per cent, while its terminal is read.
fn share(terminal: &mut Terminal, seconds: u64) -> Result<f64, Failure> {
    let before = cpu(terminal.id())?;
    let began = Instant::now();
    terminal.rest(Duration::from_secs(seconds));
    let used = cpu(terminal.id())?.saturating_sub(before);
    // Clock ticks of 10 ms.
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "a small number of ticks")]
    let percent = used as f64 / began.elapsed().as_secs_f64();
    Ok(percent)
}

/// The line that is chosen, as a terminal shows it.
fn chosen(screen: &vt100::Screen) -> Option<u16> {
    let (rows, _) = screen.size();
    (0..rows).find(|row| screen.cell(*row, 1).is_some_and(vt100::Cell::inverse))
}

/// How long it takes from a key until the chosen line has moved: the 99th percentile of so many, milliseconds.
fn painted(terminal: &mut Terminal, keys: u64) -> Result<f64, Failure> {
    terminal.keys("g")?;
    terminal.rest(Duration::from_millis(300));
    let mut took = Vec::new();
    for n in 0..keys.max(1) {
        // Down and up within the first lines, where the list does not move.
        let key = if n % 2 == 0 { "j" } else { "k" };
        let before = chosen(terminal.screen());
        let began = Instant::now();
        terminal.keys(key)?;
        terminal.until("the next row", |screen| chosen(screen).is_some() && chosen(screen) != before)?;
        took.push(began.elapsed().as_secs_f64() * 1000.0);
        // Not in step with anything.
        terminal.rest(Duration::from_millis(17 + n * 7 % 40));
    }
    took.sort_by(f64::total_cmp);
    let at = (took.len() * 99).div_ceil(100).saturating_sub(1);
    Ok(took.get(at).copied().unwrap_or_default())
}

/// The most memory that a process had so far, MiB.
fn peak(pid: u32) -> Result<f64, Failure> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    let kib: f64 = line.split_ascii_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or_default();
    Ok(kib / 1024.0)
}
