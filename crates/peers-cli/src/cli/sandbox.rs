//! `peers sandbox`.

use std::process::ExitCode;

use clap::Subcommand;
use peers_acts::sandbox::{Inside, Rules, Who};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::run_args::WallArgs;
use peers_model::{PeerName, exit};
use peers_run::boot;
use peers_sys::error::chain;
use peers_sys::spawn::RawExit;
use peers_sys::term;
use serde_json::json;

/// Show what agents and gates see of this machine, or look around as one of them
///
/// Each turn of a peer and each gate runs behind a wall: bubblewrap, else Landlock, or podman by name. What it lets
/// through is decided by peers and by your sandbox.yaml, never by a file of the repository.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Explain(Explain),
    Shell(Shell),
}

/// Print what the wall is told, word for word
#[derive(Debug, clap::Args)]
struct Explain {
    #[command(flatten)]
    who: WhoArgs,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Start a shell, or run COMMAND, where a peer or a gate would run
#[derive(Debug, clap::Args)]
struct Shell {
    #[command(flatten)]
    who: WhoArgs,
    /// Run this in place of an interactive shell
    #[arg(short = 'c', long = "command", value_name = "COMMAND")]
    command: Option<String>,
}

#[derive(Debug, clap::Args)]
struct WhoArgs {
    /// As this peer; without it as the first one
    #[arg(long, value_name = "NAME", conflicts_with_all = ["gate", "setup"])]
    peer: Option<PeerName>,
    /// As a gate in the work tree
    #[arg(long, conflicts_with = "setup")]
    gate: bool,
    /// As a command of `setup`
    #[arg(long)]
    setup: bool,
    #[command(flatten)]
    wall: WallArgs,
}

/// Who that is, for people, and the place.
fn inside(args: &WhoArgs, command: Option<&str>, cx: &Cx) -> Result<(String, Inside), CommandError> {
    let (place, mut disk) = cx.view()?;
    let loaded = boot::load(&mut disk)?;
    let peers = &loaded.config.peers;
    let (told, who) = match (&args.peer, args.gate, args.setup) {
        (_, true, _) => ("a gate in the work tree".to_owned(), Who::Gate),
        (_, _, true) => ("a command of `setup`".to_owned(), Who::SetUp),
        (name, false, false) => {
            let found = match name {
                Some(name) => peers.iter().find(|peer| peer.name == *name),
                None => peers.first(),
            };
            let Some(peer) = found else {
                let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
                return Err(CommandError::usage(format!("no such peer; there are {}", names.join(", "))));
            };
            (format!("peer `{}`", peer.name), Who::Peer(peer))
        }
    };
    let inside = Inside::new(&place, &cx.env, &loaded, (who, args.wall.asked()), command)?;
    for note in inside.notes() {
        cx.out.talk(&format!("note: {note}"));
    }
    Ok((told, inside))
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Explain(args) => explain(args, cx),
        Command::Shell(args) => shell(args, cx),
    }
}

fn explain(args: &Explain, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (who, inside) = inside(&args.who, None, cx)?;
    let backend = inside.backend();
    let rules = inside.rules();
    if args.json {
        let rules = match &rules {
            Rules::None => json!(null),
            Rules::Arguments(args) => json!({"args": args}),
            Rules::Landlock { read, write } => json!({"read": read, "write": write}),
        };
        let body = json!({"schema": "peers.sandbox/1", "backend": backend.name(), "tier": backend.tier(),
            "who": who, "rules": rules});
        cx.out.data(&format!("{body:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{}, for {who}:\n", peers_view::wall_words(backend.name()));
    match &rules {
        Rules::None => {}
        Rules::Arguments(args) => {
            for arg in args {
                let line_begins = arg.starts_with("--");
                text.push_str(if line_begins { "\n  " } else { " " });
                text.push_str(&term::inline(arg));
            }
            text.push('\n');
        }
        Rules::Landlock { read, write } => {
            for (word, places) in [("read", read), ("write", write)] {
                text.extend(places.iter().map(|place| format!("  {word:<5}  {}\n", term::inline(place))));
            }
        }
    }
    cx.out.data(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn shell(args: &Shell, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (who, inside) = inside(&args.who, args.command.as_deref(), cx)?;
    cx.out.talk(&format!("{}, for {who}", peers_view::wall_words(inside.backend().name())));
    let code = match inside.run() {
        Ok(RawExit::Code(code)) => code,
        Ok(RawExit::Signal(signal)) => 128 + signal,
        Err(error) => return Err(CommandError::new(exit::ENVIRONMENT, chain(&error))),
    };
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(exit::NEGATIVE)))
}
