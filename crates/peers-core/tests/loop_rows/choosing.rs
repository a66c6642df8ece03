//! Whose turn it is: every small case, against what the rules say one by one.

use peers_core::state::{PeerHealth, PeerState, State};
use peers_core::turns::{self, Choice};
use peers_model::config::Role;
use peers_model::record::{PeerRule, Rules};
use peers_model::{TickNo, Timestamp};

use crate::world::peer;

const NOW: i64 = 1_000_000;
const TICKS: u64 = 20;
const INTERVAL: u32 = 8;

/// A state, since when, the last failed recovery turn, due since the start of the run; able.
type Standing = (PeerState, Option<u64>, Option<u64>, bool, bool);

/// What a peer can be, with whether it can go.
const STANDINGS: [Standing; 9] = [
    (PeerState::Healthy, None, None, false, true),
    (PeerState::Degraded, Some(TICKS - 7), None, false, false),
    (PeerState::Degraded, Some(TICKS - 8), None, false, true),
    (PeerState::Degraded, Some(TICKS - 19), Some(TICKS - 7), false, false),
    (PeerState::Degraded, Some(TICKS - 19), Some(TICKS - 8), false, true),
    (PeerState::Degraded, Some(TICKS), None, true, true),
    (PeerState::Degraded, None, None, true, true),
    (PeerState::Halted, Some(1), None, false, false),
    (PeerState::Unavailable, None, None, false, false),
];

/// Not waiting, done waiting, waiting a short and a long time; with the wait.
const WAITS: [(Option<i64>, Option<i64>); 4] =
    [(None, None), (Some(NOW), None), (Some(NOW + 15), Some(NOW + 15)), (Some(NOW + 60), Some(NOW + 60))];

#[derive(Debug, Clone, Copy)]
struct Peer {
    standing: usize,
    wait: usize,
    spare: bool,
}

impl Peer {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for standing in 0..STANDINGS.len() {
            for wait in 0..WAITS.len() {
                for spare in [false, true] {
                    all.push(Self { standing, wait, spare });
                }
            }
        }
        all
    }

    fn able(self) -> bool {
        STANDINGS[self.standing].4
    }

    fn waits_until(self) -> Option<i64> {
        WAITS[self.wait].1
    }
}

fn state(peers: &[Peer], turn_index: usize) -> State {
    let mut state = State::new();
    state.ticks = TickNo(TICKS);
    state.turn_index = turn_index;
    state.rules = Rules { recovery_interval: INTERVAL, ..Rules::default() };
    for (i, p) in peers.iter().enumerate() {
        let name = peer(&format!("p{i}"));
        let role = if p.spare { Role::Recovery } else { Role::Default };
        state.rules.peers.push(PeerRule { name: name.clone(), tool: String::new(), role });
        let (standing, degraded_at, cooldown, due, _) = STANDINGS[p.standing];
        let health = PeerHealth {
            state: standing,
            degraded_at: degraded_at.map(TickNo),
            recovery_cooldown: cooldown.map(TickNo),
            recovery_due: due,
            not_before: WAITS[p.wait].0.map(Timestamp::from_millis),
            ..PeerHealth::default()
        };
        state.peers.insert(name, health);
    }
    state
}

/// Says what is wrong with a choice. `accept` is the preference, as indices.
fn check(peers: &[Peer], from: usize, choice: &Choice, accept: &dyn Fn(usize) -> bool) -> Result<(), String> {
    let n = peers.len();
    let someone_else_is_able = peers.iter().any(|p| p.able() && !p.spare);
    // Who may be chosen at all: the able, and a spare only while nobody else is able.
    let eligible = |i: usize| peers[i].able() && !(peers[i].spare && someone_else_is_able);
    let ready = |i: usize| eligible(i) && peers[i].waits_until().is_none();
    let any_preferred = (0..n).any(|i| ready(i) && accept(i));
    let wanted = |i: usize| ready(i) && (accept(i) || !any_preferred);
    match choice {
        Choice::Peer(i, name) => {
            if *name != peer(&format!("p{i}")) || !wanted(*i) {
                return Err(format!("{i} may not go"));
            }
            let mut at = from;
            while at != *i {
                if wanted(at) {
                    return Err(format!("{at} comes before {i}"));
                }
                at = (at + 1) % n;
            }
        }
        Choice::Wait(until) => {
            if (0..n).any(ready) {
                return Err("somebody can go now".into());
            }
            let earliest = (0..n).filter(|i| eligible(*i)).filter_map(|i| peers[i].waits_until()).min();
            if earliest != Some(until.as_millis()) {
                return Err(format!("the first may go at {earliest:?}"));
            }
        }
        Choice::Nobody => {
            if (0..n).any(eligible) {
                return Err("somebody is able".into());
            }
        }
    }
    Ok(())
}

