//! Repositories in temporary directories.

use std::path::{Path, PathBuf};
use std::process::Command;

use peers_model::{CommitId, Timestamp};

use crate::{Author, ControlDir, Git, PeerRepo};

/// A repository with helpers, and a place for a control directory beside it.
pub(super) struct Fixture {
    pub(super) dir: tempfile::TempDir,
    pub(super) work: PathBuf,
}

impl Fixture {
    /// A repository with one commit that has the file `a`.
    pub(super) fn new() -> Self {
        let fixture = Self::unborn();
        fixture.write("a", "one\n");
        fixture.commit("first");
        fixture
    }

    pub(super) fn unborn() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir(&work).unwrap();
        let fixture = Self { dir, work };
        fixture.git(&["init", "-q", "-b", "main", "--template="]);
        fixture
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        git_in(&self.work, self.dir.path(), args)
    }

    pub(super) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        put(&self.work.join(name), text.as_ref());
    }

    pub(super) fn remove(&self, name: &str) {
        std::fs::remove_file(self.work.join(name)).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work.join(name)).unwrap()
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.work.join(name).symlink_metadata().is_ok()
    }

    /// Makes an object of these bytes, whatever git thinks of them: its name.
    pub(super) fn object(&self, kind: &str, raw: impl AsRef<[u8]>) -> String {
        put(&self.path("raw"), raw.as_ref());
        let place = self.path("raw");
        self.git(&["hash-object", "-w", "-t", kind, "--literally", place.to_str().unwrap()])
    }

    /// Commits everything.
    pub(super) fn commit(&self, message: &str) -> CommitId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    pub(super) fn head(&self) -> CommitId {
        self.rev("HEAD")
    }

    pub(super) fn rev(&self, name: &str) -> CommitId {
        CommitId::new(self.git(&["rev-parse", name]).trim()).unwrap()
    }

    pub(super) fn open(&self) -> PeerRepo {
        PeerRepo::open(&self.work).unwrap()
    }

    pub(super) fn control(&self) -> ControlDir {
        ControlDir::open_or_create(&self.path("control.git"), program()).unwrap()
    }

    /// A control directory with everything imported.
    pub(super) fn imported(&self) -> ControlDir {
        let mut control = self.control();
        let _imported = control.import(&self.open(), None).unwrap();
        control
    }
}

pub(super) fn put(path: &Path, text: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Takes half of a loose object away.
pub(super) fn cut_short(git_dir: &Path, id: &str) {
    let file = git_dir.join("objects").join(&id[..2]).join(&id[2..]);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
}

pub(super) fn program() -> Git {
    Git::locate(&std::env::var_os("PATH").unwrap()).unwrap()
}

pub(super) fn git_in(dir: &Path, home: &Path, args: &[&str]) -> String {
    let output = command(dir, home, args).output().unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(super) fn command(dir: &Path, home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program().program());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home);
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ann").env(format!("GIT_{role}_EMAIL"), "ann@example.org");
        command.env(format!("GIT_{role}_DATE"), "1700000000 +0100");
    }
    command.current_dir(dir).args(["-c", "protocol.file.allow=always"]).args(args);
    command
}

pub(super) fn substrate() -> Author {
    Author::new("peers-substrate", "peers-substrate@local", Timestamp::from_millis(1_700_000_001_000))
}

/// A clock for which no file stamp is young.
pub(super) fn tomorrow() -> std::time::SystemTime {
    std::time::SystemTime::now() + std::time::Duration::from_hours(24)
}

pub(super) fn link(target: &str, at: &Path) {
    std::os::unix::fs::symlink(target, at).unwrap();
}

pub(super) fn fifo(at: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}
