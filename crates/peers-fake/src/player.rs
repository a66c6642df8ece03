//! Performs the steps of a turn.

use std::fs;
use std::io::{self, Write as _};
use std::thread;

use thiserror::Error;

use crate::args::{Files, Pairs, Texts};
use crate::commit::{self, Parts, Planned};
use crate::play::{Lazy, Options, holds};
use crate::script::Condition;
use crate::step::{
    Commit, Drip, EditGoals, Emit, Fault, Flood, ForgeNote, Message, MoveGit, ReadPrompt, ResetMode, Rewrite,
    Shell, Step, Stream, SwitchBranch, WriteFile,
};
use crate::wire::{Outcome, Wire};
use crate::{FAILED, UNEXPECTED, damage, process, shell};

/// Why a turn ends before its last step.
#[derive(Debug, Error)]
enum Stop {
    /// The script says so; the output has been brought to an end.
    #[error("exit {0}")]
    Exit(u8),
    /// A step cannot be performed.
    #[error("{0}")]
    Failed(String),
    /// An expectation did not hold.
    #[error("{0}")]
    Unexpected(String),
    /// The output is closed.
    #[error("write the output")]
    Output(#[from] io::Error),
}

type Played = Result<(), Stop>;

fn failed(what: &str) -> impl Fn(io::Error) -> Stop {
    let what = what.to_owned();
    move |error| Stop::Failed(format!("{what}: {error}"))
}

/// One turn being played.
pub(crate) struct Player<'a> {
    pub(crate) options: &'a Options,
    pub(crate) wire: Wire<'a>,
    pub(crate) prompt: Lazy<'a>,
    pub(crate) peer: String,
    pub(crate) number: u64,
}

