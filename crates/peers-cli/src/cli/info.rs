//! `peers info`.

use std::process::ExitCode;

use peers_console::cx::{self, Cx};
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_model::config::{Config, PeerSpec};
use peers_model::goal::Goal;
use peers_model::limits;
use peers_run::boot;
use peers_run::env::Policy;
use peers_run::procs::{self, Outlook};
use peers_store::layout::peers;
use peers_store::{Area, Disk, accept, runs, store};
use peers_sys::env::Env;
use peers_sys::{clock, term};
use peers_view::{Accounting, Confinement, Info, info_json, info_text, keys, set_by_hand};

/// Show what is configured; run nothing
///
/// Checks goals and config as `run` does and prints every setting as it is in effect; `(default)` marks
/// what `.peers/config.yaml` does not set.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What will be known of the use of each peer.
pub(crate) fn accounting(config: &Config) -> Vec<Accounting> {
    let of = |peer: &PeerSpec| {
        let Outlook { tokens, money, vague, missing, remedy, doubts } = procs::outlook(peer, &config.prices);
        Accounting { tokens, money, vague, missing: missing.map(str::to_owned), remedy, doubts }
    };
    config.peers.iter().map(of).collect()
}

/// What `goals.env` and the `env` of gates ask for and gates do not get, one warning each.
pub(crate) fn withheld(config: &Config, goals: &[Goal], env: &Env) -> Vec<String> {
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

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (place, mut disk) = cx.view()?;
    let loaded = boot::load(&mut disk)?;
    let file = disk.read(Area::Peers, peers::CONFIG, limits::CONFIG)?.unwrap_or_default();
    let given = keys(&String::from_utf8_lossy(&file));
    let mut warnings = loaded.warnings();
    warnings.extend(withheld(&loaded.config, &loaded.goals, &cx.env));
    let digest = loaded.changed().is_none().then(|| accept::together(&loaded.digests));
    let state = store::read_state(&mut disk);
    let set = state.map(|state| set_by_hand(&state, clock::now())).unwrap_or_default();
    // One that cannot be read says nothing, and `peers status` says so.
    let newest = runs::newest(&mut disk, None).ok().flatten();
    let info = Info {
        target: &term::inline(&place.work_dir().to_string_lossy()),
        config: &loaded.config,
        given: &given,
        goals: &loaded.goals,
        warnings: &warnings,
        lock: &cx::lock(&place),
        confinement: Confinement::of(newest.as_ref()),
        accounting: &accounting(&loaded.config),
        accept_digest: digest.as_deref(),
        set: &set,
    };
    if args.json {
        cx.out.data(&info_json(&info))?;
    } else {
        cx.out.data(&info_text(&info, cx.out.colour()))?;
    }
    if let Some(changed) = loaded.changed() {
        cx.out.advise(Step::text("note: {}; `peers goals diff` shows it", &[&changed]));
    }
    Ok(ExitCode::SUCCESS)
}
