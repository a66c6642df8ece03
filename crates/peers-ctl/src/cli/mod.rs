//! The command line: one file for each subcommand, with its `Args` and its `run`.

/// The help of an option that takes a time.
macro_rules! lasting {
    ($about:literal) => {
        concat!($about, " (90s, 10m, 2h; a bare number is seconds)")
    };
}

mod add;
mod amend;
mod budget;
mod compare;
pub(crate) mod completions;
mod dashboard;
mod doctor;
mod events;
mod list;
mod logs;
mod man;
mod modes;
mod new;
mod peek;
mod proxy;
mod prune;
mod reconcile;
mod registry;
mod remove;
mod replay;
mod report;
mod restart;
mod resume;
mod review;
mod service;
mod start;
mod status;
mod stop;
mod tail;
mod tui;
mod wait;
mod watch;

pub(crate) use compare::measured;
pub(crate) use doctor::page as doctor_page;

#[cfg(test)]
mod reference;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand, ValueEnum};
use peers_console::error::CommandError;
use peers_console::output::Out;
use peers_model::exit;
use peers_sys::env::Env;
use peers_view::Spelling;
use serde_json::json;

use crate::ctl::Ctl;

const EXIT_CODES: &str = "\
Exit codes: 0 done as asked, 1 negative answer, 2 usage, 3 invalid or unknown, 4 conflict,
5 refused, 6 environment, 7 some of several, 10 budget, 11 stuck, 13 peer unavailable,
70 failure, 124 time limit, 128+N signal.";

/// The commands that `peers` alone has.
const OF_ONE_LOOP: &[&str] = &[
    "init",
    "deinit",
    "run",
    "tick",
    "info",
    "verify",
    "goals",
    "gates",
    "codemap",
    "agents-doc",
    "hook",
    "check",
    "plan",
    "bug-hunt",
    "prompt",
    "tmux",
    "sandbox",
    "ack",
    "salvage",
    "undo",
    "land",
    "state",
    "store",
    "schema",
    "demo",
    "relay",
    "fake-peer",
];

/// Run many loops of `peers` on many repositories
///
/// There is no daemon. Each loop runs in the background as its own process and writes what it does into the
/// trusted store of its repository. This command reads these stores and keeps a registry of projects. Whatever
/// it prints, it checked just now.
///
/// Start with `peers-ctl new PATH` in one of your repositories, then `peers-ctl start`, then `peers-ctl status`.
/// Without a command, on a terminal, it opens the cockpit: `peers-ctl tui`.
/// The name of the project in the current directory can be left out; outside of any repository, that of the only
/// project too.
#[derive(Debug, Parser)]
#[command(verbatim_doc_comment)]
#[command(name = "peers-ctl", version, disable_help_subcommand = true)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct Global {
    /// Keep the registry in DIR [default: `$PEERS_CTL_CONFIG_DIR`, else peers-ctl in the directory for configuration]
    #[arg(long, global = true, value_name = "DIR", verbatim_doc_comment)]
    config_dir: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Print only results and errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Log each step to standard error
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// Colour the output
    #[arg(long, global = true, value_enum, default_value_t = When::Auto, value_name = "WHEN")]
    color: When,
    /// Trust the registry; do not look at the projects
    #[arg(long, global = true)]
    no_reconcile: bool,
    #[arg(help = lasting!("Wait up to DURATION while another `peers-ctl` works on the same project"))]
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    wait_lock: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal that supports it
    Auto,
    /// Always, also into a pipe
    Always,
    /// Never
    Never,
}

/// `90`, `90s`, `1h30m`: for the parser.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0s" || text == "0" {
        return Ok(Duration::ZERO);
    }
    peers_model::time::parse_duration(text)
        .map_err(|_| "must be a time such as 90s, 10m, 2h or 1h30m".to_owned())
}

#[derive(Debug, Subcommand)]
enum Command {
    New(new::Args),
    Add(add::Args),
    Remove(remove::Args),
    Start(start::Args),
    Stop(stop::Args),
    Restart(restart::Args),
    Resume(resume::Args),
    Status(status::Args),
    List(list::Args),
    Reconcile(reconcile::Args),
    Tail(tail::Args),
    Logs(logs::Args),
    Events(events::Args),
    Wait(wait::Args),
    Watch(watch::Args),
    Prune(prune::Args),
    Registry(registry::Args),
    Budget(budget::Args),
    Amend(amend::Amend),
    AckBlock(amend::AckBlock),
    Dashboard(dashboard::Args),
    Tui(tui::Args),
    Peek(peek::Args),
    Report(report::Args),
    Review(review::Args),
    Compare(compare::Args),
    Replay(replay::Args),
    Doctor(doctor::Args),
    Service(service::Args),
    Proxy(proxy::Args),
    Modes(modes::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Parses the command line, runs the command, says what went wrong.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            let tip = of_one_loop(&error);
            if let Some(tip) = &tip {
                error.remove(ContextKind::SuggestedSubcommand);
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            // Help goes to standard output, errors to standard error; a closed one is not told.
            let _unheard = error.print();
            let code = u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
            if code != exit::OK && peers_sys::env::args().iter().any(|word| word == "--json") {
                let message = peers_console::error::parsing(&error.to_string());
                tell_failure(&CommandError::new(code, message).hint_opt(tip));
            }
            return ExitCode::from(code);
        }
    };
    let env = Env::current();
    let Global { config_dir, json, quiet, verbose, color, no_reconcile, wait_lock } = cli.global;
    peers_console::screen::log_at(&env, if verbose { "debug" } else { "warn" });
    let spelling = Spelling::Fleet { config_dir: crate::board::named(config_dir.as_deref()) };
    let out = Out::new(&env, spelling).with_colour(match color {
        When::Auto => None,
        When::Always => Some(true),
        When::Never => Some(false),
    });
    let ctl = Ctl { env, out, config_dir, json, quiet, as_it_is: no_reconcile, wait: wait_lock };
    let Some(command) = cli.command.or_else(|| tui::Args::if_possible(&ctl).map(Command::Tui)) else {
        // As clap has it where a command is missing.
        let mut all = <Cli as clap::CommandFactory>::command();
        let _unheard =
            std::io::Write::write_all(&mut std::io::stderr(), all.render_help().to_string().as_bytes());
        return ExitCode::from(exit::USAGE);
    };
    match command.run(&ctl) {
        Ok(code) => code,
        Err(error) => {
            let error = error.spelt(ctl.out.spelling());
            if ctl.json {
                tell_failure(&error);
            }
            Out::complain(&error.render());
            ExitCode::from(error.exit_code())
        }
    }
}

