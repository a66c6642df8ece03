//! `peers goals`.

mod accept;
mod changes;
mod detect;
mod edit;
mod eval;
mod restore;
mod widening;

use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output::counted;
use peers_model::command::Step;
use peers_model::{exit, limits};
use peers_run::boot;
use peers_store::layout::peers;
use peers_store::{Area, Disk, accept as acceptance};
use peers_sys::term;
use serde_json::json;
use similar::TextDiff;

use self::changes::Change;

/// After this a patch may be longer than it had to be.
const PATIENCE: Duration = Duration::from_secs(2);

/// Show, accept, restore and try goals and configuration
///
/// `.peers/goals.yaml` and `.peers/config.yaml` belong to the operator. A change halts a running loop
/// until it is accepted or undone.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show what changed since goals and config were accepted; exit 1 if something did
    ///
    /// Prints a patch that `git apply` and `patch -p1` take at the top of the repository, then what the
    /// changes mean.
    #[command(verbatim_doc_comment)]
    Diff {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    Accept(accept::Args),
    Restore(restore::Args),
    Edit(edit::Args),
    /// Check goals and config for errors, weak gates, and a lack of gates of your own; exit 1 on any finding
    Lint {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    Detect(detect::Args),
    Eval(eval::Args),
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    match &args.what {
        What::Diff { json } => diff(*json, cx),
        What::Accept(args) => accept::run(args, cx),
        What::Restore(args) => restore::run(args, cx),
        What::Edit(args) => edit::run(args, cx),
        What::Detect(args) => detect::run(args, cx),
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
        let old = acceptance::read_bytes(disk, file)?;
        let new = disk.read(Area::Peers, file, limits::CONFIG)?;
        Ok(Self { file, old, new })
    }

    fn differs(&self) -> bool {
        self.old != self.new
    }

    fn text(bytes: Option<&Vec<u8>>) -> String {
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// The change as a patch for the top of the repository; empty where there is none.
    fn patch(&self) -> String {
        let name = |prefix: &str, bytes: Option<&Vec<u8>>| match bytes {
            Some(_) => format!("{prefix}/.peers/{}", self.file),
            None => "/dev/null".to_owned(),
        };
        let (old, new) = (Self::text(self.old.as_ref()), Self::text(self.new.as_ref()));
        // The crate would end a line at a lone carriage return as well, which no reader of patches does.
        let (was, is): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        TextDiff::configure()
            .newline_terminated(true)
            .timeout(PATIENCE)
            .diff_slices(&was, &is)
            .unified_diff()
            .header(&name("a", self.old.as_ref()), &name("b", self.new.as_ref()))
            .to_string()
    }
}

fn diff(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (_, mut disk) = cx.view()?;
    let accepted = acceptance::read(&mut disk)?;
    let pairs = [Pair::read(&mut disk, peers::GOALS)?, Pair::read(&mut disk, peers::CONFIG)?];
    let [goals, config] = &pairs;
    let changes = changes::between(
        (&Pair::text(goals.old.as_ref()), &Pair::text(config.old.as_ref())),
        (&Pair::text(goals.new.as_ref()), &Pair::text(config.new.as_ref())),
    );
    let differs = pairs.iter().any(Pair::differs) || accepted.is_none();
    let loaded = boot::load(&mut disk);
    let step = loaded.as_ref().ok().map(|loaded| {
        let first = loaded.accepted.is_none() && loaded.damaged.is_none();
        let bytes = |pair: &Pair| pair.new.clone().unwrap_or_default();
        accept::Step::to(first, &mut disk, &bytes(goals), &bytes(config))
    });
    let widen = step.as_ref().filter(|step| step.wider).map(|step| step.set.digest());
    if as_json {
        let files: Vec<_> = pairs
            .iter()
            .filter(|pair| pair.differs())
            .map(|pair| json!({"file": pair.file, "missing": pair.new.is_none(), "diff": pair.patch()}))
            .collect();
        let rows: Vec<_> = changes.iter().map(Change::json).collect();
        let at = accepted.as_ref().map(|accepted| accepted.at);
        cx.out.json(
            "peers.goals-diff/1",
            &json!({"differs": differs, "accepted_at": at, "changes": rows, "files": files,
                "widening": {"needed": widen.is_some(), "digest": step.map(|step| step.set.digest())}}),
        )?;
        return Ok(code(differs));
    }
    let Some(accepted) = accepted else {
        for change in &changes {
            cx.out.line(&change.text())?;
        }
        match loaded {
            Ok(_) => cx.out.advise(
                "nothing was ever accepted: this is all that would run; read both files, then `peers goals accept`",
            ),
            Err(error) => not_acceptable(&error, cx),
        }
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
        let patch = pair.patch();
        // What a terminal must not be sent is part of the patch for everybody else.
        let terminal = cx.out.page_width().is_some();
        cx.out.data(&if terminal { term::block(&patch) } else { patch.into() })?;
    }
    for change in &changes {
        cx.out.line(&change.text())?;
    }
    match loaded {
        Ok(_) => {
            cx.out.advise("hint: `peers goals accept` takes this over; `peers goals restore` undoes it");
            if let Some(digest) = widen {
                cx.out.advise(Step::text(
                    "hint: other commands would run as you: it asks for a `yes`, or, without a terminal, for `peers goals accept --widen {}`",
                    &[&digest],
                ));
            }
        }
        Err(error) => not_acceptable(&error, cx),
    }
    Ok(code(true))
}

fn not_acceptable(error: &boot::BootError, cx: &Cx) {
    let first = error.to_string();
    let first = first.lines().next().unwrap_or_default();
    cx.out.talk(&format!("hint: this cannot be accepted as it is: {first}"));
}

fn code(negative: bool) -> ExitCode {
    ExitCode::from(if negative { exit::NEGATIVE } else { exit::OK })
}

fn lint(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let loaded = boot::load(&mut disk)?;
    let absent = loaded.not_in_checkouts(place.work_dir(), &cx.env);
    let mut warnings = loaded.warnings();
    warnings.extend(absent.iter().map(|warning| term::line(&warning.to_string(), 400)));
    if as_json {
        let mut found = peers_core::lint::goals(&loaded.goals);
        found.extend(absent);
        let body = json!({"goals": loaded.goals.len(), "warnings": warnings, "findings": found});
        cx.out.json("peers.goals-lint/1", &body)?;
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
