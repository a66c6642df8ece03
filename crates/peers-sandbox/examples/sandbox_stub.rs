//! The spawn stub as a program of its own, for the integration tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == peers_sys::stub::ENTRY) {
        peers_sys::stub::main(args)
    } else {
        ExitCode::from(2)
    }
}
