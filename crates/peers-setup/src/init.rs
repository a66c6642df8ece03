//! `peers init`.

mod proposed;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use peers_git::{Author, PeerRepo, RepoError};
use peers_model::command::Step;
use peers_model::config::Driver;
use peers_model::{CommitId, Timestamp, exit, limits};
use peers_modes::{CONFIG, Merged, goals_with_task, hooks, key};
use peers_place::anchor::{self, BASELINE, Tagged};
use peers_place::{PEERS_DIR, Place, PlaceError};
use peers_store::accept::{self, Accepted};
use peers_store::contracts::Frozen;
use peers_store::layout::peers;
use peers_store::layout::store::{JOURNAL, PROJECT};
use peers_store::load::{self, Source};
use peers_store::project::{self, Project};
use peers_store::schema::Described;
use peers_store::{FsDisk, StoreError};
use peers_sys::clock;
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::env::Env;
use peers_sys::term;

use super::backup::{self, Extent};
use super::detect::Language;
use super::error::{quoted, shown};
use super::frozen::Planned;
use super::gates::{self, Gates, Template};
use super::host::{self, HostHooks};
use super::ignore::{self, Rules};
use super::report::{Action, InitReport, Outcome, Steps};
use super::settings::{Agents, PeerSetting, configure};
use super::{ScaffoldError, modes, target, task};

const HOOKS: &str = "hooks";

/// What to do about a control directory that is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// Nothing: refuse.
    #[default]
    Refuse,
    /// Move it and the history of its runs aside, and start over.
    Force,
    /// Complete it: configuration, goals, state and logs stay.
    Upgrade,
}

/// What `init` is to do.
#[derive(Debug, Clone, Default)]
pub struct InitOptions {
    /// The top of the work tree.
    pub target: PathBuf,
    /// What to do about a control directory that is there.
    pub existing: Existing,
    /// Write nothing, say what would be done.
    pub dry_run: bool,
    /// Written into the configuration; `Hooks` also lays down snippets.
    pub driver: Option<Driver>,
    /// What it will be written in: the usual gates go into the goals, as comments, where nothing that is there
    /// says which gates fit.
    pub language: Option<Language>,
    /// What the goals that are laid down ask for.
    pub gates: Gates,
    /// Modes whose goals are laid down in place of the template's, as they stand on the command line.
    pub modes: Option<Vec<String>>,
    /// The tools of the peers in a new configuration.
    pub agents: Agents,
    /// What the agents are to do: written into `TASK.md` and committed, with a review of it among the goals.
    pub task: Option<String>,
    /// The plan that is committed as `PLAN.md`, and frozen in the trusted store with its commands.
    pub plan: Option<Planned>,
    /// Ignore `.peers/` without a commit.
    pub no_commit: bool,
    /// Written into the entries of peers in the configuration.
    pub settings: Vec<PeerSetting>,
    /// Also put our entry into the stop hooks of the operator's tools.
    pub install: bool,
}

/// Sets a repository up. Goals and configuration that a clone brought along stay, for its operator to accept.
///
/// # Errors
/// [`ScaffoldError`], whose exit code says which rule refused; nothing was written then, unless a file
/// operation failed half-way. What cannot be done in git is a note of the report, not an error.
pub fn init(options: &InitOptions, env: &Env) -> Result<InitReport, ScaffoldError> {
    let top = target::admitted(&options.target, env)?;
    let repo = target::repository(&top)?;
    let modes = modes::merged(
        options.modes.as_deref(),
        options.language,
        SafeDir::open_shared(&top).ok().as_ref(),
        env,
    )?;
    let mut site = Site::look(options, Place::locate(&top, env)?, repo)?;
    if let Some((merged, notes)) = modes {
        site.proposed.extend(notes);
        site.modes = Some(merged);
    }
    if let Some(task) = &options.task {
        task::refuse_other(&site.work, task)?;
    }
    if let Some(plan) = &options.plan {
        plan.refuse_other(&site.work, site.cloned || options.no_commit)?;
        site.frozen = Some(plan.collect(site.repo.as_ref().ok())?);
    }
    let agents = match &options.agents {
        // Where one stays, nothing was asked for.
        Agents::Installed if !site.is_configured_anew()? => Vec::new(),
        agents => agents.tools(env),
    };
    if !options.settings.is_empty() || !agents.is_empty() {
        let accepted = site.accepted_bytes[0].as_deref();
        site.configured = Some(configure(accepted, &agents, &options.settings)?);
    }
    site.template = gates::goals(&options.gates, site.modes.as_ref(), options.language, &site.work)?;
    site.propose(env)?;
    site.refuse_other(options)?;
    if options.task.is_some() {
        site.template.text = goals_with_task(&site.template.text);
    }
    if !site.template.asked.is_empty() || site.modes.is_some() {
        site.refuse_other_goals(options)?;
    }
    site.lay_down(options, env, clock::now())
}

