//! `peers goals edit`.

use std::process::{Command, ExitCode};

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::{modes, operator};
use peers_model::command::{self, Step as Hint};
use peers_model::record::OperatorOp;
use peers_model::{exit, limits};
use peers_place::{PEERS_DIR, Place};
use peers_run::boot;
use peers_store::layout::{peers, store};
use peers_store::{Area, Disk as _, accept, load};
use peers_sys::dir::SafeDir;
use peers_sys::{clock, signal, term};
use serde_json::json;

use super::accept::{Step, named};
use super::changes::Change;
use super::widening::{self, Asked, To};

/// Edit a copy of goals.yaml and accept it in one step
///
/// Opens `$VISUAL`, else `$EDITOR`, else `vi`. A valid edit is shown as by `peers goals diff`, accepted
/// and written to .peers/: a running loop never sees an unaccepted change. An invalid edit can be edited
/// again; its copy is kept in the trusted store. If the editor fails, nothing changes.
///
/// An edit that also allows something new needs a `yes` typed on a terminal, since other processes
/// can change the copy while you read it, or the digest that was printed for it: `--widen DIGEST`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Edit config.yaml instead
    #[arg(long)]
    config: bool,
    /// Reason, for the record
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Accept the edit that has exactly this digest, without asking
    #[arg(long, value_name = "DIGEST")]
    widen: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    cx.operators_alone_here("goals edit")?;
    let (place, mut disk) = cx.store()?;
    let (file, other) =
        if args.config { (peers::CONFIG, peers::GOALS) } else { (peers::GOALS, peers::CONFIG) };
    let there = disk.read(Area::Peers, file, limits::CONFIG)?;
    let Some(begun) = there.clone().or(accept::read_bytes(&mut disk, file).ok().flatten()) else {
        return Err(CommandError::new(exit::INVALID, format!(".peers/{file} is missing"))
            .hint("`peers init --upgrade` lays it down"));
    };
    let beside = beside(&mut disk, other)?;
    let (edits, name) = new_copy(&place)?;
    let copy = Copy { dir: edits.subdir(&name)?, edits, name, file };
    copy.dir.publish(file, &begun)?;
    let new = copy.edited(&begun, &beside, (args, cx))?;
    if new == begun && there.is_some() {
        copy.edits.remove_tree(&copy.name)?;
        cx.out.talk(&format!("nothing was changed in {file}"));
        if args.json {
            let digests = pair(file, &new, &beside).digests();
            cx.out.json(
                "peers.goals-edit/1",
                &json!({"changed": false, "digests": digests, "taken": null, "changes": []}),
            )?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let accepted = copy.accept(args, (there.as_deref(), &new, &beside), (cx, &place, &mut disk));
    if accepted.is_ok() {
        copy.edits.remove_tree(&copy.name)?;
    }
    accepted
}

/// Makes a directory for one copy of a file: the directory of all copies, and the name of the new one there.
pub(super) fn new_copy(place: &Place) -> Result<(SafeDir, String), CommandError> {
    let name = peers_sys::rand::hex::<8>()
        .map_err(|error| CommandError::new(exit::BUG, format!("random bytes: {error}")))?;
    // Where neither a loop clears away what it does not know nor a gate looks for what it may write.
    let copies = place.create_store()?.create_subdir(store::EDITS)?;
    copies.create_subdir(&name)?;
    Ok((copies, name))
}

/// The other file, which is to be as it was accepted: this step accepts one file.
fn beside(disk: &mut peers_store::FsDisk, other: &'static str) -> Result<Vec<u8>, CommandError> {
    let bytes = disk.read(Area::Peers, other, limits::CONFIG)?.unwrap_or_default();
    let accepted = accept::read_bytes(disk, other).ok().flatten();
    if accepted.is_some_and(|accepted| accepted != bytes) {
        return Err(CommandError::new(exit::REFUSED, format!("{other} changed since it was accepted"))
            .hint("`peers goals diff`, then `peers goals accept` or `peers goals restore`; then edit"));
    }
    Ok(bytes)
}

/// Both files as they will be.
struct Pair<'b> {
    goals: &'b [u8],
    config: &'b [u8],
}

fn pair<'b>(file: &str, new: &'b [u8], beside: &'b [u8]) -> Pair<'b> {
    if file == peers::GOALS {
        Pair { goals: new, config: beside }
    } else {
        Pair { goals: beside, config: new }
    }
}

