//! `peers fake-peer`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::output::table;
use peers_fake::{EXAMPLES, Io, Options, Prompt};
use peers_model::exit;
use peers_sys::{env, term, yaml};
use serde_json::json;

/// Play a script as if it were an agent
///
/// A peer for trying things out: it reads its prompt, prints what the real tools print, commits as an
/// agent would and does any damage that its script asks for. It needs no account and no network. Put it
/// into `argv` of a peer in `.peers/config.yaml`, followed by the switches of the tool that it plays:
///
///     [peers, fake-peer, --script, FILE, -p, --output-format, stream-json, --verbose]    # tool: claude
///     [peers, fake-peer, --script, FILE, exec, --json, "-"]                              # tool: codex
///     [peers, fake-peer, --script, FILE, run, --format, json]                            # tool: opencode
///     [peers, fake-peer, --script, FILE, acp]                                            # tool: acp
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The script to play
    #[arg(long, value_name = "FILE", required_unless_present_any = ["example", "examples"])]
    script: Option<PathBuf>,
    /// Play as this peer instead of the one that the loop names
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Play turn N and count nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    turn: Option<u64>,
    /// Count turns in this file instead of one beside the script
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Read the prompt from a file instead of standard input
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// Take the prompt from the command line instead of standard input
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Print a script to start from
    #[arg(long, value_name = "NAME", exclusive = true)]
    example: Option<String>,
    /// List the scripts to start from
    #[arg(long)]
    examples: bool,
    /// Print the list as JSON (with --script: a switch of the tool, ignored)
    #[arg(long)]
    json: bool,
    /// Switches of the tool that is played, from the first one on
    ///
    /// They are ignored, whatever they are, but for this: they say the output format of a script that
    /// has no `as`. Options of this command stand before them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SWITCHES",
        verbatim_doc_comment
    )]
    switches: Vec<String>,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    if let Some(name) = &args.example {
        return example(name, cx);
    }
    let Some(script) = args.script.clone().filter(|_| !args.examples) else { return examples(args.json, cx) };
    let prompt = match (&args.prompt_file, &args.prompt) {
        (Some(file), _) => Prompt::File(file.clone()),
        (None, Some(text)) => Prompt::Text(text.clone()),
        (None, None) => Prompt::Stdin,
    };
    let cwd = env::current_dir()
        .map_err(|error| {
            CommandError::new(exit::INVALID, format!("the working directory is unknown: {error}"))
        })?
        .join(&cx.target);
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    let options = Options {
        script,
        peer: args.peer.clone(),
        turn: args.turn,
        state: args.state.clone(),
        switches: args.switches.clone(),
        prompt,
        cwd,
        env: cx.env.clone(),
    };
    let io = Io { stdin: &mut io::stdin(), stdout: &mut io::stdout(), stderr: &mut io::stderr() };
    Ok(ExitCode::from(peers_fake::run(&options, io)))
}

fn example(name: &str, cx: &Cx) -> Result<ExitCode, CommandError> {
    let Some(text) = peers_fake::example(name) else {
        let near = yaml::closest(name, EXAMPLES.iter().map(|(name, _, _)| *name));
        let hint = near.map_or_else(
            || "`peers fake-peer --examples` lists them".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        return Err(CommandError::usage(format!("no example is called `{}`", term::inline(name))).hint(hint));
    };
    cx.out.data(text)?;
    Ok(ExitCode::SUCCESS)
}

fn examples(as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    if as_json {
        let rows: Vec<_> =
            EXAMPLES.iter().map(|(name, about, _)| json!({"name": name, "about": about})).collect();
        cx.out.json("peers.fake-peer-examples/1", &json!({ "examples": rows }))?;
    } else {
        let rows: Vec<_> =
            EXAMPLES.iter().map(|(name, about, _)| vec![(*name).to_owned(), (*about).to_owned()]).collect();
        cx.out.data(&table(&rows))?;
    }
    Ok(ExitCode::SUCCESS)
}
