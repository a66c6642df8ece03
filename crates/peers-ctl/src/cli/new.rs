//! `peers-ctl new`.

mod dialogue;
mod programs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use peers_acts::contract;
use peers_console::agents::{self, Agent};
use peers_console::cx::{self, Cx};
use peers_console::error::CommandError;
use peers_console::output::Out;
use peers_fleet::observe::path_id;
use peers_fleet::oplock::OpLock;
use peers_fleet::registry::{self, Warning};
use peers_fleet::start::StartOptions;
use peers_fleet::{ConfigDir, Project, ProjectName, config, roster};
use peers_model::command::{Command, Step};
use peers_model::exit;
use peers_model::goal::PLACEHOLDER;
use peers_place::Place;
use peers_run::boot::{self, Finding};
use peers_setup::detect::Language;
use peers_setup::frozen::Planned;
use peers_setup::project::{self, Created, How, Notice, ProjectOptions};
use peers_setup::{Action, Agents, Field, Gates, PeerSetting, WORK_WITH_HOOKS};
use peers_sys::dir::SafeDir;
use peers_sys::{clock, term};
use peers_view::Spelling;
use serde_json::json;

use super::add;
use crate::ctl::{Ctl, failed, here};

/// Set up a directory as a project and register it
///
/// A PATH with a slash, `.`, `..` or `~` is used as it is; a bare word names a directory below the projects
/// root (`$PEERS_PROJECTS_ROOT`). A missing directory is created, with a repository in it. An existing
/// repository is not changed, except for the line that ignores `.peers/`, and PLAN.md or TASK.md with `--plan`
/// or `--task`. If it fails half-way, it says so, and the same command completes it.
/// Without PATH, on a terminal, it asks for the few things that matter.
/// If a bare word also names a directory here, it asks which one is meant; without a terminal it refuses.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// The top of the repository; created if it does not exist
    path: Option<PathBuf>,
    /// Name of the project [default: the name of its directory]
    #[arg(long)]
    name: Option<String>,
    /// Add a gate that runs CMD and requires exit code 0, in place of the placeholder
    #[arg(long, value_name = "CMD")]
    test: Option<String>,
    /// Add the gates that `peers goals detect` proposes; if it finds none, write nothing and exit 1
    #[arg(long, conflicts_with = "test")]
    detect: bool,
    /// Write and commit TASK.md with this text, or the text of this file; every prompt names it
    #[arg(long, value_name = "TEXT|FILE", value_hint = clap::ValueHint::FilePath)]
    task: Option<String>,
    /// Choose the agents that take turns; a single agent becomes two peers [default: those that are installed]
    #[arg(long, value_enum, value_name = "A,B", value_delimiter = ',')]
    agents: Vec<Agent>,
    /// Then start the loop
    #[arg(long)]
    start: bool,
    /// Write SPEC.md with this text, or the text of this file; for a project without a history
    #[arg(long, value_name = "TEXT|FILE", value_hint = clap::ValueHint::FilePath)]
    spec: Option<String>,
    /// Commit this plan as PLAN.md and freeze it with its commands; needs --modes implement
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    plan: Option<PathBuf>,
    /// Freeze the plan although its acceptance command passes already, cannot be run here, or needs a file that HEAD lacks
    #[arg(long, requires = "plan")]
    accept_passing: bool,
    /// Write the goals of these modes in place of the usual ones; `peers-ctl modes list` shows them
    #[arg(long, value_name = "A,B")]
    modes: Option<String>,
    /// Language of the project, if no file in it says so
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    lang: Option<Lang>,
    /// Who calls the loop
    #[arg(long, value_enum, value_name = "WHO")]
    driver: Option<Driver>,
    /// Write the model of all peers into the configuration, or of those whose name or tool is PEER
    #[arg(long, value_name = "[PEER=]MODEL")]
    peer_model: Vec<String>,
    /// The same for the reasoning level
    #[arg(long, value_name = "[PEER=]LEVEL")]
    peer_reasoning: Vec<String>,
    /// The same for the provider
    #[arg(long, value_name = "[PEER=]PROVIDER")]
    peer_provider: Vec<String>,
    /// Accept a directory that has files and no commit: its files become the first commit
    #[arg(long)]
    into_nonempty: bool,
    /// Move an existing control directory and its run history aside, and start over
    #[arg(long)]
    overwrite_peers: bool,
    /// Replace the project of this name if it does not run
    #[arg(long)]
    replace_registration: bool,
    /// A label to select it by; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = add::label)]
    label: Vec<(String, String)>,
    /// A note for people
    #[arg(long, value_name = "TEXT", default_value = "")]
    notes: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Lang {
    Python,
    Js,
    Rust,
    Go,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Driver {
    /// `peers run`
    Orchestrator,
    /// The stop hooks of your own sessions of an agent
    Hooks,
    /// A terminal for each agent
    Sessions,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    if let Some(path) = &args.path {
        return make(args, path, ctl);
    }
    if ctl.json || !ctl.out.can_ask() {
        return Err(CommandError::usage("PATH is missing, and there is no terminal to ask on")
            .hint("name the directory: `peers-ctl new .` for this one"));
    }
    match dialogue::hold(args, ctl)? {
        Some(Args { path: Some(path), .. }) if path.as_os_str().is_empty() => Err(nowhere(&path)),
        Some(asked) => make(&asked, asked.path.as_deref().unwrap_or(Path::new(".")), ctl),
        None => {
            ctl.out.talk("nothing was written");
            Ok(ExitCode::from(exit::NEGATIVE))
        }
    }
}

/// Makes it, registers it, tells it, and starts it where that was asked for.
fn make(args: &Args, path: &Path, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    let path = &meant(path, ctl)?;
    let config = ctl.config_made()?;
    let site = Site::of(path, args.name.as_deref(), ctl)?;
    if args.replace_registration {
        // Whether it runs is looked at, not remembered.
        ctl.seen_of(&config, std::slice::from_ref(&site.name))?;
    }
    site.may_be_added(args, &config, ctl)?;
    let cx = site.cx(ctl);
    cx.operators_alone_here("new")?;
    let mut notices = Vec::new();
    let created = {
        let _op = site.lock(ctl)?;
        if let Some(root) = site.root.as_ref().filter(|root| !root.is_dir()) {
            SafeDir::create_root(root)?;
        }
        project::create(&args.options(&site.path, ctl)?, &ctl.env, &mut |notice| notices.push(notice))?
    };
    let added = roster::Addition {
        path: created.path.clone(),
        name: Some(site.name.to_string()),
        labels: args.label.iter().cloned().collect(),
        notes: args.notes.clone(),
        replace: args.replace_registration,
    };
    let registered = roster::add(&config, &ctl.env, &added);
    let told = Told { args, ctl, name: &site.name, created: &created, notices: &notices, cx: &cx };
    match registered {
        Ok(_) => told.tell(&config),
        Err(finding) => Err(told.unregistered(&finding)),
    }
}

/// What PATH means: a bare word that is also a directory here is asked about.
fn meant(path: &Path, ctl: &Ctl) -> Result<PathBuf, CommandError> {
    let here = Path::new(".").join(path);
    if path.as_os_str().is_empty() || !config::is_bare_word(path) || !here.is_dir() {
        return Ok(path.to_owned());
    }
    let below = config::project_path(path, &ctl.env).map_err(failed)?;
    if below.canonicalize().is_ok_and(|below| here.canonicalize().is_ok_and(|here| here == below)) {
        return Ok(path.to_owned());
    }
    let [shown, other] = [&here, &below].map(|path| term::inline(&path.to_string_lossy()));
    let answer = if ctl.json {
        None
    } else {
        ctl.out.ask(&format!("`{shown}` is a directory here. Set up that one, and not {other}? [y/n] "))?
    };
    match answer.as_deref().map(str::trim) {
        Some("y" | "Y" | "yes") => Ok(here),
        Some("n" | "N" | "no") => Ok(path.to_owned()),
        _ => {
            let word = term::inline(&path.to_string_lossy());
            let hint = format!(
                "to set up that directory: `peers-ctl new {}`",
                term::quoted(&here.to_string_lossy())
            );
            Err(CommandError::usage(format!("`{word}` means {other}, and `{shown}` is a directory here"))
                .hint(hint))
        }
    }
}

fn nowhere(path: &Path) -> CommandError {
    let shown = term::inline(&path.to_string_lossy());
    CommandError::usage(format!("`{shown}` names no directory"))
        .hint("name the directory: `peers-ctl new .` for this one")
}

/// Where the project is to be, and what it is to be called.
struct Site {
    path: PathBuf,
    /// Where bare words lie, if this is one.
    root: Option<PathBuf>,
    name: ProjectName,
}

impl Site {
    fn of(path: &Path, name: Option<&str>, ctl: &Ctl) -> Result<Self, CommandError> {
        let (path, root) = located(path, ctl)?;
        let name = roster::name_of(&path, name).map_err(failed)?;
        Ok(Self { path, root, name })
    }

    /// Looks into the registry, and at what is to be written there.
    fn may_be_added(&self, args: &Args, config: &ConfigDir, ctl: &Ctl) -> Result<(), CommandError> {
        let project = Project {
            labels: args.label.iter().cloned().collect(),
            notes: args.notes.clone(),
            ..Project::new(self.name.clone(), &self.path, None, clock::now())
        };
        project.check().map_err(|invalid| CommandError::usage(invalid.to_string()))?;
        let loaded = ctl.registry(config)?;
        let gives_way = |known: &&Project| args.replace_registration && known.name == self.name;
        unknown(&self.path, loaded.registry.projects().filter(|known| !gives_way(known)))?;
        roster::free(config, &self.name, args.replace_registration).map_err(failed)
    }

    fn cx(&self, ctl: &Ctl) -> Cx {
        let spelling = Spelling::Ctl {
            name: self.name.to_string(),
            dir: self.path.to_string_lossy().into_owned(),
            config_dir: crate::board::named(ctl.config_dir.as_deref()),
        };
        Cx {
            env: ctl.env.clone(),
            out: Out::new(&ctl.env, spelling),
            target: self.path.clone(),
            project: None,
        }
    }

    /// The op lock, where a trusted store says that somebody else may be about the project.
    fn lock(&self, ctl: &Ctl) -> Result<Option<OpLock>, CommandError> {
        let Ok(place) = Place::locate(&self.path, &ctl.env) else { return Ok(None) };
        if !place.view_store().is_ok_and(|store| store.is_some()) {
            return Ok(None);
        }
        OpLock::take(&place, &format!("peers-ctl new {}", self.name), ctl.wait).map(Some).map_err(failed)
    }
}

/// The directory that is meant, without links where it is there, and the projects root for a bare word.
fn located(path: &Path, ctl: &Ctl) -> Result<(PathBuf, Option<PathBuf>), CommandError> {
    if path.as_os_str().is_empty() {
        return Err(nowhere(path));
    }
    let meant = config::project_path(path, &ctl.env).map_err(failed)?;
    let root = config::projects_root(&ctl.env).ok();
    let root = root.filter(|root| config::is_bare_word(path) && meant.parent() == Some(root));
    if let Ok(real) = meant.canonicalize() {
        return Ok((real, root));
    }
    let name = meant.file_name().ok_or_else(|| nowhere(path))?;
    let parent = meant.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = parent.canonicalize().or_else(|_| std::path::absolute(parent))?;
    Ok((real.join(name), root))
}

/// Refuses a directory that is registered under another name.
fn unknown<'a>(path: &Path, mut others: impl Iterator<Item = &'a Project>) -> Result<(), CommandError> {
    let (shown, id) = (path.to_string_lossy(), path_id(path));
    match others.find(|known| known.path == shown || (id.is_some() && known.path_id == id)) {
        None => Ok(()),
        Some(known) => Err(CommandError::new(
            exit::CONFLICT,
            format!("{} is registered already, as `{}`", term::inline(&shown), known.name),
        )
        .hint(Step::text(
            "`peers-ctl start {}` starts it; `peers-ctl remove {}` takes it out",
            &[known.name.as_str(), known.name.as_str()],
        ))),
    }
}

