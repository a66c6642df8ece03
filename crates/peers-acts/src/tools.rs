//! A program of the project, such as its test runner, run in a clean checkout of a commit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use peers_model::config::Config;
use peers_model::{CommitId, exit};
use peers_place::Place;
use peers_run::boot::{BootError, Finding};
use peers_sandbox::Ran;
use peers_sys::dir::{FileError, SafeDir};
use peers_sys::env::Env;
use peers_sys::error::chain;
use peers_sys::term;

use crate::contract::{Ground, Script};

/// The variable with the path at which a program leaves its report.
pub const REPORT: &str = "PEERS_REPORT";
/// The name of that file.
const NAME: &str = "report";
/// Bytes of a report.
const CAP: u64 = 64 * 1024 * 1024;

/// What is to be run.
#[derive(Debug)]
pub struct Tool<'a> {
    /// For `/bin/sh -c`, at the top of the checkout.
    pub cmd: &'a str,
    /// Where in the checkout it leaves its report; absent: at `$PEERS_REPORT`, outside of it.
    pub report: Option<&'a str>,
    /// The commit.
    pub head: &'a CommitId,
    /// How long it may take.
    pub limit: Duration,
}

/// What became of it.
#[derive(Debug)]
pub struct ToolRan {
    /// How it ended, and what it said.
    pub ran: Ran,
    /// What it wrote as its report. Untrusted.
    pub report: Option<Vec<u8>>,
    /// The top of the checkout, which is gone by now.
    pub top: PathBuf,
}

/// Makes a clean checkout, runs `setup` in it, and then the program. Nothing of the work tree, the store or the
/// journal is touched.
///
/// # Errors
/// [`BootError`] when it could not be run, or `setup` fails. A program that fails is no error.
pub fn run(place: &Place, env: &Env, config: &Config, tool: &Tool<'_>) -> Result<ToolRan, BootError> {
    let files = BTreeMap::new();
    let ready = Script { name: "setup", text: "true", files: &files, head: tool.head, timeout: tool.limit };
    let ground = Ground::new(place, env, config, &ready)?;
    let judged = ground.judge()?;
    if !judged.verdict.is_pass() {
        let why = term::line(judged.verdict.diagnostic(), 300);
        return Err(Finding::plain(exit::INVALID, why).into());
    }
    let fail = |e: FileError| Finding::plain(exit::INVALID, chain(&e));
    let (dir, name) = if let Some(path) = tool.report {
        // What the commit has there is no report of this run.
        let (dir, name) =
            SafeDir::open_shared(&ground.dir).and_then(|top| top.create_parent_of(path)).map_err(fail)?;
        dir.remove_tree(&name).map_err(fail)?;
        (dir, name)
    } else {
        let scratch = SafeDir::open_shared(ground.bench.scratch());
        (scratch.and_then(|scratch| scratch.create_subdir(NAME)).map_err(fail)?, NAME.into())
    };
    let report = dir.path().join(&name);
    let ran = ground.bench.tool(
        (&ground.dir, Some(dir.path())),
        tool.cmd,
        vec![(REPORT.into(), report.into())],
        tool.limit,
    )?;
    let report = match dir.read(&name, CAP) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(fail(error).into()),
    };
    Ok(ToolRan { ran, report, top: ground.dir.clone() })
}
