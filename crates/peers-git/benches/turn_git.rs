//! What the git directory of a turn costs a tick: made, and taken in again with one commit. Beside it the import that a
//! tick has without one. `cargo bench -p peers-git --bench turn_git -- FILES...`; medians of some turns.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench may panic, and says its figures"
)]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use peers_git::{Author, ControlDir, Git, HarvestSpec, Identity, PeerRepo, TurnGit, TurnSpec};
use peers_model::CommitId;
use peers_sys::dir::SafeDir;

/// Turns; of a large tree so many files in all of them.
const ROUNDS: usize = 20;
const FILES: usize = 500_000;
/// Files of one directory.
const EACH: usize = 100;

fn main() {
    for word in std::env::args().skip(1) {
        // Cargo adds `--bench`.
        let Ok(files) = word.parse() else { continue };
        let with = Stage::new(files).turns();
        let bare = Stage::new(files).imports();
        let [made, harvested, published, look] = with.each_ref().map(|of| median(of));
        let bare = median(&bare);
        println!(
            "turn git, {files} files: made in {made:.1} ms, harvested in {harvested:.1} (a look at the work tree is in it, and takes {look:.1}), published in {published:.1}; a turn without it is imported in {bare:.1}: {:.1} ms a tick, looks not counted",
            made + harvested - look + published - bare
        );
    }
}

fn median(of: &[Duration]) -> f64 {
    let mut sorted = of.to_owned();
    sorted.sort();
    sorted[sorted.len() / 2].as_secs_f64() * 1000.0
}

struct Stage {
    dir: tempfile::TempDir,
    control: ControlDir,
    scratch: SafeDir,
    rounds: usize,
}

impl Stage {
    fn new(files: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("repo");
        for n in 0..files {
            let at = work.join(format!("d{}/e{}", n / (EACH * EACH), n / EACH));
            if n % EACH == 0 {
                std::fs::create_dir_all(&at).unwrap();
            }
            std::fs::write(at.join(format!("f{n}.txt")), format!("file {n}\n")).unwrap();
        }
        // Of a file that was written a moment ago every look reads the content.
        std::thread::sleep(Duration::from_secs(3));
        git(&work, &work.join(".git"), &["init", "-q", "-b", "main"]);
        git(&work, &work.join(".git"), &["add", "-A"]);
        git(&work, &work.join(".git"), &["commit", "-qm", "First"]);
        let program = Git::locate(&std::env::var_os("PATH").unwrap()).unwrap();
        let mut control = ControlDir::open_or_create(&dir.path().join("control.git"), program).unwrap();
        let _first = control.import(&PeerRepo::open(&work).unwrap(), None).unwrap();
        let scratch = SafeDir::create_root(dir.path().join("scratch")).unwrap();
        Self { dir, control, scratch, rounds: ROUNDS.min(FILES / files.max(1)).max(3) }
    }

    /// As the loop does before a turn: it has compared the work tree.
    fn looked(&self) -> (PeerRepo, CommitId) {
        let repo = PeerRepo::open(&self.dir.path().join("repo")).unwrap();
        let tip = repo.facts().head().unwrap().commit;
        assert!(!self.control.tree_state(repo.work_dir(), &tip).unwrap().dirty);
        (repo, tip)
    }

    fn commit(&self, git_dir: &Path, round: usize) {
        let work = self.dir.path().join("repo");
        std::fs::write(work.join("d0/e0/f0.txt"), format!("turn {round}\n")).unwrap();
        git(&work, git_dir, &["commit", "-qam", &format!("Turn {round}")]);
    }

    /// Making, harvest, publishing, and a look at the work tree alone.
    fn turns(mut self) -> [Vec<Duration>; 4] {
        let mut took = [const { Vec::new() }; 4];
        let identity = Identity { name: "ann".into(), email: "ann@peers.local".into() };
        let author = Author { identity: identity.clone(), time: peers_sys::clock::now() };
        for round in 0..self.rounds {
            let (repo, tip) = self.looked();
            let spec = TurnSpec {
                branch: Some("refs/heads/main"),
                tip: &tip,
                identity: &identity,
                owner: None,
                commit_hooks: false,
                config_files: &[],
            };
            let (made, git) =
                timed(|| TurnGit::make(&self.scratch, &self.control, &repo, &spec).unwrap().git);
            self.commit(&self.scratch.path().join("turn-git/.git"), round);
            let look = timed(|| self.control.tree_state(repo.work_dir(), &tip).unwrap()).0;
            let spec = HarvestSpec { base: None, label: "tick-1", author: &author };
            let (harvested, found) = timed(|| git.harvest(&mut self.control, &repo, &spec).unwrap());
            let accepted = found.outcome.unwrap();
            assert_ne!(accepted.tip, tip);
            let (published, done) = timed(|| accepted.publish(&self.control, &repo, &spec).unwrap());
            assert!(done.moved.is_none());
            for (all, one) in took.iter_mut().zip([made, harvested, published, look]) {
                all.push(one);
            }
        }
        took
    }

    fn imports(mut self) -> Vec<Duration> {
        let rounds = self.rounds;
        let turn = |round| {
            let (repo, _tip) = self.looked();
            self.commit(&self.dir.path().join("repo/.git"), round);
            timed(|| black_box(self.control.import(&repo, None).unwrap())).0
        };
        (0..rounds).map(turn).collect()
    }
}

fn timed<T>(what: impl FnOnce() -> T) -> (Duration, T) {
    let began = Instant::now();
    let done = what();
    (began.elapsed(), done)
}

fn git(work: &Path, git_dir: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=Op", "-c", "user.email=op@example.invalid", "-c", "core.hooksPath=/dev/null"])
        // It would tidy up while we look.
        .args(["-c", "maintenance.auto=false"])
        .args(args)
        .current_dir(work)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_DIR", git_dir)
        .env("GIT_WORK_TREE", work)
        // Where a turn is really behind a wall this is mounted where its alternates say.
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", work.join(".git/objects"))
        .output()
        .unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}
