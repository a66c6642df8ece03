//! `peers-ctl new` without a path, on a terminal: the few things that matter are asked, one line each.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use peers_console::error::CommandError;
use peers_fleet::{Project, ProjectName, roster};
use peers_git::{PeerRepo, RepoError};
use peers_setup::detect;
use peers_sys::dir::SafeDir;
use peers_sys::term;

use super::{Args, Ctl, controller, current, located, names, unknown};
use crate::ctl::failed;

/// The gate whose command is offered.
const TESTS: &str = "tests-pass";
/// What stands for no command.
const NONE: &str = "-";

/// What a look at a directory shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    /// The name that it gives, if that is free.
    name: Option<String>,
    /// The command that runs its tests, as its manifests say.
    tests: Option<String>,
    /// It has goals already, which stay.
    goals: bool,
    /// It has files and no commit.
    files: bool,
}

/// Names of a directory that are looked at to see whether it is empty.
const NAMES: usize = 100;

/// Whom the dialogue is held with, and what it can look at.
struct Around<'a> {
    /// Asks, and gives the line that was typed; one without a line end is the end.
    ask: &'a mut dyn FnMut(&str) -> Result<Option<String>, CommandError>,
    say: &'a mut dyn FnMut(&str),
    /// Where it would be, or why it cannot be there.
    look: &'a dyn Fn(&Path) -> Result<Seen, CommandError>,
    /// Why it cannot be called so.
    free: &'a dyn Fn(&str) -> Result<(), CommandError>,
    /// The directory that is offered.
    here: PathBuf,
    /// The command, as it would be typed.
    command: String,
}

/// Holds the dialogue on the terminal; `None` where it was ended.
pub(super) fn hold(args: &Args, ctl: &Ctl) -> Result<Option<Args>, CommandError> {
    let known = names(ctl)?;
    let name_free = |name: &str| free(name, &known, args.replace_registration);
    let look = |path: &Path| {
        let (path, _) = located(path, ctl)?;
        unknown(&path, known.iter().filter(|known| Some(known.name.as_str()) != args.name.as_deref()))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.filter(|name| name_free(name).is_ok());
        let Ok(work) = SafeDir::open_shared(&path) else { return Ok(Seen { name, ..Seen::default() }) };
        let tests = detect::detect(&work, &[]).proposals.into_iter().find(|gate| gate.id == TESTS);
        let goals =
            work.subdir(".peers").and_then(|peers| peers.stat("goals.yaml")).is_ok_and(|it| it.is_some());
        let unborn =
            |repo: PeerRepo| repo.preflight().iter().any(|error| matches!(error, RepoError::Unborn { .. }));
        let files = PeerRepo::open(&path).map_or(true, unborn)
            && work.list(NAMES).is_ok_and(|all| all.entries.iter().any(|entry| entry.name != ".git"));
        Ok(Seen { name, tests: tests.map(|gate| gate.cmd), goals: goals && !args.overwrite_peers, files })
    };
    let mut around = Around {
        ask: &mut |question| ctl.out.ask(question),
        say: &mut |text| ctl.out.talk(text),
        look: &look,
        free: &name_free,
        here: current(),
        command: controller(ctl),
    };
    dialogue(args, &mut around)
}

fn free(name: &str, known: &[Project], replace: bool) -> Result<(), CommandError> {
    let name: ProjectName = roster::name_of(Path::new("/"), Some(name)).map_err(failed)?;
    match known.iter().find(|known| known.name == name) {
        // Whether it may give way is looked at then.
        Some(known) if !replace => Err(CommandError::usage(format!(
            "there is a project `{name}` already: {}",
            term::inline(&known.path)
        ))),
        _ => Ok(()),
    }
}

