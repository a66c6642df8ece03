//! The `peers-ctl` command: a thin skin over the libraries.
//!
//! Each subcommand is one file below `cli`; what it does lives in the crates it calls. Nothing here decides
//! anything. Start reading at [`cli`].

mod board;
mod cli;
mod ctl;
mod many;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
