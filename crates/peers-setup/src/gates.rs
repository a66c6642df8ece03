//! Which gates the goals that are laid down ask for: the placeholder, the operator's command, or what is
//! detected.

use std::path::Path;

use peers_model::exit;
use peers_model::goal::CHECK_NAMES;
use peers_modes::{GOALS, Merged, Tests, course_text, goals_with, goals_with_gates, goals_with_modes};
use peers_store::load;
use peers_sys::dir::SafeDir;
use peers_sys::term;

use super::ScaffoldError;
use super::detect::{self, Language, Proposal};
use super::error::shown;

/// The gate of the tests.
const TESTS: &str = "tests-pass";
/// Its time limit in seconds.
const TIMEOUT: u32 = 1_800;
/// Manifests, or gates, that a note names.
const NAMED: usize = 4;

/// What the goals that are laid down ask for, besides what every project is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Gates {
    /// Nothing real: a placeholder that is always red, with what fits as comments.
    #[default]
    Placeholder,
    /// That this command of the operator's, which runs the tests, ends well.
    Tests(String),
    /// What the manifests in the work tree call for. Refused where that is nothing.
    Detected,
}

impl Gates {
    /// The option of the command line.
    pub(super) fn option(&self) -> &'static str {
        match self {
            Self::Placeholder | Self::Tests(_) => "test",
            Self::Detected => "detect",
        }
    }
}

/// The goals of a new file.
#[derive(Debug, Clone, Default)]
pub(super) struct Template {
    pub(super) text: String,
    /// What its operator should know of it.
    pub(super) note: Option<String>,
    /// The commands of the gates that were asked for.
    pub(super) asked: Vec<String>,
}

/// The goals for a work tree.
pub(super) fn goals(
    gates: &Gates,
    modes: Option<&Merged>,
    language: Option<Language>,
    work: &SafeDir,
) -> Result<Template, ScaffoldError> {
    let found = detect::detect(work, &[]).proposals;
    match modes {
        Some(modes) => of_modes(gates, modes, language, found, work.path()),
        None => of(gates, language, found, work.path()),
    }
}

/// Refuses what could not be asked for where nothing is yet.
pub(super) fn of_nothing(
    gates: &Gates,
    modes: Option<&Merged>,
    language: Option<Language>,
    path: &Path,
) -> Result<(), ScaffoldError> {
    let template = match modes {
        Some(modes) => of_modes(gates, modes, language, Vec::new(), path),
        None => of(gates, language, Vec::new(), path),
    };
    template.map(drop)
}

/// Whether goals that were accepted have no gate but those of the template, or of `text`.
pub(super) fn ask_no_more(accepted: &[u8], text: &str) -> bool {
    let goals = |text: &str| load::load_goals(text, 2, &CHECK_NAMES).ok();
    let Some(accepted) = std::str::from_utf8(accepted).ok().and_then(goals) else { return false };
    [GOALS, text].into_iter().any(|text| goals(text).as_ref() == Some(&accepted))
}

fn of(
    gates: &Gates,
    language: Option<Language>,
    found: Vec<Proposal>,
    path: &Path,
) -> Result<Template, ScaffoldError> {
    let usual = language.map(detect::usual).unwrap_or_default();
    let (asked, others) = match gates {
        Gates::Placeholder => return Ok(placeholder(language, &usual, &found)),
        Gates::Tests(cmd) => {
            let gate = tests(cmd, found.iter().chain(&usual))?;
            let mut others = found;
            others.retain(|other| other.id != TESTS && other.cmd != gate.cmd);
            (vec![gate], others)
        }
        Gates::Detected => (if found.is_empty() { usual } else { found }, Vec::new()),
    };
    if asked.is_empty() {
        return Err(nothing_found(path));
    }
    let text = goals_with_gates(&detect::entries(&asked), &detect::commented(&others));
    checked(&text, gates.option())?;
    let note = Some(told(&asked));
    Ok(Template { text, note, asked: asked.into_iter().map(|gate| gate.cmd).collect() })
}

