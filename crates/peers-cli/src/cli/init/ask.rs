//! What a new repository is set up with: found on this machine, or asked for in at most three questions.

use clap::ValueEnum as _;
use peers_console::agents::Agent;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_model::exit;
use peers_setup::detect;
use peers_sys::dir::SafeDir;
use peers_sys::term;

use super::Args;

/// The gate whose command is offered.
const TESTS: &str = "tests-pass";
/// What stands for nothing.
const NONE: &str = "-";

/// The agents whose programs are installed.
fn installed(cx: &Cx) -> Vec<Agent> {
    let there = peers_setup::installed_agents(&cx.env);
    Agent::value_variants().iter().copied().filter(|agent| there.contains(&agent.name())).collect()
}

/// The command that runs the tests, as the manifests of the repository say.
fn tests(cx: &Cx) -> Option<String> {
    let work = SafeDir::open_shared(&cx.target).ok()?;
    let found = detect::detect(&work, &[]).proposals;
    found.into_iter().find(|gate| gate.id == TESTS).map(|gate| gate.cmd)
}

fn no_agent() -> CommandError {
    CommandError::new(exit::ENVIRONMENT, "no agent is installed: claude, codex and opencode are not on PATH")
        .hint("install one, or name those that will be there: `peers init --agents claude,codex`")
}

/// What was asked for, with the detected command if that was left out. The installed agents are taken by whoever
/// sets it up.
///
/// # Errors
/// It cannot be set up, no agent is installed, or no command is found that runs the tests.
pub(super) fn found(args: &Args, cx: &Cx) -> Result<Args, CommandError> {
    let mut args = args.clone();
    super::refuse_no_place(cx)?;
    if args.agents.is_empty() && installed(cx).is_empty() {
        return Err(no_agent());
    }
    // Modes say themselves whether they need one.
    if args.test.is_none() && !args.detect && args.modes.is_none() {
        let none = || {
            CommandError::new(exit::NEGATIVE, "found no command that runs the tests")
                .hint("name it: `--test 'make check'`")
        };
        args.test = Some(tests(cx).ok_or_else(none)?);
    }
    Ok(args)
}

/// The command that sets this repository up without a question.
pub(crate) fn command(cx: &Cx) -> Step {
    let test = tests(cx).unwrap_or_else(|| "make check".to_owned());
    Step::text("`peers init --test {} --task {} --yes`", &[&test, "Fix ..."])
}

/// Asks on the terminal for what a new repository is set up with; `None` where the answers end early.
///
/// # Errors
/// No agent is installed, or the terminal cannot be read.
pub(crate) fn ask(cx: &Cx) -> Result<Option<Args>, CommandError> {
    let agents = installed(cx);
    if agents.is_empty() {
        return Err(no_agent());
    }
    let ask = |question: &str| cx.out.ask(question);
    let dir = term::inline(&cx.target.canonicalize()?.to_string_lossy());
    cx.out.talk(&format!(
        "{dir} is not set up for peers yet. Three questions, then it runs; Ctrl-C stops here."
    ));
    let has_task = super::has_task(cx);
    answered(Offer { agents, tests: tests(cx), has_task }, ask, |text| cx.out.talk(text))
}

/// What the questions offer.
struct Offer {
    agents: Vec<Agent>,
    tests: Option<String>,
    has_task: bool,
}

