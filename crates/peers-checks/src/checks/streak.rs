//! `convergence` and `peers-healthy`: what the journal says of the loop itself.

use peers_model::check::{self, Args};
use peers_sys::term;

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

pub(crate) const CONVERGENCE: Check = Check {
    name: check::CONVERGENCE.name,
    about: "Enough clean ticks in a row",
    args: check::CONVERGENCE.args,
    run: |cx, args| convergence(cx, args).unwrap_or_else(Report::from),
};

pub(crate) const PEERS_HEALTHY: Check = Check {
    name: check::PEERS_HEALTHY.name,
    about: "Every peer can take its turns",
    args: check::PEERS_HEALTHY.args,
    run: |cx, _| peers_healthy(cx).unwrap_or_else(Report::from),
};

fn convergence(cx: &CheckCx, args: &Args) -> Result<Report, CouldNot> {
    let health = cx.attribution().map_err(Clone::clone)?.health();
    let clean = usize::try_from(health.clean_ticks).unwrap_or(usize::MAX);
    let needed = match args.number(&check::CONVERGENCE, "n") {
        0 => cx.convergence_n(),
        given => given,
    };
    let ticks = if needed == 1 { "clean tick" } else { "clean ticks in a row" };
    let summary = format!("{clean} of {needed} {ticks}");
    let reached = clean >= needed && health.ticks > 0;
    let mut report = Report::new(if reached { Verdict::Pass } else { Verdict::Fail }, summary);
    report.count("clean_ticks", clean);
    report.count("needed", needed);
    if !reached {
        report.hint = Some(
            "a tick is clean when it hands off a change, a review or a skeptic's verdict and files no blocking bug; \
             where nothing is left to change, review what another peer made once more"
                .to_owned(),
        );
    }
    Ok(report)
}

fn peers_healthy(cx: &CheckCx) -> Result<Report, CouldNot> {
    let unavailable = &cx.attribution().map_err(Clone::clone)?.health().unavailable;
    let told = |(peer, why): &(peers_model::PeerName, String)| {
        let why = if why.is_empty() { String::new() } else { format!(": {}", term::line(why, 120)) };
        let what = format!("needs its operator{why}");
        Finding::at(&format!("peer {peer}"), None, "unavailable", &what, None)
    };
    let mut report = match unavailable.len() {
        0 => Report::new(Verdict::Pass, "every peer can take its turns"),
        1 => Report::new(Verdict::Fail, "1 peer is unavailable"),
        n => Report::new(Verdict::Fail, format!("{n} peers are unavailable")),
    };
    report.findings = unavailable.iter().map(told).collect();
    Ok(report)
}