fn nothing_found(path: &Path) -> ScaffoldError {
    let message = format!("no manifest of a known stack was found in {}", shown(path));
    let hint = "name the command that runs the tests: `--test CMD`";
    ScaffoldError::refused(exit::NEGATIVE, message, hint)
}

/// Refuses goals that would not load.
fn checked(text: &str, option: &str) -> Result<(), ScaffoldError> {
    load::load_goals(text, 2, &CHECK_NAMES).map(drop).map_err(|error| {
        let told: Vec<_> = error.problems().iter().map(|problem| problem.message.as_str()).collect();
        ScaffoldError::option(option, told.join("; "))
    })
}

/// The goals of modes, behind the gates of the project itself: those that were asked for, and the tests where a
/// mode wants them, at least if it is known how they are run. A gate that was asked for takes the place of a mode's with the same id, and no other does.
fn of_modes(
    gates: &Gates,
    modes: &Merged,
    language: Option<Language>,
    found: Vec<Proposal>,
    path: &Path,
) -> Result<Template, ScaffoldError> {
    let usual = language.map(detect::usual).unwrap_or_default();
    let is_of_mode = |id: &str| modes.goals.iter().any(|(_, goal)| goal.id.as_str() == id);
    let mut asked = match gates {
        Gates::Tests(cmd) => vec![tests(cmd, found.iter().chain(&usual))?],
        Gates::Detected if found.is_empty() && usual.is_empty() => return Err(nothing_found(path)),
        Gates::Detected => {
            if found.is_empty() {
                usual
            } else {
                found
            }
        }
        Gates::Placeholder if modes.tests == Tests::Unasked => Vec::new(),
        Gates::Placeholder => {
            found.into_iter().chain(usual).filter(|gate| gate.id == TESTS).take(1).collect()
        }
    };
    let replaced: Vec<String> = match gates {
        Gates::Tests(_) => asked.iter().map(|gate| gate.id.clone()).collect(),
        Gates::Placeholder | Gates::Detected => Vec::new(),
    };
    asked.retain(|gate| replaced.contains(&gate.id) || !is_of_mode(&gate.id));
    if asked.is_empty() && modes.tests == Tests::Required && !is_of_mode(TESTS) {
        let message =
            format!("the tests are a gate of these modes, and {} does not say how they are run", shown(path));
        let hint = "name the command: `--test CMD`";
        return Err(ScaffoldError::refused(exit::NEGATIVE, message, hint));
    }
    let mut text = goals_with_modes(&detect::entries(&asked), &modes.text(&replaced));
    text.push_str(&course_text(&modes.course));
    checked(&text, "modes")?;
    let names: Vec<String> = modes.applied.iter().map(|mode| format!("`{}`", mode.name)).collect();
    let more = if asked.is_empty() { String::new() } else { format!("; {}", told(&asked)) };
    let note = format!("goals.yaml has the goals of {}{more}", names.join(", "));
    Ok(Template { text, note: Some(note), asked: asked.into_iter().map(|gate| gate.cmd).collect() })
}

/// The gate that runs the operator's command. Where it is one that is proposed, it is judged as that is.
fn tests<'a>(cmd: &str, mut known: impl Iterator<Item = &'a Proposal>) -> Result<Proposal, ScaffoldError> {
    let cmd = cmd.trim();
    let refuse = |why: &str| Err(ScaffoldError::option("test", why));
    if cmd.is_empty() {
        return refuse("the command is empty; name the one that runs the tests");
    }
    // What is accepted is what is seen.
    if cmd.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || term::invisible(c)) {
        return refuse("the command has a character in it that cannot be seen");
    }
    let pass_when = known.find(|proposal| proposal.cmd == cmd).map(|proposal| proposal.pass_when.clone());
    Ok(Proposal {
        id: TESTS.to_owned(),
        description: "The test suite passes".to_owned(),
        cmd: cmd.to_owned(),
        pass_when: pass_when.unwrap_or_else(|| "exit_code == 0".to_owned()),
        timeout_s: TIMEOUT,
        why: "--test".to_owned(),
    })
}

