//! `peers check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use peers_acts::{contract, tools};
use peers_checks::{
    ArgKind, Asked, Check, CheckCx, Contract, CouldNot, DEFAULT_LIMIT, Outcome, Ran, RanEnd, Tool, ToolRan,
};
use peers_console::cx::Cx;
use peers_console::error::{self, CommandError};
use peers_console::modes::{self, CheckOfGoal};
use peers_console::output::table;
use peers_model::config::Config;
use peers_model::verdict::Verdict;
use peers_place::{Place, PlaceError};
use peers_run::boot::{self, BootError};
use peers_sys::env::Env;
use peers_sys::spawn::RawExit;
use peers_sys::term;
use serde_json::json;

/// Run a built-in check, or all of a mode
///
/// Goals name checks by `check: NAME`; this runs the same code by hand. A check reads commits and the
/// records in the trusted store, and changes neither. Those that need the tests or linters of the
/// project run them in a clean checkout, after `setup`.
///
/// `peers check --all --mode A,B` runs all checks of modes. With `--json` it prints one line for each.
///
/// Exit codes: 0 pass, 1 violated, 2 wrong use, 3 could not be measured.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(alias = "run-check")]
pub(crate) struct Args {
    /// Name of the check; a word and a colon before it are ignored
    #[arg(required_unless_present_any = ["list", "all"])]
    name: Option<String>,
    /// List the checks and their flags
    #[arg(long)]
    list: bool,
    /// Run each check that the goals of the modes name, with their arguments; exit with the worst code
    #[arg(long, requires = "mode", conflicts_with_all = ["name", "list"])]
    all: bool,
    /// With `--list` and `--all`: the checks of these modes, and of those that they require
    #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with = "name")]
    mode: Vec<String>,
    /// The repository; by default the target
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Judge this commit: a full id, a branch, a tag [default: HEAD]
    #[arg(long, value_name = "REF")]
    head: Option<String>,
    /// Leave out history up to this commit [default: where `peers init` ran, as the store says; without one nothing is left out]
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print at most N findings
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
    /// Flags of the check itself
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let of_modes = if args.mode.is_empty() { None } else { Some(modes::checks(&args.mode, &cx.env)?) };
    let Some(name) = args.name.as_deref().filter(|_| !args.list) else {
        return match of_modes {
            Some(asked) if args.all => run_all(args, &asked, cx),
            asked => list(args.json, asked.as_deref(), cx),
        };
    };
    let name = peers_checks::without_mode(name);
    // An unknown name is wrong use wherever it is asked.
    let check = peers_checks::find(name).map_err(|error| CommandError::usage(error.to_string()))?;
    let mut asked = Common::of(args, cx);
    let flags = asked.take(&args.flags)?;
    let outcome = asked.judge(check.name, &flags, cx)?;
    asked.print(&outcome, cx)
}

/// Runs the checks of modes, each as its goal asks for it. The worst exit code counts.
fn run_all(args: &Args, checks: &[CheckOfGoal], cx: &Cx) -> Result<ExitCode, CommandError> {
    let asked = Common::of(args, cx);
    let mut worst = 0;
    for CheckOfGoal { name, args: flags } in checks {
        let outcome = asked.judge(name, flags, cx)?;
        worst = worst.max(outcome.exit_code());
        asked.print(&outcome, cx)?;
    }
    Ok(ExitCode::from(worst))
}

/// The flags that every check has.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) repo: PathBuf,
    pub(crate) head: Option<String>,
    pub(crate) base: Option<String>,
    pub(crate) json: bool,
    pub(crate) limit: usize,
}

impl Common {
    fn of(args: &Args, cx: &Cx) -> Self {
        Self {
            repo: args.repo.clone().unwrap_or_else(|| cx.target.clone()),
            head: args.head.clone(),
            base: args.base.clone(),
            json: args.json,
            limit: args.limit,
        }
    }

