//! `peers goals`.

mod changes;
mod eval;

use std::process::ExitCode;

use clap::Subcommand;
use peers_model::record::{Digests, OperatorOp};
use peers_model::{exit, limits};
use peers_run::boot;
use peers_store::layout::peers;
use peers_store::{Area, Disk, accept};
use peers_sys::{clock, term};
use serde_json::json;

use self::changes::Change;
use crate::cx::Cx;
use crate::error::CommandError;
use crate::output::counted;
use crate::{operator, textdiff};

/// Show, accept and try goals and configuration
///
/// `.peers/goals.yaml` and `.peers/config.yaml` are the operator's. A change halts a running loop until
/// it is accepted.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show what changed since goals and config were accepted; exit 1 if something did
    Diff {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Accept goals and config as they are now
    Accept {
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Look for errors, for gates that cannot turn red, and for none that is watched; exit 1 if there are any
    Lint {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    Eval(eval::Args),
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    match &args.what {
        What::Diff { json } => diff(*json, cx),
        What::Accept { note, json } => accept(note.as_deref(), *json, cx),
        What::Lint { json } => lint(*json, cx),
        What::Eval(args) => eval::run(args, cx),
    }
}

/// One of the two files: as accepted, and as it is.
struct Pair {
    file: &'static str,
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

impl Pair {
    fn read<D: Disk>(disk: &mut D, file: &'static str) -> Result<Self, CommandError> {
        let old = accept::read_bytes(disk, file)?;
        let new = disk.read(Area::Peers, file, limits::CONFIG)?;
        Ok(Self { file, old, new })
    }

    fn differs(&self) -> bool {
        self.old != self.new
    }

    fn text(bytes: Option<&Vec<u8>>) -> String {
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    fn diff(&self) -> String {
        textdiff::unified(&Self::text(self.old.as_ref()), &Self::text(self.new.as_ref()))
    }
}

fn diff(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (_, mut disk) = cx.view()?;
    let accepted = accept::read(&mut disk)?;
    let pairs = [Pair::read(&mut disk, peers::GOALS)?, Pair::read(&mut disk, peers::CONFIG)?];
    let [goals, config] = &pairs;
    let changes = changes::between(
        (&Pair::text(goals.old.as_ref()), &Pair::text(config.old.as_ref())),
        (&Pair::text(goals.new.as_ref()), &Pair::text(config.new.as_ref())),
    );
    let differs = pairs.iter().any(Pair::differs) || accepted.is_none();
    if as_json {
        let files: Vec<_> = pairs
            .iter()
            .filter(|pair| pair.differs())
            .map(|pair| json!({"file": pair.file, "missing": pair.new.is_none(), "diff": pair.diff()}))
            .collect();
        let rows: Vec<_> = changes.iter().map(Change::json).collect();
        let at = accepted.as_ref().map(|accepted| accepted.at);
        cx.out.json(
            "peers.goals-diff/1",
            &json!({"differs": differs, "accepted_at": at, "changes": rows, "files": files}),
        )?;
        return Ok(code(differs));
    }
    let Some(accepted) = accepted else {
        cx.out.talk("nothing was ever accepted; `peers goals accept` accepts the files as they are");
        return Ok(code(true));
    };
    if !differs {
        cx.out.talk(&format!(
            "goals and config are as accepted on {} by {}",
            accepted.at,
            term::inline(&accepted.by)
        ));
        return Ok(code(false));
    }
    for pair in pairs.iter().filter(|pair| pair.differs()) {
        let is = if pair.new.is_none() { " (missing now)" } else { "" };
        cx.out.line(&format!("--- accepted {0}\n+++ .peers/{0}{is}", pair.file))?;
        cx.out.data(&term::block(&pair.diff()))?;
    }
    for change in &changes {
        cx.out.line(&change.line())?;
    }
    match boot::load(&mut disk) {
        Ok(_) => cx.out.talk("hint: `peers goals accept` takes this over; otherwise restore the file"),
        Err(error) => {
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default();
            cx.out.talk(&format!("hint: this cannot be accepted as it is: {first}"));
        }
    }
    Ok(code(true))
}

fn code(negative: bool) -> ExitCode {
    ExitCode::from(if negative { exit::NEGATIVE } else { exit::OK })
}

fn accept(note: Option<&str>, as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    cx.operators_alone_here("goals accept")?;
    let (place, mut disk) = cx.store()?;
    // Only what is valid can be accepted.
    let loaded = boot::load(&mut disk)?;
    let old = loaded.accepted.as_ref().map(|accepted| accepted.digests.clone()).unwrap_or_default();
    let new = loaded.digests.clone();
    if old == new {
        if as_json {
            cx.out.json("peers.goals-accept/1", &json!({"changed": false, "digests": new, "taken": null}))?;
        } else {
            cx.out.talk("goals and config are accepted already");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let goals = disk.read(Area::Peers, peers::GOALS, limits::CONFIG)?.unwrap_or_default();
    let config = disk.read(Area::Peers, peers::CONFIG, limits::CONFIG)?.unwrap_or_default();
    if accept::digests(&goals, &config) != new {
        return Err(CommandError::new(exit::CONFLICT, "goals or config changed while they were read")
            .hint("try again"));
    }
    let op = OperatorOp::Accepted { old, new: new.clone(), note: note.map(str::to_owned), rules: None };
    let by = cx.operator();
    let taken = operator::act(cx, &place, ("goals accept", op), |disk| {
        accept::write(disk, &goals, &config, clock::now(), &by, note)?;
        Ok(())
    })?;
    for warning in loaded.warnings() {
        cx.out.talk(&format!("warning: {warning}"));
    }
    let Digests { goals, config } = &new;
    if as_json {
        cx.out
            .json("peers.goals-accept/1", &json!({"changed": true, "digests": new, "taken": taken.word()}))?;
    } else {
        let short = |digest: &str| digest.chars().take(12).collect::<String>();
        cx.out.line(&format!(
            "Accepted goals {} and config {}{}",
            short(goals),
            short(config),
            taken.said()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lint(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (_, mut disk) = cx.view()?;
    let loaded = boot::load(&mut disk)?;
    let warnings = loaded.warnings();
    if as_json {
        cx.out.json("peers.goals-lint/1", &json!({"goals": loaded.goals.len(), "warnings": warnings}))?;
    } else {
        for warning in &warnings {
            cx.out.line(&format!("warning: {warning}"))?;
        }
        let goals = counted(u64::try_from(loaded.goals.len()).unwrap_or(u64::MAX), "goal");
        let found = counted(u64::try_from(warnings.len()).unwrap_or(u64::MAX), "warning");
        cx.out.talk(&format!("{goals}, {found}"));
    }
    Ok(code(!warnings.is_empty()))
}
