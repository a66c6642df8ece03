//! Both stubs as a program of its own, for the integration tests.

use std::process::ExitCode;

use peers_sys::stub;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == stub::ENTRY => stub::main(args),
        Some(first) if first == stub::ENTER => stub::enter(args),
        _ => ExitCode::from(2),
    }
}
