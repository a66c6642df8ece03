//! The command line: one file for each subcommand, with its `Args` and its `run`.

mod ack;
mod bug_hunt;
mod check;
mod codemap;
mod completions;
mod deinit;
mod demo;
mod doctor;
mod fake_peer;
mod gates;
mod goals;
mod hook;
mod info;
mod init;
mod land;
mod man;
mod modes;
mod plan;
mod prompt;
mod relay;
mod replay;
mod report;
mod run;
mod salvage;
mod sandbox;
mod schema;
mod state;
mod status;
mod stop;
mod store;
mod tick;
mod tmux;
mod undo;
mod verify;
mod watch;

#[cfg(test)]
mod reference;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output::Out;
use peers_console::screen;
use peers_model::exit;
use peers_sys::env::Env;
use peers_sys::yaml::closest;
use peers_view::Spelling;

const EXIT_CODES: &str = "\
Exit codes: 0 done as asked, 1 negative answer, 2 usage, 3 invalid or not measurable, 4 conflict,
5 refused, 6 environment, 10 budget, 11 stuck, 13 peer unavailable, 70 failure, 128+N signal.";

/// The commands that `peers-ctl` alone has.
const OF_THE_CONTROLLER: &[&str] = &[
    "new",
    "add",
    "remove",
    "start",
    "restart",
    "resume",
    "list",
    "reconcile",
    "tail",
    "logs",
    "events",
    "wait",
    "prune",
    "registry",
    "budget",
    "amend",
    "ack-block",
    "dashboard",
    "tui",
    "peek",
    "review",
    "compare",
    "service",
    "proxy",
];

/// Let AI coding agents take turns on a repository until everything is proved
///
/// Others run agents; peers runs a proof. Two or more command line agents work on a repository in turns,
/// unattended. What counts is measured by peers itself: gates decide, not what an agent says. The loop
/// ends with `complete` only after every gate has passed in a clean checkout. One turn, with the gates
/// after it, is a tick; ticks are numbered over all runs.
///
/// Start with `peers demo` to watch the whole loop without an account or a network, or with `peers init`
/// in a repository of your own.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
#[command(name = "peers", version, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// Work on the repository at DIR, its top directory; stands before the command
    #[arg(short = 'C', long = "target", value_name = "DIR", default_value = ".")]
    target: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Args),
    Deinit(deinit::Args),
    Run(run::Args),
    Tick(tick::Args),
    Stop(stop::Args),
    Status(status::Args),
    Info(info::Args),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Goals(goals::Args),
    Modes(modes::Args),
    Gates(gates::Args),
    Codemap(codemap::Args),
    AgentsDoc(codemap::AgentsArgs),
    Hook(hook::Args),
    Check(check::Args),
    Plan(plan::Args),
    BugHunt(bug_hunt::Args),
    Report(report::Args),
    Replay(replay::Args),
    Watch(watch::Args),
    Prompt(prompt::Args),
    Tmux(tmux::Args),
    Sandbox(sandbox::Args),
    Ack(ack::Args),
    Salvage(salvage::Args),
    Undo(undo::Args),
    Land(land::Args),
    State(state::Args),
    Store(store::Args),
    Schema(schema::Args),
    Demo(demo::Args),
    Relay(relay::Args),
    FakePeer(fake_peer::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Parses the command line, runs the command, says what went wrong.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            let tip = misplaced_target(&error).or_else(|| of_the_controller(&error));
            let tip = tip.or_else(|| misspelt(&error));
            if let Some(tip) = &tip {
                error.remove(ContextKind::SuggestedSubcommand);
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            // Help goes to standard output, errors to standard error; a closed one is not told.
            let _unheard = error.print();
            let code = u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
            if code != exit::OK && asks_for_json() {
                let message = peers_console::error::parsing(&error.to_string());
                Out::failure(&CommandError::new(code, message).hint_opt(tip));
            }
            return ExitCode::from(code);
        }
    };
    let env = Env::current();
    let out = Out::new(&env, Spelling::of_target(&cli.global.target));
    screen::log(&env);
    let cx = Cx { env, target: cli.global.target, project: None, out };
    match cli.command.run(&cx) {
        Ok(code) => code,
        Err(error) => {
            let error = error.spelt(cx.out.spelling());
            if asks_for_json() {
                Out::failure(&error);
            }
            Out::complain(&error.render());
            ExitCode::from(error.exit_code())
        }
    }
}

