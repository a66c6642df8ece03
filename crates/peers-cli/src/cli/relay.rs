//! `peers relay`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::exit;
use peers_proxy::relay::{self, RelayError};
use peers_sys::env;
use peers_sys::spawn::{RawExit, Spawn, StubProgram};

/// Run a command in a sandbox whose ports lead to sockets outside
///
/// For a sandbox that has no network but its own loopback. Each `--map` opens a port of 127.0.0.1 there and carries
/// what comes to a unix socket, such as one of `peers-ctl proxy`. Ports are open before CMD starts. The loopback
/// interface is brought up if it is down.
///
/// CMD has the streams and the environment of this command, and dies with it. SIGHUP, SIGINT, SIGQUIT, SIGUSR1 and
/// SIGTERM go to CMD and its process group.
///
///     peers relay --map 3128=/run/peers/egress.sock --map 8080=/run/peers/auth.sock -- CMD
///
/// Exit codes: that of CMD, 128 and the number of the signal that killed it, 126 when it cannot be executed, 127 when
/// it is not there, 2 wrong use, 4 when a port is taken, 6 when the loopback interface is down and cannot be brought up.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A port of 127.0.0.1, and the socket to which it leads, an absolute path
    #[arg(long = "map", value_name = "PORT=SOCKET", required = true, value_parser = map)]
    maps: Vec<(u16, PathBuf)>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// `3128=/run/peers/egress.sock`: for the parser.
fn map(text: &str) -> Result<(u16, PathBuf), String> {
    let map = text.split_once('=').and_then(|(port, socket)| {
        let port = port.parse().ok().filter(|port| *port > 0)?;
        Path::new(socket).is_absolute().then(|| (port, PathBuf::from(socket)))
    });
    map.ok_or_else(|| "must be a port and an absolute path, as 3128=/run/peers/egress.sock".to_owned())
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let [program, rest @ ..] = args.command.as_slice() else {
        return Err(CommandError::usage("no command is given"));
    };
    let mut command = Spawn::new(StubProgram::this_program()?, program, env::current_dir()?);
    command.args = rest.to_vec();
    command.env = cx.env.vars().to_vec();
    let exit = relay::run(&args.maps, &command).map_err(|error| {
        let code = match &error {
            RelayError::Start(start) => start.exit_code(),
            RelayError::Ports(_) => exit::CONFLICT,
            RelayError::Loopback(_) => exit::ENVIRONMENT,
            RelayError::Setup(_) | RelayError::Wait(_) => exit::BUG,
        };
        CommandError::of(code, &error)
    })?;
    Ok(ExitCode::from(match exit {
        RawExit::Code(code) => u8::try_from(code).unwrap_or(exit::BUG),
        RawExit::Signal(signal) => exit::signalled(signal),
    }))
}
