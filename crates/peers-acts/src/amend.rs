//! What an operator changes of a frozen plan: a command, or the word that a step is blocked.
//!
//! The record comes first, then the files of the store, then what readers see. Cut short in between, nothing passes
//! any more until the command is given again.

use peers_core::plan::{Mark, Step, StepId, parse};
use peers_git::{Author, PeerRepo};
use peers_model::record::{ContractAct, ContractRecord, OperatorOp};
use peers_model::{exit, limits};
use peers_place::{PEERS_DIR, Place, PlaceError};
use peers_run::boot::{self, Finding};
use peers_setup::named::{self, NamedFiles};
use peers_store::contracts::{self, Frozen};
use peers_store::{FsDisk, StoreError};
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::error::chain;
use peers_sys::lock::FileLock;
use peers_sys::{clock, term};

/// The plan at the top of the repository.
const PLAN: &str = "PLAN.md";

/// Replaces the frozen acceptance command. Returns the one before, and files that the new one names and that agents
/// can change.
///
/// # Errors
/// A loop or another command works here (exit 4), nothing is frozen, or the command names a file that HEAD has not
/// (exit 3).
pub fn acceptance(
    place: &Place,
    by: &str,
    command: &str,
    reason: &str,
) -> Result<(String, Vec<String>), Finding> {
    let reason = line("the reason", reason)?;
    let command = line("the command", command)?;
    let (lock, mut disk, frozen) = held(place, "amend")?;
    let repo = PeerRepo::open(place.work_dir()).ok();
    repo.as_ref().map_or(Ok(()), PeerRepo::check_content).map_err(|e| boot::repo_finding(place, &e))?;
    let head = named::files_of_head(repo.as_ref()).map_err(|e| Finding::plain(exit::BUG, chain(&e)))?;
    let mut named = NamedFiles::of(&command, &head);
    named.absent.retain(|path| !frozen.files.contains_key(path));
    named.there.retain(|path| !frozen.files.contains_key(path));
    named
        .refuse_absent("commit it first")
        .map_err(|e| Finding { hint: e.hint(), ..Finding::plain(e.exit(), chain(&e)) })?;
    let before = contracts::command(&frozen.acceptance).unwrap_or_default().to_owned();
    let frozen = Frozen { acceptance: contracts::script(&command), ..frozen };
    let change = [("acceptance", command), ("acceptance_before", before.clone())];
    record(place, by, (ContractAct::Amend, reason), &change, &frozen)?;
    contracts::write(&mut disk, &frozen)?;
    contracts::restore_copies(&mut disk, &frozen)?;
    drop(lock);
    Ok((before, named.there))
}

/// Says that a blocked step no longer keeps the plan from being complete: records it, rewrites its mark in `PLAN.md`
/// and commits that.
///
/// # Errors
/// A loop works here (exit 4), nothing is frozen, the plan is no plan or has no such step (3), the step is not
/// blocked (1), or the plan is a link (5). The plan is unchanged then.
pub fn ack_block(place: &Place, by: &str, step: StepId, reason: &str) -> Result<(), Finding> {
    let reason = line("the reason", reason)?;
    let work = place.open_work()?;
    if work.stat(PEERS_DIR)?.is_some_and(|stat| stat.kind == Kind::Symlink) {
        let hint = "peers did not create it: inspect it, delete it, and start again";
        return Err(Finding::new(exit::REFUSED, ".peers is a symbolic link", hint));
    }
    let (lock, _, frozen) = held(place, "ack-block")?;
    let repo = boot::open_repo(place)?;
    let (text, blocked) = blocked(&work, step)?;
    let change = [("step", step.to_string()), ("text", blocked.text.clone())];
    record(place, by, (ContractAct::AckBlock, reason), &change, &frozen)?;
    let mode = work.stat(PLAN)?.map_or(0o644, |stat| stat.mode & 0o777);
    work.publish_as(PLAN, remarked(&text, &blocked).as_bytes(), mode)?;
    let author = Author::new(by, "operator@local", clock::now());
    let message = format!("Acknowledge that {step} is blocked\n");
    let committed = repo.commit_paths(&[PLAN], &message, &author);
    drop(lock);
    committed.map(drop).map_err(|error| {
        let why = chain(&error);
        Finding::new(
            exit::BUG,
            format!("recorded and marked, but {PLAN} is not committed: {why}"),
            "commit it yourself",
        )
    })
}