/// What is there before anything is done.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that was looked at")]
struct Site {
    place: Place,
    work: SafeDir,
    rules: Rules,
    repo: Result<PeerRepo, String>,
    /// `.peers/` as it will stay: absent when it is moved aside.
    kept: Option<SafeDir>,
    has_peers_dir: bool,
    /// The store for looking, and what it says of its repository.
    store: Option<SafeDir>,
    project: Option<Project>,
    /// The store has no anchor yet; that of `project` is where the oldest run began.
    unanchored: bool,
    /// Goals and configuration came along with a clone, or were written by hand.
    cloned: bool,
    accepted: Option<Accepted>,
    accepted_bytes: [Option<Vec<u8>>; 2],
    /// The configuration with what the command line sets.
    configured: Option<String>,
    /// What else was written into it, for people.
    proposed: Vec<String>,
    /// The goals of a new file.
    template: Template,
    /// The modes that they are of.
    modes: Option<Merged>,
    /// What is to be frozen of a plan.
    frozen: Option<Frozen>,
    /// What of the acceptance cannot be read, for people.
    lost: Vec<String>,
    /// An `init` got as far as the store, nothing was ever accepted, and nothing ran: what lies there and is
    /// what `init` lays down was laid down by it.
    unfinished: bool,
    extent: Extent,
}

/// A file of the operator's.
struct Laid {
    bytes: Vec<u8>,
    /// It was there and stays.
    kept: bool,
}

/// The tools whose sessions may hand over: those that a peer runs. Of a configuration that cannot be read
/// nothing is known, so all of them.
fn tools_to_hook(config: &[u8], steps: &mut Steps) -> Vec<hooks::Tool> {
    let config = load::decode(Source::Config, config).and_then(load::load_config);
    let Ok(config) = config else { return hooks::Tool::ALL.to_vec() };
    let (run, idle): (Vec<_>, Vec<_>) = hooks::Tool::ALL
        .into_iter()
        .partition(|tool| config.peers.iter().any(|peer| peer.tool_name() == tool.name()));
    for tool in idle {
        steps.note(format!("no peer runs {}; its stop hook is left out", tool.name()));
    }
    run
}

/// The refusal to set up again what is set up. One that was moved is not begun anew: its store knows it.
fn exists(place: &Place, has_store: bool) -> ScaffoldError {
    match Some(place.no_store(true)).filter(|_| !has_store) {
        Some(moved @ PlaceError::NoStore { was: Some(_), .. }) => moved.into(),
        _ => ScaffoldError::refused(
            exit::CONFLICT,
            format!("{} exists already", shown(&place.work_dir().join(PEERS_DIR))),
            "`peers init --upgrade` refreshes it and keeps configuration, goals and state; `peers init --force` starts over and keeps a copy",
        ),
    }
}

/// Refuses what would have to be written into a configuration that stays.
fn refuse_settings(options: &InitOptions) -> Result<(), ScaffoldError> {
    let option = match (options.settings.first(), &options.agents) {
        (Some(first), _) => first.field.option(),
        (None, Agents::Named(_)) => "agents".to_owned(),
        (None, Agents::Template | Agents::Installed) => return Ok(()),
    };
    Err(ScaffoldError::option(&option, "config.yaml exists and is kept; edit it there"))
}