fn answered(
    offer: Offer,
    ask: impl Fn(&str) -> Result<Option<String>, CommandError>,
    say: impl Fn(&str),
) -> Result<Option<Args>, CommandError> {
    // A line without its end is the end of input.
    let line = |question: &str| {
        Ok::<_, CommandError>(
            ask(question)?.and_then(|line| Some(line.strip_suffix('\n')?.trim().to_owned())),
        )
    };
    let mut args = Args { yes: true, ..Args::default() };
    let names: Vec<&str> = offer.agents.iter().map(|agent| agent.name()).collect();
    let question = format!("Agents that take turns (installed: {0}) [{0}]: ", names.join(","));
    args.agents = loop {
        let Some(text) = line(&question)? else { return Ok(None) };
        if text.is_empty() {
            break offer.agents;
        }
        let words = text.split([',', ' ']).filter(|word| !word.is_empty());
        match words.map(|word| Agent::from_str(word, true)).collect::<Result<Vec<_>, _>>() {
            Ok(agents) => break agents,
            Err(_) => say("known are claude, codex and opencode; others go into .peers/config.yaml"),
        }
    };
    let offered = offer.tests.as_ref().map(|cmd| format!(" [{}]", term::line(cmd, 120))).unwrap_or_default();
    args.test = loop {
        let Some(text) = line(&format!("Command that runs the tests{offered}: "))? else { return Ok(None) };
        match (text.is_empty(), &offer.tests) {
            (false, _) => break Some(text),
            (true, Some(tests)) => break Some(tests.clone()),
            (true, None) => say("peers needs a command that runs your tests, for example `make check`"),
        }
    };
    if !offer.has_task {
        let question = "What the agents should do, as text or as the name of a file [make the tests pass]: ";
        let Some(text) = line(question)? else { return Ok(None) };
        args.task = Some(text).filter(|text| !text.is_empty() && text != NONE);
    }
    say(&format!("The same without questions: peers init {}", words(&args).join(" ")));
    Ok(Some(args))
}

/// The options that mean the same.
fn words(args: &Args) -> Vec<String> {
    let agents: Vec<&str> = args.agents.iter().map(|agent| agent.name()).collect();
    let mut words = vec!["--agents".to_owned(), agents.join(",")];
    for (option, value) in [("--test", &args.test), ("--task", &args.task)] {
        if let Some(value) = value {
            words.push(format!("{option}={}", term::quoted(value)));
        }
    }
    words.push("--yes".to_owned());
    words
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn held(offer: Offer, typed: &[&str]) -> (Option<Args>, String) {
        let (lines, shown) = (RefCell::new(typed.iter()), RefCell::new(String::new()));
        let ask = |question: &str| {
            shown.borrow_mut().push_str(question);
            Ok(lines.borrow_mut().next().map(|line| format!("{line}\n")))
        };
        let args = answered(offer, ask, |text| shown.borrow_mut().extend([text, "\n"])).unwrap();
        assert!(lines.borrow_mut().next().is_none(), "not all answers were asked for");
        (args, shown.into_inner())
    }

    fn offer(agents: &[Agent], tests: Option<&str>) -> Offer {
        Offer { agents: agents.to_vec(), tests: tests.map(str::to_owned), has_task: false }
    }

    #[test]
    fn enter_takes_what_was_found_and_the_command_is_shown() {
        let (args, shown) =
            held(offer(&[Agent::Claude, Agent::Codex], Some("npm test")), &["", "", "Fix it"]);
        let args = args.unwrap();
        assert_eq!(
            (args.agents.len(), args.test.as_deref(), args.task.as_deref()),
            (2, Some("npm test"), Some("Fix it"))
        );
        assert!(
            shown.ends_with("peers init --agents claude,codex --test='npm test' --task='Fix it' --yes\n"),
            "{shown}"
        );
    }

    #[test]
    fn what_cannot_be_is_asked_again_and_the_end_of_input_ends_it() {
        let (args, shown) =
            held(offer(&[Agent::Claude], None), &["gemini", "opencode claude", "", "make", "-"]);
        let args = args.unwrap();
        assert_eq!(args.agents, [Agent::Opencode, Agent::Claude]);
        assert_eq!((args.test.as_deref(), args.task), (Some("make"), None));
        assert!(shown.contains("known are claude") && shown.contains("needs a command"), "{shown}");
        for n in 0..3 {
            assert!(held(offer(&[Agent::Claude], Some("x")), &["", "", ""][..n]).0.is_none(), "{n}");
        }
    }
}
