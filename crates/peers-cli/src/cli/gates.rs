//! `peers gates`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use peers_acts::mutants::{self, Fate, Mutant, MutantOptions, Tested};
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output;
use peers_console::screen;
use peers_model::command::Step;
use peers_model::{exit, time};
use peers_place::Place;
use peers_run::boot::{self, Loaded};
use peers_store::accept;
use peers_store::planted::{self, Planted};
use peers_sys::error::chain;
use peers_sys::term;
use serde_json::{Value, json};

use crate::live::{self, Live};

/// Test the gates themselves
///
/// A gate that is green says something only if it would be red were the code wrong.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Test(Test),
}

/// Plant small faults into the lines that changed, and see which of them the gates notice
///
/// Makes one clean checkout of HEAD, prepared by `setup` of config.yaml, and changes one place at a time: a
/// comparison, a condition, a number, a returned value. Hard gates that run a command are asked about each
/// fault, which is taken out again before the next. A fault that no gate notices survived: what that line
/// does is checked by nothing.
///
/// Looked at are the sources of Python, JavaScript, TypeScript, Rust and Go, in the lines that changed since
/// the last run began (`--base` for another commit), or all lines where there was no run. Each fault costs
/// about as much time as the gates; Ctrl-C ends it and prints what is known by then. Starts no peer, needs no
/// lock, and leaves nothing behind.
///
/// Exit codes: 0 at least one fault was noticed, 1 none was, or fewer than `--min` percent, 3 nothing could
/// be tested: no gate, no place for a fault, or a gate that is not green without any.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct Test {
    /// Plant at most so many faults
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    count: u16,
    /// Begin no new one after this time
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time::parse_duration)]
    budget: Duration,
    /// Choose the same faults as the run that printed this number
    #[arg(long, value_name = "N")]
    seed: Option<u32>,
    /// Look at the lines that changed since COMMIT: a full id, a branch or a tag
    #[arg(long, value_name = "COMMIT")]
    base: Option<String>,
    /// Exit 1 if fewer than so many percent are noticed
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    min: Option<u8>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let What::Test(args) = &args.what;
    let place = cx.place()?;
    let mut disk = place.open_view_disk()?;
    let loaded = boot::load(&mut disk)?;
    drop(disk);
    let seed = match args.seed {
        Some(seed) => seed,
        None => peers_sys::rand::bytes()
            .map(u32::from_le_bytes)
            .map_err(|error| CommandError::new(exit::BUG, format!("random bytes: {error}")))?,
    };
    let options =
        MutantOptions { count: usize::from(args.count), budget: args.budget, seed, base: args.base.clone() };
    let view = Live::new(&cx.out, false);
    let mut told = |mutant: &Mutant, (n, of): (usize, usize)| {
        screen::screen().line(&format!("{n}/{of} {}: {}", word(&mutant.fate), place_of(mutant)));
    };
    let show = Box::new(|progress: &_| live::show_gates(progress, "gates test"));
    let tested = mutants::test(&place, &cx.env, &loaded, &options, show, &mut told);
    view.close();
    let tested = tested?;
    if let Some(red) = tested.red.first() {
        return Err(CommandError::new(
            exit::INVALID,
            format!("the gate {} is not green in a clean checkout of HEAD without any fault", red.goal),
        )
        .hint(Step::text("`peers verify --pristine` says why", &[])));
    }
    let (noticed, judged) = (tested.noticed(), tested.judged());
    if judged > 0 && tested.signal.is_none() {
        // While a loop runs it may be a peer that calls this, as often as it takes.
        if let Err(why) = keep(&place, &loaded, &tested) {
            cx.out.talk(&format!("note: the figure is not kept: {}", term::line(&why, 200)));
        }
    }
    if args.json {
        cx.out.json("peers.gates-test/1", &body(&tested))?;
    } else {
        cx.out.data(&text(&tested))?;
    }
    if let Some(signal) = tested.signal {
        return Ok(ExitCode::from(exit::signalled(signal)));
    }
    let enough = |least: u8| noticed * 100 >= judged * usize::from(least);
    Ok(ExitCode::from(match (judged, noticed) {
        (0, _) => exit::INVALID,
        (_, 0) => exit::NEGATIVE,
        _ if args.min.is_some_and(|least| !enough(least)) => exit::NEGATIVE,
        _ => exit::OK,
    }))
}