impl Site {
    /// Looks, and refuses where it must.
    fn look(
        options: &InitOptions,
        place: Place,
        repo: Result<PeerRepo, String>,
    ) -> Result<Self, ScaffoldError> {
        let work = place.open_work()?;
        let rules = Rules::read(&work)?;
        let found = work.stat(PEERS_DIR)?.map(|stat| stat.kind);
        let store = place.view_store().map_err(PlaceError::from)?;
        // Goals and configuration of a clone are kept as they are, accepted by nobody.
        // One that says of no repository that it is its own was left by an `init` that was cut short.
        let known = store.as_ref().map(|store| store.stat(PROJECT)).transpose()?.flatten().is_some();
        let cloned = options.existing != Existing::Force && !known && place.is_cloned();
        match (found, options.existing) {
            (Some(Kind::Symlink), _) => return Err(ScaffoldError::Link { name: PEERS_DIR }),
            (Some(Kind::Dir), Existing::Refuse) if cloned => {
                if work.subdir(PEERS_DIR)?.stat(peers::CONFIG)?.is_some() {
                    refuse_settings(options)?;
                }
            }
            (Some(_), Existing::Refuse) => {
                return Err(exists(&place, store.is_some()));
            }
            (Some(Kind::File | Kind::Special), _) => return Err(ScaffoldError::not_ours()),
            (Some(Kind::Dir) | None, _) => {}
        }
        let force = options.existing == Existing::Force;
        if force && place.is_linked() && SafeDir::open_shared(place.project_dir())?.stat(".git")?.is_some() {
            // Its main checkout would lose its history.
            let (here, main) = (place.work_dir(), place.project_dir());
            return Err(ScaffoldError::refused(
                exit::INVALID,
                format!("{} is a linked worktree: its store is that of {}", shown(here), shown(main)),
                format!("start over there: `peers -C {} init --force`", quoted(main)),
            ));
        }
        let has_peers_dir = found.is_some();
        place.refuse_held()?;
        let mut disk =
            store.as_ref().map(SafeDir::try_clone).transpose()?.map(|store| FsDisk::new(store, None));
        let read = match &mut disk {
            Some(disk) => project::read(disk),
            None => Ok(None),
        };
        let ours = match read {
            Ok(None) => Ok(None),
            Ok(Some(project)) => place.same_project(&project).map(|()| Some(project)),
            Err(error) => Err(error.into()),
        };
        let mut unanchored = false;
        let (mut project, extent) = match ours {
            Ok(project) => (project, Extent::History),
            Err(_) if force => (None, Extent::Whole),
            Err(error) => return Err(error.into()),
        };
        let upgrade = options.existing == Existing::Upgrade && has_peers_dir;
        if upgrade && project.is_none() && !cloned {
            return Err(place.no_store(true).into());
        }
        if let (Some(project), Some(disk)) = (&mut project, &mut disk)
            && project.base.is_none()
        {
            // HEAD is behind the agents' work by now. Whoever starts over does so without what is lost.
            unanchored = true;
            project.base = match anchor::of_runs(disk) {
                Err(_) if force => None,
                known => known?,
            };
        }
        let mut lost = Vec::new();
        let (accepted, accepted_bytes) = match disk.as_mut().filter(|_| !force) {
            Some(disk) => (
                readable(accept::read(disk), &mut lost)?,
                [
                    readable(accept::read_bytes(disk, peers::CONFIG), &mut lost)?,
                    readable(accept::read_bytes(disk, peers::GOALS), &mut lost)?,
                ],
            ),
            None => (None, [None, None]),
        };
        let untouched = project.is_some() && accepted.is_none() && lost.is_empty() && !cloned;
        let unfinished = match store.as_ref().filter(|_| untouched) {
            Some(store) => store.stat(JOURNAL)?.is_none(),
            None => false,
        };
        let kept = if upgrade || cloned { Some(work.subdir(PEERS_DIR)?) } else { None };
        Ok(Self {
            place,
            work,
            rules,
            repo,
            kept,
            has_peers_dir,
            store,
            project,
            unanchored,
            cloned,
            accepted,
            accepted_bytes,
            configured: None,
            proposed: Vec::new(),
            template: Template::default(),
            modes: None,
            frozen: None,
            lost,
            unfinished,
            extent,
        })
    }