/// Asks for what the command line leaves open. `None` where it was ended.
fn dialogue(args: &Args, around: &mut Around<'_>) -> Result<Option<Args>, CommandError> {
    let mut asked = args.clone();
    let offered = term::inline(&around.here.to_string_lossy());
    let seen = loop {
        let Some(answer) = around.line(&format!("Directory of the project [{offered}]: "))? else {
            return Ok(None);
        };
        let path = if answer.is_empty() { around.here.clone() } else { PathBuf::from(answer) };
        match (around.look)(&path) {
            Ok(seen) => {
                asked.path = Some(path);
                break seen;
            }
            Err(error) => (around.say)(error.render().trim_end()),
        }
    };
    if seen.files && !asked.into_nonempty {
        let question = "It has files and no commit: put all of them into the first one? [y/N] ";
        let Some(all) = around.yes(question, false)? else { return Ok(None) };
        if !all {
            (around.say)("commit what belongs to it first");
            return Ok(None);
        }
        asked.into_nonempty = true;
    }
    while asked.name.is_none() {
        let offered = seen.name.as_ref().map(|name| format!(" [{}]", term::inline(name)));
        let Some(answer) = around.line(&format!("Name{}: ", offered.unwrap_or_default()))? else {
            return Ok(None);
        };
        let Some(name) = Some(answer).filter(|name| !name.is_empty()).or_else(|| seen.name.clone()) else {
            continue;
        };
        match (around.free)(&name) {
            Ok(()) => asked.name = Some(name),
            Err(error) => (around.say)(error.render().trim_end()),
        }
    }
    if asked.test.is_none() && !asked.detect && !seen.goals {
        let question = match &seen.tests {
            Some(tests) => {
                format!("Command that runs the tests, {NONE} for none [{}]: ", term::inline(tests))
            }
            None => "Command that runs the tests, empty to set it later: ".to_owned(),
        };
        let Some(answer) = around.line(&question)? else { return Ok(None) };
        asked.test = match answer.as_str() {
            "" => seen.tests,
            NONE => None,
            _ => Some(answer),
        };
    }
    if !asked.start {
        let Some(start) = around.yes("Start it then? [y/N] ", false)? else { return Ok(None) };
        asked.start = start;
    }
    let words: Vec<String> = asked.words().iter().map(|word| term::quoted(word)).collect();
    (around.say)(&format!("This does the same:\n  {} new {}", around.command, words.join(" ")));
    Ok(around.yes("Do it? [Y/n] ", true)?.filter(|yes| *yes).map(|_| asked))
}

impl Around<'_> {
    /// One line without the blanks around it; `None` at the end.
    fn line(&mut self, question: &str) -> Result<Option<String>, CommandError> {
        let line = (self.ask)(question)?;
        let whole = line.as_deref().and_then(|line| line.strip_suffix('\n'));
        if whole.is_none() {
            // The cursor stands behind the question.
            (self.say)("");
        }
        Ok(whole.map(|line| line.trim().to_owned()))
    }

    fn yes(&mut self, question: &str, default: bool) -> Result<Option<bool>, CommandError> {
        loop {
            let Some(answer) = self.line(question)? else { return Ok(None) };
            match answer.to_lowercase().as_str() {
                "" => return Ok(Some(default)),
                "y" | "yes" => return Ok(Some(true)),
                "n" | "no" => return Ok(Some(false)),
                _ => (self.say)("answer y or n"),
            }
        }
    }
}

impl Args {
    /// What would be typed for the same.
    fn words(&self) -> Vec<String> {
        let Self {
            path,
            name,
            test,
            detect,
            task,
            agents,
            start,
            spec,
            plan,
            modes,
            lang,
            driver,
            peer_model,
            peer_reasoning,
            peer_provider,
            accept_passing,
            into_nonempty,
            overwrite_peers,
            replace_registration,
            label,
            notes,
        } = self;
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let word =
            |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
        let mut words: Vec<String> = path.iter().map(text).collect();
        let mut valued = |option: &str, value: String| {
            if value.starts_with('-') {
                words.push(format!("--{option}={value}"));
            } else {
                words.extend([format!("--{option}"), value]);
            }
        };
        let agents: Vec<&str> = agents.iter().map(|agent| agent.name()).collect();
        let singles = [
            ("name", name.clone()),
            ("test", test.clone()),
            ("task", task.clone()),
            ("agents", Some(agents.join(",")).filter(|agents| !agents.is_empty())),
            ("spec", spec.clone()),
            ("plan", plan.as_ref().map(text)),
            ("modes", modes.clone()),
            ("lang", lang.and_then(|lang| word(lang.to_possible_value()))),
            ("driver", driver.and_then(|driver| word(driver.to_possible_value()))),
            ("notes", Some(notes.clone()).filter(|notes| !notes.is_empty())),
        ];
        for (option, value) in singles {
            if let Some(value) = value {
                valued(option, value);
            }
        }
        let several = [
            ("peer-model", peer_model),
            ("peer-reasoning", peer_reasoning),
            ("peer-provider", peer_provider),
        ];
        for (option, values) in several {
            for value in values {
                valued(option, value.clone());
            }
        }
        for (key, value) in label {
            valued("label", format!("{key}={value}"));
        }
        let flags = [
            (detect, "--detect"),
            (accept_passing, "--accept-passing"),
            (into_nonempty, "--into-nonempty"),
            (overwrite_peers, "--overwrite-peers"),
            (replace_registration, "--replace-registration"),
            (start, "--start"),
        ];
        words.extend(flags.into_iter().filter(|(set, _)| **set).map(|(_, flag)| flag.to_owned()));
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &[&str]) -> Args {
        Line::try_parse_from([&["new"], words].concat()).unwrap().args
    }