/// For `complete`, views and `check: mutation-sample`.
fn keep(place: &Place, loaded: &Loaded, tested: &Tested) -> Result<(), String> {
    let _lock = place.lock_own("gates test").map_err(|error| chain(&error))?;
    let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let counts = (number(tested.judged()), number(tested.noticed()));
    let about = (tested.head.clone(), tested.tree.clone(), accept::together(&loaded.digests));
    let planted = Planted::new(about, tested.at, tested.seed, counts);
    let mut disk = place.open_store_disk().map_err(|error| chain(&error))?;
    planted::write(&mut disk, &planted).map_err(|error| chain(&error))
}

fn counted(n: usize, what: &str) -> String {
    output::counted(u64::try_from(n).unwrap_or(u64::MAX), what)
}

fn word(fate: &Fate) -> &'static str {
    match fate {
        Fate::Noticed(_) => "noticed",
        Fate::Survived => "SURVIVED",
        Fate::Unknown(_) => "not judged",
    }
}

fn place_of(mutant: &Mutant) -> String {
    format!("{}:{} {}", term::line(&mutant.path, 200), mutant.line, term::line(&mutant.shown, 160))
}

/// The first line says what matters; then what each gate noticed, and what nobody did.
fn text(tested: &Tested) -> String {
    let (noticed, judged) = (tested.noticed(), tested.judged());
    let seed = tested.seed;
    let what = if tested.base.is_some() { "what changed" } else { "the sources" };
    let mut lines = vec![match (judged, noticed) {
        _ if tested.signal.is_some() => format!(
            "gates test: interrupted: {noticed} of {} noticed until then, and the figure is not kept (seed {seed})",
            counted(judged, "fault")
        ),
        (0, _) => "gates test: no fault was judged".to_owned(),
        (1.., 0) => format!(
            "gates test: NONE of {} noticed: the gates do not check {what} (seed {seed})",
            counted(judged, "fault")
        ),
        _ => format!("gates test: {noticed} of {} noticed (seed {seed})", counted(judged, "fault")),
    }];
    if judged > 0 {
        let each = tested.gates.iter().map(|gate| format!("{gate} {}", tested.noticed_by(gate)));
        lines.push(format!("  noticed by gate: {}", each.collect::<Vec<_>>().join(", ")));
    }
    for mutant in &tested.mutants {
        match &mutant.fate {
            Fate::Noticed(_) => {}
            Fate::Survived => lines.push(format!("  survived: {}", place_of(mutant))),
            Fate::Unknown(why) => {
                lines.push(format!("  not judged: {} ({})", place_of(mutant), term::line(why, 200)));
            }
        }
    }
    let of = tested.base.as_ref().map_or_else(
        || "of all sources".to_owned(),
        |base| format!("in lines that changed since {}", base.short()),
    );
    lines.push(format!(
        "  {} for a fault {of}; took {}",
        counted(tested.places, "place"),
        time::human(Duration::from_millis(tested.took_ms))
    ));
    if tested.cut > 0 {
        lines.push(format!("  {} left out: the time was used up (`--budget`)", counted(tested.cut, "fault")));
    }
    if !tested.blind.is_empty() {
        let named: Vec<&str> = tested.blind.iter().map(peers_model::GoalId::as_str).collect();
        lines.push(format!("  not asked, since they read commits or the work tree: {}", named.join(", ")));
    }
    lines.join("\n") + "\n"
}

fn body(tested: &Tested) -> Value {
    let mutants = tested.mutants.iter().map(|mutant| {
        let (by, why) = match &mutant.fate {
            Fate::Noticed(gates) => (gates.clone(), None),
            Fate::Survived => (Vec::new(), None),
            Fate::Unknown(why) => (Vec::new(), Some(term::line(why, 400))),
        };
        let fate = match mutant.fate {
            Fate::Noticed(_) => "noticed",
            Fate::Survived => "survived",
            Fate::Unknown(_) => "unknown",
        };
        json!({"path": term::line(&mutant.path, 400), "line": mutant.line, "fate": fate, "noticed_by": by,
            "change": term::line(&mutant.shown, 400), "reason": why})
    });
    let by_gate: BTreeMap<&str, usize> =
        tested.gates.iter().map(|gate| (gate.as_str(), tested.noticed_by(gate))).collect();
    json!({"head": tested.head, "tree": tested.tree, "base": tested.base, "seed": tested.seed,
        "places": tested.places, "judged": tested.judged(), "noticed": tested.noticed(), "cut": tested.cut,
        "by_gate": by_gate, "not_asked": tested.blind, "mutants": mutants.collect::<Vec<_>>(),
        "duration_ms": tested.took_ms, "signal": tested.signal})
}
