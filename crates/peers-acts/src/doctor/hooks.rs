//! What runs around turns, and what calls the loop. Nothing is started.

use std::ffi::OsStr;

use peers_model::config::{Config, Driver, Hook};
use peers_place::Place;
use peers_run::env::Host;
use peers_sys::env::Env;
use peers_sys::spawn::{SpawnError, resolve_program};
use peers_sys::term;

use super::check::Check;

/// Cells of a program's name.
const PROGRAM: usize = 80;

/// Programs of hooks that are not there, and a loop that nobody would call.
pub(super) fn look(place: &Place, env: &Env, config: &Config) -> Vec<Check> {
    let host = Host::look(env, place.work_dir());
    let mut found = Vec::new();
    for hook in Hook::ALL {
        for program in config.hooks.of(hook).iter().filter_map(|command| command.cmd.first()) {
            if let Err(error) = resolve_program(OsStr::new(program), Some(host.path()), place.work_dir()) {
                let shown = term::line(program, PROGRAM);
                let why = match error {
                    SpawnError::NotFound { .. } => "which is not found".to_owned(),
                    error => format!("which cannot be: {error}"),
                };
                let what = format!("`{}` starts `{shown}`, {why}", hook.word());
                found.push(Check::warning("hooks", what, "correct `hooks` (`peers goals edit --config`)"));
            }
        }
    }
    if config.driver == Driver::Hooks && !peers_setup::is_hooked(place.work_dir(), env) {
        found.push(Check::warning(
            "driver",
            "`driver: hooks`, but no stop hook is installed",
            "`peers init --upgrade --driver=hooks --install`",
        ));
    }
    found
}
