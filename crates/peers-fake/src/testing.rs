//! A repository in a temporary folder, and scripts played in it.

use std::fs;
use std::path::PathBuf;

use peers_model::trailer::Message;
use peers_sys::env::Env;
use tempfile::TempDir;

use crate::commit::git;
use crate::play::{Io, Options, Prompt, run};

/// `<temp>/repo` with one commit; scripts and state lie beside it.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) prompt: String,
    pub(crate) turn: Option<u64>,
    pub(crate) peer: Option<String>,
}

/// What a played turn left.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) code: u8,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Played {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let bench = Self {
            env: vec![
                ("PATH".to_owned(), std::env::var("PATH").expect("PATH")),
                ("HOME".to_owned(), dir.path().display().to_string()),
                ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
                ("GIT_CONFIG_GLOBAL".to_owned(), "/dev/null".to_owned()),
            ],
            dir,
            prompt: String::new(),
            turn: None,
            peer: Some("alpha".to_owned()),
        };
        fs::create_dir(bench.repo()).expect("mkdir");
        bench.git(&["init", "-q", "-b", "main"]);
        bench.git(&["commit", "-q", "--allow-empty", "-m", "Begin"]);
        bench
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn options(&self, script: &str) -> Options {
        let path = self.dir.path().join("script.yaml");
        fs::write(&path, script).expect("write script");
        Options {
            script: path,
            peer: self.peer.clone(),
            turn: self.turn,
            state: None,
            switches: Vec::new(),
            prompt: Prompt::Stdin,
            cwd: self.repo(),
            env: Env::from_pairs(self.env.clone()),
        }
    }

    /// Plays the turn that is due.
    pub(crate) fn play(&self, script: &str) -> Played {
        self.play_with(&self.options(script))
    }

    pub(crate) fn play_with(&self, options: &Options) -> Played {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let io = Io { stdin: &mut self.prompt.as_bytes(), stdout: &mut stdout, stderr: &mut stderr };
        let code = run(options, io);
        Played { code, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }

    /// Plays a script of one turn and demands success.
    pub(crate) fn steps(&self, steps: &str) -> Played {
        let played = self.play(&format!("as: plain\nafter: repeat\nturns:\n- - {}\n", steps.trim()));
        assert_eq!(played.code, 0, "{steps}\n{}{}", played.text(), played.stderr);
        played
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let env = Env::from_pairs(self.env.clone());
        let done = git(args, None, "operator", &self.repo(), &env).expect("git");
        assert!(done.status.success(), "git {args:?}: {}", done.output);
        done.output.trim_end().to_owned()
    }

    pub(crate) fn file(&self, path: &str) -> String {
        fs::read_to_string(self.repo().join(path)).expect(path)
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// The message of the last commit.
    pub(crate) fn message(&self) -> String {
        self.git(&["log", "-1", "--format=%B"])
    }

    /// Reads the last commit's message as the loop does.
    pub(crate) fn claims<T>(&self, read: impl FnOnce(&Message<'_>) -> T) -> T {
        read(&Message::parse(&self.message()))
    }
}