/// What helps whoever typed a command of `peers`.
fn of_one_loop(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    peers_console::error::of_other(command, "peers", OF_ONE_LOOP)
}

/// Writes the one object that stands for a failed command.
fn tell_failure(error: &CommandError) {
    let body = json!({"schema": "peers-ctl.error/1", "error": {
        "code": error.exit_code(),
        "message": error.message(),
        "hint": error.first_hint(),
        "details": error.problems_json(),
    }});
    Out::failed(error, &format!("{body:#}\n"));
}

impl Command {
    /// Its name, where it changes something: what loops do, may do, or which there are. No agent may have that done.
    fn changes(&self) -> Option<&'static str> {
        match self {
            Self::New(_) => Some("new"),
            Self::Add(_) => Some("add"),
            Self::Remove(_) => Some("remove"),
            Self::Start(args) => args.changes(),
            Self::Stop(_) => Some("stop"),
            Self::Restart(_) => Some("restart"),
            Self::Resume(_) => Some("resume"),
            Self::Watch(_) => Some("watch"),
            Self::Prune(_) => Some("prune"),
            Self::Budget(_) => Some("budget"),
            Self::Amend(_) => Some("amend"),
            Self::AckBlock(_) => Some("ack-block"),
            Self::Service(_) => Some("service"),
            Self::Registry(args) => args.changes(),
            Self::Status(_)
            | Self::List(_)
            | Self::Reconcile(_)
            | Self::Tail(_)
            | Self::Logs(_)
            | Self::Events(_)
            | Self::Wait(_)
            | Self::Dashboard(_)
            // What it changes it changes by commands that are asked the same.
            | Self::Tui(_)
            | Self::Peek(_)
            | Self::Report(_)
            | Self::Review(_)
            | Self::Compare(_)
            | Self::Replay(_)
            | Self::Doctor(_)
            // A loop starts it.
            | Self::Proxy(_)
            | Self::Modes(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }

    fn run(&self, ctl: &Ctl) -> Result<ExitCode, CommandError> {
        if let Some(command) = self.changes() {
            peers_console::origin::no_run(&ctl.env, command)?;
        }
        match self {
            Self::New(args) => new::run(args, ctl),
            Self::Add(args) => add::run(args, ctl),
            Self::Remove(args) => remove::run(args, ctl),
            Self::Start(args) => start::run(args, ctl),
            Self::Stop(args) => stop::run(args, ctl),
            Self::Restart(args) => restart::run(args, ctl),
            Self::Resume(args) => resume::run(args, ctl),
            Self::Status(args) => status::run(args, ctl),
            Self::List(args) => list::run(args, ctl),
            Self::Reconcile(args) => reconcile::run(args, ctl),
            Self::Tail(args) => tail::run(args, ctl),
            Self::Logs(args) => logs::run(args, ctl),
            Self::Events(args) => events::run(args, ctl),
            Self::Wait(args) => wait::run(args, ctl),
            Self::Watch(args) => watch::run(args, ctl),
            Self::Prune(args) => prune::run(args, ctl),
            Self::Registry(args) => registry::run(args, ctl),
            Self::Budget(args) => budget::run(args, ctl),
            Self::Amend(args) => amend::amend(args, ctl),
            Self::AckBlock(args) => amend::ack_block(args, ctl),
            Self::Dashboard(args) => dashboard::run(args, ctl),
            Self::Tui(args) => tui::run(args, ctl),
            Self::Peek(args) => peek::run(args, ctl),
            Self::Report(args) => report::run(args, ctl),
            Self::Review(args) => review::run(args, ctl),
            Self::Compare(args) => compare::run(args, ctl),
            Self::Replay(args) => replay::run(args, ctl),
            Self::Doctor(args) => doctor::run(args, ctl),
            Self::Service(args) => service::run(args, ctl),
            Self::Proxy(args) => proxy::run(args, ctl),
            Self::Modes(args) => modes::run(args, ctl),
            Self::Completions(args) => completions::run(args, ctl),
            Self::Man(args) => man::run(args, ctl),
        }
    }
}
