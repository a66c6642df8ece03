//! The `peers-ctl` command: a thin skin over the libraries.
//!
//! Each subcommand is one file below `cli`; what it does lives in the crates it calls. Nothing here decides
//! anything. Start reading at [`cli`].

mod absent;
mod adrift;
mod board;
mod cli;
mod cockpit;
mod ctl;
mod journals;
mod many;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // The start of every child passes through here: nothing may come before it.
    let first = args.nth(1);
    if first.as_ref().is_some_and(|first| first == peers_sys::stub::ENTRY) {
        return peers_sys::stub::main(args);
    }
    if first.is_some_and(|first| first == peers_sys::stub::ENTER) {
        return peers_sys::stub::enter(args);
    }
    // Whoever started this may listen for signals in a way that its children inherit: that is no reason to be deaf.
    let _as_it_is = peers_sys::signal::unblock_all();
    cli::completions::answer();
    cli::main()
}
