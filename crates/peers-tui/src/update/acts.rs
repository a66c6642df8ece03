//! What an operator has done: which command it is, and what is asked before.

use peers_view::LoopRow;

use crate::actions::{self, Rung, asks_itself, is_at_work, on_terminal, rung};
use crate::dialog::{Choice, Confirm, Dialog, Does, Form, FormKind};
use crate::host::At;
use crate::keys::Action;
use crate::message::Cmd;
use crate::model::Model;

impl Model {
    /// Does what a key asks for that is about loops.
    pub(super) fn operate(&mut self, action: Action) -> Vec<Cmd> {
        if action == Action::New {
            self.dialog = Some(Dialog::Form(new_project()));
            return Vec::new();
        }
        // What is about one loop is about the one that is chosen, whatever is marked.
        let of_one = matches!(
            action,
            Action::Yank | Action::Shell | Action::Fix | Action::Trust | Action::AckBlock | Action::Amend
        );
        let rows = if of_one { self.meant().into_iter().collect() } else { self.subjects() };
        let rows: Vec<LoopRow> = rows.into_iter().cloned().collect();
        let Some(first) = rows.first() else {
            self.note = Some("no loop is chosen".to_owned());
            return Vec::new();
        };
        let all: Vec<&LoopRow> = rows.iter().collect();
        let names = Self::names(&all);
        let about = if let [one] = names.as_slice() { one.clone() } else { format!("{} loops", names.len()) };
        match action {
            Action::Yank => {
                let Some(text) = first.attention.top.action.clone() else {
                    self.note = Some("nothing is suggested for it".to_owned());
                    return Vec::new();
                };
                self.note = Some(format!("copied: {text}"));
                return vec![Cmd::Copy(text)];
            }
            Action::Shell => return vec![Cmd::Show(Vec::new(), At::Dir(dir(first)))],
            Action::Fix => return self.fix(first),
            Action::Start => {
                let idle: Vec<&LoopRow> = rows.iter().filter(|row| !is_at_work(row)).collect();
                if idle.is_empty() {
                    self.note = Some(format!("{about}: it is running"));
                    return Vec::new();
                }
                let fields = [
                    ("ticks", "stop after so many of this run", ""),
                    ("usd", "stop at so many dollars", ""),
                    ("sandbox", "bwrap, podman, landlock; the best there is if empty", ""),
                    ("worktree", "y: in a worktree of its own", ""),
                ];
                let title = format!("start {about}");
                self.dialog =
                    Some(Dialog::Form(Form::new(title, FormKind::Start(Self::names(&idle)), &fields)));
            }
            Action::Extend => {
                let fields = [
                    ("run time", "+2h, or 8h in all", ""),
                    ("ticks", "+50, or 300 in all", ""),
                    ("tokens", "+1000000", ""),
                    ("usd", "+5, or 20 in all", ""),
                    ("for", "how long it applies: 24h, never", ""),
                ];
                let title = format!("raise the budget of {about}");
                self.dialog = Some(Dialog::Form(Form::new(title, FormKind::Extend(names), &fields)));
            }
            Action::Stop => self.stop(&about, &names, first),
            Action::Resume => self.resume(&about, &all),
            Action::AckBlock => {
                let fields = [("step", "STEP-n, of the plan", ""), ("reason", "why that is accepted", "")];
                let title = format!("accept a blocked step of {}", first.name);
                self.dialog =
                    Some(Dialog::Form(Form::new(title, FormKind::AckBlock(first.name.clone()), &fields)));
            }
            Action::Amend => {
                let fields = [("command", "passes when the feature is there", ""), ("reason", "why", "")];
                let title = format!("amend the frozen acceptance command of {}", first.name);
                self.dialog =
                    Some(Dialog::Form(Form::new(title, FormKind::Amend(first.name.clone()), &fields)));
            }
            Action::Trust => self.trust(first),
            Action::Remove => {
                let does = Does::Run(vec![self.options.controller("remove", &names)]);
                let told = "the repository and its history stay where they are".to_owned();
                self.ask(format!("take {about} out of the registry"), vec![told], does, Some(about));
            }
            _ => {}
        }
        Vec::new()
    }

    pub(super) fn ask(&mut self, title: String, lines: Vec<String>, does: Does, word: Option<String>) {
        let input = Self::line("");
        self.dialog = Some(Dialog::Confirm(Confirm { title, lines, does, word, input }));
    }

    fn stop(&mut self, about: &str, names: &[String], first: &LoopRow) {
        let way = |flag: Option<&str>| {
            let argv = match &self.options.only {
                Some(_) => {
                    let words: Vec<&str> = std::iter::once("stop").chain(flag).collect();
                    actions::peers(&first.path, &words)
                }
                None => self.options.controller("stop", names.iter().map(String::as_str).chain(flag)),
            };
            Does::Run(vec![argv])
        };
        let ways = vec![
            ('t', "after the turn that runs, and its gates".to_owned(), way(Some("--after-tick"))),
            ('g', "gracefully: end the turn, keep its work".to_owned(), way(None)),
            ('K', "now: kill the turn; its work is kept".to_owned(), way(Some("--now"))),
        ];
        let title = format!("stop {about}");
        self.dialog = Some(Dialog::Choice(Choice { title, about: about.to_owned(), ways, at: 0 }));
    }

