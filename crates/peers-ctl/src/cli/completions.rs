//! `peers-ctl completions`.

use std::process::ExitCode;

use clap::{CommandFactory as _, ValueHint};
use clap_complete::Shell;
use peers_console::error::CommandError;

use crate::ctl::Ctl;

/// Print a completion script for a shell
///
/// Commands and options are in it; names of projects are asked of the registry when they are needed.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, ctl: &Ctl) -> Result<ExitCode, CommandError> {
    ctl.refuse_json("completions")?;
    ctl.out.bytes(script(args.shell).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The script of the parser, with the names of projects where a command takes them.
fn script(shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut hinted(shown(super::Cli::command())), "peers-ctl", &mut bytes);
    let script = String::from_utf8_lossy(&bytes).into_owned();
    let named = commands_with_names();
    match shell {
        Shell::Bash => {
            // The generator takes the dash in the name of the program for a subcommand in one of two places.
            let script = script.replace("peers__subcmd__ctl__", "peers__ctl__");
            let more = bash(&script, &named);
            script + &more
        }
        Shell::Fish => script + &fish(&named),
        Shell::Zsh => zsh(&script),
        _ => script,
    }
}

/// The same without the commands that are hidden, which the generators offer like any other.
fn shown(command: clap::Command) -> clap::Command {
    if !command.get_subcommands().any(clap::Command::is_hide_set) {
        return command;
    }
    clap::Command::new("peers-ctl")
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments())
        .groups(command.get_groups())
        .subcommands(command.get_subcommands().filter(|below| !below.is_hide_set()))
}

/// The parser of a script: for values that are neither files nor names of projects nothing is offered.
fn hinted(command: clap::Command) -> clap::Command {
    let hinted_arg = |arg: clap::Arg| {
        let open = arg.get_action().takes_values() && arg.get_value_hint() == ValueHint::Unknown;
        if open && arg.get_possible_values().is_empty() && !is_name(&arg) {
            arg.value_hint(ValueHint::Other)
        } else {
            arg
        }
    };
    command.mut_args(hinted_arg).mut_subcommands(hinted)
}

/// Whether it takes names of projects.
fn is_name(arg: &clap::Arg) -> bool {
    ["names", "what", "project"].iter().any(|id| arg.get_id() == id)
}

/// The commands that take names of projects, below others too.
fn commands_with_names() -> Vec<String> {
    let takes = |command: &clap::Command| command.get_positionals().any(is_name);
    let named = all().into_iter().filter(|command| !command.is_hide_set() && takes(command));
    named.map(|command| command.get_name().to_owned()).collect()
}

/// The options that take a value, without the one that takes a name.
fn options_with_values() -> Vec<String> {
    let all = all();
    let options =
        all.iter().flat_map(clap::Command::get_arguments).filter(|arg| arg.get_action().takes_values());
    let mut words: Vec<String> =
        options.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
    words.retain(|word| word != "--project");
    words.sort();
    words.dedup();
    words
}

/// Every command, with those that stand below others.
fn all() -> Vec<clap::Command> {
    let cli = super::Cli::command();
    let below = cli.get_subcommands().flat_map(|command| command.get_subcommands().cloned()).collect();
    [vec![cli.clone()], cli.get_subcommands().cloned().collect(), below].concat()
}

/// `script`: that of the parser, which says how its function is called.
fn bash(script: &str, named: &[String]) -> String {
    let (words, valued) = (named.join("|"), options_with_values().join("|"));
    let function = script.lines().rev().find_map(|line| line.trim().strip_prefix("complete -F "));
    let function = function.and_then(|rest| rest.split(' ').next()).unwrap_or(":");
    format!(
        r#"
_peers_ctl_with_projects() {{
    {function} "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" word
    [[ "$cur" == -* ]] && return 0
    case "$prev" in
        {valued}) return 0 ;;
    esac
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in
            {words}|--project)
                COMPREPLY=( $(compgen -W "$(peers-ctl __complete projects 2>/dev/null)" -- "$cur") )
                return 0
                ;;
        esac
    done
}}
complete -F _peers_ctl_with_projects -o bashdefault -o default peers-ctl
"#
    )
}

fn fish(named: &[String]) -> String {
    let words = named.join(" ");
    let asked = "-a \"(peers-ctl __complete projects 2>/dev/null)\"";
    format!(
        "\ncomplete -c peers-ctl -n \"__fish_seen_subcommand_from {words}\" -f {asked}\ncomplete -c peers-ctl -l project -x {asked}\n"
    )
}

/// The parser's script completes files where no more is known of an argument.
fn zsh(script: &str) -> String {
    let mut out = String::with_capacity(script.len());
    for line in script.lines() {
        let names = ["::names --", ":what --", "::what --", "'--project="].iter().any(|at| line.contains(at));
        if names && line.contains(":_default") {
            out.push_str(&line.replace(":_default", ":_peers_ctl_projects"));
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    let helper = "_peers_ctl_projects() {\n    local -a names\n    names=(${(f)\"$(peers-ctl __complete projects 2>/dev/null)\"})\n    compadd -a names\n}\n\n";
    // Behind the line that names the command, before the functions of the parser.
    match out.split_once("\n\n") {
        Some((head, rest)) => format!("{head}\n\n{helper}{rest}"),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_projects_are_asked_for_where_a_command_takes_them() {
        let named = commands_with_names();
        for command in ["start", "stop", "status", "report", "compare", "peek"] {
            assert!(named.iter().any(|name| name == command), "{command}: {named:?}");
        }
        assert!(!named.iter().any(|name| name == "registry"));
        assert!(named.iter().any(|name| name == "raise"));
        assert!(script(Shell::Bash).contains("start|"));
        let fish = script(Shell::Fish);
        assert!(fish.contains("__complete projects"));
        for option in ["label", "state", "restart", "max-usd", "branch", "ticks"] {
            let lines: Vec<&str> =
                fish.lines().filter(|line| line.contains(&format!(" -l {option} "))).collect();
            assert!(!lines.is_empty(), "{option}");
            assert!(lines.iter().all(|line| line.contains(" -r -f")), "{option} offers files: {lines:?}");
        }
        let spec = fish.lines().find(|line| line.contains(" -l spec ")).unwrap();
        assert!(spec.contains(" -r -F"), "{spec}");
        let zsh = script(Shell::Zsh);
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let script = script(shell);
            let hidden = script.matches("__complete").count();
            assert_eq!(hidden, script.matches("peers-ctl __complete projects").count(), "{shell}");
            assert!(script.contains("registry") && script.contains("on-crash"), "{shell}");
        }
        assert!(zsh.starts_with("#compdef peers-ctl") && zsh.contains(":_peers_ctl_projects"), "{zsh:.200}");
    }
}