/// What will be run, for whoever accepts it by asking for it.
fn told(asked: &[Proposal]) -> String {
    let shown = |gate: &Proposal| format!("`{}`, which runs `{}`", gate.id, term::line(&gate.cmd, 200));
    let named: Vec<_> = asked.iter().take(NAMED).map(shown).collect();
    let more = match asked.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let gates = if asked.len() == 1 { "the gate" } else { "the gates" };
    format!("goals.yaml has {gates} {}{more}", named.join("; "))
}

/// The template, with what fits as comments and a note about them.
fn placeholder(language: Option<Language>, usual: &[Proposal], found: &[Proposal]) -> Template {
    let template = |proposals: &[Proposal], note: String| Template {
        text: goals_with(&detect::commented(proposals)),
        note: Some(note),
        asked: Vec::new(),
    };
    if found.is_empty() {
        let Some(language) = language else {
            return Template { text: GOALS.to_owned(), note: None, asked: Vec::new() };
        };
        let note = format!("goals.yaml holds a gate that is usual for {}, as a comment", language.word());
        return template(usual, note);
    }
    let mut files: Vec<&str> = found.iter().map(|proposal| proposal.why.as_str()).collect();
    files.dedup();
    let count = files.len();
    files.truncate(NAMED);
    let more = if count > files.len() { " and others" } else { "" };
    let note = format!(
        "goals.yaml holds gates that fit this repository, as comments (from {}{more})",
        term::inline(&files.join(", "))
    );
    template(found, note)
}

#[cfg(test)]
mod tests {
    use peers_model::exit;
    use peers_model::goal::{GateRun, Goal, PLACEHOLDER};
    use peers_sys::env::Env;

    use super::*;
    use crate::detect::usual;

    fn laid(
        gates: &Gates,
        language: Option<Language>,
        found: &[Proposal],
    ) -> Result<Template, ScaffoldError> {
        of(gates, language, found.to_vec(), Path::new("/x"))
    }

    fn shell(text: &str) -> Vec<(String, String, String)> {
        let goals = load::load_goals(text, 2, &CHECK_NAMES).unwrap();
        let run = |goal: &Goal| match &goal.gate()?.run {
            GateRun::Shell { cmd, pass_when } => Some((goal.id.to_string(), cmd.clone(), pass_when.clone())),
            GateRun::Check { .. } => None,
        };
        goals.iter().filter_map(run).collect()
    }

    #[test]
    fn the_command_of_the_operator_takes_the_place_of_the_placeholder_whatever_stands_in_it() {
        for cmd in [
            "cargo test",
            "make check # all: of \"it\"",
            "printf '%s\\n' \"$HOME\" && true",
            "cd 'a b'\ntrue",
            "# no comment",
            "ünïcode ☂",
            "- id: x",
            "{a: b}",
        ] {
            let laid = laid(&Gates::Tests(format!(" {cmd} ")), None, &[]).unwrap();
            let row = ("tests-pass".to_owned(), cmd.to_owned(), "exit_code == 0".to_owned());
            assert_eq!(shell(&laid.text), [row], "{}", laid.text);
            assert!(laid.asked == [cmd] && laid.text.contains("    timeout_s: 1800\n"), "{}", laid.text);
            assert!(laid.text.contains("  # From --test\n  - id: tests-pass\n"), "{}", laid.text);
        }
    }