impl Pair<'_> {
    fn digests(&self) -> peers_model::record::Digests {
        accept::digests(self.goals, self.config)
    }

    /// What is wrong with them, for people; the warnings else.
    fn checked(&self) -> Result<Vec<String>, String> {
        let text = |error: load::LoadError| error.to_string();
        let config =
            load::decode(load::Source::Config, self.config).and_then(load::load_config).map_err(text)?;
        let goals = load::decode(load::Source::Goals, self.goals)
            .and_then(|goals| load::load_goals(goals, config.peers.len(), peers_checks::names()))
            .map_err(text)?;
        Ok(load::goal_warnings(&goals))
    }
}

/// The file that the operator edits.
struct Copy {
    /// The directory of all copies, and the name of this one's own there.
    edits: SafeDir,
    name: String,
    dir: SafeDir,
    file: &'static str,
}

impl Copy {
    fn path(&self) -> String {
        term::inline(&self.dir.path().join(self.file).to_string_lossy())
    }

    /// Lets the operator edit until it is valid, or he gives up.
    fn edited(&self, begun: &[u8], beside: &[u8], (args, cx): (&Args, &Cx)) -> Result<Vec<u8>, CommandError> {
        loop {
            self.edit(begun, (args, cx))?;
            let new = self.dir.read(self.file, limits::CONFIG).map_err(|error| {
                if error.is_not_found() {
                    let _left = self.edits.remove_tree(&self.name);
                    let message = "the editor left no file behind; nothing was changed";
                    return CommandError::new(exit::INVALID, message);
                }
                CommandError::of(exit::INVALID, &error)
                    .hint(format!("nothing was changed; the copy is {}", self.path()))
            })?;
            let Err(wrong) = pair(self.file, &new, beside).checked() else { return Ok(new) };
            let kept = format!("nothing was changed; the copy is kept: {}", self.path());
            if !cx.out.can_ask() {
                return Err(CommandError::new(exit::INVALID, wrong).hint(kept));
            }
            cx.out.talk(&wrong);
            let again = cx.out.ask("Edit it again? [Y/n] ")?;
            if !matches!(again.as_deref().map(str::trim), Some("" | "y" | "Y" | "yes")) {
                let message = format!("the edited {} is not valid", self.file);
                return Err(CommandError::new(exit::INVALID, message).hint(kept));
            }
        }
    }

