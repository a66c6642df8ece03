//! Loops in the background: a world that ends them, whatever becomes of the test, and what is left of them.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Held, World, goals, program};

/// The controller, beside `peers`.
pub(crate) fn controller() -> PathBuf {
    program().with_file_name("peers-ctl")
}

/// A world whose repository is registered as `demo`. What runs of it ends with it.
pub(crate) struct Fleet {
    world: World,
}

impl Deref for Fleet {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Looked for again: one that dies may just have started another.
        for _ in 0..20 {
            let alive = self.alive();
            if alive.is_empty() {
                return;
            }
            for pid in alive {
                let _gone = send(pid, "KILL");
            }
        }
    }
}

impl Fleet {
    /// A repository whose turns end at once.
    pub(crate) fn new() -> Self {
        Self::of(World::ready("true"))
    }

    /// A repository whose turns say `up` in the pipe `pipe`, then never end.
    pub(crate) fn hanging() -> Self {
        let fleet = Self::new();
        let pipe = fleet.fifo("pipe");
        let announce = format!("echo up > {}", pipe.display());
        let script = json!({"after": "repeat", "turns": [[{"shell": announce}, {"hang": "sleep"}]]});
        fleet.scripts(&script.to_string());
        fleet
    }

    /// A repository whose turns never end, which nobody waits for.
    pub(crate) fn still() -> Self {
        let fleet = Self::new();
        let script = json!({"after": "repeat", "turns": [[{"hang": "sleep"}]]});
        fleet.scripts(&script.to_string());
        fleet
    }

    pub(crate) fn of(world: World) -> Self {
        let fleet = Self { world };
        fleet.ctl(&["add", ".", "--name", "demo"]).exits(0);
        fleet
    }

    /// Another repository of the same peers, registered under its name.
    pub(crate) fn another(&self, name: &str) -> PathBuf {
        let dir = self.path(name);
        let at = dir.to_str().unwrap();
        std::fs::create_dir(&dir).unwrap();
        self.git(&["-C", at, "init", "-q", "-b", "main"]);
        std::fs::write(dir.join("README.md"), "# another\n").unwrap();
        self.git(&["-C", at, "add", "-A"]);
        self.git(&["-C", at, "commit", "-q", "-m", "First"]);
        self.peers(&["-C", at, "init"]).exits(0);
        std::fs::write(dir.join(".peers/goals.yaml"), goals(&[("real", "true")])).unwrap();
        std::fs::write(dir.join(".peers/config.yaml"), self.config("")).unwrap();
        self.accept_at(at, &[]);
        self.ctl(&["add", at, "--name", name]).exits(0);
        dir
    }

    /// `peers-ctl --json ARGS`: what its data says.
    #[track_caller]
    pub(crate) fn data(&self, schema: &str, args: &[&str], code: i32) -> Value {
        let done = self.ctl(&[&["--json"], args].concat()).exits(code);
        done.json(schema)["data"].clone()
    }

    /// The row of a project in `peers-ctl list --json`.
    #[track_caller]
    pub(crate) fn row(&self, name: &str) -> Value {
        let rows = self.data("peers-ctl.list/1", &["list"], 0);
        rows.as_array().unwrap().iter().find(|row| row["name"] == name).expect("it is listed").clone()
    }

    /// Starts the loop of `demo`, with more arguments: what is told of it.
    #[track_caller]
    pub(crate) fn start(&self, more: &[&str]) -> Value {
        self.data("peers-ctl.start/1", &[&["start", "demo"], more].concat(), 0)[0].clone()
    }

    /// The same, until it ended well.
    #[track_caller]
    pub(crate) fn ran(&self, more: &[&str]) -> Value {
        let row = self.start(more);
        self.ctl(&["wait", "demo", "--timeout", "2m"]).exits(0);
        row
    }

    /// Kills the loop, and waits until nothing is left of it. A child that it was just starting has the lock until
    /// that is another program.
    pub(crate) fn kill(&self, pid: u32) {
        assert!(send(pid, "KILL"));
        self.is_gone(pid);
    }

    /// Waits until this loop does not live and nobody holds its lock.
    pub(crate) fn is_gone(&self, pid: u32) {
        while lives(pid) || self.locked() {
            std::thread::yield_now();
        }
    }

    /// Asserts how `demo` stands: its row.
    #[track_caller]
    pub(crate) fn stands(&self, state: &str, outcome: &str) -> Value {
        let row = self.row("demo");
        assert_eq!((&row["state"], &row["outcome"]), (&state.into(), &outcome.into()), "{row}");
        row
    }

    /// The registry, as it stands in its file.
    pub(crate) fn registry(&self) -> Value {
        let text = std::fs::read(self.path("home/config/peers-ctl/projects.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// Whether somebody holds the run lock of the only store.
    pub(crate) fn locked(&self) -> bool {
        is_locked(&self.store().join("run.lock"))
    }

    /// The run records of the only store.
    pub(crate) fn runs(&self) -> Vec<Value> {
        let Ok(found) = std::fs::read_dir(self.store().join("runs")) else { return Vec::new() };
        let read = |path: PathBuf| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        found.map(|entry| read(entry.unwrap().path())).collect()
    }

    /// The processes of this world that live.
    pub(crate) fn alive(&self) -> Vec<u32> {
        carrying(self.path("").to_str().unwrap())
    }

    /// Asserts that nothing runs here any more: no process lives, nobody holds the lock. A loop that gave its lock back
    /// lives for a moment yet.
    #[track_caller]
    pub(crate) fn is_quiet(&self) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !self.alive().is_empty() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let left: Vec<String> = self.alive().into_iter().map(told).collect();
        assert!(left.is_empty(), "left: {left:#?}");
        assert!(!self.locked(), "somebody holds the run lock");
    }
}

/// Whether somebody holds this lock.
pub(crate) fn is_locked(path: &Path) -> bool {
    std::fs::File::open(path).is_ok_and(|file| file.try_lock_shared().is_err())
}

/// Holds a lock, with this in it.
pub(crate) fn hold(path: &Path, content: &Value) -> Held {
    Held::of(path, |_| Some(content.clone()))
}

/// The processes whose environment or command line has this in it, and which have not ended.
pub(crate) fn carrying(text: &str) -> Vec<u32> {
    let has = |pid: u32, file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id() && (has(*pid, "environ") || has(*pid, "cmdline"))).collect()
}

pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned()
}

/// The process that a row names.
pub(crate) fn pid_in(row: &Value) -> u32 {
    u32::try_from(row["pid"].as_u64().unwrap()).unwrap()
}

/// A process, for people.
pub(crate) fn told(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// Field 22 of what the system says of a process: when it was started.
pub(crate) fn start_time(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    text.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
}

/// Whether a process is there and has not ended.
pub(crate) fn lives(pid: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

/// Sends a signal to a process.
pub(crate) fn send(pid: u32, signal: &str) -> bool {
    send_to(&pid.to_string(), signal)
}

/// The same for a group, as `-PID`.
pub(crate) fn send_to(whom: &str, signal: &str) -> bool {
    Command::new("sh").args(["-c", &format!("kill -{signal} {whom} 2>/dev/null")]).status().unwrap().success()
}