    #[test]
    fn a_command_that_is_proposed_is_judged_as_strictly_and_the_other_proposals_are_comments() {
        let mut found = usual(Language::Go);
        found.push(Proposal { id: "lint-clean".into(), cmd: "go vet ./...".into(), ..found[0].clone() });
        let strict = found[0].pass_when.clone();
        let as_proposed = laid(&Gates::Tests("go test ./...".to_owned()), None, &found).unwrap();
        assert_eq!(shell(&as_proposed.text)[0].2, strict);
        assert!(as_proposed.text.contains("  # - id: lint-clean\n"), "{}", as_proposed.text);
        assert_eq!(as_proposed.text.matches("go test").count(), 1, "{}", as_proposed.text);
        let other = laid(&Gates::Tests("go test -race ./...".to_owned()), None, &found).unwrap();
        assert_eq!(shell(&other.text)[0].2, "exit_code == 0");
        // Where nothing is there yet, the language says it.
        let named = laid(&Gates::Tests("cargo test".to_owned()), Some(Language::Rust), &[]).unwrap();
        assert!(shell(&named.text)[0].2.contains("test result: ok"), "{}", named.text);
    }

    #[test]
    fn what_is_detected_is_taken_whole_and_nothing_is_refused() {
        let mut found = usual(Language::Go);
        found.push(Proposal { id: "lint-clean".into(), cmd: "go vet ./...".into(), ..found[0].clone() });
        let template = laid(&Gates::Detected, Some(Language::Rust), &found).unwrap();
        let ids: Vec<_> = shell(&template.text).into_iter().map(|(id, ..)| id).collect();
        assert_eq!(ids, ["tests-pass", "lint-clean"]);
        let note = template.note.unwrap();
        assert!(
            note.contains("`tests-pass`, which runs `go test ./...`; `lint-clean`, which runs `go vet"),
            "{note}"
        );
        assert_eq!(shell(&laid(&Gates::Detected, Some(Language::Rust), &[]).unwrap().text).len(), 1);
        let error = laid(&Gates::Detected, None, &[]).unwrap_err();
        assert!(
            error.exit() == exit::NEGATIVE && error.hint().unwrap().to_string().contains("--test"),
            "{error}"
        );
    }

    #[test]
    fn the_tests_are_a_gate_of_a_mode_that_builds_where_it_is_known_how_they_are_run() {
        let of = |mode: &str, found: &[Proposal]| {
            let library = peers_modes::Library::load(&Env::from_pairs([("HOME", "/nowhere")]));
            let merged = peers_modes::merge(&library.resolve(&[mode.to_owned()], &[]).unwrap()).unwrap();
            let text = of_modes(&Gates::Placeholder, &merged, None, found.to_vec(), Path::new("/x"));
            text.map(|template| shell(&template.text).into_iter().map(|(_, cmd, _)| cmd).collect::<Vec<_>>())
        };
        let found = usual(Language::Go);
        for mode in ["implement", "audit"] {
            assert_eq!(of(mode, &found).unwrap(), ["go test ./..."], "{mode}");
        }
        assert_eq!(of("implement", &[]).unwrap(), Vec::<String>::new());
        assert_eq!(of("audit", &[]).unwrap_err().exit(), exit::NEGATIVE);
        assert_eq!(of("describe", &found).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_command_that_cannot_be_seen_or_run_is_refused() {
        for (cmd, says) in [
            ("", "is empty"),
            (" \n\t", "is empty"),
            ("a\0b", "cannot be seen"),
            ("a\u{1b}[2Jb", "cannot be seen"),
            ("a\u{202e}b", "cannot be seen"),
        ] {
            let error = laid(&Gates::Tests(cmd.to_owned()), None, &[]).unwrap_err();
            assert_eq!(error.exit(), exit::USAGE);
            assert!(error.to_string().starts_with("--test: ") && error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn goals_that_were_accepted_give_way_only_where_they_ask_no_more() {
        let text = laid(&Gates::Tests("true".to_owned()), None, &[]).unwrap().text;
        let commented = laid(&Gates::Placeholder, None, &usual(Language::Go)).unwrap().text;
        assert!(commented.contains(PLACEHOLDER));
        for (accepted, gives_way) in [
            (GOALS, true),
            (commented.as_str(), true),
            (text.as_str(), true),
            (&text.replace("cmd: \"true\"", "cmd: make"), false),
            ("goals: [", false),
        ] {
            assert_eq!(ask_no_more(accepted.as_bytes(), &text), gives_way, "{accepted}");
        }
    }
}