    /// Runs a check.
    fn judge(&self, name: &str, flags: &[String], cx: &Cx) -> Result<Outcome, CommandError> {
        match self.open(cx) {
            Ok(opened) => {
                let outcome = peers_checks::run(name, &opened, flags);
                outcome.map_err(|error| CommandError::usage(error.to_string()))
            }
            Err(why) => Ok(Outcome::could_not(name, why)),
        }
    }

    /// Takes our flags out of those that stand behind the first one of the check.
    fn take(&mut self, flags: &[String]) -> Result<Vec<String>, CommandError> {
        let mut own = Vec::new();
        let mut words = flags.iter();
        while let Some(word) = words.next() {
            let (name, value) =
                word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v.to_owned())));
            let mut value = || {
                let next = value.clone().or_else(|| words.next().cloned());
                next.ok_or_else(|| CommandError::usage(format!("`{name}` needs a value")))
            };
            match name {
                "--json" => self.json = true,
                "--repo" => self.repo = value()?.into(),
                "--head" => self.head = Some(value()?),
                "--base" => self.base = Some(value()?),
                "--limit" => {
                    let text = value()?;
                    let bad = |_| CommandError::usage(format!("`{}` is not a number", term::line(&text, 40)));
                    self.limit = text.parse().map_err(bad)?;
                }
                _ => own.push(word.clone()),
            }
        }
        Ok(own)
    }

    /// What a check may see.
    pub(crate) fn open(&self, cx: &Cx) -> Result<CheckCx, CouldNot> {
        let (control, mut store) = match known(&self.repo, cx) {
            Ok(found) => found,
            Err(error) => return Err(CouldNot::new(error)),
        };
        let config = store.as_mut().and_then(|disk| boot::load(disk).ok()).map(|loaded| loaded.config);
        let asked =
            Asked { repo: &self.repo, control, head: self.head.as_deref(), base: self.base.as_deref() };
        let opened = CheckCx::open(asked, store.as_mut())?;
        let Some((config, place)) = config.zip(Place::locate(&self.repo, &cx.env).ok()) else {
            return Ok(opened);
        };
        let at = Rc::new((place, cx.env.clone(), config));
        let tools = Rc::clone(&at);
        let opened = opened.with_tools(Box::new(move |tool| run_tool(&tools.0, &tools.1, &tools.2, tool)));
        Ok(opened.running(Box::new(move |contract| run_contract(&at.0, &at.1, &at.2, contract))))
    }

    /// Prints an answer and gives its exit code.
    pub(crate) fn print(&self, outcome: &Outcome, cx: &Cx) -> Result<ExitCode, CommandError> {
        if self.json {
            cx.out.line(&outcome.json(self.limit))?;
        } else {
            cx.out.data(&outcome.text(self.limit))?;
        }
        Ok(ExitCode::from(outcome.exit_code()))
    }
}

/// Runs a frozen script as a gate is run.
fn run_contract(place: &Place, env: &Env, config: &Config, asked: &Contract<'_>) -> Result<Ran, CouldNot> {
    let Contract { name, script, files, head, timeout } = asked;
    let text = std::str::from_utf8(script).map_err(|_| CouldNot::new("the frozen script is not UTF-8"))?;
    let script = contract::Script { name, text, files, head, timeout: *timeout };
    let judged = contract::run(place, env, config, &script).map_err(could_not)?;
    let unjudged = || CouldNot::new(term::line(judged.verdict.diagnostic(), 300));
    let end = match (&judged.verdict, judged.exit_code) {
        (_, _) if judged.setup_failed => return Err(unjudged()),
        (Verdict::Pass, _) => RanEnd::Exit(0),
        (Verdict::Timeout { .. }, _) => RanEnd::Timeout,
        (Verdict::Fail { .. }, Some(code)) | (_, Some(code @ (126 | 127))) => RanEnd::Exit(code),
        (Verdict::Fail { .. }, None) => RanEnd::Signal,
        (Verdict::Error { .. } | Verdict::Skipped { .. }, _) => return Err(unjudged()),
    };
    Ok(Ran { end, tail: contract::tail(&judged.verdict) })
}

