//! What a start of the loop is asked for.

use serde::{Deserialize, Serialize};

use crate::{Backend, Timestamp, Usd};

/// What the operator asks of `peers run`. `peers-ctl start` hands it to the loop as JSON, and keeps it in its registry
/// for `restart`; the loop keeps it in the record of its run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct RunRequest {
    /// Ticks of this process, above zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ticks: Option<u64>,
    /// The cap of money, over that of the configuration, of all runs together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<Usd>,
    /// When the operator gave that cap; absent: at the start. A start that repeats an earlier one says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_usd_since: Option<Timestamp>,
    /// Make this branch at HEAD, check it out and work there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Work in a linked worktree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Put everything back after each turn.
    #[serde(skip_serializing_if = "is_off")]
    pub dry_run: bool,
    /// Start without a gate of the project's own.
    #[serde(skip_serializing_if = "is_off")]
    pub allow_no_gates: bool,
    /// Skip the trial of the gates in a clean checkout.
    #[serde(skip_serializing_if = "is_off")]
    pub anyway: bool,
    /// Complete without the adversarial turn.
    #[serde(skip_serializing_if = "is_off")]
    pub no_skeptic: bool,
    /// Stop once before the last phase begins.
    #[serde(skip_serializing_if = "is_off")]
    pub checkpoint: bool,
    /// Do not write `.peers/recon.md`.
    #[serde(skip_serializing_if = "is_off")]
    pub no_recon: bool,
    /// Do not write `.peers/CODEMAP.yaml` and `.peers/codemap.md`.
    #[serde(skip_serializing_if = "is_off")]
    pub no_codemap: bool,
    /// The wall around agents and gates.
    #[serde(skip_serializing_if = "AskedWall::is_nothing")]
    pub wall: AskedWall,
}

/// The wall that the operator asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AskedWall {
    /// Which; absent: the one of `sandbox.yaml`, else the best one that holds on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    /// The least tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<u8>,
    /// The operator knows what a start without a wall gives up.
    #[serde(skip_serializing_if = "is_off")]
    pub i_know: bool,
    /// The loop itself is in a container, and puts up its walls in there. Of a controller's start alone.
    #[serde(skip_serializing_if = "is_off")]
    pub whole_loop: bool,
}

/// Where a linked worktree is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Worktree {
    /// Below the operator's data directory.
    Default,
    /// There.
    At(String),
}

impl AskedWall {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_off(flag: &bool) -> bool {
    !flag
}

impl RunRequest {
    /// The same without a branch or worktree of its own, which the first start made: what a restart repeats.
    #[must_use]
    pub fn again(self) -> Self {
        Self { branch: None, worktree: None, ..self }
    }

    /// The arguments after `peers` that ask for this, as a person types them.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let Self {
            max_ticks,
            max_usd,
            max_usd_since: _,
            branch,
            worktree,
            dry_run,
            allow_no_gates,
            anyway,
            no_skeptic,
            checkpoint,
            no_recon,
            no_codemap,
            wall: AskedWall { backend, require, i_know, whole_loop: _ },
        } = self;
        let worktree = worktree.as_ref().map(|worktree| match worktree {
            Worktree::Default => "--worktree".to_owned(),
            Worktree::At(dir) => format!("--worktree={dir}"),
        });
        let flag = |set: &bool, name: &str| set.then(|| name.to_owned());
        let words = [
            max_ticks.map(|ticks| format!("--max-ticks={ticks}")),
            max_usd.map(|usd| format!("--max-usd={}", usd.digits())),
            branch.as_ref().map(|branch| format!("--branch={branch}")),
            worktree,
            flag(dry_run, "--dry-run"),
            flag(allow_no_gates, "--allow-no-gates"),
            flag(anyway, "--anyway"),
            flag(no_skeptic, "--without-post-convergence-skeptic"),
            flag(checkpoint, "--checkpoint"),
            flag(no_recon, "--without-recon"),
            flag(no_codemap, "--no-codemap"),
            backend.map(|backend| format!("--sandbox={backend}")),
            require.map(|tier| format!("--require={tier}")),
            flag(i_know, "--i-know"),
        ];
        std::iter::once("run".to_owned()).chain(words.into_iter().flatten()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_comes_back_from_its_json_and_an_unknown_word_is_refused() {
        let asked = RunRequest {
            max_ticks: Some(7),
            max_usd: Usd::from_f64(2.5),
            max_usd_since: Some(Timestamp::from_millis(5)),
            branch: Some("try".to_owned()),
            worktree: Some(Worktree::At("/w".to_owned())),
            dry_run: true,
            allow_no_gates: true,
            anyway: true,
            no_skeptic: true,
            checkpoint: true,
            no_recon: true,
            no_codemap: true,
            wall: AskedWall {
                backend: Some(Backend::Landlock),
                require: Some(1),
                i_know: true,
                whole_loop: true,
            },
        };
        let text = serde_json::to_string(&asked).unwrap();
        assert_eq!(serde_json::from_str::<RunRequest>(&text).unwrap(), asked);
        assert_eq!(serde_json::to_string(&RunRequest::default()).unwrap(), "{}");
        assert!(serde_json::from_str::<RunRequest>(r#"{"max_tick": 7}"#).is_err());
        assert_eq!(asked.again().branch, None);
    }
}
