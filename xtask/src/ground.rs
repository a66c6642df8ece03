//! A repository with two scripted peers, and the built program: what soaks and benches run on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Failure;

/// One repository with a store of its own.
pub(crate) struct Ground {
    /// Everything of it lies below.
    pub(crate) root: PathBuf,
    /// The `peers` program.
    pub(crate) peers: PathBuf,
}

/// Builds the program in the release profile and says where it is.
pub(crate) fn build() -> Result<PathBuf, Failure> {
    build_all(["peers-cli"]).map(|[peers]| peers)
}

/// The same of several packages, in their order.
pub(crate) fn build_all<const N: usize>(packages: [&str; N]) -> Result<[PathBuf; N], Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let named = packages.iter().flat_map(|package| ["-p", package]);
    let output = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--message-format=json"])
        .args(named)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("the program does not build".into());
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut found = Vec::new();
    for package in packages {
        let of = |message: &&Value| {
            message.get("package_id").and_then(Value::as_str).is_some_and(|id| id.contains(package))
        };
        let path =
            messages.iter().filter(of).filter_map(|message| message.get("executable")?.as_str()).next_back();
        found.push(path.map(PathBuf::from).ok_or_else(|| format!("cargo named no program of {package}"))?);
    }
    found.try_into().map_err(|_| "cargo named other programs".into())
}

impl Ground {
    /// A repository with `files` small files, two scripted peers, and these goals.
    pub(crate) fn new(root: &Path, peers: &Path, files: usize, goals: &str) -> Result<Self, Failure> {
        let ground = Self { root: root.to_owned(), peers: peers.to_owned() };
        fs::create_dir_all(ground.repo())?;
        fs::create_dir_all(ground.root.join("home"))?;
        for i in 0..files {
            let dir = ground.repo().join(format!("d{}", i % 10));
            fs::create_dir_all(&dir)?;
            fs::write(dir.join(format!("f{i}.txt")), format!("file {i}\n"))?;
        }
        fs::write(ground.repo().join("start.txt"), "start\n")?;
        ground.git(&["init", "-q", "-b", "main"])?;
        ground.git(&["add", "."])?;
        ground.git(&["commit", "-qm", "start"])?;
        ground.peers(&["init"])?;
        fs::write(
            ground.script(),
            "as: plain\ncount: ticks\nafter: repeat\nturns:\n- - write: {path: src/n.txt, text: \"turn {{iteration}}\"}\n  - handoff: \"Turn {{iteration}}\"\n",
        )?;
        let peer = |name: &str| {
            format!(
                "- name: {name}\n  tool: claude\n  argv: [{:?}, fake-peer, --script, {:?}]\n",
                ground.peers.display().to_string(),
                ground.script().display().to_string()
            )
        };
        let config = format!(
            "peers:\n{}{}budget: {{max_iterations: null, max_runtime_s: null}}\ngoals: {{idle_halt_after: 1000}}\n",
            peer("ann"),
            peer("bob")
        );
        fs::write(ground.repo().join(".peers/config.yaml"), config)?;
        fs::write(ground.repo().join(".peers/goals.yaml"), goals)?;
        ground.accept()?;
        ground.behind("none")?;
        Ok(ground)
    }

    /// From here on its agents and gates are behind this wall.
    pub(crate) fn behind(&self, wall: &str) -> Result<(), Failure> {
        let dir = self.root.join("home/config/peers");
        fs::create_dir_all(&dir)?;
        Ok(fs::write(dir.join("sandbox.yaml"), format!("backend: {wall}\nrequire: 0\n"))?)
    }

    /// Accepts goals and configuration as they are. Commands that are new are accepted by the digest that the
    /// refusal names.
    pub(crate) fn accept(&self) -> Result<(), Failure> {
        let refused = self.command(&["goals", "accept"]).output()?;
        if refused.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let digest = said.split("--widen ").nth(1).and_then(|rest| rest.split('`').next());
        self.peers(&["goals", "accept", "--widen", digest.ok_or(said.as_str())?])?;
        Ok(())
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.root.join("repo")
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.root.join("script.yaml")
    }

    /// A call of the program on the repository, in an environment of its own.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.peers);
        let home = self.root.join("home");
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_CONFIG_HOME", home.join("config"))
            .arg("-C")
            .arg(self.repo())
            .args(args);
        command
    }

    /// Runs the program; an error when it fails.
    pub(crate) fn peers(&self, args: &[&str]) -> Result<String, Failure> {
        let output = self.command(args).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("peers {} failed ({}): {said}", args.join(" "), output.status).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs git in the repository.
    pub(crate) fn git(&self, args: &[&str]) -> Result<String, Failure> {
        let output = Command::new("git")
            .current_dir(self.repo())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", self.root.join("home"))
            .args(["-c", "user.name=Op", "-c", "user.email=op@example.invalid"])
            .args(args)
            .output()?;
        if !output.status.success() {
            return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Its trusted store.
    pub(crate) fn store(&self) -> Result<PathBuf, Failure> {
        let stores = fs::read_dir(self.root.join("home/state/peers"))?.next();
        Ok(stores.ok_or("there is no trusted store")??.path())
    }

    /// The records of the mirror.
    pub(crate) fn records(&self) -> Result<Vec<Value>, Failure> {
        let text = fs::read_to_string(self.repo().join(".peers/log/runs.jsonl"))?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

/// The wall that `--sandbox` names; without it none.
pub(crate) fn wall(args: &[String]) -> &str {
    let named = args.windows(2).find(|pair| pair.first().is_some_and(|word| word == "--sandbox"));
    named.and_then(|pair| pair.last()).map_or("none", String::as_str)
}

/// `--name value` among `args`, or the default.
pub(crate) fn number(args: &[String], name: &str, default: u64) -> Result<u64, Failure> {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        if word == name {
            let value = words.next().ok_or_else(|| format!("{name} wants a number"))?;
            return value.parse().map_err(|_| format!("{name}: `{value}` is no number").into());
        }
    }
    Ok(default)
}
