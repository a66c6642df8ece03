//! `peers demo`: the whole loop on a small project, with scripted peers.

mod project;
mod story;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::ValueEnum;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::operator;
use peers_model::command::Step;
use peers_model::outcome::StopReason;
use peers_model::record::OperatorOp;
use peers_model::{RunRequest, exit};
use peers_place::{PEERS_DIR, Place};
use peers_run::boot::RunOptions;
use peers_setup::{DeinitOptions, InitOptions};
use peers_store::accept;
use peers_store::layout::peers;
use peers_sys::dir::{FileMode, SafeDir};
use peers_sys::spawn::resolve_program;
use peers_sys::term::quoted;
use peers_sys::{clock, env, term};

use self::project::Kind;
use super::run;

/// The demonstration needs six ticks; more than this would be a mistake of ours.
const MAX_TICKS: u64 = 12;

/// Watch the whole loop on a sample project, without an account or a network
///
/// Makes a small project with a planted defect and a failing test, and lets two scripted peers work on
/// it: a bug report, a test that reproduces it, the fix, a review by the other peer, the skeptic's turn,
/// and the proof in a clean checkout. The peers are scripts; gates, journal and proof are real. With
/// cargo and a C compiler the project is a Rust crate, else a shell script.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Make it in DIR, which must be absent or empty [default: a new directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The language of the project
    #[arg(long, value_enum, value_name = "LANG", default_value_t = Language::Auto)]
    language: Language,
    /// Remove everything afterwards; otherwise it is left in place
    #[arg(long)]
    no_keep: bool,
    /// Show the last lines that each peer printed
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Rust where it can be built, else shell
    Auto,
    Rust,
    Shell,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let root = root(args.dir.as_deref(), cx)?;
    let demo = Demo { kind: kind(args.language, &root, cx), repo: root.join("project"), root };
    cx.out.talk(&format!(
        "A demonstration in {}:\n{}.\nIts two peers, alice and bob, are scripts (`peers fake-peer`): no agent, no\naccount, no network. Everything else is real: the gates, the journal, the\nskeptic's turn, the proof.\n",
        shown(&demo.root),
        demo.kind.about()
    ));
    demo.lay_down(cx)?;
    let options = RunOptions {
        target: demo.repo.clone(),
        request: RunRequest { max_ticks: Some(MAX_TICKS), ..RunRequest::default() },
        argv: env::args().iter().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        ..RunOptions::default()
    };
    let summary = run::looped(&options, args.verbose, None, cx)?;
    if args.no_keep {
        demo.remove(cx)?;
    } else {
        demo.tell(cx)?;
    }
    match summary.reason {
        StopReason::Complete => Ok(ExitCode::SUCCESS),
        reason => {
            let code = reason.exit_code();
            Ok(ExitCode::from(if code == exit::OK { exit::NEGATIVE } else { code }))
        }
    }
}

struct Demo {
    kind: Kind,
    root: PathBuf,
    repo: PathBuf,
}

/// The directory, made and empty.
fn root(given: Option<&Path>, cx: &Cx) -> Result<PathBuf, CommandError> {
    let path = if let Some(dir) = given {
        dir.to_owned()
    } else {
        let random = peers_sys::rand::hex::<4>()
            .map_err(|error| CommandError::new(exit::BUG, format!("random bytes: {error}")))?;
        cx.env.absolute("TMPDIR").unwrap_or_else(|| "/tmp".into()).join(format!("peers-demo-{random}"))
    };
    let dir = SafeDir::create_root(&path)?;
    let listing = dir.list(1)?;
    if !listing.entries.is_empty() {
        return Err(CommandError::new(exit::CONFLICT, format!("{} is not empty", shown(&path)))
            .hint("name a directory that is absent or empty"));
    }
    path.canonicalize().map_err(|error| CommandError::new(exit::BUG, format!("{}: {error}", shown(&path))))
}

/// Rust where cargo starts and there is a linker.
fn kind(language: Language, root: &Path, cx: &Cx) -> Kind {
    let here = |name: &str| resolve_program(OsStr::new(name), cx.env.var("PATH"), root).ok();
    let builds = || {
        let cargo = here("cargo")?;
        let _linker = here("cc")?;
        // A proxy without a toolchain is found as well, but does not start one.
        let mut asked = Command::new(cargo);
        asked
            .arg("--version")
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        asked.status().ok()?.success().then_some(())
    };
    match language {
        Language::Rust => Kind::Rust,
        Language::Shell => Kind::Shell,
        Language::Auto => builds().map_or(Kind::Shell, |()| Kind::Rust),
    }
}

impl Demo {
    fn lay_down(&self, cx: &Cx) -> Result<(), CommandError> {
        let root = SafeDir::open_shared(&self.root)?;
        for (path, text) in self.kind.files() {
            self.write(&root, &format!("project/{path}"), text)?;
        }
        for (peer, script) in story::scripts(self.kind) {
            self.write(&root, &format!("scripts/{peer}.yaml"), &script)?;
        }
        self.first_commit(cx)?;
        let options = InitOptions { target: self.repo.clone(), ..InitOptions::default() };
        let report = peers_setup::init(&options, &cx.env)?;
        for note in report.notes {
            cx.out.advise(Step::from("note: ").join(note));
        }
        self.operate(cx)
    }

