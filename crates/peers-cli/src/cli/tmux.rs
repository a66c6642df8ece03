//! `peers tmux`.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::Subcommand;
use peers_console::cx::Cx;
use peers_console::error::{self, CommandError};
use peers_model::config::PeerSpec;
use peers_model::exit;
use peers_place::Place;
use peers_run::boot;
use peers_run::tmux;
use peers_sys::spawn::resolve_program;
use peers_sys::{env, term};

/// Open a tmux session with a terminal for each agent and a view of the loop
///
/// One window for each peer, in which its tool continues its last session (`claude --continue`, `codex
/// resume --last`, `opencode --continue`; another tool: a shell), and a window with `peers watch` and the
/// messages to each peer. These are your own sessions: nothing that is said there is a turn of a loop.
///
/// `up` starts nothing and exits 5 if `config.yaml` is not what was accepted, and 6 if tmux or the program of
/// a peer is missing.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The socket of another tmux server
    #[arg(long, value_name = "NAME", global = true, hide = true)]
    socket: Option<String>,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Start the session `peers-<directory>`; exit 4 if it exists
    Up,
    /// End the session and everything that runs in it; exit 1 if there is none
    Down,
    /// Attach to the session; exit 1 if there is none
    Attach,
}

/// The tmux of this machine.
struct Tmux<'a> {
    program: PathBuf,
    socket: Option<&'a str>,
    session: String,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    cx.operators_alone(&place, "tmux")?;
    let tmux = Tmux::locate(args.socket.as_deref(), &place, cx)?;
    match args.what {
        What::Up => {
            let loaded = boot::load(&mut disk)?;
            if let Some(refused) = loaded.refused_start() {
                return Err(boot::BootError::from(refused).into());
            }
            programs(&loaded.config.peers, &place, cx)?;
            tmux.up(&place, &loaded.config.peers, cx)
        }
        What::Down => tmux.down(cx),
        What::Attach => tmux.attach(cx),
    }
}

/// That each window has something to run: a session with a dead window is none.
fn programs(peers: &[PeerSpec], place: &Place, cx: &Cx) -> Result<(), CommandError> {
    let path = cx.env.var("PATH").unwrap_or_default();
    let missing = peers.iter().filter_map(|peer| {
        let program = tmux::program(peer)?;
        let error = resolve_program(OsStr::new(&program), Some(path), place.work_dir()).err()?;
        Some(format!("peer `{}`: {}", peer.name, error::chain(&error)))
    });
    let missing: Vec<String> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(CommandError::new(exit::ENVIRONMENT, missing.join("; "))
        .hint("install it, or correct `argv` (`peers goals edit --config`); nothing was started"))
}

impl<'a> Tmux<'a> {
    fn locate(socket: Option<&'a str>, place: &Place, cx: &Cx) -> Result<Self, CommandError> {
        let path = cx.env.var("PATH").unwrap_or_default();
        let program = resolve_program(OsStr::new("tmux"), Some(path), place.work_dir())
            .map_err(|error| CommandError::of(exit::ENVIRONMENT, &error).hint("install tmux"))?;
        Ok(Self { program, socket, session: tmux::session_name(place.work_dir()) })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(socket) = self.socket {
            command.args(["-L", socket]);
        }
        command
    }

    /// Calls it. Whether it succeeded, and what it said.
    fn call(&self, args: &[String]) -> Result<(bool, String), CommandError> {
        let done = self.command().args(args).stdin(Stdio::null()).output();
        let done = done
            .map_err(|error| CommandError::new(exit::ENVIRONMENT, format!("tmux does not start: {error}")))?;
        Ok((done.status.success(), term::line(&String::from_utf8_lossy(&done.stderr), 300)))
    }

    fn is_up(&self) -> Result<bool, CommandError> {
        let args = ["has-session", "-t", &format!("={}", self.session)].map(str::to_owned);
        Ok(self.call(&args)?.0)
    }

    fn none(&self) -> CommandError {
        CommandError::new(exit::NEGATIVE, format!("there is no session `{}`", self.session))
            .hint("`peers tmux up` starts it")
    }

    fn up(&self, place: &Place, peers: &[PeerSpec], cx: &Cx) -> Result<ExitCode, CommandError> {
        if self.is_up()? {
            return Err(CommandError::new(
                exit::CONFLICT,
                format!("the session `{}` exists already", self.session),
            )
            .hint("`peers tmux attach` shows it, `peers tmux down` ends it"));
        }
        let program = env::current_exe().map_err(|error| {
            CommandError::new(exit::BUG, format!("the path of this program is unknown: {error}"))
        })?;
        let (dir, program) = (place.work_dir().to_string_lossy(), program.to_string_lossy());
        for args in tmux::up(&self.session, &dir, &program, peers) {
            let (done, said) = self.call(&args)?;
            if !done {
                // Half a session is none; if it was never made there is nothing to end.
                let _ended = self.end()?;
                let what = args.first().map(String::as_str).unwrap_or_default();
                return Err(CommandError::new(exit::NEGATIVE, format!("tmux {what}: {said}")));
            }
        }
        cx.out.line(&self.session)?;
        cx.out.advise("`peers tmux attach` shows it, `peers tmux down` ends it");
        Ok(ExitCode::SUCCESS)
    }

    fn end(&self) -> Result<bool, CommandError> {
        let args = ["kill-session", "-t", &format!("={}", self.session)].map(str::to_owned);
        Ok(self.call(&args)?.0)
    }

    fn down(&self, cx: &Cx) -> Result<ExitCode, CommandError> {
        if !self.is_up()? || !self.end()? {
            return Err(self.none());
        }
        cx.out.talk(&format!("the session `{}` is over", self.session));
        Ok(ExitCode::SUCCESS)
    }

    /// Hands the terminal over. Within tmux the client changes to the session, since they do not nest.
    fn attach(&self, cx: &Cx) -> Result<ExitCode, CommandError> {
        if !self.is_up()? {
            return Err(self.none());
        }
        let inside = self.socket.is_none() && cx.env.text("TMUX").is_some_and(|at| !at.is_empty());
        let word = if inside { "switch-client" } else { "attach-session" };
        let done = self.command().args([word, "-t", &format!("={}", self.session)]).status();
        let done = done
            .map_err(|error| CommandError::new(exit::ENVIRONMENT, format!("tmux does not start: {error}")))?;
        Ok(ExitCode::from(if done.success() { exit::OK } else { exit::NEGATIVE }))
    }
}