/// Under the run lock, what is frozen.
fn held(place: &Place, command: &str) -> Result<(FileLock, FsDisk, Frozen), Finding> {
    let lock = place.lock_own(command).map_err(|error| match error {
        PlaceError::NoStore { .. } | PlaceError::NotInitialised { .. } => not_implement(),
        PlaceError::Locked { .. } => {
            let stop = "`peers stop` ends the loop after its turn; then give this command again";
            Finding::new(exit::CONFLICT, chain(&error), stop)
        }
        other => other.into(),
    })?;
    let mut disk = place.open_store_disk()?;
    let frozen = contracts::read(&mut disk)?.ok_or_else(not_implement)?;
    Ok((lock, disk, frozen))
}

fn not_implement() -> Finding {
    let hint = "`peers init --modes implement --plan FILE` freezes a plan";
    Finding::new(exit::INVALID, "no plan is frozen here: the mode is not implement", hint)
}

fn record(
    place: &Place,
    by: &str,
    (contract, reason): (ContractAct, String),
    change: &[(&str, String)],
    frozen: &Frozen,
) -> Result<(), Finding> {
    let change = change.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let op = OperatorOp::Contract(ContractRecord { contract, reason, change, state: frozen.pins().state() });
    let nothing = |_: &mut FsDisk| Ok::<(), Unrecorded>(());
    peers_place::operator::record(place, by, vec![op], nothing).map_err(|Unrecorded(finding)| finding)
}

/// Why a record was not written.
struct Unrecorded(Finding);

impl From<PlaceError> for Unrecorded {
    fn from(error: PlaceError) -> Self {
        Self(error.into())
    }
}

impl From<StoreError> for Unrecorded {
    fn from(error: StoreError) -> Self {
        Self(error.into())
    }
}

/// The text of the plan, and the step, which is blocked.
fn blocked(work: &SafeDir, step: StepId) -> Result<(String, Step), Finding> {
    let text = work.read_text(PLAN, limits::CONFIG)?;
    let parsed = parse(text.as_bytes());
    let Some(plan) = parsed.plan else {
        let hint = "`peers plan check PLAN.md` shows what is wrong with it";
        return Err(Finding::new(exit::INVALID, format!("{PLAN} is not a valid plan"), hint));
    };
    let Some(found) = plan.steps.into_iter().find(|known| known.id == step) else {
        return Err(Finding::plain(exit::INVALID, format!("{PLAN} has no {step}")));
    };
    if found.mark != Mark::Blocked {
        let message = format!("{step} is not blocked: its mark is `[{}]`", found.mark.written());
        return Err(Finding::plain(exit::NEGATIVE, message));
    }
    Ok((text, found))
}

/// The text with another mark in the line of the step; all other bytes stay.
fn remarked(text: &str, step: &Step) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(line) = step.line.checked_sub(1).and_then(|at| lines.get_mut(at)) {
        let mark = |mark: Mark| format!("[{}]", mark.written());
        *line = line.replacen(&mark(Mark::Blocked), &mark(Mark::BlockedAck), 1);
    }
    lines.concat()
}

/// Text for a record: one line that says something.
fn line(what: &str, text: &str) -> Result<String, Finding> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Finding::plain(exit::USAGE, format!("{what} is empty")));
    }
    if text.chars().any(char::is_control) {
        let message = format!("{what} has a control character: `{}`", term::line(text, 80));
        return Err(Finding::plain(exit::USAGE, message));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mark_is_rewritten_and_no_other_byte() {
        let text = "# F\r\n## Meta\nsurfaces: cli\nacceptance: a\n## Steps\n- [BLOCKED] [STEP-1] see [BLOCKED]\n  - touches: a\n\
                    - [BLOCKED] [STEP-2] b\n  - touches: b";
        let plan = parse(text.as_bytes()).plan.unwrap();
        assert_eq!(remarked(text, &plan.steps[0]), text.replacen("- [BLOCKED]", "- [BLOCKED-ACK]", 1));
        assert!(remarked(text, &plan.steps[1]).ends_with("- [BLOCKED-ACK] [STEP-2] b\n  - touches: b"));
    }

    #[test]
    fn a_reason_is_one_line_with_words() {
        assert_eq!(line("it", " so \t").unwrap(), "so");
        for bad in ["", " ", "a\nb", "a\u{1b}[2J"] {
            assert_eq!(line("it", bad).unwrap_err().exit, exit::USAGE, "{bad:?}");
        }
    }
}
