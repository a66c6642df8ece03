//! Extra commands of `peers verify`: exit 0 is a pass.

use std::rc::Rc;
use std::time::Duration;

use peers_model::TickNo;
use peers_model::config::VerifyCommand;
use peers_model::verdict::Verdict;
use peers_sys::spawn::RawExit;

use super::behind::Role;
use super::command::{Company, Running};
use super::gate_log::GateLog;
use super::gates::{self, Cancel};
use super::{Book, Site, judging};

/// Characters of standard error in a diagnostic.
const TAIL: usize = 400;

/// One command with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    /// What it is called.
    pub name: String,
    /// What runs.
    pub cmd: String,
    /// Its time limit.
    pub limit: Duration,
}

/// How one command went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraResult {
    /// What it is called.
    pub name: String,
    /// The answer.
    pub verdict: Verdict,
    /// Wall time, milliseconds.
    pub duration_ms: u64,
}

impl Extra {
    /// The commands of the configuration.
    #[must_use]
    pub fn all(book: &Book) -> Vec<Self> {
        let verify = &book.config.verify;
        let usual = verify.timeout_s.unwrap_or(book.config.goals.timeout_s);
        let one = |command: &VerifyCommand| Self {
            name: command.name.clone().unwrap_or_else(|| command.cmd.clone()),
            cmd: command.cmd.clone(),
            limit: Duration::from_secs(command.timeout_s.unwrap_or(usual).get().into()),
        };
        verify.commands.iter().map(one).collect()
    }
}

/// Runs commands one after the other in the work tree. A cancelled one ends the list.
///
/// Used inside a `LocalSet`, as [`super::RealProcs`] is.
pub async fn run_extra(
    site: &Rc<Site>,
    book: &Book,
    commands: &[Extra],
    cancel: &Cancel,
) -> Vec<ExtraResult> {
    let mut results = Vec::new();
    for command in commands {
        let Some(result) = one(site, book, command, cancel.clone()).await else { break };
        results.push(result);
    }
    results
}

async fn one(site: &Rc<Site>, book: &Book, command: &Extra, cancel: Cancel) -> Option<ExtraResult> {
    let repo = &site.spec.repo;
    let result = |verdict, took: Duration| {
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Some(ExtraResult { name: command.name.clone(), verdict, duration_ms })
    };
    let surroundings = gates::surroundings(site, book, TickNo(0), (repo, "gitconfig-verify"));
    let (vars, home) = match surroundings {
        Ok(found) => found,
        Err(why) => return result(judging::error(&why), Duration::ZERO),
    };
    let spawn = gates::behind(site, home.ground(repo, None), &command.cmd, vars, Role::Gate);
    let running = Running { site, tick: TickNo(0), limit: command.limit, cancel, company: Company::Alone };
    let mut log = GateLog::new(None, "", String::new(), 0);
    let finished = match running.run(&spawn, &mut log).await {
        Ok(finished) => finished,
        Err(error) => return result(gates::not_started(&error), Duration::ZERO),
    };
    if finished.cancelled {
        return None;
    }
    let said = judging::tail(&finished.stderr, TAIL, &site.rules);
    let verdict = match finished.exit {
        _ if finished.stub.is_some() => judging::error(&said),
        _ if finished.timed_out => Verdict::Timeout { diagnostic: format!("timeout; {said}") },
        Some(RawExit::Code(0)) => Verdict::Pass,
        Some(RawExit::Code(code)) => Verdict::Fail { diagnostic: format!("exit code {code}; {said}") },
        Some(RawExit::Signal(signal)) => {
            Verdict::Fail { diagnostic: format!("died of signal {signal}; {said}") }
        }
        None => judging::error("its exit was lost"),
    };
    result(verdict, finished.took)
}