    /// Refuses gates that would not get into goals that stay, or would be put in place of gates that were accepted.
    fn refuse_other_goals(&self, options: &InitOptions) -> Result<(), ScaffoldError> {
        let text = &self.template.text;
        let option = if self.modes.is_some() { "modes" } else { options.gates.option() };
        let refuse = |why: &str| Err(ScaffoldError::option(option, format!("goals.yaml {why}")));
        match (self.there(peers::GOALS)?, &self.accepted_bytes[1]) {
            (Some(bytes), _) if !(self.unfinished && bytes == text.as_bytes()) => {
                refuse("exists and is kept; add the gate there")
            }
            (None, Some(bytes)) if !gates::ask_no_more(bytes, text) => refuse(
                "was accepted here before, with gates of its own, and comes back; leave the option out, and edit it then",
            ),
            _ => Ok(()),
        }
    }

    /// Refuses settings that would not get into a configuration that is there and stays.
    fn refuse_other(&self, options: &InitOptions) -> Result<(), ScaffoldError> {
        let text = self.configured.as_deref().unwrap_or(CONFIG);
        match self.there(peers::CONFIG)? {
            Some(bytes) if !is_laid(&bytes, text) => refuse_settings(options),
            _ => Ok(()),
        }
    }

    fn lay_down(self, options: &InitOptions, env: &Env, now: Timestamp) -> Result<InitReport, ScaffoldError> {
        if options.existing != Existing::Force || options.dry_run {
            return self.laid_down(options, env, (now, None));
        }
        let stamp = backup::stamp(&backup::places(&self.work, self.store.as_ref()), now)?;
        let (peers, store) = (self.place.work_dir().to_owned(), self.place.store_dir().to_owned());
        let copies = backup::Copies::named(&peers, &store, &stamp);
        self.laid_down(options, env, (now, Some(&stamp))).map_err(|source| match copies.there() {
            None => source,
            Some(copies) => ScaffoldError::HalfWay { copies, source: Box::new(source) },
        })
    }

    fn laid_down(
        mut self,
        options: &InitOptions,
        env: &Env,
        (now, stamp): (Timestamp, Option<&str>),
    ) -> Result<InitReport, ScaffoldError> {
        let mut steps = Steps::new(options.dry_run);
        for lost in std::mem::take(&mut self.lost) {
            steps.note(lost);
        }
        let outcome = match (options.existing, self.has_peers_dir) {
            (Existing::Force, true) => Outcome::Rebuilt,
            (Existing::Upgrade, true) if !self.cloned => Outcome::Upgraded,
            (Existing::Refuse | Existing::Upgrade, _) | (_, false) => Outcome::Fresh,
        };
        // Held to the end, so that no run starts on half of it.
        let mut lock = None;
        if self.store.is_none() {
            steps.act(Action::Create, "the trusted store", || Ok(()))?;
        }
        if !options.dry_run {
            self.store = Some(self.place.create_store()?);
            lock = Some(self.place.lock("init")?);
        }
        if options.existing == Existing::Force {
            self.set_aside(stamp, now, &mut steps)?;
        }
        let base = self.anchor(options.existing, now, &mut steps)?;
        if self.kept.is_none() {
            steps.act(Action::Create, ".peers/", || Ok(self.work.create_subdir(PEERS_DIR).map(drop)?))?;
            // Opened again as a private root: what is made below it is ours alone.
            self.kept = if options.dry_run { None } else { self.place.open_peers()? };
        } else if !options.dry_run {
            self.kept = self.place.open_peers()?;
        }
        self.logs(&mut steps)?;
        self.schemas(&mut steps)?;
        let config = self.operators(peers::CONFIG, CONFIG, 0, &mut steps)?;
        for note in self.proposed.iter().filter(|_| !config.kept) {
            steps.note(note.clone());
        }
        let Template { text, note, asked: _ } = self.template.clone();
        let goals = self.operators(peers::GOALS, &text, 1, &mut steps)?;
        if let Some(note) = note.filter(|_| !goals.kept && goals.bytes == text.as_bytes()) {
            steps.note(note);
        }
        if let Some(modes) = self.modes.as_ref().filter(|_| !goals.kept) {
            self.refresh(peers::MODES_APPLIED, &modes::applied(modes, now), &mut steps)?;
        }
        let config_now = self.with_driver(&config, options.driver, &mut steps)?;
        self.accept(&goals, &config, &config_now, (env, now), &mut steps)?;
        let hooks = self.hooks(options.driver, &mut steps)?;
        let repo = self.repo.as_ref().ok();
        let commit = if options.no_commit {
            ignore::exclude(repo, &self.rules, &mut steps)?;
            None
        } else {
            let again = options.existing == Existing::Upgrade;
            ignore::add(&self.work, &self.rules, repo, (now, again), &mut steps)?
        };
        if let Some(task) = &options.task {
            task::lay_down(&self.work, repo, task, (now, options.no_commit), &mut steps)?;
        }
        if let (Some(plan), Some(frozen)) = (&options.plan, &self.frozen) {
            plan.lay_down(&self.work, repo, now, &mut steps)?;
            let what = "PLAN.md and its commands, frozen in the trusted store";
            let by = peers_place::operator::name(env);
            steps.act(Action::Accept, what, || plan.freeze(&self.place, frozen, &by))?;
            plan.notes(self.place.work_dir()).into_iter().for_each(|note| steps.note(note));
        }
        if outcome == Outcome::Rebuilt {
            backup::prune(&self.work, self.store.as_ref(), &mut steps)?;
        }
        drop(lock);
        let host = if options.install {
            let tools = tools_to_hook(&config_now, &mut steps);
            host::apply(HostHooks::Install, &tools, (self.place.work_dir(), env), options.dry_run)
        } else {
            Vec::new()
        };
        Ok(InitReport {
            dry_run: options.dry_run,
            outcome,
            peers_dir: self.place.work_dir().join(PEERS_DIR),
            store: self.place.store_dir().to_owned(),
            project: self.place.id().clone(),
            base,
            commit,
            hooks,
            host,
            changes: steps.changes,
            notes: steps.notes,
        })
    }

