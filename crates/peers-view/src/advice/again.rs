//! How turns of a peer died, where the same happens again and again.

use peers_model::PeerName;
use peers_sys::term;

use crate::death::Death;
use crate::ticks::TickRow;

/// Terminal cells of an error.
const ERROR: usize = 120;

/// `ben was killed by SIGSEGV twice in a row`: the peers whose newest turns died of the same, as many as are known.
pub(super) fn again(ticks: &[TickRow]) -> Vec<String> {
    let mut told: Vec<&PeerName> = Vec::new();
    let mut found = Vec::new();
    for newest in ticks.iter().rev() {
        let peer = &newest.peer;
        if told.contains(&peer) {
            continue;
        }
        told.push(peer);
        let Some(death) = newest.death.as_ref().filter(|_| newest.failed()) else { continue };
        let same = |tick: &&TickRow| tick.failed() && tick.death.as_ref() == Some(death);
        let n = ticks.iter().rev().filter(|tick| tick.peer == *peer).take_while(same).count();
        let often = match n {
            0 | 1 => continue,
            2 => "twice".to_owned(),
            n => format!("{n} times"),
        };
        found.push(match death {
            Death::Signal(signal) => {
                format!("{peer} was killed by {} {often} in a row", signal_name(*signal))
            }
            Death::Code(code) => format!("{peer} ended with exit code {code} {often} in a row"),
            Death::Error(error) => {
                format!("{peer} failed with the same error {often} in a row: {}", term::line(error, ERROR))
            }
        });
    }
    found
}

/// `SIGSEGV`, for those that kill a process.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
