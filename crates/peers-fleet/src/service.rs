//! `peers-ctl watch` as a service of this user: a systemd unit, or the file that launchd takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use peers_model::{exit, limits};
use peers_run::boot::Finding;
use peers_sys::dir::{FileMode, SafeDir};
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;
use peers_sys::term;

/// The unit.
const UNIT: &str = "peers-ctl.service";
/// The label of launchd.
const LABEL: &str = "local.peers-ctl";
/// What stands in a file of ours.
const OURS: &str = "peers-ctl service install";

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The file.
    pub file: PathBuf,
    /// What was done, a line each.
    pub did: Vec<String>,
    /// What is left to do, a line each.
    pub next: Vec<String>,
}

/// Writes the service, and starts it where that can be done.
///
/// # Errors
/// A [`Finding`]: exit 4 where a file lies there that is not ours, 1 where systemd refuses.
pub fn install(config_dir: Option<&Path>, watch: &[String], env: &Env) -> Result<Installed, Finding> {
    let file = file(env)?;
    let exe = peers_sys::env::current_exe().map_err(|error| {
        Finding::plain(exit::BUG, format!("where this program lies is not known: {error}"))
    })?;
    let mut words = vec![exe.to_string_lossy().into_owned()];
    if let Some(dir) = config_dir {
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        words.extend(["--config-dir".to_owned(), dir.to_string_lossy().into_owned()]);
    }
    words.push("watch".to_owned());
    words.extend(watch.iter().cloned());
    if let Some(word) = words.iter().find(|word| word.chars().any(char::is_control)) {
        return Err(Finding::plain(
            exit::USAGE,
            format!("`{}` has control characters in it", term::line(word, 80)),
        ));
    }
    let text = if cfg!(target_os = "macos") { plist(&words) } else { unit(&words, env) };
    let (dir, name) = parent(&file)?;
    not_foreign(&dir, &name, &file)?;
    dir.publish_mode(&name, text.as_bytes(), FileMode::Plain).map_err(|error| Finding::from(&error))?;
    let mut did = vec![format!("wrote {}", term::inline(&file.to_string_lossy()))];
    if cfg!(target_os = "macos") {
        let load = format!("launchctl bootstrap gui/$(id -u) {}", term::quoted(&file.to_string_lossy()));
        return Ok(Installed { file, did, next: vec![load] });
    }
    let Ok(systemctl) = resolve_program("systemctl".as_ref(), env.var("PATH"), Path::new("/")) else {
        let next =
            vec!["there is no `systemctl` here: start the service by whatever this system has".to_owned()];
        return Ok(Installed { file, did, next });
    };
    for words in [["--user", "daemon-reload", ""], ["--user", "enable", UNIT], ["--user", "restart", UNIT]] {
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        if let Err(why) = systemd(&systemctl, &words, env) {
            return Err(Finding::new(
                exit::NEGATIVE,
                format!("the unit is written, and `systemctl {}` failed: {why}", words.join(" ")),
                format!(
                    "where there is no session bus, log in and run `systemctl --user enable --now {UNIT}`"
                ),
            ));
        }
    }
    did.push("enabled and started it".to_owned());
    let next = vec!["`loginctl enable-linger` keeps it, and the loops, running when you log out".to_owned()];
    Ok(Installed { file, did, next })
}

/// Stops the service and takes its file away.
///
/// # Errors
/// A [`Finding`]: exit 1 where there is none, 4 where the file is not ours.
pub fn remove(env: &Env) -> Result<Installed, Finding> {
    let file = file(env)?;
    let (dir, name) = parent(&file)?;
    not_foreign(&dir, &name, &file)?;
    if dir.stat(&name).map_err(|error| Finding::from(&error))?.is_none() {
        return Err(Finding::plain(
            exit::NEGATIVE,
            format!("no service is installed: there is no {}", term::inline(&file.to_string_lossy())),
        ));
    }
    let mut did = Vec::new();
    if !cfg!(target_os = "macos")
        && let Ok(systemctl) = resolve_program("systemctl".as_ref(), env.var("PATH"), Path::new("/"))
        && systemd(&systemctl, &["--user", "disable", "--now", UNIT], env).is_ok()
    {
        did.push("stopped and disabled it".to_owned());
    }
    dir.remove_file(&name).map_err(|error| Finding::from(&error))?;
    did.push(format!("removed {}", term::inline(&file.to_string_lossy())));
    let next = if cfg!(target_os = "macos") {
        vec![format!("launchctl bootout gui/$(id -u)/{LABEL}")]
    } else {
        Vec::new()
    };
    Ok(Installed { file, did, next })
}