impl Args {
    fn options(&self, target: &Path, ctl: &Ctl) -> Result<ProjectOptions, CommandError> {
        let settings = [
            (Field::Model, &self.peer_model),
            (Field::Reasoning, &self.peer_reasoning),
            (Field::Provider, &self.peer_provider),
        ];
        let task = self.task.as_deref().map(|task| peers_setup::text_of("--task", task, &ctl.env));
        Ok(ProjectOptions {
            target: target.to_owned(),
            into_nonempty: self.into_nonempty,
            overwrite_peers: self.overwrite_peers,
            spec: self.spec.clone(),
            plan: self.plan.clone(),
            planned: self.tried(target, ctl)?,
            modes: self.modes.clone().map(|modes| vec![modes]),
            driver: self.driver.map(|driver| match driver {
                Driver::Orchestrator => peers_model::config::Driver::Orchestrator,
                Driver::Hooks => peers_model::config::Driver::Hooks,
                Driver::Sessions => peers_model::config::Driver::Sessions,
            }),
            language: self.lang.map(|lang| match lang {
                Lang::Python => Language::Python,
                Lang::Js => Language::Js,
                Lang::Rust => Language::Rust,
                Lang::Go => Language::Go,
            }),
            gates: match (&self.test, self.detect) {
                (Some(cmd), _) => Gates::Tests(cmd.clone()),
                (None, true) => Gates::Detected,
                (None, false) => Gates::Placeholder,
            },
            agents: agents::named(&self.agents).map_or(Agents::Installed, Agents::Named),
            task: task.transpose()?,
            settings: settings
                .into_iter()
                .flat_map(|(field, texts)| {
                    texts.iter().map(move |text| PeerSetting { field, text: text.clone() })
                })
                .collect(),
        })
    }