/// What helps whoever wrote `-C` behind the command.
fn misplaced_target(error: &clap::Error) -> Option<String> {
    let (ErrorKind::UnknownArgument, ContextValue::String(unknown)) =
        (error.kind(), error.get(ContextKind::InvalidArg)?)
    else {
        return None;
    };
    let word = unknown.split('=').next().unwrap_or_default();
    if word != "-C" && word != "--target" {
        return None;
    }
    let args = peers_sys::env::args();
    let named = args.get(1).and_then(|word| word.to_str());
    let command = named.filter(|name| Cli::command().find_subcommand(name).is_some()).unwrap_or("COMMAND");
    Some(format!("'-C DIR' comes before the command: `peers -C DIR {command}`"))
}

/// What helps whoever typed a command of the controller.
fn of_the_controller(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    peers_console::error::of_other(command, "peers-ctl", OF_THE_CONTROLLER)
}

/// The command that was meant. Clap also offers aliases, which no help shows, and nothing for `rn`.
fn misspelt(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let command = Cli::command();
    let args = peers_sys::env::args();
    let mut before = args.iter().take_while(|arg| *arg != word.as_str());
    if before.any(|arg| command.find_subcommand(arg).is_some()) {
        return None;
    }
    let near = closest(word, command.get_subcommands().map(clap::Command::get_name))?;
    Some(format!("a similar subcommand exists: '{near}'"))
}

/// Whether the command line asks for JSON: then a failure is told on standard output too.
fn asks_for_json() -> bool {
    let args = peers_sys::env::args();
    let mut words = args.iter().skip(1).map(|arg| arg.to_string_lossy()).take_while(|word| word != "--");
    // What follows the script of a scripted peer is for others.
    let plays = args.iter().any(|word| word == "fake-peer") && !args.iter().any(|word| word == "--examples");
    let mut before = String::new();
    !plays
        && words.any(|word| {
            let json =
                word == "--json" || word == "--format=json" || (before == "--format" && word == "json");
            before = word.into_owned();
            json
        })
}

impl Command {
    fn run(&self, cx: &Cx) -> Result<ExitCode, CommandError> {
        match self {
            Self::Init(args) => init::run(args, cx),
            Self::Deinit(args) => deinit::run(args, cx),
            Self::Run(args) => run::run(args, cx),
            Self::Tick(args) => tick::run(args, cx),
            Self::Stop(args) => stop::run(args, cx),
            Self::Status(args) => status::run(args, cx),
            Self::Info(args) => info::run(args, cx),
            Self::Doctor(args) => doctor::run(args, cx),
            Self::Verify(args) => verify::run(args, cx),
            Self::Goals(args) => goals::run(args, cx),
            Self::Modes(args) => modes::run(args, cx),
            Self::Gates(args) => gates::run(args, cx),
            Self::Codemap(args) => codemap::run(args, cx),
            Self::AgentsDoc(args) => codemap::agents(args, cx),
            Self::Hook(args) => hook::run(args, cx),
            Self::Check(args) => check::run(args, cx),
            Self::Plan(args) => plan::run(args, cx),
            Self::BugHunt(args) => bug_hunt::run(args, cx),
            Self::Report(args) => report::run(args, cx),
            Self::Replay(args) => replay::run(args, cx),
            Self::Watch(args) => watch::run(args, cx),
            Self::Prompt(args) => prompt::run(args, cx),
            Self::Tmux(args) => tmux::run(args, cx),
            Self::Sandbox(args) => sandbox::run(args, cx),
            Self::Ack(args) => ack::run(args, cx),
            Self::Salvage(args) => salvage::run(args, cx),
            Self::Undo(args) => undo::run(args, cx),
            Self::Land(args) => land::run(args, cx),
            Self::State(args) => state::run(args, cx),
            Self::Store(args) => store::run(args, cx),
            Self::Schema(args) => schema::run(args, cx),
            Self::Demo(args) => demo::run(args, cx),
            Self::Relay(args) => relay::run(args, cx),
            Self::FakePeer(args) => fake_peer::run(args, cx),
            Self::Completions(args) => completions::run(args, cx),
            Self::Man(args) => man::run(args, cx),
        }
    }
}