    /// What came of a dialogue in which these lines were typed, and all that stood on the terminal.
    fn held(args: &[&str], typed: &[&str], seen: &Seen) -> (Option<Args>, String) {
        let (mut lines, shown) = (typed.iter(), std::cell::RefCell::new(String::new()));
        let done = dialogue(
            &parsed(args),
            &mut Around {
                ask: &mut |question| {
                    shown.borrow_mut().push_str(question);
                    Ok(Some(lines.next().map(|line| format!("{line}\n")).unwrap_or_default()))
                },
                say: &mut |text| shown.borrow_mut().extend([text, "\n"]),
                look: &|path| {
                    if path == Path::new("taken") {
                        return Err(CommandError::usage("taken is registered already"));
                    }
                    Ok(seen.clone())
                },
                free: &|name| {
                    if name == "busy" {
                        Err(CommandError::usage("there is a project `busy`"))
                    } else {
                        Ok(())
                    }
                },
                here: PathBuf::from("/srv/a b"),
                command: "peers-ctl".to_owned(),
            },
        );
        assert_eq!(lines.next(), None, "more was typed than was asked: {}", shown.borrow());
        (done.unwrap(), shown.into_inner())
    }

    fn seen(name: Option<&str>, tests: Option<&str>) -> Seen {
        Seen { name: name.map(str::to_owned), tests: tests.map(str::to_owned), ..Seen::default() }
    }

    #[test]
    fn enter_takes_what_is_offered_and_the_command_is_shown_before_it_is_done() {
        let (asked, shown) = held(&[], &["", "", "", "", ""], &seen(Some("ab"), Some("cargo test --locked")));
        assert_eq!(asked.unwrap(), parsed(&["/srv/a b", "--name=ab", "--test=cargo test --locked"]));
        assert_eq!(
            shown,
            "Directory of the project [/srv/a b]: Name [ab]: \
             Command that runs the tests, - for none [cargo test --locked]: Start it then? [y/N] \
             This does the same:\n  peers-ctl new '/srv/a b' --name ab --test 'cargo test --locked'\nDo it? [Y/n] "
        );
    }

    #[test]
    fn what_is_typed_is_taken_and_what_cannot_be_is_asked_again() {
        let typed = ["taken", " ./x ", "", "busy", "c", "make check", "maybe", "YES", "y"];
        let (asked, shown) = held(&[], &typed, &seen(None, None));
        assert_eq!(asked.unwrap(), parsed(&["./x", "--name=c", "--test=make check", "--start"]));
        for says in ["error: taken is registered", "error: there is a project `busy`", "answer y or n"] {
            assert!(shown.contains(says), "{says}: {shown}");
        }
        let (asked, _) = held(&[], &["", "", "-", "n", ""], &seen(Some("ab"), Some("cargo test")));
        assert_eq!(asked.unwrap().test, None);
        let (asked, shown) =
            held(&[], &["", "", "", ""], &Seen { goals: true, ..seen(Some("ab"), Some("x")) });
        assert!(asked.unwrap().test.is_none() && !shown.contains("tests"), "{shown}");
    }

    #[test]
    fn what_the_command_line_says_is_not_asked() {
        let args = ["--name=x", "--detect", "--start", "--label=a=b"];
        let (asked, shown) = held(&args, &["", ""], &seen(None, Some("cargo test")));
        assert_eq!(asked.unwrap(), parsed(&[&args[..], &["/srv/a b"]].concat()));
        assert!(shown.contains("--label 'a=b' --detect --start\n"), "{shown}");
    }

    #[test]
    fn files_without_a_commit_are_taken_only_with_a_yes() {
        let files = Seen { files: true, ..seen(Some("ab"), None) };
        let (asked, _) = held(&[], &["", "y", "", "", "", ""], &files);
        assert!(asked.unwrap().into_nonempty);
        let (asked, shown) = held(&[], &["", ""], &files);
        assert!(asked.is_none() && shown.ends_with("commit what belongs to it first\n"), "{shown}");
        let (asked, _) = held(&["--into-nonempty"], &["", "", "", "", ""], &files);
        assert!(asked.unwrap().into_nonempty);
    }

    #[test]
    fn the_end_of_input_and_a_no_end_it_wherever_it_stands() {
        let typed = ["", "", "", "", "n"];
        for n in 0..=typed.len() {
            let (asked, _) = held(&[], &typed[..n], &seen(Some("ab"), None));
            assert_eq!(asked, None, "{n}");
        }
    }

    #[test]
    fn what_is_shown_means_the_same_when_it_is_typed() {
        for words in [
            &["."][..],
            &["x", "--name=-y", "--test=-x 'y'\n", "--start", "--notes=a b", "--label=k=v w", "--label=l="],
            &[
                "~/x",
                "--spec=a\nb",
                "--plan=p",
                "--modes=a,b",
                "--lang=js",
                "--task=Fix it",
                "--agents=codex,claude",
                "--driver=hooks",
                "--into-nonempty",
            ],
            &[
                "--detect",
                "--peer-model=a",
                "--peer-model=b=c",
                "--peer-reasoning=d",
                "--peer-provider=e",
                "--overwrite-peers",
                "--replace-registration",
            ],
        ] {
            let args = parsed(words);
            let shown = args.words();
            assert_eq!(parsed(&shown.iter().map(String::as_str).collect::<Vec<_>>()), args, "{shown:?}");
        }
    }
}
