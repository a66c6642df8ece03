//! What is configured, as `peers info` and the cockpit show it.

use std::collections::BTreeSet;

use peers_model::config::{Config, PeerSpec};
use peers_model::goal::Goal;
use peers_model::limits;
use peers_place::Place;
use peers_run::boot::{self, Loaded};
use peers_run::env::Policy;
use peers_run::procs::{self, Outlook};
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, FsDisk, accept, runs, store};
use peers_sys::env::Env;
use peers_sys::{clock, term};
use peers_view::{Accounting, CapSetByHand, Confinement, Info, Lock, keys, set_by_hand};

use crate::cx::{self, Cx};
use crate::error::CommandError;

/// What will be known of the use of each peer.
#[must_use]
pub fn accounting(config: &Config) -> Vec<Accounting> {
    let of = |peer: &PeerSpec| {
        let Outlook { tokens, money, vague, missing, remedy, doubts } = procs::outlook(peer, &config.prices);
        Accounting { tokens, money, vague, missing: missing.map(str::to_owned), remedy, doubts }
    };
    config.peers.iter().map(of).collect()
}

/// What `goals.env` and the `env` of gates ask for and gates do not get, one warning each.
#[must_use]
pub fn withheld(config: &Config, goals: &[Goal], env: &Env) -> Vec<String> {
    // A policy that cannot be read stops the start, with its reason.
    let Ok(chosen) = Policy::load(env) else { return Vec::new() };
    let file = env.config_home().map(|dir| dir.join("peers/sandbox.yaml"));
    let file = file.map_or_else(|| "peers/sandbox.yaml".to_owned(), |file| file.display().to_string());
    let file = term::inline(&file);
    let why = |name: &String| chosen.withheld_from_gates(name);
    let of_all = config.goals.env.iter().filter_map(|name| {
        let why = why(name)?;
        Some(format!("gates do not get `{name}` of `goals.env`, {why} ({file})"))
    });
    let own = goals.iter().filter_map(|goal| Some((&goal.id, goal.gate()?))).flat_map(|(id, gate)| {
        gate.env.iter().filter(|name| !config.goals.env.contains(name)).map(move |name| (id, name))
    });
    let own = own.filter_map(|(id, name)| {
        let why = why(name)?;
        Some(format!("gate `{id}` does not get `{name}` of its `env`, {why} ({file})"))
    });
    of_all.chain(own).collect()
}

/// All that is shown of a configuration.
#[derive(Debug)]
pub struct About {
    target: String,
    loaded: Loaded,
    given: BTreeSet<String>,
    warnings: Vec<String>,
    digest: Option<String>,
    set: Vec<CapSetByHand>,
    lock: Lock,
    confinement: Confinement,
    accounting: Vec<Accounting>,
}

/// Reads it; also what changed since it was accepted, if something did.
///
/// # Errors
/// The operator's files cannot be read.
pub fn of(cx: &Cx, place: &Place, disk: &mut FsDisk) -> Result<(About, Option<String>), CommandError> {
    let loaded = boot::load(disk)?;
    let file = disk.read(Area::Peers, peers::CONFIG, limits::CONFIG)?.unwrap_or_default();
    let mut warnings = loaded.warnings();
    warnings.extend(withheld(&loaded.config, &loaded.goals, &cx.env));
    let state = store::read_state(disk);
    // One that cannot be read says nothing, and `peers status` says so.
    let newest = runs::newest(disk, None).ok().flatten();
    let changed = loaded.changed();
    let about = About {
        target: term::inline(&place.work_dir().to_string_lossy()),
        given: keys(&String::from_utf8_lossy(&file)),
        warnings,
        digest: changed.is_none().then(|| accept::together(&loaded.digests)),
        set: state.map(|state| set_by_hand(&state, clock::now())).unwrap_or_default(),
        lock: cx::lock(place),
        confinement: Confinement::of(newest.as_ref()),
        accounting: accounting(&loaded.config),
        loaded,
    };
    Ok((about, changed))
}

impl About {
    /// Gives it to who shows it.
    pub fn shown<T>(&self, show: impl FnOnce(&Info<'_>) -> T) -> T {
        let Self { target, loaded, given, warnings, digest, set, lock, confinement, accounting } = self;
        show(&Info {
            target,
            config: &loaded.config,
            given,
            goals: &loaded.goals,
            warnings,
            lock,
            confinement: confinement.clone(),
            accounting,
            accept_digest: digest.as_deref(),
            set,
        })
    }
}