    fn set_aside(&self, stamp: Option<&str>, now: Timestamp, steps: &mut Steps) -> Result<(), ScaffoldError> {
        let stamp = match stamp {
            Some(stamp) => stamp.to_owned(),
            None => backup::stamp(&backup::places(&self.work, self.store.as_ref()), now)?,
        };
        if self.has_peers_dir {
            backup::control_dir(&self.work, &stamp, steps)?;
        }
        match &self.store {
            Some(store) => {
                if backup::store_files(store, &stamp, self.extent, steps)? {
                    steps.note(format!(
                        "the history so far is kept in {}",
                        term::inline(&self.place.store_dir().join(format!("bak-{stamp}")).to_string_lossy())
                    ));
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The commit from which the agents' history is counted: kept once it is known. Writes it into the
    /// store, and as a tag for people and agents, which is never moved.
    fn anchor(
        &self,
        existing: Existing,
        now: Timestamp,
        steps: &mut Steps,
    ) -> Result<Option<CommitId>, ScaffoldError> {
        let gone = |base: &CommitId| self.repo.as_ref().is_ok_and(|repo| !repo.facts().has(base));
        let known = self
            .project
            .as_ref()
            .and_then(|project| project.base.clone())
            .filter(|base| existing != Existing::Force || !gone(base));
        let head = match &self.repo {
            Ok(repo) => repo.facts().head().map(|head| head.commit).map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        let base = match (known, head) {
            (Some(base), _) | (None, Ok(base)) => Some(base),
            (None, Err(_)) if self.unborn() => {
                steps.note(format!(
                    "there is no commit yet: the first `peers run` sets the tag {BASELINE}, from which the agents' history is counted"
                ));
                None
            }
            (None, Err(why)) => {
                steps.note(format!("the tag `{BASELINE}` was not set: {why}"));
                None
            }
        };
        let created_at = self.project.as_ref().map_or(now, |project| project.created_at);
        let project = Project { created_at, ..self.place.describe(now, base.clone()) };
        let same = self.project.as_ref().is_some_and(|old| old.base == project.base);
        if !same || (self.unanchored && base.is_some()) {
            steps.act(Action::Create, "project.json in the trusted store", || {
                if let Some(store) = &self.store {
                    project::write(&mut FsDisk::new(store.try_clone()?, None), &project)?;
                }
                Ok(())
            })?;
        }
        if let (Some(base), Ok(repo)) = (&base, &self.repo) {
            let who = Author::new("peers-init", "peers-init@local", now);
            match anchor::tag(repo, base, &who, !steps.dry_run()) {
                Tagged::Already => {}
                Tagged::Now => {
                    steps.act(Action::Tag, format!("{BASELINE} at {}", base.short()), || Ok(()))?;
                }
                Tagged::Not(why) => steps.note(why),
            }
        }
        Ok(base)
    }

    fn unborn(&self) -> bool {
        let unborn = |repo: &PeerRepo| repo.preflight().iter().any(|e| matches!(e, RepoError::Unborn { .. }));
        self.repo.as_ref().is_ok_and(unborn)
    }

    fn logs(&self, steps: &mut Steps) -> Result<(), ScaffoldError> {
        for name in ["log", peers::INBOX] {
            if !self.has(name)? {
                steps.act(Action::Create, format!(".peers/{name}/"), || match &self.kept {
                    Some(dir) => Ok(dir.create_subdir(name).map(drop)?),
                    None => Ok(()),
                })?;
            }
        }
        // That of a journal that is there already is written anew by the next run; an empty one would be another.
        let written = match &self.store {
            Some(store) => store.stat(JOURNAL)?.is_some(),
            None => false,
        };
        if !written && !self.has(peers::MIRROR)? {
            self.write(Action::Create, peers::MIRROR, b"", steps)?;
        }
        Ok(())
    }

    /// What editors complete the two files from.
    fn schemas(&self, steps: &mut Steps) -> Result<(), ScaffoldError> {
        for described in [Described::Config, Described::Goals] {
            self.refresh(&peers::schema(described), &described.text(), steps)?;
        }
        Ok(())
    }

    /// Writes a file that is ours, unless it says that already.
    fn refresh(&self, name: &str, text: &str, steps: &mut Steps) -> Result<(), ScaffoldError> {
        let old = match &self.kept {
            Some(dir) if self.has(name)? => {
                let (parent, leaf) = dir.parent_of(name)?;
                parent.read_opt(leaf, limits::CONFIG)?
            }
            _ => None,
        };
        if old.as_deref() == Some(text.as_bytes()) {
            return Ok(());
        }
        let action = if old.is_some() { Action::Edit } else { Action::Create };
        self.write(action, name, text.as_bytes(), steps)
    }

    /// A file of the operator's that is there and stays.
    fn there(&self, name: &str) -> Result<Option<Vec<u8>>, ScaffoldError> {
        Ok(self.kept.as_ref().map(|dir| dir.read_opt(name, limits::CONFIG)).transpose()?.flatten())
    }

    /// Lays down a file that is the operator's: what is there stays, what was accepted comes back, else
    /// the template.
    fn operators(
        &self,
        name: &str,
        template: &str,
        accepted: usize,
        steps: &mut Steps,
    ) -> Result<Laid, ScaffoldError> {
        let configured = match name {
            peers::CONFIG => self.configured.as_ref(),
            _ => {
                Some(&self.template.text).filter(|_| !self.template.asked.is_empty() || self.modes.is_some())
            }
        };
        if let Some(bytes) = self.there(name)? {
            let laid = configured.map_or(template, String::as_str);
            return Ok(Laid { kept: !(self.unfinished && is_laid(&bytes, laid)), bytes });
        }
        let (action, bytes) = match (configured, self.accepted_bytes.get(accepted).cloned().flatten()) {
            (Some(text), _) => (Action::Create, text.as_bytes().to_vec()),
            (None, Some(bytes)) => (Action::Restore, bytes),
            (None, None) => (Action::Create, template.as_bytes().to_vec()),
        };
        self.write(action, name, &bytes, steps)?;
        Ok(Laid { bytes, kept: false })
    }

    fn with_driver(
        &self,
        config: &Laid,
        driver: Option<Driver>,
        steps: &mut Steps,
    ) -> Result<Vec<u8>, ScaffoldError> {
        let Some(driver) = driver else { return Ok(config.bytes.clone()) };
        let word = word(driver);
        let edited = std::str::from_utf8(&config.bytes).ok().and_then(|text| key::set(text, "driver", word));
        match edited {
            Some(edited) if edited.as_bytes() == config.bytes => {}
            Some(edited) => {
                self.write(Action::Edit, peers::CONFIG, edited.as_bytes(), steps)?;
                return Ok(edited.into_bytes());
            }
            None => steps.note(format!(
                "config.yaml has no line `driver: ...` to change; write `driver: {word}` yourself"
            )),
        }
        Ok(config.bytes.clone())
    }

    /// Accepts what this command wrote. What was there already is accepted only by its own operator.
    fn accept(
        &self,
        goals: &Laid,
        config: &Laid,
        config_now: &[u8],
        (env, now): (&Env, Timestamp),
        steps: &mut Steps,
    ) -> Result<(), ScaffoldError> {
        let accepted = self.accepted.as_ref().map(|accepted| &accepted.digests);
        if accepted == Some(&accept::digests(&goals.bytes, config_now)) {
            return Ok(());
        }
        let was = accept::digests(&goals.bytes, &config.bytes);
        let mut strange = Vec::new();
        if goals.kept && accepted.is_none_or(|accepted| accepted.goals != was.goals) {
            strange.push(peers::GOALS);
        }
        if config.kept && accepted.is_none_or(|accepted| accepted.config != was.config) {
            strange.push(peers::CONFIG);
        }
        if self.cloned {
            let were = if strange.len() == 1 { "was" } else { "were" };
            steps.note(Step::text(
                "not accepted: {} {} there before; read what would run as you there, then run `peers goals accept`",
                &[&strange.join(" and "), were],
            ));
            return Ok(());
        }
        if !strange.is_empty() {
            steps.note(Step::text(
                "not accepted: {} differs from what was accepted; `peers goals diff` shows it, `peers goals accept` accepts it",
                &[&strange.join(" and ")],
            ));
            return Ok(());
        }
        let by = peers_place::operator::name(env);
        steps.act(Action::Accept, "goals.yaml and config.yaml", || {
            if let Some(store) = &self.store {
                let mut disk = FsDisk::new(store.try_clone()?, None);
                let modes = self.modes.as_ref().filter(|_| !goals.kept).map(|modes| accept::NewModes {
                    modes: modes.applied.clone(),
                    files: modes.files.clone(),
                });
                let files = (goals.bytes.as_slice(), config_now);
                accept::write_with(&mut disk, files, (now, &by, Some("peers init")), modes)?;
            }
            Ok(())
        })
    }

    fn hooks(&self, driver: Option<Driver>, steps: &mut Steps) -> Result<Option<String>, ScaffoldError> {
        if driver != Some(Driver::Hooks) && !self.has(HOOKS)? {
            return Ok(None);
        }
        let Some(snippets) = hooks::snippets(self.place.work_dir()) else {
            steps.note("the path of this directory cannot stand in a hook; no snippets were written");
            return Ok(None);
        };
        for snippet in snippets {
            self.refresh(&format!("{HOOKS}/{}", snippet.name), &snippet.text, steps)?;
        }
        Ok(Some(format!("{PEERS_DIR}/{HOOKS}")))
    }

    /// Whether something of this name will still be below `.peers/`.
    fn has(&self, path: &str) -> Result<bool, ScaffoldError> {
        let Some(dir) = &self.kept else { return Ok(false) };
        match dir.parent_of(path) {
            Ok((parent, name)) => Ok(parent.stat(name)?.is_some()),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a file below `.peers/`.
    fn write(
        &self,
        action: Action,
        path: &str,
        bytes: &[u8],
        steps: &mut Steps,
    ) -> Result<(), ScaffoldError> {
        steps.act(action, format!("{PEERS_DIR}/{path}"), || {
            if let Some(dir) = &self.kept {
                let (parent, name) = dir.create_parent_of(path)?;
                parent.publish(name, bytes)?;
            }
            Ok(())
        })
    }
}

fn word(driver: Driver) -> &'static str {
    match driver {
        Driver::Orchestrator => "orchestrator",
        Driver::Hooks => "hooks",
        Driver::Sessions => "sessions",
    }
}

/// Whether a file is this text of ours, with whatever driver.
fn is_laid(bytes: &[u8], text: &str) -> bool {
    let drivers = [Driver::Orchestrator, Driver::Hooks, Driver::Sessions];
    bytes == text.as_bytes()
        || drivers
            .into_iter()
            .any(|driver| key::set(text, "driver", word(driver)).is_some_and(|text| text.as_bytes() == bytes))
}

/// Nothing in place of a damaged file of the acceptance, which is told: it is made anew here, or by its
/// operator.
fn readable<T>(read: Result<Option<T>, StoreError>, lost: &mut Vec<String>) -> Result<Option<T>, StoreError> {
    match read {
        Err(error @ StoreError::File { .. }) => {
            lost.push(error.to_string());
            Ok(None)
        }
        other => other,
    }
}
