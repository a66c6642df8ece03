//! `bench-checks`: what checks cost over a long history.
//!
//! Targets: the bug ledger over 20,000 commits in 150 ms, in 15 ms once a loop has seen them; secrets in 200 MB of
//! distinct content in 10 s.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ground::{Ground, build, number};
use crate::{Failure, Outcome};

const GOALS: &str = "goals:\n- {id: any, type: hard, cmd: 'true', pass_when: exit_code == 0}\n";
/// One commit of so many says something about bugs.
const CLAIMS: u64 = 50;
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
    let ground = Ground::new(&dir, &peers, 0, GOALS)?;
    let tick = ["run", "--max-ticks", "1", "--allow-no-gates", "--no-codemap"];
    ground.peers(&tick)?;
    history(&ground.repo(), commits, kib)?;
    ground.git(&["reset", "-q", "--hard", "main"])?;
    // The loop brings them into its own git directory, and keeps what they say about bugs.
    ground.peers(&tick)?;
    let kept = ground.store()?.join("ledger.json");
    let aside = dir.join("ledger.json");
    let mut good = true;
    for (what, check, limit) in
        [("cold", "bug-ledger", 150), ("warm", "bug-ledger", 15), ("200 MB", "no-secrets", 10_000)]
    {
        let limit = Duration::from_millis(limit);
        let mut best = Duration::MAX;
        if what == "cold" {
            std::fs::rename(&kept, &aside)?;
        }
        for _ in 0..rounds {
            let began = Instant::now();
            let done = ground.command(&["check", check]).stdout(Stdio::null()).status()?;
            best = best.min(began.elapsed());
            if !done.success() {
                return Err(format!("{check} ended with {done}").into());
            }
        }
        if what == "cold" {
            std::fs::rename(&aside, &kept)?;
        }
        good &= best <= limit;
        writeln!(
            out,
            "{check}, {what}: {commits} commits, {kib} KiB new in each: {:.1} ms, best of {rounds} (limit {}){}",
            best.as_secs_f64() * 1000.0,
            limit.as_millis(),
            if best <= limit { "" } else { "  OVER" }
        )?;
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(if good { Outcome::Ok } else { Outcome::Negative })
}

/// Commits on top of what is there, each of which writes a file anew.
fn history(repo: &Path, commits: u64, kib: u64) -> Result<(), Failure> {
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
        let message = message(n);
        write!(
            to,
            "commit refs/heads/main\nmark :{n}\ncommitter a <a@b> {} +0000\ndata {}\n{message}\n",
            1_700_000_000 + n,
            message.len()
        )?;
        if n > 1 {
            writeln!(to, "from :{}", n - 1)?;
        } else {
            writeln!(to, "from refs/heads/main^0")?;
        }
        write!(to, "M 100644 inline f{}.py\ndata {}\n{text}\n", n % FILES, text.len())?;
    }
    drop(to);
    if import.wait()?.success() { Ok(()) } else { Err("git made no history".into()) }
}

/// Every so often a bug is reported, and then resolved.
fn message(n: u64) -> String {
    if !n.is_multiple_of(CLAIMS) {
        return "work".to_owned();
    }
    let (which, id) = (n / CLAIMS % 2, n / CLAIMS / 2);
    if which == 0 {
        format!(
            "Report\n\n## Bug-Report\n{{\"id\":\"B{id}\",\"severity\":\"low\",\"title\":\"off by one\"}}\n\nBug-Report: B{id}\n"
        )
    } else {
        format!(
            "Resolve\n\n## Bug-Resolution\n{{\"resolves\":\"B{id}\",\"status\":\"fixed\",\"note\":\"done\"}}\n\nBug-Resolves: B{id}\n"
        )
    }
}
