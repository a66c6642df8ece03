//! The program of one peer, its login and its arguments, as far as they can be known without spending.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use peers_model::command::Step;
use peers_model::config::{Config, PeerSpec, PromptMode};
use peers_model::time::human;
use peers_model::{exit, limits, login};
use peers_place::Place;
use peers_run::boot::{ACCEPT, Loaded};
use peers_run::procs::{self, ALWAYS_HOLDS, Outlook, Said, Site, tool_spec};
use peers_sys::dir::SafeDir;
use peers_sys::env::{self, Env};
use peers_sys::spawn::resolve_program;
use peers_sys::term;
use peers_tools::billing::{AuthProbe, Billing, auth_files, billing};
use peers_tools::{ToolKind, ToolSpec, adapter};

use super::check::Check;

/// A program answers such a question at once, or it waits for something.
const LIMIT: Duration = Duration::from_secs(20);
/// Characters of an answer that are shown.
const SHOWN: usize = 120;
/// The oldest major version of node with which the known tools run.
const NODE: u32 = 18;
/// The key that codex is often expected to take.
const OPENAI_KEY: &str = "OPENAI_API_KEY";
/// Bytes of a program that say how it is interpreted.
const FIRST: u64 = 256;

/// Whether programs that the configuration names may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The operator accepted it.
    Accepted,
    /// Somebody else may have written it.
    Refused,
}

impl Start {
    /// By what was accepted.
    pub(super) fn of(loaded: &Loaded) -> Self {
        if loaded.may_start() { Self::Accepted } else { Self::Refused }
    }
}

/// Why something is left out.
pub(super) const NOT_STARTED: &str = "not started: config.yaml is not accepted";

/// Looks at one peer whose program is there.
pub(super) async fn look(
    site: &Rc<Site>,
    place: &Place,
    env: &Env,
    (config, peer): (&Config, &PeerSpec),
    start: Start,
) -> Vec<Check> {
    let about = format!("peer {}", peer.name);
    let mut found = Vec::new();
    let path = env.var("PATH").unwrap_or_default();
    let program = peer.argv.first().map(OsStr::new).unwrap_or_default();
    let Ok(program) = resolve_program(program, Some(path), place.work_dir()) else { return found };
    let kind = tool_spec(peer).kind;
    let ours = program.file_name() == Some(OsStr::new(kind.name()));
    let asks = is_known(&kind) && ours;
    match start {
        Start::Accepted => {
            found.push(version(site, peer, &about, (&program, asks)).await);
            found.extend(node(site, peer, &about, &program).await);
        }
        Start::Refused => {
            let shown = term::inline(&program.to_string_lossy());
            found.push(Check::ok(&about, format!("the program is {shown}; its version is not asked")));
            if asks || is_of_node(&program) {
                found.push(Check::warning(&about, NOT_STARTED, ACCEPT));
            }
        }
    }
    found.push(login(&about, env, peer));
    found.push(prompt(&about, peer));
    found.extend(output(&about, config, peer));
    found.extend(root(&about, env, (peer, site.is_confined())));
    if start == Start::Accepted {
        found.push(arguments(site, peer, &about, &program, ours).await);
    }
    found
}

fn is_known(kind: &ToolKind) -> bool {
    match kind {
        ToolKind::Claude | ToolKind::Codex | ToolKind::Opencode => true,
        // What speaks the protocol may be any program.
        ToolKind::Acp | ToolKind::Other(_) => false,
    }
}

async fn version(site: &Rc<Site>, peer: &PeerSpec, about: &str, (program, asks): (&Path, bool)) -> Check {
    let shown = term::inline(&program.to_string_lossy());
    if !asks {
        // A program of unknown ways might begin to work.
        return Check::ok(about, format!("the program is {shown}; its version is not asked"));
    }
    let argv = vec![program.to_string_lossy().into_owned(), "--version".to_owned()];
    match procs::program(site, peer, argv, LIMIT).await {
        Ok(Said { code: Some(0), text, .. }) => {
            let version = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            Check::ok(about, format!("the program is {shown}, version {}", term::line(version, SHOWN)))
        }
        Ok(Said { timed_out: true, .. }) => Check::warning(
            about,
            format!("{shown} did not answer `--version` within {}", human(LIMIT)),
            format!("see what it waits for: `{shown} --version`"),
        ),
        Ok(Said { text, .. }) => broken(about, &shown, &text),
        Err(why) => broken(about, &shown, &why),
    }
}

fn broken(about: &str, shown: &str, said: &str) -> Check {
    Check::error(
        about,
        exit::ENVIRONMENT,
        format!("{shown} does not run: {}", term::line(said.trim(), SHOWN)),
        format!("install it again, until `{shown} --version` answers"),
    )
}

