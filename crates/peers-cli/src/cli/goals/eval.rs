//! `peers goals eval`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_core::dsl::{Evidence, Expr, MAX_JSON_BYTES, strict_json};
use peers_model::exit;
use peers_sys::dir::SafeDir;
use peers_sys::term;
use serde_json::{Value, json};

/// Most of a file that stands for output, bytes. A gate keeps 1 MiB of each stream.
const OUTPUT: u64 = 8 * 1024 * 1024;

/// Evaluate a `pass_when` expression on the results of a command
///
/// For instance `peers goals eval "exit_code == 0 and len(stdout) > 3" --stdout okay`. JSON files that
/// the expression reads are taken from the target directory. Exit codes: 0 true, 1 false, 3 no valid
/// expression or no value.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The expression
    #[arg(value_name = "EXPR")]
    expr: String,
    /// The exit code of the command
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    exit_code: i64,
    /// Its standard output
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    stdout: String,
    /// Its standard error
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    stderr: String,
    /// Its standard output, from a file
    #[arg(long, value_name = "FILE", conflicts_with = "stdout")]
    stdout_file: Option<PathBuf>,
    /// Its standard error, from a file
    #[arg(long, value_name = "FILE", conflicts_with = "stderr")]
    stderr_file: Option<PathBuf>,
    /// Directory of the JSON files that the expression reads; by default the target
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Its time limit ended it
    #[arg(long)]
    timed_out: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let stdout = output(&args.stdout, args.stdout_file.as_deref())?;
    let stderr = output(&args.stderr, args.stderr_file.as_deref())?;
    let repo = args.repo.as_deref().unwrap_or(&cx.target);
    let found = Expr::parse(&args.expr).map_err(|error| error.to_string()).and_then(|expr| {
        let evidence = Evidence {
            exit_code: args.exit_code,
            signal: None,
            timed_out: args.timed_out,
            stdout: &stdout,
            stderr: &stderr,
            json: &|path| file(path, repo),
        };
        expr.eval(&evidence).map_err(|error| error.to_string())
    });
    if args.json {
        let body = json!({"value": found.as_ref().ok(), "error": found.as_ref().err()});
        cx.out.json("peers.goals-eval/1", &body)?;
    }
    match found {
        Ok(value) => {
            if !args.json {
                cx.out.line(if value { "true" } else { "false" })?;
            }
            Ok(ExitCode::from(if value { exit::OK } else { exit::NEGATIVE }))
        }
        Err(_) if args.json => Ok(ExitCode::from(exit::INVALID)),
        Err(why) => Err(CommandError::new(exit::INVALID, format!("pass_when: {}", term::line(&why, 400)))),
    }
}

/// What was printed: the text, or what the file holds.
fn output(text: &str, file: Option<&Path>) -> Result<String, CommandError> {
    let Some(path) = file else { return Ok(text.to_owned()) };
    let unread = |what: String| CommandError::new(exit::INVALID, what);
    let shown = term::inline(&path.to_string_lossy());
    let Some(name) = path.file_name() else { return Err(unread(format!("{shown} is not a file"))) };
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let bytes = SafeDir::open_shared(above)
        .and_then(|dir| dir.read(name, OUTPUT))
        .map_err(|error| unread(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn file(path: &str, repo: &Path) -> Result<Value, String> {
    let cap = u64::try_from(MAX_JSON_BYTES).unwrap_or(u64::MAX);
    let read = SafeDir::open_shared(repo)
        .and_then(|dir| dir.parent_of(path))
        .and_then(|(parent, name)| parent.read(name, cap));
    strict_json(&read.map_err(|error| error.to_string())?)
}
