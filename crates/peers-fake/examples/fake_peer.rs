//! The fake peer as a program of its own, for tests that need a process:
//! `fake_peer SCRIPT [PEER] [TURN]`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use peers_fake::{Io, Options, Prompt, run};
use peers_sys::env::{Env, args, current_dir};

fn main() -> io::Result<ExitCode> {
    let mut args = args().into_iter().skip(1);
    let script = args.next().map(PathBuf::from).unwrap_or_default();
    let peer = args.next().and_then(|peer| peer.into_string().ok());
    let turn = args.next().and_then(|turn| turn.to_str()?.parse().ok());
    let cwd = current_dir()?;
    let options = Options {
        script,
        peer,
        turn,
        state: None,
        switches: Vec::new(),
        prompt: Prompt::Stdin,
        cwd,
        env: Env::current(),
    };
    let io = Io { stdin: &mut io::stdin(), stdout: &mut io::stdout(), stderr: &mut io::stderr() };
    Ok(ExitCode::from(run(&options, io)))
}