/// Whether a program is a script that node runs.
fn is_of_node(program: &Path) -> bool {
    let interpreter = || {
        let real = program.canonicalize().ok()?;
        let dir = SafeDir::open_shared(real.parent()?).ok()?;
        let mut first = Vec::new();
        dir.open_read(real.file_name()?).ok()?.take(FIRST).read_to_end(&mut first).ok()?;
        let first = first.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Some(String::from_utf8_lossy(first.strip_prefix(b"#!")?).into_owned())
    };
    interpreter().is_some_and(|line| line.split(['/', ' ']).any(|word| word == "node"))
}

/// A script that node runs needs one, and not an old one.
async fn node(site: &Rc<Site>, peer: &PeerSpec, about: &str, program: &Path) -> Option<Check> {
    is_of_node(program).then_some(())?;
    let argv = vec!["node".to_owned(), "--version".to_owned()];
    let Ok(Said { code: Some(0), text, .. }) = procs::program(site, peer, argv, LIMIT).await else {
        let what = "its program is a script of node, and `node` is not found or does not run";
        return Some(Check::error(about, exit::ENVIRONMENT, what, format!("install node {NODE} or newer")));
    };
    let text = text.trim();
    let major = text.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    let shown = term::line(text, SHOWN);
    match major {
        Some(major) if major < NODE => Some(Check::warning(
            about,
            format!("node is {shown}, and the agents need {NODE} or newer"),
            format!("install node {NODE} or newer"),
        )),
        _ => Some(Check::ok(about, format!("node is {shown}"))),
    }
}

/// How somebody logs a tool in.
pub(super) fn log_in(kind: &ToolKind) -> String {
    let how = login::how(kind.name());
    how.map_or_else(|| "log in with this tool, or give it a key".to_owned(), |how| format!("log in: {how}"))
}

/// The login, as far as files and variables tell.
fn login(about: &str, env: &Env, peer: &PeerSpec) -> Check {
    let spec = tool_spec(peer);
    if !matches!(spec.kind, ToolKind::Claude | ToolKind::Codex) {
        return Check::ok(about, "whether it is logged in is not known (`--live` asks it)");
    }
    let fix = log_in(&spec.kind);
    let passes = adapter(&spec.kind).login_env_for(&peer.argv);
    let set = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        let name = name.to_str().filter(|name| passes.passes(name))?;
        value.to_str().is_some_and(|value| !value.trim().is_empty()).then(|| name.to_owned())
    };
    let home = env.home();
    let files = auth_files(&spec.kind).iter().filter_map(|name| {
        let path = moved(name, env).or_else(|| home.as_ref().map(|home| home.join(name)))?;
        let dir = SafeDir::open_shared(path.parent()?).ok()?;
        Some((*name, dir.read_opt(path.file_name()?, limits::MIB).ok()??))
    });
    let mut probe = AuthProbe { env: env.vars().iter().filter_map(set).collect(), files: files.collect() };
    // The provider that is built into codex takes no login from this one; that is asked for below.
    let other_key = spec.kind == ToolKind::Codex && probe.env.remove(OPENAI_KEY);
    let by = login_of_codex(&spec, &probe, env).map(|by| format!(" ({by})")).unwrap_or_default();
    match billing(&spec, &probe) {
        Billing::Metered => Check::ok(about, format!("it has a key{by}: every turn is paid for")),
        Billing::Subscription => Check::ok(about, format!("it is logged in with a subscription{by}")),
        Billing::Unknown if other_key => Check::warning(
            about,
            format!(
                "no login of it is found but {OPENAI_KEY}, which alone does not log `codex exec` in: only a provider of its own configuration may name it"
            ),
            format!("log in: `codex login`, or `export CODEX_API_KEY=\"${OPENAI_KEY}\"`"),
        ),
        Billing::Unknown => Check::warning(
            about,
            "no login of it is found; it may have one that peers does not know (`--live` asks it)",
            fix,
        ),
    }
}

/// What codex is logged in by: its key goes before its file.
fn login_of_codex(spec: &ToolSpec, probe: &AuthProbe, env: &Env) -> Option<String> {
    const KEY: &str = "CODEX_API_KEY";
    if spec.kind != ToolKind::Codex || spec.provider.is_some() {
        return None;
    }
    if probe.env.contains(KEY) {
        return Some(KEY.to_owned());
    }
    let name = auth_files(&spec.kind).iter().find(|name| probe.files.contains_key(*name))?;
    let path = moved(name, env).or_else(|| Some(env.home()?.join(name)))?;
    Some(term::inline(&path.to_string_lossy()))
}