    fn resume(&mut self, about: &str, rows: &[&LoopRow]) {
        let (running, idle): (Vec<&LoopRow>, Vec<&LoopRow>) = rows.iter().partition(|row| is_at_work(row));
        let mut commands = Vec::new();
        if !idle.is_empty() {
            let mut words = Self::names(&idle);
            words.push("--start".to_owned());
            commands.push(self.options.controller("resume", words));
        }
        if idle.is_empty() && !running.is_empty() {
            commands.push(self.options.controller("restart", Self::names(&running)));
        }
        let (title, told) = if idle.is_empty() {
            (format!("restart {about}"), "ends the turn that runs and starts again with the same options")
        } else {
            (
                format!("resume {about}"),
                "says that the obstacle is gone, and starts with the options of the last start",
            )
        };
        self.ask(title, vec![told.to_owned()], Does::Run(commands), None);
    }

    /// What changed in goals or configuration, and what can be done about it.
    fn trust(&mut self, row: &LoopRow) {
        let dir = dir(row);
        let goals = |verb: &str| actions::peers(&dir, &["goals", verb]);
        let ways = vec![
            ('d', "see what changed".to_owned(), Does::Run(vec![goals("diff")])),
            ('a', "accept it, on the terminal".to_owned(), Does::Show(goals("accept"), At::Here)),
            ('r', "put the accepted files back".to_owned(), Does::Run(vec![goals("restore")])),
        ];
        self.dialog = Some(Dialog::Choice(Choice {
            title: format!("goals and configuration of {}", row.name),
            about: row.name.clone(),
            ways,
            at: 0,
        }));
    }

    /// Does what is suggested: the one command, or one of several.
    fn fix(&mut self, row: &LoopRow) -> Vec<Cmd> {
        let top = &row.attention.top;
        let does = |typed: &peers_view::Typed| {
            if on_terminal(typed) {
                let at = if typed.is_line { At::Home } else { At::Dir(dir(row)) };
                Does::Show(typed.argv.clone(), at)
            } else {
                Does::Run(vec![typed.argv.clone()])
            }
        };
        match top.commands.as_slice() {
            [] => {
                self.note = Some(match &top.next {
                    Some(next) => format!("no command does it: {next}"),
                    None => "nothing is suggested for it".to_owned(),
                });
                Vec::new()
            }
            [one] => {
                let does = does(one);
                self.climb(format!("{}: {}", row.name, top.why), one.verb, does, &row.name)
            }
            several => {
                let ways = ('1'..='9')
                    .zip(several)
                    .map(|(key, typed)| (key, typed.line.clone(), does(typed)))
                    .collect();
                let title = format!("{}: {}", row.name, top.why);
                self.dialog = Some(Dialog::Choice(Choice { title, about: row.name.clone(), ways, at: 0 }));
                Vec::new()
            }
        }
    }

    /// Does it at once, or asks before, as much as its verb asks for.
    pub(super) fn climb(&mut self, title: String, verb: &str, does: Does, name: &str) -> Vec<Cmd> {
        match (rung(verb), &does) {
            (Rung::Read, _) => self.go_ahead(does),
            (_, Does::Show(argv, _)) if asks_itself(verb, argv) => self.go_ahead(does),
            (Rung::Key, _) => {
                self.ask(title, Vec::new(), does, None);
                Vec::new()
            }
            (Rung::Word, _) => {
                self.ask(title, Vec::new(), does, Some(name.to_owned()));
                Vec::new()
            }
        }
    }

    /// Has it done.
    pub(super) fn go_ahead(&mut self, does: Does) -> Vec<Cmd> {
        self.dialog = None;
        match does {
            Does::Run(all) => {
                self.dialog = Some(Dialog::Running(all.clone()));
                vec![Cmd::Run(all)]
            }
            Does::Show(argv, at) => vec![Cmd::Show(argv, at)],
        }
    }
}

/// Where a loop works.
fn dir(row: &LoopRow) -> String {
    row.workdir.clone().unwrap_or_else(|| row.path.clone())
}

fn new_project() -> Form {
    let fields = [
        ("path", "the top of the repository; created if it is missing", ""),
        ("name", "of the project; that of its directory if empty", ""),
        ("test command", "its gate: passes with exit code 0", ""),
        ("detect gates", "y: take the gates that fit what is there", "y"),
        ("task", "what the agents are to do, or a file that says it", ""),
        ("agents", "claude,codex,opencode; those that are installed if empty", ""),
        ("modes", "audit, implement, ...; the usual goals if empty", ""),
        ("start", "y: start its loop then", ""),
    ];
    Form::new("set up a project", FormKind::New, &fields)
}
