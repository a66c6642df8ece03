//! How the commands are spelt that an operator is told to type.

use peers_sys::term;

/// Who shows the command, and so how it is spelt. Each command is one line for a POSIX shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spelling {
    /// By name: `peers-ctl start NAME`, and `peers -C DIR goals diff` where only `peers` has the command.
    Ctl {
        /// The project's name.
        name: String,
        /// Where the loop works.
        dir: String,
        /// The directory of the controller's files, where it is not the usual one.
        config_dir: Option<String>,
    },
    /// By `peers` alone.
    Loop {
        /// Where the loop works, if that is not the directory in which the command is typed.
        dir: Option<String>,
    },
}

impl Spelling {
    /// `peers-ctl COMMAND NAME REST`; nothing for who has no names.
    fn ctl(&self, command: &str, rest: &str) -> Option<String> {
        let Self::Ctl { name, config_dir, .. } = self else { return None };
        let files = match config_dir {
            Some(dir) => format!("--config-dir {} ", word(dir)?),
            None => String::new(),
        };
        let rest = if rest.is_empty() { String::new() } else { format!(" {rest}") };
        Some(format!("peers-ctl {files}{command} {}{rest}", word(name)?))
    }

    /// `peers -C DIR ARGUMENTS`.
    pub(crate) fn peers(&self, arguments: &str) -> Option<String> {
        let dir = match self {
            Self::Ctl { dir, .. } => Some(dir),
            Self::Loop { dir } => dir.as_ref(),
        };
        let at = match dir {
            Some(dir) => format!("-C {} ", word(dir)?),
            None => String::new(),
        };
        Some(format!("peers {at}{arguments}"))
    }

    /// The command of the controller, or that of `peers` for who has no names. Nothing where a name or a path
    /// cannot be typed.
    pub(crate) fn either(&self, (command, rest): (&str, &str), arguments: &str) -> Option<String> {
        match self {
            Self::Ctl { .. } => self.ctl(command, rest),
            Self::Loop { .. } => self.peers(arguments),
        }
    }

    /// Starts a loop.
    #[must_use]
    pub fn start(&self) -> Option<String> {
        self.either(("start", ""), "run")
    }

    /// Ends a loop; nothing for who has no names, and ends it where it was started.
    pub(crate) fn stop(&self) -> Option<String> {
        self.ctl("stop", "")
    }

    /// Starts one whose operator has seen to what it stopped for.
    pub(crate) fn resume(&self) -> Option<String> {
        self.either(("resume", "--start"), "run")
    }

    /// Looks whether the loop can run.
    pub(crate) fn doctor(&self) -> Option<String> {
        self.either(("doctor", ""), "doctor")
    }

    /// The same, and asks each peer for a word.
    pub(crate) fn ask(&self) -> Option<String> {
        self.either(("doctor", "--live"), "doctor --live")
    }

    /// Whether an action is a look that says what to do next itself, so that it is none where that is said.
    pub(crate) fn is_look(&self, action: &str) -> bool {
        let looks = [("status", "status"), ("report", "report")];
        looks.iter().any(|(command, arguments)| {
            self.either((command, ""), arguments).is_some_and(|look| look == action)
        })
    }

    /// A text of ours, whose commands are those of `peers` in its own directory, with the commands that there
    /// are for a project by name.
    #[must_use]
    pub fn reworded(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (of_loop, command, rest) in [
            ("run", "start", ""),
            ("status", "status", ""),
            ("report", "report", ""),
            ("doctor", "doctor", ""),
            ("doctor --live", "doctor", "--live"),
        ] {
            if let Some(by_name) = self.ctl(command, rest) {
                text = text.replace(&format!("`peers {of_loop}`"), &format!("`{by_name}`"));
            }
        }
        if let Some(raise) = self.ctl("budget raise", "") {
            text = text.replace("`peers-ctl budget raise`", &format!("`{raise}`"));
        }
        let Self::Ctl { config_dir: Some(dir), .. } = self else { return text };
        let Some(dir) = word(dir) else { return text };
        // Those that say which registry is meant are left as they are.
        let (bare, full) = ("`peers-ctl ", format!("`peers-ctl --config-dir {dir} "));
        text.replace(bare, &full).replace(&format!("{full}--config-dir {dir} "), &full)
    }

