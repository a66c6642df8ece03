//! `mutation-sample`: the gates notice faults that are planted into what changed (`modes.md` §5.10).
//!
//! Planting them is `peers gates test`, which starts the project's tools; a check starts none, and reads what that
//! command recorded for exactly this tree.

use peers_model::check::{self, Args};

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Report, Verdict};

pub(crate) const CHECK: Check = Check {
    name: check::MUTATION_SAMPLE.name,
    about: "The gates notice small faults that are planted into what changed",
    args: check::MUTATION_SAMPLE.args,
    run: |cx, args: &Args| {
        judge(cx, args.number(&check::MUTATION_SAMPLE, "min")).unwrap_or_else(Report::from)
    },
};

fn judge(cx: &CheckCx, least: usize) -> Result<Report, CouldNot> {
    let tree = cx.facts()?.tree_of(cx.head()).map_err(|e| CouldNot::git("read the tree", &e))?;
    let Some(planted) = cx.planted()?.filter(|planted| planted.tree == tree) else {
        return Err(CouldNot {
            what: "no faults were planted at this tree".to_owned(),
            hint: Some("`peers gates test` plants some and records what the gates notice".to_owned()),
        });
    };
    let (noticed, judged) = (planted.noticed, planted.judged);
    let least = u64::try_from(least).unwrap_or(u64::MAX);
    let enough = judged > 0 && noticed.saturating_mul(100) >= judged.saturating_mul(least);
    let said = format!("the gates noticed {noticed} of {judged} planted faults");
    let mut report = match (least, enough) {
        (0, _) if noticed < judged => Report::new(Verdict::Warn, said),
        (_, true) => Report::new(Verdict::Pass, said),
        (_, false) => Report::new(Verdict::Fail, format!("{said}, of {least} % that are asked for")),
    };
    report.counts.insert("judged", judged);
    report.counts.insert("noticed", noticed);
    report.hint = (noticed < judged)
        .then(|| format!("`peers gates test --seed {}` names those that survived", planted.seed));
    Ok(report)
}
