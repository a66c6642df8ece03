//! The arguments of `run`, which both commands take.

use std::path::PathBuf;

use peers_model::request::{AskedWall, RunRequest, Worktree};
use peers_model::{Backend, Usd};

/// What the loop is asked for: `peers run` runs it, `peers-ctl start` hands it over.
#[derive(Debug, Clone, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct RunArgs {
    /// Stop when X US dollars are spent, over all runs (overrides `budget.max_usd`)
    #[arg(long, value_name = "X", value_parser = Usd::typed)]
    max_usd: Option<Usd>,
    /// Make the branch NAME at HEAD, check it out and work there
    #[arg(long, value_name = "NAME", conflicts_with = "worktree")]
    branch: Option<String>,
    /// Work in a linked worktree outside of this checkout, on a branch of its own
    ///
    /// Without DIR it is made below `$XDG_DATA_HOME/peers/worktrees`. The branch is `peers/<run id>`;
    /// `peers land` brings it home.
    #[arg(long, value_name = "DIR", num_args = 0..=1, verbatim_doc_comment)]
    #[expect(clippy::option_option, reason = "absent, given without a value, given with one")]
    worktree: Option<Option<PathBuf>>,
    /// Start although no gate checks anything of this project; such a run never completes
    #[arg(long)]
    allow_no_gates: bool,
    /// Skip the trial of the gates in a clean checkout; the proof still needs them to pass there
    #[arg(long)]
    anyway: bool,
    /// Stop once before the last phase of the mode begins; the next start goes on
    #[arg(long)]
    checkpoint: bool,
    /// Do not describe the project in .peers/recon.md before the first turn
    #[arg(long)]
    without_recon: bool,
    /// Do not write .peers/CODEMAP.yaml and .peers/codemap.md before the first turn
    #[arg(long)]
    no_codemap: bool,
    /// Complete without the adversarial turn
    #[arg(long)]
    without_post_convergence_skeptic: bool,
    #[command(flatten)]
    wall: WallArgs,
}

/// How agents and gates are confined.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct WallArgs {
    /// Confine agents and gates by BACKEND: podman, bwrap, landlock or none
    ///
    /// Without it, by `backend` in your sandbox.yaml, else by the best one that holds on this machine: each is tried
    /// with a live process. `podman` is taken only by name. `none` needs `--i-know` where a run is unattended.
    #[arg(long, value_name = "BACKEND", value_parser = backend, verbatim_doc_comment)]
    sandbox: Option<Backend>,
    /// Refuse to start below this tier: 0 none, 1 landlock, 2 bwrap, 3 podman
    #[arg(long, value_name = "TIER", value_parser = clap::value_parser!(u8).range(0..=3))]
    require: Option<u8>,
    /// With `--sandbox none`: agents and gates may do all that you may, and I know that
    #[arg(long)]
    i_know: bool,
}

impl WallArgs {
    /// What they ask for.
    #[must_use]
    pub fn asked(self) -> AskedWall {
        AskedWall { backend: self.sandbox, require: self.require, i_know: self.i_know, whole_loop: false }
    }
}

fn backend(word: &str) -> Result<Backend, String> {
    Backend::named(word).ok_or_else(|| "it is one of podman, bwrap, landlock, none".to_owned())
}

impl RunArgs {
    /// What they ask for.
    #[must_use]
    pub fn request(&self, max_ticks: Option<u64>) -> RunRequest {
        let Self {
            max_usd,
            branch,
            worktree,
            allow_no_gates,
            anyway,
            checkpoint,
            without_recon,
            no_codemap,
            without_post_convergence_skeptic,
            wall,
        } = self;
        // The loop may begin in another directory than whoever typed this.
        let absolute = |dir: &PathBuf| std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        let worktree = worktree.as_ref().map(|dir| match dir {
            Some(dir) => Worktree::At(absolute(dir).to_string_lossy().into_owned()),
            None => Worktree::Default,
        });
        RunRequest {
            max_ticks,
            max_usd: *max_usd,
            max_usd_since: None,
            branch: branch.clone(),
            worktree,
            dry_run: false,
            allow_no_gates: *allow_no_gates,
            anyway: *anyway,
            no_skeptic: *without_post_convergence_skeptic,
            checkpoint: *checkpoint,
            no_recon: *without_recon,
            no_codemap: *no_codemap,
            wall: wall.asked(),
        }
    }
}