    fn edit(&self, begun: &[u8], (args, cx): (&Args, &Cx)) -> Result<(), CommandError> {
        let named = |name: &str| cx.env.text(name).map(str::trim).filter(|text| !text.is_empty());
        let editor = match named("VISUAL").or_else(|| named("EDITOR")) {
            Some(editor) => editor,
            None if cx.out.can_ask() => "vi",
            None => {
                let _left = self.edits.remove_tree(&self.name);
                let message = "there is no terminal for an editor; nothing was changed";
                let hint = format!(
                    "name one that needs none: `EDITOR=\"sed -i s/old/new/\" peers {}`",
                    self.command()
                );
                return Err(CommandError::new(exit::ENVIRONMENT, message).hint(hint));
            }
        };
        // As everybody does it: the variable may hold words and options.
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &format!("{editor} \"$@\""), "peers goals edit"])
            .arg(self.dir.path().join(self.file));
        if args.json {
            // What an editor draws is no part of the result.
            command.stdout(std::io::stderr());
        }
        // Ctrl-C is the editor's while it has the terminal.
        let ended = signal::beside_keyboard(|| command.status()).and_then(|ended| ended);
        let shown = term::line(editor, 80);
        let failed = |exit, what: String| {
            let same = self.dir.read(self.file, limits::CONFIG).is_ok_and(|now| now == begun);
            let kept = (!same).then(|| format!("nothing was changed; the copy is kept: {}", self.path()));
            if same {
                // One that stays holds nothing that is not in .peers/ too.
                let _left = self.edits.remove_tree(&self.name);
            }
            CommandError::new(exit, what).hint_opt(kept)
        };
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) if status.code() == Some(127) => {
                let error = failed(exit::ENVIRONMENT, format!("the editor `{shown}` was not found"));
                Err(error.hint(format!("name one: `EDITOR=nano peers {}`", self.command())))
            }
            Ok(status) => Err(failed(
                exit::NEGATIVE,
                format!("the editor `{shown}` failed ({status}); nothing was changed"),
            )),
            Err(error) => Err(failed(exit::ENVIRONMENT, format!("the editor does not start: {error}"))),
        }
    }

    /// Shows what the edit means, asks where it widens, accepts and writes.
    fn accept(
        &self,
        args: &Args,
        (there, new, beside): (Option<&[u8]>, &[u8], &[u8]),
        (cx, place, disk): (&Cx, &Place, &mut peers_store::FsDisk),
    ) -> Result<ExitCode, CommandError> {
        let kept = |error: CommandError| {
            let [copy, file] = [self.dir.path(), &place.work_dir().join(PEERS_DIR)]
                .map(|dir| term::quoted(&dir.join(self.file).to_string_lossy()));
            let over = Hint::text("`cp {} {}` and `peers goals accept` take it over", &[&copy, &file]);
            error.hint(format!("the copy is kept: {}", self.path())).hint(over)
        };
        let both = pair(self.file, new, beside);
        let (goals, config) = (both.goals, both.config);
        let before = boot::acceptance(disk)?;
        if before.is_first() {
            let message = "nothing was accepted yet, and this would accept the other file unseen";
            let error = CommandError::new(exit::REFUSED, message);
            return Err(kept(error.hint("read both files in .peers/, `peers goals accept`, then edit")));
        }
        modes::refuse_unexplained(disk, goals, args.note.as_deref()).map_err(kept)?;
        let step = Step::to(before.is_first(), disk, goals, config);
        let rows: Vec<_> = step.changes.iter().map(Change::json).collect();
        let needs_yes = step.wider || step.blind || !step.changes.iter().all(Change::only_strengthens);
        let asks = needs_yes && args.widen.is_none() && !args.json && cx.out.can_ask();
        // A question shows them itself.
        if !args.json && !asks {
            for change in &step.changes {
                cx.out.line(&change.text())?;
            }
        }
        for warning in both.checked().unwrap_or_default() {
            cx.out.talk(&format!("warning: {warning}"));
        }
        if needs_yes {
            if step.blind && !args.json {
                cx.out.talk(
                    "the previously accepted file cannot be read or does not exist: the whole file counts as new",
                );
            }
            if asks {
                // Whoever ends this at the question finds it.
                cx.out.talk(&format!("the copy is {}", self.path()));
            }
            let digest = accept::together(&both.digests());
            let again = command::Command::peers(self.command()).with("--widen").with(&digest);
            let remedy = Hint::from("make the same edit with ").run(again);
            let asked = Asked {
                to: To::Edit { wider: step.wider },
                digest,
                given: args.widen.as_deref(),
                changes: step.changes.iter().collect(),
                can_answer: !args.json,
                remedy,
            };
            widening::agreed(cx, asked).map_err(kept)?;
        }
        let now = disk.read(Area::Peers, self.file, limits::CONFIG)?;
        let other = if self.file == peers::GOALS { peers::CONFIG } else { peers::GOALS };
        let now_beside = disk.read(Area::Peers, other, limits::CONFIG)?.unwrap_or_default();
        if now.as_deref() != there || now_beside != beside {
            let message = format!(
                "{} changed while it was edited; nothing was written",
                if now.as_deref() == there { other } else { self.file }
            );
            return Err(kept(CommandError::new(exit::CONFLICT, message)));
        }
        let old = before.accepted.map(|accepted| accepted.digests).unwrap_or_default();
        let digests = both.digests();
        let op = OperatorOp::Accepted { old, new: digests.clone(), note: args.note.clone(), rules: None };
        let by = cx.operator();
        let taken = operator::exchange(
            cx,
            place,
            ("goals edit", op),
            |disk| {
                accept::write(disk, goals, config, clock::now(), &by, args.note.as_deref())?;
                Ok(())
            },
            |disk| Ok(disk.publish(Area::Peers, self.file, new, true)?),
        )
        .map_err(kept)?;
        if args.json {
            let body = json!({"changed": true, "digests": digests, "taken": taken.word(), "changes": rows});
            cx.out.json("peers.goals-edit/1", &body)?;
        } else {
            cx.out.line(&format!("Wrote {} and accepted {}{}", self.file, named(&digests), taken.said()))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn command(&self) -> &'static str {
        if self.file == peers::GOALS { "goals edit" } else { "goals edit --config" }
    }
}