    /// `df -h DIR`, of where the loop works or of what else is full.
    pub(crate) fn space(&self, full: Option<&str>) -> Option<String> {
        Some(format!("df -h {}", word(full.unwrap_or_else(|| self.dir()))?))
    }

    /// Shows who holds the lock of an older system: `fuser -v DIR/.peers/run.lock`.
    pub(crate) fn lock_holder(&self) -> Option<String> {
        Some(format!("fuser -v {}", word(&format!("{}/.peers/run.lock", self.dir()))?))
    }

    fn dir(&self) -> &str {
        match self {
            Self::Ctl { dir, .. } => dir.as_str(),
            Self::Loop { dir } => dir.as_deref().unwrap_or("."),
        }
    }
}

/// Shows a file: `less PATH`.
pub(crate) fn show(path: &str) -> Option<String> {
    Some(format!("less {}", word(path)?))
}

/// One word of a shell. What a terminal does not show as it is cannot be copied from it, so it is no word.
fn word(text: &str) -> Option<String> {
    (term::inline(text) == text).then(|| term::quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ctl(name: &str, dir: &str) -> Spelling {
        Spelling::Ctl { name: name.into(), dir: dir.into(), config_dir: None }
    }

    #[test]
    fn commands_are_spelt_for_who_shows_them() {
        let by_name = ctl("billing", "/srv/a b");
        assert_eq!(by_name.resume().unwrap(), "peers-ctl resume billing --start");
        assert_eq!(by_name.peers("goals diff").unwrap(), "peers -C '/srv/a b' goals diff");
        assert_eq!(by_name.space(None).unwrap(), "df -h '/srv/a b'");
        let here = Spelling::Loop { dir: None };
        assert_eq!(here.resume().unwrap(), "peers run");
        assert_eq!(here.space(None).unwrap(), "df -h .");
        let other = Spelling::Loop { dir: Some("/x".into()) };
        assert_eq!(other.start().unwrap(), "peers -C /x run");
        let elsewhere = Spelling::Ctl { name: "a".into(), dir: "/r".into(), config_dir: Some("/c d".into()) };
        assert_eq!(elsewhere.start().unwrap(), "peers-ctl --config-dir '/c d' start a");
    }

    #[test]
    fn a_text_about_a_project_has_the_commands_by_name() {
        assert_eq!(ctl("a", "/r").reworded("`peers-ctl budget raise`"), "`peers-ctl budget raise a`");
        let text = "`peers run`, `peers doctor --live`, `peers goals diff` or `peers run --worktree`";
        assert_eq!(
            ctl("billing", "/r").reworded(text),
            "`peers-ctl start billing`, `peers-ctl doctor billing --live`, `peers goals diff` or `peers run --worktree`"
        );
        assert_eq!(Spelling::Loop { dir: None }.reworded(text), text);
    }

    #[test]
    fn no_shell_sees_more_than_one_word_and_nothing_that_is_not_shown_is_typed() {
        let evil = ctl("a; rm -rf ~", "/x'$(y)`z`");
        assert_eq!(evil.start().unwrap(), "peers-ctl start 'a; rm -rf ~'");
        assert_eq!(evil.peers("run").unwrap(), r"peers -C '/x'\''$(y)`z`' run");
        for unseen in ["/x\ny", "/x\u{1b}[2J", "/x\u{202e}y", "/x\u{200b}"] {
            let spelling = ctl("a", unseen);
            assert_eq!((spelling.peers("run"), spelling.space(None)), (None, None), "{unseen:?}");
            assert!(spelling.start().is_some());
        }
    }
}