    #[expect(clippy::unused_self, reason = "one of the steps of laying down")]
    fn write(&self, root: &SafeDir, path: &str, text: &str) -> Result<(), CommandError> {
        let (dir, name) = root.create_parent_of(path)?;
        Ok(dir.publish_mode(name, text.as_bytes(), FileMode::Plain)?)
    }

    /// A repository of our own making: nothing in it is anybody else's yet.
    fn first_commit(&self, cx: &Cx) -> Result<(), CommandError> {
        let git = cx.git()?;
        let identity =
            ["-c", "user.name=demo", "-c", "user.email=demo@peers.local", "-c", "commit.gpgsign=false"];
        for (settings, words) in [
            (&["-c", "init.defaultBranch=main"][..], &["init", "-q", "--template="][..]),
            (&[][..], &["add", "-A"][..]),
            (&identity[..], &["commit", "-q", "--no-verify", "-m", "A median that is not quite right"][..]),
        ] {
            let done = Command::new(git.program())
                .args(settings)
                .args(words)
                .current_dir(&self.repo)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env_remove("GIT_DIR")
                .env_remove("GIT_WORK_TREE")
                .env_remove("GIT_INDEX_FILE")
                .stdin(Stdio::null())
                .output()
                .map_err(|error| {
                    CommandError::new(exit::ENVIRONMENT, format!("git does not start: {error}"))
                })?;
            if !done.status.success() {
                let said = String::from_utf8_lossy(&done.stderr);
                let what = words.first().copied().unwrap_or_default();
                return Err(CommandError::new(
                    exit::ENVIRONMENT,
                    format!("git {what}: {}", term::line(&said, 300)),
                ));
            }
        }
        Ok(())
    }

    /// Writes goals and configuration as an operator would, and accepts them.
    fn operate(&self, cx: &Cx) -> Result<(), CommandError> {
        let program = env::current_exe().map_err(|error| {
            CommandError::new(exit::BUG, format!("the path of this program is unknown: {error}"))
        })?;
        let scripts = self.root.join("scripts");
        let config = story::config(&program.to_string_lossy(), &scripts.to_string_lossy());
        let goals = story::goals(self.kind);
        let place = Place::locate(&self.repo, &cx.env)?;
        let dir = place.open_work()?.into_private().subdir(PEERS_DIR)?;
        let mut disk = place.open_store_disk()?;
        let old = accept::read(&mut disk)?.map(|accepted| accepted.digests).unwrap_or_default();
        dir.publish(peers::GOALS, goals.as_bytes())?;
        dir.publish(peers::CONFIG, config.as_bytes())?;
        let new = accept::digests(goals.as_bytes(), config.as_bytes());
        let note = "peers demo";
        let op = OperatorOp::Accepted { old, new, note: Some(note.to_owned()), rules: None };
        let by = cx.operator();
        operator::act(cx, &place, ("goals accept", op), |disk| {
            accept::write(disk, goals.as_bytes(), config.as_bytes(), clock::now(), &by, Some(note))?;
            Ok(())
        })?;
        Ok(())
    }

    fn remove(&self, cx: &Cx) -> Result<(), CommandError> {
        peers_setup::deinit(
            &DeinitOptions { target: self.repo.clone(), purge: true, dry_run: false },
            &cx.env,
        )?;
        if let (Some(parent), Some(name)) = (self.root.parent(), self.root.file_name()) {
            SafeDir::open_shared(parent)?.remove_tree(name)?;
        }
        Ok(())
    }

    fn tell(&self, cx: &Cx) -> Result<(), CommandError> {
        let repo = quoted(&self.repo.to_string_lossy());
        let root = quoted(&self.root.to_string_lossy());
        let peers = command(&self.root, cx);
        cx.out.data(&format!(
            "\n\
             The repository is {repo}. Look at it:\n  \
             {peers} -C {repo} status\n  \
             {peers} -C {repo} report\n  \
             {peers} -C {repo} replay 3 --diff     # the fix\n  \
             {peers} -C {repo} bug-hunt summary\n  \
             {peers} -C {repo} verify --pristine   # the proof\n  \
             git -C {repo} log\n\
             The scripts of the peers are in {root}/scripts.\n\
             `{peers} init` sets up a repository of yours.\n\
             To remove it all:\n  \
             {peers} -C {repo} deinit --purge\n  \
             rm -r {root}\n"
        ))
    }
}

/// How this very program is called: by its name where the shell finds it so, else by its path.
fn command(root: &Path, cx: &Cx) -> String {
    let Ok(own) = env::current_exe() else { return "peers".to_owned() };
    let found = resolve_program(OsStr::new("peers"), cx.env.var("PATH"), root).ok();
    let same = |found: PathBuf| found.canonicalize().ok() == own.canonicalize().ok();
    if found.is_some_and(same) { "peers".to_owned() } else { quoted(&own.to_string_lossy()) }
}

fn shown(path: &Path) -> String {
    term::inline(&path.to_string_lossy())
}
