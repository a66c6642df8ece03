//! A terminal for each agent: the commands of `peers tmux`, as argument vectors.
//!
//! Nothing is started here. No part of a command passes a shell as text, so that no path and no name can be
//! taken for anything else.

use std::path::Path;

use peers_model::config::PeerSpec;
use peers_tools::ToolKind;

use crate::procs::tool_spec;

/// The window of what happens.
const WATCH: &str = "watch";
/// So large is a session that nobody looks at yet, so that its panes find room.
const SIZE: [&str; 4] = ["-x", "200", "-y", "60"];
/// Goes on with the last session of a tool, or begins one where that fails: `$1` is the program.
const GO_ON: &str = "program=$1; shift; \"$program\" \"$@\" || exec \"$program\"";

/// The name of the session of the repository at `dir`: letters, digits, `-` and `_`, since other characters
/// mean something to tmux.
#[must_use]
pub fn session_name(dir: &Path) -> String {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let tame = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    format!("peers-{}", name.chars().map(tame).take(64).collect::<String>())
}

/// The session as a target that no longer name can be taken for.
#[must_use]
pub fn target(session: &str) -> String {
    format!("={session}:")
}

/// What a peer's window runs: its tool goes on with its last session, or begins one. Empty: a login shell,
/// for a tool of unknown ways.
#[must_use]
pub fn interactive(peer: &PeerSpec) -> Vec<String> {
    let kind = tool_spec(peer).kind;
    let switches: &[&str] = match kind {
        ToolKind::Claude | ToolKind::Opencode => &["--continue"],
        ToolKind::Codex => &["resume", "--last"],
        ToolKind::Acp | ToolKind::Other(_) => return Vec::new(),
    };
    let Some(program) = program(peer) else { return Vec::new() };
    let mut argv: Vec<String> = ["sh", "-c", GO_ON, "sh"].map(str::to_owned).into();
    argv.push(program);
    argv.extend(switches.iter().map(|&switch| switch.to_owned()));
    argv
}

/// The program of a peer's window; `None` where that is a login shell.
#[must_use]
pub fn program(peer: &PeerSpec) -> Option<String> {
    let kind = tool_spec(peer).kind;
    if matches!(kind, ToolKind::Acp | ToolKind::Other(_)) {
        return None;
    }
    // The configured one, unless something else is called that calls the tool.
    let configured = peer.argv.first().filter(|program| program.rsplit('/').next() == Some(kind.name()));
    Some(configured.map_or_else(|| kind.name().to_owned(), Clone::clone))
}

/// The calls of tmux that make a session, in order: a window in which panes follow what happens and the
/// messages to each peer, and a window for each peer. `program` is our own.
#[must_use]
pub fn up(session: &str, dir: &str, program: &str, peers: &[PeerSpec]) -> Vec<Vec<String>> {
    let watch = |peer: Option<&str>| {
        [program, "-C", dir, WATCH].into_iter().chain(peer).map(str::to_owned).collect::<Vec<_>>()
    };
    let call = |words: &[&str], command: Vec<String>| {
        words.iter().map(|&word| word.to_owned()).chain(command).collect::<Vec<_>>()
    };
    let target = target(session);
    let window = format!("{target}{WATCH}");
    let mut first = vec!["new-session", "-d", "-s", session, "-n", WATCH, "-c", dir];
    first.extend(SIZE);
    let mut calls = vec![call(&first, watch(None))];
    for peer in peers {
        calls.push(call(&["split-window", "-t", &window, "-c", dir], watch(Some(peer.name.as_str()))));
        // Else there is no room for the next one.
        calls.push(call(&["select-layout", "-t", &window, "tiled"], Vec::new()));
    }
    for peer in peers {
        let words = ["new-window", "-d", "-t", &target, "-n", peer.name.as_str(), "-c", dir];
        calls.push(call(&words, interactive(peer)));
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(entries: &str) -> Vec<PeerSpec> {
        peers_store::load::load_config(&format!("peers: [{entries}]\n")).unwrap().peers
    }

    #[test]
    fn a_session_is_named_after_its_directory_without_what_tmux_reads() {
        for (dir, name) in [
            ("/srv/my-app_2", "peers-my-app_2"),
            ("/srv/a.b:c d", "peers-a_b_c_d"),
            ("/srv/ünï", "peers-_n_"),
            ("/", "peers-"),
        ] {
            assert_eq!(session_name(Path::new(dir)), name);
        }
    }

    #[test]
    fn each_tool_goes_on_in_its_own_way_and_an_unknown_one_gets_a_shell() {
        let of = |entry: &str| interactive(&peers(&format!("{entry}, {{name: z, argv: [x]}}"))[0]);
        for (entry, ends) in [
            ("{name: a, tool: claude, argv: [claude, -p]}", &["claude", "--continue"][..]),
            (
                "{name: a, tool: codex, argv: [/opt/codex, exec, '-']}",
                &["/opt/codex", "resume", "--last"][..],
            ),
            ("{name: a, tool: opencode, argv: [npx, opencode, run]}", &["opencode", "--continue"][..]),
        ] {
            let argv = of(entry);
            assert_eq!(argv[..2], ["sh", "-c"], "{entry}");
            assert_eq!(argv[4..], *ends, "{entry}");
            assert!(!argv[2].contains(ends[0]), "the program is no text of a shell");
        }
        assert_eq!(of("{name: a, tool: mine, argv: [my-agent]}"), Vec::<String>::new());
    }

    #[test]
    fn a_session_has_a_tiled_window_of_watchers_and_one_for_each_peer() {
        let two = peers("{name: ann, tool: claude, argv: [claude, -p]}, {name: ben, tool: mine, argv: [x]}");
        let calls = up("peers-app", "/srv/it's an app", "/bin/peers", &two);
        let dir = "/srv/it's an app";
        let first: Vec<&str> = calls[0].iter().map(String::as_str).collect();
        assert_eq!(first[..8], ["new-session", "-d", "-s", "peers-app", "-n", "watch", "-c", dir]);
        assert_eq!(first[12..], ["/bin/peers", "-C", dir, "watch"]);
        assert_eq!(
            calls[1],
            ["split-window", "-t", "=peers-app:watch", "-c", dir, "/bin/peers", "-C", dir, "watch", "ann"]
        );
        assert_eq!(calls[2], ["select-layout", "-t", "=peers-app:watch", "tiled"]);
        let windows: Vec<_> = calls.iter().filter(|call| call[0] == "new-window").collect();
        assert_eq!(windows[0][..8], ["new-window", "-d", "-t", "=peers-app:", "-n", "ann", "-c", dir]);
        assert_eq!(windows[1].len(), 8, "a login shell: {:?}", windows[1]);
        assert_eq!(calls.len(), 1 + 2 * 2 + 2);
    }
}