impl Player<'_> {
    /// Performs `steps` and ends the output; the exit code.
    pub(crate) fn play(&mut self, steps: &[Step]) -> u8 {
        let end = self.wire.open().map_err(Stop::Output).and_then(|()| self.steps(steps));
        let end = end.and_then(|()| self.wire.done().map_err(Stop::Output));
        match end {
            Ok(()) => 0,
            Err(Stop::Exit(code)) => code,
            Err(Stop::Failed(text)) => self.complained(&text, FAILED),
            Err(Stop::Unexpected(text)) => self.complained(&text, UNEXPECTED),
            // The reader is gone, and with it everybody who could be told.
            Err(Stop::Output(_)) => FAILED,
        }
    }

    /// Fails because the script has come to its end.
    pub(crate) fn over(&mut self) -> u8 {
        self.complained("the script has no more turns", FAILED)
    }

    fn complained(&mut self, text: &str, code: u8) -> u8 {
        let _gone = self.wire.complain(text);
        code
    }

    fn steps(&mut self, steps: &[Step]) -> Played {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Played {
        match step {
            Step::Say(text) => self.wire.say(&self.fill(text))?,
            Step::Shell(shell) => self.shell(shell)?,
            Step::Write(file) => self.write(file)?,
            Step::Remove(path) => self.remove(path)?,
            Step::Commit(commit) => self.commit(commit, false)?,
            Step::Handoff(commit) => self.commit(commit, true)?,
            Step::Sleep(time) => thread::sleep(*time),
            Step::Flood(flood) => self.flood(flood)?,
            Step::Drip(drip) => self.drip(drip)?,
            Step::Fork(fork) => {
                let task = fork.shell.as_ref().map(|task| self.fill(task));
                process::fork(fork, task.as_deref(), &self.options.cwd, &self.options.env)
                    .map_err(failed("fork"))?;
            }
            Step::Emit(emit) => self.emit(emit)?,
            Step::Exit(0) => {
                self.wire.done()?;
                return Err(Stop::Exit(0));
            }
            // A program that dies with another code does not come to its last words.
            Step::Exit(code) => return Err(Stop::Exit(*code)),
            Step::IgnoreTerm => process::ignore_term().map_err(failed("ignore_term"))?,
            Step::Silent => self.wire.silence(),
            Step::Crash(signal) => process::crash(signal).map_err(Stop::Failed)?,
            Step::Hang(how) => process::hang(*how).map_err(failed("hang"))?,
            Step::ReadPrompt(read) => self.read_prompt(read)?,
            Step::When(when) => {
                let condition = self.filled(&when.condition());
                let holds =
                    holds(&condition, &mut self.prompt, self.options).map_err(failed("read the prompt"))?;
                self.steps(if holds { &when.steps } else { &when.otherwise })?;
            }
            Step::Rewrite(rewrite) => self.rewrite(rewrite)?,
            Step::SwitchBranch(switch) => self.switch_branch(switch)?,
            Step::EditGoals(edit) => self.edit_goals(edit)?,
            Step::DeleteGit => {
                self.act("rm -rf .git", |player| {
                    damage::delete_git(&player.options.cwd).map(|()| String::new())
                })?;
            }
            Step::MoveGit(what) => {
                let what = MoveGit { to: what.to.as_ref().map(|to| self.fill(to)), leave: what.leave };
                self.act("mv .git", |player| {
                    damage::move_git(&player.options.cwd, &what).map(|to| to.display().to_string())
                })?;
            }
            Step::CorruptGit(part) => self.act(&format!("corrupt {part:?}"), |player| {
                damage::corrupt_git(&player.options.cwd, *part).map(|()| String::new())
            })?,
            Step::SymlinkPeers(to) => {
                let to = to.as_ref().map(|to| self.fill(to));
                self.act("ln -s .peers", |player| {
                    damage::symlink_peers(&player.options.cwd, to.as_deref())
                        .map(|to| to.display().to_string())
                })?;
            }
            Step::ForgeNote(note) => self.forge_note(note)?,
            Step::Review(review) => self.parts(&commit::review(review, &self.peer), true)?,
            Step::BugReport(report) => self.parts(&commit::bug_report(report, &self.peer), true)?,
            Step::BugResolve(resolve) => self.parts(&commit::bug_resolve(resolve, &self.peer), false)?,
            Step::Skeptic(skeptic) => self.parts(&commit::skeptic(skeptic, &self.peer), true)?,
            Step::Message(message) => self.message(message)?,
            Step::Git(args) => self.git(&args.iter().map(|arg| self.fill(arg)).collect::<Vec<_>>())?,
        }
        Ok(())
    }

    /// Replaces `{{turn}}`, `{{peer}}` and `{{iteration}}`.
    fn fill(&self, text: &str) -> String {
        if !text.contains("{{") {
            return text.to_owned();
        }
        let iteration = self.options.env.text("PEERS_ITERATION").unwrap_or("0");
        text.replace("{{turn}}", &self.number.to_string())
            .replace("{{peer}}", &self.peer)
            .replace("{{iteration}}", iteration)
    }

    fn filled(&self, condition: &Condition) -> Condition {
        let fill = |texts: &Texts| Texts(texts.0.iter().map(|text| self.fill(text)).collect());
        Condition { prompt: fill(&condition.prompt), env: fill(&condition.env), file: fill(&condition.file) }
    }

    /// Shows something done without a shell as if a shell had done it.
    fn act(&mut self, shown: &str, act: impl FnOnce(&Self) -> io::Result<String>) -> Played {
        let call = self.wire.begin(shown)?;
        let done = act(self);
        let (code, output) = match &done {
            Ok(output) => (0, output.clone()),
            Err(error) => (1, error.to_string()),
        };
        self.wire.end(&call, &Outcome { output, code })?;
        done.map(|_| ()).map_err(failed(shown))
    }

    fn shell(&mut self, step: &Shell) -> Played {
        let run = self.fill(&step.run);
        let call = self.wire.begin(&run)?;
        let mut command = shell::command("sh", &self.options.cwd, &self.options.env);
        command.arg("-c").arg(&run);
        let done = shell::run(command, None).map_err(failed("start sh"))?;
        let code = done.code();
        self.wire.end(&call, &Outcome { output: done.output.clone(), code })?;
        match step.expect.filter(|expected| *expected != code) {
            None => Ok(()),
            Some(expected) => Err(Stop::Unexpected(format!(
                "`{run}` ended with {code}, expected {expected}: {}",
                done.output.trim()
            ))),
        }
    }

    fn write(&mut self, file: &WriteFile) -> Played {
        let path = self.fill(&file.path);
        let (text, append) = match (&file.text, &file.append, file.lines) {
            (Some(text), None, None) => (self.fill(text), false),
            (None, Some(text), None) => (self.fill(text), true),
            (None, None, Some(lines)) => {
                let lines: Vec<String> = (1..=lines).map(|n| format!("line {n}\n")).collect();
                (lines.concat(), false)
            }
            _ => {
                return Err(Stop::Failed(format!("write {path}: give one of `text`, `append` and `lines`")));
            }
        };
        self.act(&format!("write {path}"), |player| {
            let to = player.options.cwd.join(&path);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::OpenOptions::new()
                .create(true)
                .append(append)
                .write(true)
                .truncate(!append)
                .open(to)?
                .write_all(text.as_bytes())?;
            Ok(String::new())
        })
    }

    fn remove(&mut self, path: &str) -> Played {
        let path = self.fill(path);
        self.act(&format!("rm {path}"), |player| {
            let path = player.options.cwd.join(&path);
            if fs::symlink_metadata(&path)?.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
            .map(|()| String::new())
        })
    }

    fn commit(&mut self, step: &Commit, handoff: bool) -> Played {
        let Commit { files, subject, body, sections, trailers, allow_empty, self_review, message } = step;
        let text = if let Some(message) = message {
            self.fill(message)
        } else {
            let subject = subject.as_deref().unwrap_or("Work of {{peer}}, turn {{turn}}");
            let Pairs(pairs) = trailers;
            let mut parts = Parts {
                subject: self.fill(subject),
                paragraphs: body.iter().chain(sections).map(|text| self.fill(text)).collect(),
                trailers: pairs.iter().map(|(key, value)| (key.clone(), self.fill(value))).collect(),
            };
            if handoff {
                let review = self_review.as_ref().map(|review| self.fill(review));
                parts.hand_off(&self.peer, review.as_deref());
            }
            parts.message()
        };
        self.make(&Planned {
            files: files.clone(),
            message: text,
            allow_empty: allow_empty.unwrap_or(handoff),
        })
    }

    /// Commits what a shorthand made. `alone`: whatever lies in the work tree stays out of it.
    fn parts(&mut self, parts: &Parts, alone: bool) -> Played {
        let files = if alone { Files::None } else { Files::All };
        let message = self.fill(&parts.message());
        self.make(&Planned { files, message, allow_empty: true })
    }

    fn make(&mut self, planned: &Planned) -> Played {
        let subject = planned.message.lines().next().unwrap_or_default();
        let call = self.wire.begin(&format!("git commit -m {subject:?}"))?;
        let done = commit::make(planned, &self.peer, &self.options.cwd, &self.options.env)
            .map_err(failed("start git"))?;
        let code = done.code();
        self.wire.end(&call, &Outcome { output: done.output.clone(), code })?;
        if code == 0 { Ok(()) } else { Err(Stop::Failed(format!("git commit: {}", done.output.trim()))) }
    }

    fn git(&mut self, args: &[String]) -> Played {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let call = self.wire.begin(&format!("git {}", args.join(" ")))?;
        let done = commit::git(&args, None, &self.peer, &self.options.cwd, &self.options.env)
            .map_err(failed("start git"))?;
        let code = done.code();
        self.wire.end(&call, &Outcome { output: done.output.clone(), code })?;
        if code == 0 {
            Ok(())
        } else {
            Err(Stop::Failed(format!("git {}: {}", args.join(" "), done.output.trim())))
        }
    }

    fn flood(&mut self, flood: &Flood) -> Played {
        if flood.event {
            let size = usize::try_from(flood.bytes).unwrap_or(usize::MAX);
            return Ok(self
                .wire
                .say(&"flood ".repeat(size / 6 + 1).chars().take(size).collect::<String>())?);
        }
        let mut block = vec![b'x'; 80 * 800];
        if flood.newline {
            for line in block.chunks_mut(80) {
                if let Some(last) = line.last_mut() {
                    *last = b'\n';
                }
            }
        }
        let mut left = flood.bytes;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            self.wire.raw(flood.stream, block.get(..size).unwrap_or_default())?;
            left = left.saturating_sub(u64::try_from(size).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    fn drip(&mut self, drip: &Drip) -> Played {
        let text = self.fill(&drip.text);
        for n in 0..drip.times {
            if n > 0 {
                thread::sleep(drip.every);
            }
            self.wire.raw(drip.stream, text.as_bytes())?;
        }
        Ok(())
    }

    fn emit(&mut self, emit: &Emit) -> Played {
        match emit {
            Emit::Usage(usage) => self.wire.spend(usage),
            Emit::Fault(fault) => {
                let message = fault.message.as_ref().map(|text| self.fill(text));
                self.wire.failed(&Fault { message, ..fault.clone() })?;
                return Err(Stop::Exit(FAILED));
            }
            Emit::Retry(retry) => self.wire.retry(retry)?,
            Emit::Window(window) => self.wire.window(window)?,
            Emit::EmptySteps(times) => (0..*times).try_for_each(|_| self.wire.empty_step())?,
            Emit::Cut => {
                self.wire.cut()?;
                return Err(Stop::Exit(FAILED));
            }
            Emit::Line(text) => {
                let line = format!("{}\n", self.fill(text));
                self.wire.raw(Stream::Stdout, line.as_bytes())?;
            }
            Emit::Stderr(text) => {
                let line = format!("{}\n", self.fill(text));
                self.wire.raw(Stream::Stderr, line.as_bytes())?;
            }
            Emit::Hex(bytes) => self.wire.raw(Stream::Stdout, bytes)?,
        }
        Ok(())
    }

    fn read_prompt(&mut self, read: &ReadPrompt) -> Played {
        let expect: Vec<String> = read.expect.0.iter().map(|text| self.fill(text)).collect();
        let reject: Vec<String> = read.reject.0.iter().map(|text| self.fill(text)).collect();
        let save = read.save.as_ref().map(|path| self.options.cwd.join(self.fill(path)));
        let text = self.prompt.text().map_err(failed("read the prompt"))?;
        if let Some(path) = save {
            fs::write(&path, text).map_err(failed(&format!("write {}", path.display())))?;
        }
        if let Some(missing) = expect.iter().find(|wanted| !text.contains(wanted.as_str())) {
            return Err(Stop::Unexpected(format!("the prompt does not contain `{missing}`")));
        }
        match reject.iter().find(|unwanted| text.contains(unwanted.as_str())) {
            Some(found) => Err(Stop::Unexpected(format!("the prompt contains `{found}`"))),
            None => Ok(()),
        }
    }

    fn rewrite(&mut self, rewrite: &Rewrite) -> Played {
        if let Some(count) = rewrite.reset {
            let mode = match rewrite.mode {
                ResetMode::Hard => "--hard",
                ResetMode::Mixed => "--mixed",
                ResetMode::Soft => "--soft",
            };
            let args = ["reset", "-q", mode, &format!("HEAD~{count}")].map(str::to_owned);
            self.git(&args)?;
        }
        if rewrite.amend {
            let message = format!("Amended by {} in turn {}", self.peer, self.number);
            let args = ["commit", "-q", "--amend", "--allow-empty", "--no-verify", "-m", &message];
            self.git(&args.map(str::to_owned))?;
        }
        Ok(())
    }

    fn switch_branch(&mut self, switch: &SwitchBranch) -> Played {
        let mut args = vec!["checkout".to_owned(), "-q".to_owned()];
        if switch.detach {
            args.push("--detach".to_owned());
        } else if !switch.existing {
            args.push("-b".to_owned());
        }
        args.extend(switch.name.as_ref().map(|name| self.fill(name)));
        self.git(&args)
    }

    fn edit_goals(&mut self, edit: &EditGoals) -> Played {
        let fill = |text: &Option<String>| text.as_ref().map(|text| self.fill(text));
        let edit = EditGoals {
            file: fill(&edit.file),
            text: fill(&edit.text),
            append: fill(&edit.append),
            from: fill(&edit.from),
            to: fill(&edit.to),
        };
        self.act("edit the goals", |player| {
            damage::edit_goals(&player.options.cwd, &edit).map(|path| path.display().to_string())
        })
    }

    fn forge_note(&mut self, note: &ForgeNote) -> Played {
        let [text, on, commit] = [&note.text, &note.notes_ref, &note.commit].map(|text| self.fill(text));
        let args = ["notes", "--ref", &on, "add", "-f", "-m", &text, &commit];
        self.git(&args.map(str::to_owned))
    }

    fn message(&mut self, message: &Message) -> Played {
        let path = format!(
            ".peers/inbox/{}/to-{}/{}.md",
            self.peer,
            self.fill(&message.to),
            self.fill(&message.topic)
        );
        self.write(&WriteFile { path, text: Some(message.text.clone()), append: None, lines: None })
    }
}