/// Where a file of the login lies if its tool was told another place.
fn moved(name: &str, env: &Env) -> Option<PathBuf> {
    if let Some(below) = name.strip_prefix(".codex/") {
        return env.absolute("CODEX_HOME").map(|dir| dir.join(below));
    }
    let dir = env.absolute("CLAUDE_CONFIG_DIR")?;
    Some(dir.join(name.strip_prefix(".claude/").unwrap_or(name)))
}

fn prompt(about: &str, peer: &PeerSpec) -> Check {
    let how = match peer.prompt_mode {
        PromptMode::Stdin => "on standard input",
        PromptMode::File => "in a private file",
        PromptMode::ArgvSubstitute => "as an argument",
    };
    Check::ok(about, format!("it gets its prompt {how}"))
}

/// Whether its output will say what it used.
fn output(about: &str, config: &Config, peer: &PeerSpec) -> Vec<Check> {
    let Outlook { tokens, money, missing, vague, remedy, doubts } = procs::outlook(peer, &config.prices);
    // No command line makes an agent of the protocol tell more.
    let fix = Step::from(if vague { ALWAYS_HOLDS } else { "change its `argv`: `peers goals edit --config`" });
    let mut found: Vec<Check> =
        doubts.into_iter().map(|doubt| Check::warning(about, doubt, fix.clone())).collect();
    found.push(match (missing, tokens, money) {
        (Some(switch), ..) => Check::warning(
            about,
            "it runs without structured output, so tokens and cost stay unknown and no cap on them holds",
            Step::text("add `{}` to its `argv`: `peers goals edit --config`", &[switch]),
        ),
        (None, true, _) if vague => {
            Check::ok(about, "its tokens and cost will be known as far as the agent tells them")
        }
        (None, true, true) => Check::ok(about, "its tokens and cost will be known"),
        (None, true, false) => unknown(about, "its tokens will be known, its cost will not", remedy),
        (None, false, _) => {
            unknown(about, "its tokens and cost stay unknown: no adapter reads this tool", remedy)
        }
    });
    found
}

/// What is not wrong, and can be had.
fn unknown(about: &str, what: &str, remedy: Option<String>) -> Check {
    let remedy = remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
    Check::ok(about, format!("{what}{remedy}"))
}

/// Claude Code refuses to work unattended as root.
fn root(about: &str, env: &Env, (peer, is_confined): (&PeerSpec, bool)) -> Option<Check> {
    let unattended = |arg: &String| arg == "--dangerously-skip-permissions";
    let refuses = tool_spec(peer).kind == ToolKind::Claude && peer.argv.iter().any(unattended);
    if !refuses || !env::is_root() {
        return None;
    }
    Some(if env.text("IS_SANDBOX").is_some_and(|value| value == "1") {
        Check::ok(about, "this is root, and IS_SANDBOX=1 lets claude work as root")
    } else if is_confined {
        Check::ok(about, "this is root, and in a sandbox claude works as root")
    } else {
        Check::error(
            about,
            exit::ENVIRONMENT,
            "claude refuses `--dangerously-skip-permissions` as root",
            "run as another user, or, where this machine is a sandbox, `export IS_SANDBOX=1` first",
        )
    })
}

/// Whether the program takes its arguments, where it can be asked without working.
async fn arguments(site: &Rc<Site>, peer: &PeerSpec, about: &str, program: &Path, ours: bool) -> Check {
    let spec = tool_spec(peer);
    if spec.kind == ToolKind::Acp {
        let what =
            "whether it speaks the Agent Client Protocol with these arguments is not tried (`--live` does)";
        return Check::ok(about, what);
    }
    if spec.kind != ToolKind::Codex || !ours {
        return Check::ok(about, "its arguments are not tried: it has no dry run (`--live` tries them)");
    }
    let mut argv: Vec<String> = vec![program.to_string_lossy().into_owned()];
    // The parser meets what stands before, and works no more after it.
    argv.extend(spec.argv.iter().skip(1).filter(|arg| arg.as_str() != "-").cloned());
    argv.push("--help".to_owned());
    match procs::program(site, peer, argv, LIMIT).await {
        Ok(Said { code: Some(0), .. }) => Check::ok(about, "it takes its arguments"),
        Ok(Said { code: Some(_), text, .. }) => {
            let said = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            Check::error(
                about,
                exit::ENVIRONMENT,
                format!("it refuses its arguments: {}", term::line(said, SHOWN)),
                "correct its `argv`: `peers goals edit --config`",
            )
        }
        Ok(_) | Err(_) => Check::ok(about, "its arguments could not be tried"),
    }
}