    /// The plan, with what its acceptance command says before anything is done.
    fn tried(&self, target: &Path, ctl: &Ctl) -> Result<Option<Planned>, CommandError> {
        match (&self.plan, self.modes.as_deref(), &self.spec) {
            (Some(path), Some("implement"), None) => {
                let mut planned = Planned::read(path)?;
                planned.look_for_files(target, self.accept_passing)?;
                planned.at_base = contract::preflight(target, &ctl.env, planned.plan(), self.accept_passing)?;
                Ok(Some(planned))
            }
            // Refused with all the rest.
            _ => Ok(None),
        }
    }
}

/// What was made, and for whom it is told.
struct Told<'a> {
    args: &'a Args,
    ctl: &'a Ctl,
    name: &'a ProjectName,
    created: &'a Created,
    notices: &'a [Notice],
    /// For the directory.
    cx: &'a Cx,
}

impl Told<'_> {
    fn tell(&self, config: &ConfigDir) -> Result<ExitCode, CommandError> {
        let Self { args, ctl, name, created, .. } = self;
        if !ctl.json {
            self.made()?;
            self.odd();
        }
        if !args.start {
            let next = self.next();
            if ctl.json {
                self.document(&next, None)?;
            } else if !ctl.quiet {
                // What a start would refuse comes before it.
                for (at, step) in next.iter().enumerate() {
                    self.cx.out.talk(&format!("{}: {step}", if at == 0 { "next" } else { "then" }));
                }
            }
            return Ok(ExitCode::from(exit::OK));
        }
        let options = StartOptions { wait: ctl.wait, ..StartOptions::default() };
        match super::start::started(ctl, config, name, &options) {
            Ok(done) if ctl.json => self.document(&[], Some(&done.data))?,
            Ok(done) => ctl.out.page(&format!("{}\n", done.text))?,
            Err(error) => {
                let shown = term::inline(&created.path.to_string_lossy());
                if ctl.json {
                    self.document(&self.next(), None)?;
                } else {
                    ctl.say(&format!("note: {shown} is set up and registered; starting it failed"));
                }
                return Err(ctl.about_name(name, error));
            }
        }
        Ok(ExitCode::from(exit::OK))
    }

    /// What was made, in a few lines.
    fn made(&self) -> Result<(), CommandError> {
        let Self { ctl, name, created, .. } = self;
        let Created { path, how, first_commit, init } = created;
        let commit = first_commit.as_ref().map(|commit| format!(", first commit {}", commit.short()));
        let commit = commit.unwrap_or_default();
        let what = match how {
            How::Made => "a new repository",
            How::Filled => "a new repository, with the files that were there",
            How::Begun => "the repository that was there, without a commit so far",
            How::Adopted => "the repository that was there",
            How::Completed => "a set-up that had been cut short, completed",
        };
        let accepted = init.changes.iter().any(|change| change.action == Action::Accept);
        let accepted = if accepted { ", accepted" } else { ", not accepted yet" };
        ctl.out.line(&format!("{name} -> {}", term::inline(&path.to_string_lossy())))?;
        ctl.out.line(&format!("  {what}{commit}"))?;
        ctl.out.line(&format!(
            "  .peers/goals.yaml and .peers/config.yaml{accepted}; trusted store {}",
            term::inline(&init.store.to_string_lossy())
        ))?;
        match init.where_hooks_are() {
            Some(hooks) => ctl.out.line(&format!("  {hooks}")),
            None => Ok(()),
        }
    }

    /// What is odd about it.
    fn odd(&self) {
        if self.ctl.quiet {
            return;
        }
        for notice in self.notices {
            self.cx.out.talk(&format!("warning: {}", notice.message));
        }
        for note in &self.created.init.notes {
            self.cx.out.advise(Step::from("note: ").join(note.clone()));
        }
    }

    /// What is still missing before a start would succeed, then what begins the first turn.
    fn next(&self) -> Vec<String> {
        let mut steps: Vec<Step> = self.task().into_iter().chain(self.before()).collect();
        steps.extend(self.programs());
        if let Ok(place) = self.cx.place() {
            steps.extend(self.cx.refusals(&place, &cx::lock(&place)));
        }
        steps.push(match self.args.driver {
            Some(Driver::Hooks) => WORK_WITH_HOOKS.into(),
            Some(Driver::Orchestrator | Driver::Sessions) | None => Step::of(Command::run()),
        });
        steps.iter().map(|step| self.cx.out.spelling().tell(step)).collect()
    }

    /// What is missing in the goals.
    fn before(&self) -> Option<Step> {
        const MEND: &str = "fix .peers/goals.yaml and .peers/config.yaml (`peers goals lint` says what is wrong), then `peers goals accept`";
        const READ: &str =
            "read what would run as you, then take it over: `peers goals diff`, `peers goals accept`";
        let Ok((_, mut disk)) = self.cx.view() else { return Some(MEND.into()) };
        let Ok(loaded) = boot::load(&mut disk) else { return Some(MEND.into()) };
        if !loaded.unaccepted().is_empty() {
            return Some(READ.into());
        }
        let gates = boot::rules(&loaded.config, &loaded.goals, &peers_model::RunRequest::default()).gates;
        if gates.iter().any(|gate| !gate.shipped) {
            return None;
        }
        if !gates.iter().any(|gate| gate.id.as_str() == PLACEHOLDER) {
            return Some("add a hard gate that runs your tests: `peers goals edit`".into());
        }
        let Args { driver, peer_model, peer_reasoning, peer_provider, .. } = self.args;
        // Starting over loses what was set.
        let set = driver.is_some()
            || [peer_model, peer_reasoning, peer_provider].iter().any(|settings| !settings.is_empty());
        let edit = Step::from(
            "put the command that runs your tests in the place of the placeholder gate: `peers goals edit`",
        );
        Some(if set {
            edit
        } else {
            edit.join(", or start over with your command: `peers init --force --test CMD`".into())
        })
    }

    /// Where the task belongs, as long as there is none.
    fn task(&self) -> Option<Step> {
        let there = |name| {
            SafeDir::open_shared(&self.created.path)
                .and_then(|dir| dir.stat(name))
                .is_ok_and(|stat| stat.is_some())
        };
        // The reviews of a mode say what is to be done.
        (self.args.modes.is_none() && !there("TASK.md") && !there("SPEC.md")).then(|| {
            "write what the agents should do into TASK.md at the top, and commit it; goals only say when it is done"
                .into()
        })
    }

    /// Programs that gates begin with and that are not there.
    fn programs(&self) -> Vec<Step> {
        let Ok((_, mut disk)) = self.cx.view() else { return Vec::new() };
        let Ok(loaded) = boot::load(&mut disk) else { return Vec::new() };
        let missing = programs::missing(&loaded.goals, &self.created.path, &self.ctl.env);
        let said = |(program, gates): (String, Vec<String>)| {
            let gates = gates.iter().map(|gate| format!("`{}`", term::line(gate, 80))).collect::<Vec<_>>();
            Step::text(
                "install `{}`, which is missing, or change the commands that start with it: {}",
                &[&program, &gates.join(", ")],
            )
        };
        missing.into_iter().map(said).collect()
    }

    fn document(&self, next: &[String], started: Option<&serde_json::Value>) -> Result<(), CommandError> {
        let Self { ctl, name, created, notices, .. } = self;
        let warnings: Vec<Warning> = notices
            .iter()
            .map(|Notice { code, message }| Warning {
                code,
                project: Some(name.to_string()),
                message: message.clone(),
            })
            .collect();
        let Created { path, how, first_commit, init } = created;
        let data = json!({"name": name, "path": path.to_string_lossy(), "how": how, "first_commit": first_commit,
            "init": init, "next": next, "started": started});
        ctl.document("new", &data, &warnings)
    }

    /// It was made, and somebody else took the name meanwhile, or the registry cannot be written.
    fn unregistered(&self, finding: &Finding) -> CommandError {
        let path = self.created.path.to_string_lossy();
        let label =
            |(key, value): &(String, String)| format!(" --label {}", term::quoted(&format!("{key}={value}")));
        let labels: Vec<String> = self.args.label.iter().map(label).collect();
        CommandError::new(
            finding.exit,
            format!("{} is set up, and not registered: {}", term::inline(&path), finding.message),
        )
        .hint_opt(finding.hint.clone())
        .hint(format!(
            "this registers it: `{} add {} --name {}{}`",
            controller(self.ctl),
            term::quoted(&path),
            self.name,
            labels.concat()
        ))
    }
}

/// This command, with the registry that it was pointed at.
fn controller(ctl: &Ctl) -> String {
    match &ctl.config_dir {
        Some(dir) => format!("peers-ctl --config-dir {}", term::quoted(&dir.to_string_lossy())),
        None => "peers-ctl".to_owned(),
    }
}

/// The projects that are registered.
fn names(ctl: &Ctl) -> Result<Vec<Project>, CommandError> {
    let Some(config) = ConfigDir::look(ctl.config_dir.as_deref(), &ctl.env).map_err(failed)? else {
        return Ok(Vec::new());
    };
    let loaded = registry::load(&config).map_err(failed)?;
    Ok(loaded.registry.projects().cloned().collect())
}

/// The directory in which the command was given, else that one by its short name.
fn current() -> PathBuf {
    here().unwrap_or_else(|| PathBuf::from("."))
}