fn file(env: &Env) -> Result<PathBuf, Finding> {
    let missing = || Finding::new(exit::ENVIRONMENT, "no home directory is known", "set HOME");
    if cfg!(target_os = "macos") {
        return Ok(env
            .home()
            .ok_or_else(missing)?
            .join("Library/LaunchAgents")
            .join(format!("{LABEL}.plist")));
    }
    Ok(env.config_home().ok_or_else(missing)?.join("systemd/user").join(UNIT))
}

fn parent(file: &Path) -> Result<(SafeDir, String), Finding> {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(Finding::plain(exit::BUG, "the service has no place"));
    };
    // Made where it is missing; the directories that are there keep their permissions.
    let made = match SafeDir::open_shared(dir) {
        Ok(dir) => dir,
        Err(error) if error.is_not_found() => {
            SafeDir::create_root(dir).map_err(|error| Finding::from(&error))?
        }
        Err(error) => return Err(Finding::from(&error)),
    };
    Ok((made, name.to_string_lossy().into_owned()))
}

fn not_foreign(dir: &SafeDir, name: &str, file: &Path) -> Result<(), Finding> {
    let text = dir.read_text_opt(name, limits::STORE_FILE).map_err(|error| Finding::from(&error))?;
    match text {
        Some(text) if !text.contains(OURS) => Err(Finding::new(
            exit::CONFLICT,
            format!("{} is there and is not ours", term::inline(&file.to_string_lossy())),
            "look at it, and move it away",
        )),
        _ => Ok(()),
    }
}

fn systemd(systemctl: &Path, words: &[&str], env: &Env) -> Result<(), String> {
    let output = Command::new(systemctl)
        .args(words)
        .env_clear()
        .envs(env.vars().iter().cloned())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", output.status, term::line(said.lines().next().unwrap_or_default(), 200)))
}

fn unit(words: &[String], env: &Env) -> String {
    // In a unit a per cent sign begins a specifier, a dollar a variable.
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let escaped =
                word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
            format!("\"{escaped}\"")
        })
        .collect();
    let path =
        env.text("PATH").map(|path| path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"));
    let path = path.filter(|path| !path.chars().any(char::is_control));
    let path = path.map(|path| format!("Environment=\"PATH={path}\"\n")).unwrap_or_default();
    format!(
        "# Written by `{OURS}`; `peers-ctl service remove` takes it away.\n[Unit]\nDescription=Watch over loops of peers\n\n\
         [Service]\nExecStart={}\n{path}Restart=on-failure\nRestartSec=30\n\
         # The loops are processes of their own, and go on when the watching ends.\nKillMode=process\n\n\
         [Install]\nWantedBy=default.target\n",
        quoted.join(" ")
    )
}

fn plist(words: &[String]) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words: Vec<String> =
        words.iter().map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    let words = words.concat();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- Written by {OURS} -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{LABEL}</string>\n  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n\
           <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <true/>\n  <key>AbandonProcessGroup</key>\n  <true/>\n</dict>\n</plist>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_says_exactly_these_words() {
        let words = ["/opt/a b/peers-ctl", "watch", "--notify-cmd", "echo \"$X\" 100% \\"].map(str::to_owned);
        let env = Env::from_pairs([("PATH", "/bin:/x")]);
        let text = unit(&words, &env);
        assert!(
            text.contains(r#"ExecStart="/opt/a b/peers-ctl" "watch" "--notify-cmd" "echo \"$$X\" 100%% \\""#),
            "{text}"
        );
        assert!(text.contains("Environment=\"PATH=/bin:/x\"\n") && text.contains("KillMode=process"));
        assert!(plist(&["a<b&c".to_owned()]).contains("<string>a&lt;b&amp;c</string>"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let tmp = tempfile::tempdir().unwrap();
        let env = Env::from_pairs([("HOME", tmp.path().to_str().unwrap()), ("PATH", "/nowhere")]);
        let dir = tmp.path().join(".config/systemd/user");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(UNIT), "[Unit]\n").unwrap();
        assert_eq!(install(None, &[], &env).unwrap_err().exit, 4);
        assert_eq!(remove(&env).unwrap_err().exit, 4);
        std::fs::remove_file(dir.join(UNIT)).unwrap();
        assert_eq!(remove(&env).unwrap_err().exit, 1);
        let done = install(None, &["--desktop".to_owned()], &env).unwrap();
        assert!(std::fs::read_to_string(&done.file).unwrap().contains("\"watch\" \"--desktop\""));
        assert_eq!(remove(&env).unwrap().file, done.file);
        assert!(!done.file.exists());
    }
}
