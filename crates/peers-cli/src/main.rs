//! The `peers` command: a thin skin over the libraries.
//!
//! Each subcommand is one file below `cli`; what it does lives in the crates it calls. Nothing here
//! decides anything. Start reading at [`cli`].

mod cli;
mod cockpit;
mod live;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // The start of every child passes through here: nothing may come before it.
    let first = args.nth(1);
    if first.as_ref().is_some_and(|first| first == peers_sys::stub::ENTRY) {
        return peers_sys::stub::main(args);
    }
    if first.as_ref().is_some_and(|first| first == peers_sys::stub::ENTER) {
        return peers_sys::stub::enter(args);
    }
    #[cfg(target_os = "linux")]
    if first.as_ref().is_some_and(|first| first == peers_sys::contain::ENTRY) {
        return peers_sys::contain::main(args);
    }
    if first.as_ref().is_some_and(|first| first == peers_run::measure::ENTRY) {
        return peers_run::measure::main(std::io::stdin().lock(), std::io::stdout().lock());
    }
    if first.as_ref().is_some_and(|first| first == peers_run::primer::ENTRY) {
        return peers_run::primer::main(args);
    }
    if first.is_some_and(|first| first == peers_acp::ENTRY) {
        return peers_acp::main(args);
    }
    // Whoever started this may listen for signals in a way that its children inherit: that is no reason to be deaf.
    let _as_it_is = peers_sys::signal::unblock_all();
    cli::main()
}
