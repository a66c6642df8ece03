//! `peers-ctl watch` as a service of this user: a systemd unit, or the file that launchd takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use peers_model::{exit, limits};
use peers_run::boot::Finding;
use peers_sys::dir::{FileMode, SafeDir};
use peers_sys::env::Env;
use peers_sys::spawn::resolve_program;
use peers_sys::term;

use crate::config::ConfigDir;

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
    // A service begins with hardly any environment: what this call goes by is written down.
    let config = ConfigDir::path(config_dir, env)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut words = vec![text(&exe), "--config-dir".to_owned(), text(&config), "watch".to_owned()];
    words.extend(watch.iter().cloned());
    if let Some(word) = words.iter().find(|word| word.chars().any(char::is_control)) {
        return Err(Finding::plain(
            exit::USAGE,
            format!("`{}` has control characters in it", term::line(word, 80)),
        ));
    }
    let text = if cfg!(target_os = "macos") { plist(&words, env) } else { unit(&words, env) };
    let (dir, name) = parent(&file)?;
    not_foreign(&dir, &name, &file)?;
    dir.publish_mode(&name, text.as_bytes(), FileMode::Plain).map_err(|error| Finding::from(&error))?;
    let mut did = vec![format!("wrote {}", term::inline(&file.to_string_lossy()))];
    if cfg!(target_os = "macos") {
        let load = format!("launchctl bootstrap gui/$(id -u) {}", term::quoted(&file.to_string_lossy()));
        return Ok(Installed { file, did, next: vec![load] });
    }
    let Ok(systemctl) = resolve_program("systemctl".as_ref(), env.var("PATH"), Path::new("/")) else {
        let here =
            "`systemctl` was not found: start the service with this system's service manager".to_owned();
        return Ok(Installed { file, did, next: vec![here, otherwise(&words, env)] });
    };
    for call in [["--user", "daemon-reload", ""], ["--user", "enable", UNIT], ["--user", "restart", UNIT]] {
        let called: Vec<&str> = call.into_iter().filter(|word| !word.is_empty()).collect();
        if let Err(why) = systemd(&systemctl, &called, env) {
            let what = format!("the unit is written, and `systemctl {}` failed: {why}", called.join(" "));
            // The first asks for nothing but that somebody is there.
            return Err(if called.contains(&"daemon-reload") {
                let login = format!("in a session of your own: `systemctl --user enable --now {UNIT}`");
                let what = format!("{what}; the systemd of this user does not answer");
                Finding::new(exit::ENVIRONMENT, what, format!("{}; {login}", otherwise(&words, env)))
            } else {
                Finding::new(exit::NEGATIVE, what, format!("`systemctl --user status {UNIT}` says more"))
            });
        }
    }
    did.push("enabled and started it".to_owned());
    let next = vec!["`loginctl enable-linger` keeps it, and the loops, running when you log out".to_owned()];
    Ok(Installed { file, did, next })
}

/// What to do where nothing starts services.
fn otherwise(words: &[String], env: &Env) -> String {
    let command = words.iter().map(|word| term::quoted(word)).collect::<Vec<_>>().join(" ");
    // Cron gives hardly any environment, like a service.
    let vars: Vec<String> =
        variables(env).iter().map(|(name, value)| format!("{name}={} ", term::quoted(value))).collect();
    // In a crontab a per cent sign ends the line.
    let cron = format!("{}{command}", vars.concat()).replace('%', "\\%");
    format!("let it run in tmux: `{command}`, or by cron once a minute: `* * * * * {cron} --once`")
}

/// The variables of now that a watcher and the loops that it starts go by, where a service would not have them.
fn variables(env: &Env) -> Vec<(String, String)> {
    let known = |name: &str| NAMES.contains(&name) || name.starts_with("PEERS_CTL_");
    let text = |text: &std::ffi::OsString| text.to_str().map(str::to_owned);
    let pairs = env.vars().iter().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
    pairs.filter(|(name, value)| known(name) && !value.chars().any(char::is_control)).collect()
}

/// Their names, beside those of our own.
const NAMES: [&str; 7] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "PEERS_PROJECTS_ROOT",
];

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
    let remove_file = || dir.remove_file(&name).map_err(|error| Finding::from(&error));
    let removed = format!("removed {}", term::inline(&file.to_string_lossy()));
    if cfg!(target_os = "macos") {
        remove_file()?;
        let next = vec![format!("launchctl bootout gui/$(id -u)/{LABEL}")];
        return Ok(Installed { file, did: vec![removed], next });
    }
    let Ok(systemctl) = resolve_program("systemctl".as_ref(), env.var("PATH"), Path::new("/")) else {
        remove_file()?;
        let here =
            "`systemctl` was not found: stop the service with this system's service manager".to_owned();
        return Ok(Installed { file, did: vec![removed], next: vec![here] });
    };
    // Systemd has to know the file to disable what it says.
    let disabled = systemd(&systemctl, &["--user", "disable", "--now", UNIT], env);
    remove_file()?;
    let reloaded = systemd(&systemctl, &["--user", "daemon-reload"], env);
    let (mut did, mut next) = (Vec::new(), Vec::new());
    match disabled {
        Ok(()) => did.push("stopped and disabled it".to_owned()),
        Err(why) => next.push(format!(
            "`systemctl --user stop {UNIT}` where it still runs: `systemctl --user disable --now {UNIT}` failed: {why}"
        )),
    }
    did.push(removed);
    if let Err(why) = reloaded {
        next.push(format!("`systemctl --user daemon-reload` once it can be: it failed: {why}"));
    }
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
            "inspect it, and move it away",
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
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    let vars: Vec<String> = variables(env)
        .iter()
        .map(|(name, value)| format!("Environment=\"{name}={}\"\n", escaped(value)))
        .collect();
    let vars = vars.concat();
    format!(
        "# Written by `{OURS}`; `peers-ctl service remove` takes it away.\n[Unit]\nDescription=Watch over loops of peers\n\n\
         [Service]\nExecStart={}\n{vars}Restart=on-failure\nRestartSec=30\n\
         # The loops are processes of their own, and go on when the watching ends.\nKillMode=process\n\n\
         [Install]\nWantedBy=default.target\n",
        quoted.join(" ")
    )
}

