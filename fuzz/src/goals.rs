//! `goals.yaml`, read as `peers` reads it, for two and for three peers.

use std::collections::BTreeSet;

use peers_core::dsl::Expr;
use peers_model::goal::{CHECK_NAMES, GateRun, Goal, GoalKind};
use peers_model::review::SoftRule;
use peers_store::load::{Source, decode, goal_warnings, load_goals};

use crate::problems;

/// Puts one file through everything.
pub fn check(data: &[u8]) {
    let text = match decode(Source::Goals, data) {
        Ok(text) => text,
        Err(error) => {
            assert!(std::str::from_utf8(data).is_err(), "UTF-8 is refused");
            return problems::tellable(&String::from_utf8_lossy(data), &error);
        }
    };
    let two = load_goals(text, 2, &CHECK_NAMES);
    assert_eq!(two, load_goals(text, 2, &CHECK_NAMES), "reading is deterministic");
    let three = load_goals(text, 3, &CHECK_NAMES);
    match &two {
        Ok(goals) => {
            usable(goals, 2);
            assert_eq!(two, three, "a rule that two peers can keep can be kept by three");
            let warnings = goal_warnings(goals);
            assert!(warnings.len() <= 2 * goals.len());
        }
        Err(error) => problems::tellable(text, error),
    }
    match &three {
        Ok(goals) => usable(goals, 3),
        Err(error) => problems::tellable(text, error),
    }
}

/// What was let through has what the gate runner relies on.
fn usable(goals: &[Goal], peers: usize) {
    let ids: BTreeSet<&str> = goals.iter().map(|goal| goal.id.as_str()).collect();
    assert_eq!(ids.len(), goals.len(), "ids are unique");
    for goal in goals {
        match &goal.kind {
            GoalKind::Hard(hard) => {
                assert!(hard.retries <= 5 && hard.timeout_s != Some(0));
                match &hard.run {
                    GateRun::Shell { cmd, pass_when } => {
                        assert!(!cmd.trim().is_empty() && !cmd.contains('\0'));
                        assert!(Expr::parse(pass_when).is_ok(), "{pass_when}");
                    }
                    GateRun::Check { name, args } => {
                        assert!(CHECK_NAMES.contains(&name.as_str()));
                        assert!(!args.iter().any(|arg| arg.contains('\0')));
                    }
                }
            }
            GoalKind::Soft(soft) => {
                assert!(!soft.prompt.trim().is_empty() && soft.every > 0);
                let (needed, most) = match soft.rule {
                    SoftRule::Other { needed } | SoftRule::Alternating { needed } => (needed, peers),
                    SoftRule::Both { needed } => (needed, 1),
                    SoftRule::Quorum { pass, of } => {
                        assert!(pass <= of);
                        (of, peers)
                    }
                };
                assert!(needed >= 1 && usize::from(needed) <= most, "{:?}", soft.rule);
            }
        }
    }
}