/// Runs a program of the project in a clean checkout.
fn run_tool(place: &Place, env: &Env, config: &Config, asked: &Tool<'_>) -> Result<ToolRan, CouldNot> {
    let &Tool { cmd, report, head, limit } = asked;
    let done =
        tools::run(place, env, config, &tools::Tool { cmd, report, head, limit }).map_err(could_not)?;
    let end = match done.ran.exit {
        Some(RawExit::Code(code)) => RanEnd::Exit(code),
        Some(RawExit::Signal(_)) => RanEnd::Signal,
        None => RanEnd::Timeout,
    };
    Ok(ToolRan {
        end,
        cut: done.ran.stdout.cut || done.ran.stderr.cut,
        stdout: done.ran.stdout.bytes,
        stderr: done.ran.stderr.bytes,
        report: done.report,
        top: done.top.display().to_string(),
    })
}

/// Why nothing could be run.
fn could_not(error: BootError) -> CouldNot {
    let text = CommandError::from(error).render();
    CouldNot::new(text.trim_end().trim_start_matches("error: "))
}

type Known = (Option<peers_git::ControlDir>, Option<peers_store::FsDisk>);

/// The control directory and the store of a repository, where it has them.
fn known(repo: &Path, cx: &Cx) -> Result<Known, String> {
    // Without a place there is no store; what is wrong with the repository is said by whoever opens it.
    let Ok(place) = Place::locate(repo, &cx.env) else { return Ok((None, None)) };
    let store = match place.open_view_disk() {
        Ok(disk) => disk,
        Err(PlaceError::NotInitialised { .. } | PlaceError::NoStore { .. } | PlaceError::Moved { .. }) => {
            return Ok((None, None));
        }
        Err(error) => return Err(error::chain(&error)),
    };
    let control = cx.control(&place).map_err(|error| error.render().trim_end().to_owned())?;
    Ok((control, Some(store)))
}

fn list(as_json: bool, only: Option<&[CheckOfGoal]>, cx: &Cx) -> Result<ExitCode, CommandError> {
    let asked = |check: &&Check| only.is_none_or(|only| only.iter().any(|one| one.name == check.name));
    let checks: Vec<&Check> = peers_checks::registry().iter().filter(asked).collect();
    let kind = |kind: ArgKind| match kind {
        ArgKind::OnByDefault => "[on]".to_owned(),
        ArgKind::OffByDefault => "[off]".to_owned(),
        ArgKind::Number(default) => format!("N [{default}]"),
        ArgKind::OneOf(words) => words.join("|"),
        ArgKind::Decimal(default) => format!("N [{default}]"),
        ArgKind::Words(default) => format!("A,B [{default}]"),
        ArgKind::Text => "TEXT".to_owned(),
    };
    if as_json {
        let rows: Vec<_> = checks
            .iter()
            .map(|check| {
                let args: Vec<_> = check
                    .args
                    .iter()
                    .map(|arg| json!({"name": arg.name, "about": arg.about, "takes": kind(arg.kind)}))
                    .collect();
                json!({"name": check.name, "about": check.about, "args": args})
            })
            .collect();
        cx.out.json("peers.checks/1", &json!({ "checks": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for Check { name, about, args, .. } in checks {
        rows.push(vec![(*name).to_owned(), (*about).to_owned()]);
        for arg in *args {
            let (name, about) = (arg.name, arg.about);
            rows.push(match arg.kind {
                ArgKind::OnByDefault => vec![format!("  --no-{name}"), arg.off()],
                ArgKind::OffByDefault => vec![format!("  --{name}"), about.to_owned()],
                ArgKind::Number(_) | ArgKind::Decimal(_) => {
                    vec![format!("  --{name} N"), about.to_owned()]
                }
                ArgKind::Words(_) => vec![format!("  --{name} A,B"), about.to_owned()],
                ArgKind::Text => vec![format!("  --{name} TEXT"), about.to_owned()],
                ArgKind::OneOf(words) => {
                    vec![format!("  --{name} {}", words.join("|")), about.to_owned()]
                }
            });
        }
    }
    cx.out.data(&table(&rows))?;
    Ok(ExitCode::SUCCESS)
}