fn plist(words: &[String], env: &Env) -> String {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words: Vec<String> =
        words.iter().map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    let words = words.concat();
    let vars: Vec<String> = variables(env)
        .iter()
        .map(|(name, value)| {
            format!("    <key>{}</key>\n    <string>{}</string>\n", escaped(name), escaped(value))
        })
        .collect();
    let vars = vars.concat();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- Written by {OURS} -->\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{LABEL}</string>\n  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  <key>EnvironmentVariables</key>\n  <dict>\n{vars}  </dict>\n\
           <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <true/>\n  <key>AbandonProcessGroup</key>\n  <true/>\n</dict>\n</plist>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_says_exactly_these_words() {
        let words = ["/opt/a b/peers-ctl", "watch", "--notify-cmd", "echo \"$X\" 100% \\"].map(str::to_owned);
        let vars = [
            ("PATH", "/bin:/x"),
            ("XDG_STATE_HOME", "/s \"t\" 5%"),
            ("PEERS_CTL_PEERS_BIN", "/p"),
            ("SECRET", "x"),
            ("PEERS_CTL_ODD", "a\nb"),
        ];
        let env = Env::from_pairs(vars);
        let text = unit(&words, &env);
        assert!(
            text.contains(r#"ExecStart="/opt/a b/peers-ctl" "watch" "--notify-cmd" "echo \"$$X\" 100%% \\""#),
            "{text}"
        );
        assert!(text.contains("Environment=\"PATH=/bin:/x\"\n") && text.contains("KillMode=process"));
        assert!(text.contains(
            "Environment=\"XDG_STATE_HOME=/s \\\"t\\\" 5%%\"\nEnvironment=\"PEERS_CTL_PEERS_BIN=/p\"\n"
        ));
        assert!(!text.contains("SECRET") && !text.contains("ODD"), "{text}");
        let text = otherwise(&["/opt/a b/peers-ctl".to_owned(), "watch".to_owned()], &env);
        let cron = "* * * * * PATH=/bin:/x XDG_STATE_HOME='/s \"t\" 5\\%' PEERS_CTL_PEERS_BIN=/p '/opt/a b/peers-ctl' watch --once`";
        assert!(text.contains(cron), "{text}");
        let text = plist(&["a<b&c".to_owned()], &env);
        assert!(text.contains("<string>a&lt;b&amp;c</string>"), "{text}");
        assert!(text.contains("<key>PEERS_CTL_PEERS_BIN</key>\n    <string>/p</string>"), "{text}");
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
        let config = tmp.path().join(".config/peers-ctl");
        let words = format!("\"--config-dir\" \"{}\" \"watch\" \"--desktop\"\n", config.display());
        assert!(std::fs::read_to_string(&done.file).unwrap().contains(&words));
        assert!(done.next[1].contains("watch --desktop --once`"), "{:?}", done.next);
        assert_eq!(remove(&env).unwrap().file, done.file);
        assert!(!done.file.exists());
        // A systemd that nobody answers for.
        let bin = tmp.path().join("systemctl");
        std::fs::write(&bin, "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n")
            .unwrap();
        std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let home = tmp.path().to_str().unwrap();
        let env = Env::from_pairs([("HOME", home), ("PATH", home)]);
        let finding = install(None, &[], &env).unwrap_err();
        assert_eq!(finding.exit, 6);
        let hint = finding.hint.unwrap().to_string();
        assert!(hint.contains("tmux") && hint.contains("cron") && hint.contains("watch --once`"), "{hint}");
        // The unit is written nevertheless, and its removal says that nothing was stopped.
        let done = remove(&env).unwrap();
        assert!(!done.file.exists());
        assert_eq!(done.did.len(), 1, "{:?}", done.did);
        assert!(done.next[0].contains("`systemctl --user stop peers-ctl.service`"), "{:?}", done.next);
        assert!(done.next[0].ends_with("Failed to connect to bus: No medium found"), "{:?}", done.next);
        assert!(done.next[1].contains("daemon-reload"), "{:?}", done.next);
    }
}
