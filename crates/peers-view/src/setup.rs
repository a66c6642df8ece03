//! The operator's files: whether they can be read, and whether they are what was accepted.

use peers_model::config::Config;
use peers_model::goal::{CHECK_NAMES, GateRun, GoalKind, HardGoal};
use peers_model::limits;
use peers_store::load::{LoadError, Source};
use peers_store::{Area, Disk, DiskErrorKind, accept, layout, load};
use serde::Serialize;

pub use peers_model::goal::PLACEHOLDER;

/// The operator's files, as far as they can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Setup {
    /// The placeholder gate of a new file is still there.
    pub placeholder: bool,
    /// Files that are not what was accepted.
    pub unaccepted: Vec<&'static str>,
    /// On this machine nothing was ever accepted.
    #[serde(skip)]
    pub never: bool,
    /// Files that cannot be read as what they are: no start and no acceptance takes them.
    pub broken: Vec<Broken>,
    /// The directory whose files these are, if that is not the one that was asked about.
    pub dir: Option<String>,
}

/// A file of the operator's with a mistake in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Its path in the repository.
    pub file: &'static str,
    /// The line of the first mistake, from 1, if it is known.
    pub line: Option<u64>,
    /// Why it cannot be read at all, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Broken {
    fn of(error: &LoadError) -> Self {
        let line = error.problems().first().and_then(|problem| problem.line);
        Self { file: error.file().path(), line, why: None }
    }

    /// `.peers/goals.yaml line 3`.
    pub(crate) fn words(&self) -> String {
        match (self.line, &self.why) {
            (Some(line), _) => format!("{} line {line}", self.file),
            (None, Some(why)) => format!("{} ({why})", self.file),
            (None, None) => self.file.to_owned(),
        }
    }
}

/// Reads them. `config` is the accepted configuration.
pub(crate) fn read<D: Disk>(disk: &mut D, config: Option<&Config>) -> Setup {
    let mut broken = Vec::new();
    let mut read = |name, source: Source| match disk.read(Area::Peers, name, limits::CONFIG) {
        Ok(bytes) => bytes,
        // A project that is not set up has no files to be read.
        Err(error) if error.kind == DiskErrorKind::NoArea => None,
        Err(error) => {
            broken.push(Broken { file: source.path(), line: None, why: Some(error.detail) });
            None
        }
    };
    let goals = read(layout::peers::GOALS, Source::Goals);
    let settings = read(layout::peers::CONFIG, Source::Config);
    let unread = !broken.is_empty();
    let mut sound = |error: LoadError| broken.push(Broken::of(&error));
    let edited = settings.as_deref().and_then(|bytes| {
        load::decode(Source::Config, bytes).and_then(load::load_config).map_err(&mut sound).ok()
    });
    // As many peers as there will be; without a readable file, as there are.
    let peers = edited.as_ref().or(config).map_or(2, |config| config.peers.len());
    let parsed = goals.as_deref().and_then(|bytes| {
        let text = load::decode(Source::Goals, bytes);
        text.and_then(|text| load::load_goals(text, peers, &CHECK_NAMES)).map_err(&mut sound).ok()
    });
    let parsed = parsed.unwrap_or_default();
    let placeholder = parsed.iter().any(|goal| match &goal.kind {
        GoalKind::Hard(HardGoal { run: GateRun::Shell { cmd, .. }, .. }) => {
            goal.id.as_str() == PLACEHOLDER && cmd.trim() == "false"
        }
        GoalKind::Hard(_) | GoalKind::Soft(_) => false,
    });
    let (mut unaccepted, mut never) = (Vec::new(), false);
    // What cannot be read is said by whoever starts a run, and so is a project without any file.
    if !unread
        && (goals.is_some() || settings.is_some())
        && let Ok(accepted) = accept::read(disk)
    {
        let now = accept::digests(&goals.unwrap_or_default(), &settings.unwrap_or_default());
        never = accepted.is_none();
        let was = accepted.map(|accepted| accepted.digests).unwrap_or_default();
        for (file, differs) in [
            (layout::peers::GOALS, now.goals != was.goals),
            (layout::peers::CONFIG, now.config != was.config),
        ] {
            if differs {
                unaccepted.push(file);
            }
        }
    }
    Setup { placeholder, unaccepted, never, broken, dir: None }
}
