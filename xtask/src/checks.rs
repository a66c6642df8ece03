//! `bench-checks`: what checks cost over a long history.
//!
//! Targets: the bug ledger over 20,000 commits in 150 ms, secrets in 200 MB of distinct content in 10 s.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ground::{build, number};
use crate::{Failure, Outcome};

/// Files that the commits change, one each.
const FILES: u64 = 500;
const WORDS: [&str; 16] = [
    "value", "total", "index", "append", "result", "request", "parse", "config", "reader", "write", "length",
    "offset", "buffer", "return", "handle", "message",
];

/// Makes a history and times checks over it.
pub(crate) fn run(args: &[String], out: &mut dyn Write) -> Result<Outcome, Failure> {
    let commits = number(args, "--commits", 20_000)?;
    let kib = number(args, "--kib", 10)?;
    let rounds = number(args, "--rounds", 3)?;
    let peers = build()?;
    let dir = std::env::temp_dir().join(format!("peers-bench-checks-{}", std::process::id()));
    let repo = dir.join("repo");
    std::fs::create_dir_all(&repo)?;
    history(&repo, commits, kib)?;
    let mut good = true;
    for (check, limit) in [("bug-ledger", 150), ("no-secrets", 10_000)] {
        let limit = Duration::from_millis(limit);
        let mut best = Duration::MAX;
        for _ in 0..rounds {
            let began = Instant::now();
            let done = Command::new(&peers)
                .args(["check", check, "--repo"])
                .arg(&repo)
                .env("HOME", &dir)
                .stdout(Stdio::null())
                .status()?;
            best = best.min(began.elapsed());
            if !done.success() {
                return Err(format!("{check} ended with {done}").into());
            }
        }
        good &= best <= limit;
        writeln!(
            out,
            "{check:12} {commits} commits, {kib} KiB new in each: {:8.1} ms (limit {}){}",
            best.as_secs_f64() * 1000.0,
            limit.as_millis(),
            if best <= limit { "" } else { "  OVER" }
        )?;
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(if good { Outcome::Ok } else { Outcome::Negative })
}

/// A repository in which each commit writes a file anew.
fn history(repo: &Path, commits: u64, kib: u64) -> Result<(), Failure> {
    let made = Command::new("git").args(["init", "-q", "-b", "main"]).arg(repo).status()?;
    let mut import = Command::new("git")
        .arg("-C")
        .arg(repo)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    let mut to = BufWriter::new(import.stdin.take().ok_or("git fast-import has no input")?);
    let most = usize::try_from(kib)? * 1024;
    let mut random = 1_u64;
    for n in 1..=commits {
        let mut text = String::new();
        while text.len() < most {
            for end in [" = ", "(", ", ", ")\n"] {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let word = usize::try_from(random >> 60).unwrap_or_default();
                text.push_str(WORDS.get(word).copied().unwrap_or("word"));
                text.push_str(&(random >> 44 & 0xfff).to_string());
                text.push_str(end);
            }
        }
        write!(
            to,
            "commit refs/heads/main\nmark :{n}\ncommitter a <a@b> {} +0000\ndata 5\nwork\n",
            1_700_000_000 + n
        )?;
        if n > 1 {
            writeln!(to, "from :{}", n - 1)?;
        }
        write!(to, "M 100644 inline f{}.py\ndata {}\n{text}\n", n % FILES, text.len())?;
    }
    drop(to);
    if made.success() && import.wait()?.success() { Ok(()) } else { Err("git made no history".into()) }
}
