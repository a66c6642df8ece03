//! What an agent and a gate reach from behind the wall that a run would take here, tried by real processes.

use std::time::Duration;

use peers_model::Backend;
use peers_model::request::AskedWall;
use peers_place::Place;
use peers_run::boot::{BootError, Loaded};
use peers_store::layout;
use peers_sys::env::Env;
use peers_sys::spawn::RawExit;
use peers_sys::term;

use crate::doctor::Check;
use crate::sandbox::{Inside, Who};

/// One attempt ends by itself at once.
const LIMIT: Duration = Duration::from_mins(1);

/// An attempt: a script that ends well where it succeeds.
struct Attempt {
    gate: bool,
    what: &'static str,
    script: &'static str,
    /// The tier from which on it must fail.
    held_from: u8,
}

impl Attempt {
    /// Whether it is for the operator to allow it, by `gates.net: host`.
    fn reaches(&self) -> bool {
        ["reach an address", "look a name up"].contains(&self.what)
    }
}

const fn peer(what: &'static str, script: &'static str, held_from: u8) -> Attempt {
    Attempt { gate: false, what, script, held_from }
}

const fn gate(what: &'static str, script: &'static str, held_from: u8) -> Attempt {
    Attempt { gate: true, what, script, held_from }
}

/// How a script ends that failed, and one that lacked its tool: any other end says nothing.
const HELD: i32 = 9;
const LACKS: i32 = 10;

/// None of them leaves anything where it succeeds.
const ATTEMPTS: [Attempt; 10] = [
    peer("read the trusted store", "cat \"$STORE\"", 1),
    peer("write `/usr`", "mkdir /usr/.peers-trial && rmdir /usr/.peers-trial", 1),
    peer("read the environment of peers", "cat \"/proc/$OUTSIDE/environ\"", 1),
    peer("see processes outside", "test -d \"/proc/$OUTSIDE\"", 2),
    peer("write `.git/config`", "test -w .git/config", 2),
    peer("move `.git` away", "mv .git .git-moved && mv .git-moved .git", 2),
    peer("write `.peers/`", "test -w .peers", 2),
    gate("reach an address", "bash -c 'exec 3<>/dev/tcp/1.1.1.1/443'", 2),
    gate("look a name up", "getent hosts example.org", 2),
    gate(
        "have 5000 processes",
        "bash -c 'for i in $(seq 5000); do sleep 20 & done 2>/dev/null; test \"$(jobs -r | wc -l)\" -ge 5000' 2>/dev/null",
        3,
    ),
];

/// Tries each as the first peer, or as a gate, of this place.
///
/// # Errors
/// [`BootError`], also where no wall holds that a run would take.
pub fn examine(place: &Place, env: &Env, loaded: &Loaded) -> Result<Vec<Check>, BootError> {
    let vars = format!(
        "STORE='{}' OUTSIDE={}\n",
        place.store_dir().join(layout::store::PROJECT).display(),
        std::process::id()
    );
    let mut checks = Vec::new();
    for attempt in &ATTEMPTS {
        let who = match loaded.config.peers.first() {
            Some(peer) if !attempt.gate => Who::Peer(peer),
            Some(_) | None => Who::Gate,
        };
        let script = attempt.script;
        let tool = script.split(' ').next().unwrap_or("true");
        let script = format!(
            "{vars}command -v {tool} >/dev/null || exit {LACKS}\nif {script}; then exit 0; else exit {HELD}; fi"
        );
        let inside = Inside::new(place, env, loaded, (who, AskedWall::default()), Some(&script))?;
        let backend = inside.backend();
        if attempt.held_from > 2 && !inside.limits() || attempt.reaches() && inside.gates_reach() {
            continue;
        }
        checks.push(judged(attempt, backend, inside.try_out(LIMIT).map_err(|error| error.to_string())));
    }
    Ok(checks)
}

fn judged(attempt: &Attempt, backend: Backend, tried: Result<Option<RawExit>, String>) -> Check {
    let Attempt { gate, what, held_from, .. } = attempt;
    let who = if *gate { "a gate" } else { "an agent" };
    let shown = format!("{who} behind {backend} cannot {what}");
    match tried {
        Err(why) => Check::error(
            "isolation",
            peers_model::exit::ENVIRONMENT,
            format!("it could not be tried whether {who} can {what}: {}", term::line(&why, 200)),
            "`peers doctor` says which sandbox holds",
        ),
        Ok(Some(RawExit::Code(0))) if backend.tier() < *held_from => Check::warning(
            "isolation",
            format!("{who} behind {backend} can {what}"),
            format!("this needs a sandbox of tier {held_from}"),
        ),
        Ok(Some(RawExit::Code(0))) => Check::error(
            "isolation",
            peers_model::exit::ENVIRONMENT,
            format!("{who} behind {backend} can {what}"),
            "`peers sandbox explain` shows what the sandbox is told",
        ),
        Ok(Some(RawExit::Code(HELD)) | None) => Check::ok("isolation", shown),
        Ok(Some(RawExit::Code(LACKS))) => Check::warning(
            "isolation",
            format!("it could not be tried whether {who} can {what}: a tool is missing"),
            "install bash and getent",
        ),
        Ok(Some(ended)) => Check::error(
            "isolation",
            peers_model::exit::ENVIRONMENT,
            format!("it could not be tried whether {who} can {what}: the shell ended with {ended:?}"),
            "`peers sandbox shell` starts one there",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn what_succeeds_is_an_error_where_the_wall_should_hold_it_and_else_a_warning() {
        let attempt = peer("look", "", 2);
        let level = |backend, tried| judged(&attempt, backend, tried).level;
        let through = || Ok(Some(RawExit::Code(0)));
        assert_eq!(level(Backend::Bwrap, through()), Level::Error);
        assert_eq!(level(Backend::Landlock, through()), Level::Warning);
        assert_eq!(level(Backend::Landlock, Ok(Some(RawExit::Code(HELD)))), Level::Ok);
        assert_eq!(level(Backend::Landlock, Ok(Some(RawExit::Code(LACKS)))), Level::Warning);
        assert_eq!(level(Backend::Landlock, Ok(Some(RawExit::Code(126)))), Level::Error, "no shell ran");
        assert_eq!(level(Backend::Podman, Ok(None)), Level::Ok, "it was ended at its limit");
        assert_eq!(level(Backend::Podman, Err("no".to_owned())), Level::Error);
    }
}