fn each(n: usize, mut visit: impl FnMut(&[Peer])) {
    let all = Peer::all();
    let mut picks = vec![0; n];
    loop {
        let peers: Vec<Peer> = picks.iter().map(|i| all[*i]).collect();
        visit(&peers);
        let Some(at) = picks.iter().position(|i| i + 1 < all.len()) else { return };
        picks[at] += 1;
        picks[..at].fill(0);
    }
}

#[test]
fn every_choice_among_two_peers_keeps_the_rules() {
    let mut seen = [0_u32; 3];
    each(2, |peers| {
        for from in 0..2 {
            let choice = turns::choose(&state(peers, from), Timestamp::from_millis(NOW));
            check(peers, from, &choice, &|_| true)
                .unwrap_or_else(|why| panic!("{peers:?} from {from}: {choice:?}: {why}"));
            seen[match choice {
                Choice::Peer(..) => 0,
                Choice::Wait(_) => 1,
                Choice::Nobody => 2,
            }] += 1;
        }
    });
    assert!(seen.iter().all(|n| *n > 100), "all answers were seen: {seen:?}");
}

#[test]
fn every_choice_among_three_peers_keeps_the_rules() {
    each(3, |peers| {
        let from = peers.iter().map(|p| p.standing + p.wait).sum::<usize>() % 3;
        let choice = turns::choose(&state(peers, from), Timestamp::from_millis(NOW));
        check(peers, from, &choice, &|_| true)
            .unwrap_or_else(|why| panic!("{peers:?} from {from}: {choice:?}: {why}"));
    });
}

#[test]
fn every_preference_among_two_peers_is_kept_where_it_can_be() {
    each(2, |peers| {
        for from in 0..2 {
            for liked in 0..4_u32 {
                let accept = |i: usize| liked & (1 << i) != 0;
                let state = state(peers, from);
                let choice = turns::choose_preferring(
                    &state,
                    Timestamp::from_millis(NOW),
                    |_| true,
                    |name| accept(usize::from(name.as_str() == "p1")),
                );
                check(peers, from, &choice, &accept)
                    .unwrap_or_else(|why| panic!("{peers:?} from {from}, liked {liked}: {choice:?}: {why}"));
            }
        }
    });
}

#[test]
fn nobody_is_left_exactly_when_none_is_healthy_and_none_is_due() {
    each(2, |peers| {
        let down = turns::all_down(&state(peers, 0));
        let up = |p: &Peer| STANDINGS[p.standing].0 == PeerState::Healthy || STANDINGS[p.standing].3;
        assert_eq!(down, !peers.iter().any(up), "{peers:?}");
    });
    assert!(!turns::all_down(&State::new()), "a loop without peers is another problem");
}

#[test]
fn a_peer_that_has_never_run_is_healthy() {
    let mut fresh = state(&[Peer { standing: 0, wait: 0, spare: false }; 2], 1);
    fresh.peers.clear();
    assert_eq!(turns::choose(&fresh, Timestamp::from_millis(NOW)), Choice::Peer(1, peer("p1")));
}

#[test]
fn a_turn_index_beyond_the_peers_still_finds_somebody() {
    let fresh = state(&[Peer { standing: 0, wait: 0, spare: false }; 2], 7);
    assert!(matches!(turns::choose(&fresh, Timestamp::from_millis(NOW)), Choice::Peer(1, _)));
}
