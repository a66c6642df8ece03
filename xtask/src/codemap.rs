//! `bench-codemap`: what the code map of a large project costs.
//!
//! Targets on two cores: 360,000 lines of Python in 1.5 s, and in 150 ms where nothing changed since.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ground::{Ground, build, number};
use crate::{Failure, Outcome};

const GOALS: &str = "goals:\n- {id: any, type: hard, cmd: 'true', pass_when: exit_code == 0}\n";
/// Directories of a Python library that hold tests, or what others wrote.
const LEFT_OUT: [&str; 8] =
    ["test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib2to3", "config"];

/// Makes a project and times `peers codemap refresh` on it.
pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let lines = usize::try_from(number(args, "--lines", 360_000)?)?;
    let rounds = number(args, "--rounds", 5)?;
    let peers = build()?;
    let dir = std::env::temp_dir().join(format!("peers-bench-codemap-{}", std::process::id()));
    let ground = Ground::new(&dir, &peers, 0, GOALS)?;
    let (files, written, from) = project(&ground.repo(), lines)?;
    ground.git(&["add", "."])?;
    ground.git(&["commit", "-qm", "sources"])?;
    writeln!(out, "{written} lines of Python in {files} files, from {from}")?;
    let map = ground.repo().join("CODEMAP.yaml");
    let store = ground.store()?;
    let mut good = true;
    for (what, limit) in [("cold", 1500), ("warm", 150), ("one file changed", 150)] {
        let mut best = Duration::MAX;
        for round in 0..rounds {
            match what {
                "cold" => {
                    for kept in [&map, &store.join("outlines.json")] {
                        if kept.exists() {
                            fs::remove_file(kept)?;
                        }
                    }
                }
                "one file changed" => {
                    fs::write(ground.repo().join("changed.py"), format!("def changed_{round}(one): pass\n"))?;
                    ground.git(&["add", "changed.py"])?;
                    ground.git(&["commit", "-qm", "change"])?;
                }
                _ => {}
            }
            let began = Instant::now();
            let said = ground.peers(&["codemap", "refresh"])?;
            best = best.min(began.elapsed());
            if round == 0 {
                writeln!(out, "{said}")?;
            }
        }
        let limit = Duration::from_millis(limit);
        good &= best <= limit;
        let over = if best <= limit { "" } else { "  OVER" };
        writeln!(
            out,
            "codemap refresh, {what}: {:.0} ms, best of {rounds} (limit {}){over}",
            best.as_secs_f64() * 1000.0,
            limit.as_millis()
        )?;
    }
    fs::remove_dir_all(&dir)?;
    Ok(if good { Outcome::Ok } else { Outcome::Negative })
}

/// Writes a project of so many lines: how many files and lines it has, and of what.
fn project(repo: &Path, lines: usize) -> Result<(usize, usize, String), Failure> {
    let (sources, from) = match library() {
        Some(library) => (sources(&library)?, library.display().to_string()),
        None => (vec![(PathBuf::from("made.py"), made())], "made text".to_owned()),
    };
    let (mut files, mut written) = (0, 0);
    for copy in 0.. {
        for (path, text) in &sources {
            if written >= lines {
                return Ok((files, written, from));
            }
            let to = repo.join(format!("lib{copy}")).join(path);
            fs::create_dir_all(to.parent().unwrap_or(repo))?;
            // Each copy has its own content, as another file would.
            let text = [text.as_slice(), format!("\n# {copy}\n").as_bytes()].concat();
            fs::write(&to, &text)?;
            files += 1;
            written += text.split(|byte| *byte == b'\n').count() - 1;
        }
    }
    Err("more copies than can be counted".into())
}

/// The standard library of the Python here.
fn library() -> Option<PathBuf> {
    let ask = "import sysconfig; print(sysconfig.get_paths()['stdlib'])";
    let said = Command::new("python3").args(["-c", ask]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
    (said.status.success() && path.is_dir()).then_some(path)
}

/// The sources below a directory, by path.
fn sources(library: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
    let (mut found, mut dirs) = (Vec::new(), vec![library.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir)? {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
            if path.is_dir() && !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "py") {
                found.push((path.strip_prefix(library)?.to_owned(), fs::read(&path)?));
            }
        }
    }
    found.sort();
    if found.is_empty() { Err("the library has no sources".into()) } else { Ok(found) }
}

/// A module of some hundred functions.
fn made() -> Vec<u8> {
    let function = |n| {
        format!(
            "def function_{n}(first, second={n}, *rest, **more):\n    \"\"\"Does what number {n} does.\"\"\"\n    total = first + second\n    for one in rest:\n        if one > {n}:\n            total += one * {n}\n        else:\n            total -= more.get('least', one)\n    return total\n\n\n"
        )
    };
    (0..100).map(function).collect::<String>().into_bytes()
}
