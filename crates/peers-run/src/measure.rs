//! What a turn took from tests and gates, measured in a process of its own.
//!
//! Texts that an agent wrote are parsed by grammars in C. So the loop hands them to a child of the same executable, which
//! may not write a file nor start anything, has little memory and little time, and answers with numbers. It gets them by
//! a pipe. What it does not answer for can no longer be read: a text on which it dies pays for nothing.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use peers_code::{ChangedFile, Weaker, weaker};
use peers_core::classify_path::{PathKind, TestPaths};
use peers_model::weakening::Weakened;
use peers_sys::spawn::{Child, Limits, RawExit, Spawn, SpawnError, Stdin, StubProgram};

/// The first argument by which a binary is asked to measure.
pub const ENTRY: &str = "__measure";

/// Nothing takes longer.
const LIMIT: Duration = Duration::from_secs(30);
/// The most that is said of all files.
const ANSWER: u64 = 16 * 1024 * 1024;
/// The most that is asked: texts are a fifth of it, and each character may take six as JSON.
const QUESTION: u64 = 256 * 1024 * 1024;
const MEMORY: u64 = 2 * 1024 * 1024 * 1024;

/// How the child is started.
#[derive(Debug, Clone)]
pub struct Measurer {
    /// What becomes the program.
    pub stub: StubProgram,
    /// A binary that knows [`ENTRY`].
    pub program: PathBuf,
    /// When it is ended.
    pub limit: Duration,
}

/// The child's part: reads what is asked, writes the answer.
#[must_use]
pub fn main(input: impl Read, mut output: impl Write) -> ExitCode {
    let mut question = Vec::new();
    let asked = input.take(QUESTION).read_to_end(&mut question).ok().and_then(|_| {
        let comparisons: Vec<Vec<ChangedFile>> = serde_json::from_slice(&question).ok()?;
        let answers: Vec<Weaker> = comparisons.iter().map(|files| weaker(files)).collect();
        serde_json::to_vec(&answers).ok()
    });
    match asked.map(|answer| output.write_all(&answer)) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) | None => ExitCode::FAILURE,
    }
}

/// Whether a change of this file is measured.
pub(crate) fn is_measured(tests: &TestPaths, path: &str) -> bool {
    tests.classify(path) == PathKind::Test || peers_code::is_measured(path)
}

impl Measurer {
    /// This very program.
    ///
    /// # Errors
    /// If its path is unknown.
    pub fn this_program() -> io::Result<Self> {
        Ok(Self::new(StubProgram::this_program()?, peers_sys::env::running_exe()?))
    }

    /// Another program that knows [`ENTRY`].
    #[must_use]
    pub fn new(stub: StubProgram, program: PathBuf) -> Self {
        Self { stub, program, limit: LIMIT }
    }

    /// Measures comparisons, each for itself; without a file in any of them no child is started.
    ///
    /// # Errors
    /// [`SpawnError`]: it could not be started, which is nobody's doing.
    pub fn measure(&self, comparisons: &[Vec<ChangedFile>]) -> Result<Vec<Weaker>, SpawnError> {
        if comparisons.iter().all(Vec::is_empty) {
            return Ok(vec![Weaker::default(); comparisons.len()]);
        }
        let mut spawn = Spawn::new(self.stub.clone(), &self.program, "/");
        spawn.args = vec![ENTRY.into()];
        spawn.stdin = Stdin::Piped;
        spawn.limits = Limits { processes: Some(0), file_bytes: Some(0), memory_bytes: Some(MEMORY) };
        let answer =
            ask(spawn.start()?, comparisons, self.limit).and_then(|answer| read(&answer, comparisons));
        Ok(answer.unwrap_or_else(|| {
            tracing::warn!("the measuring of changed tests gave no answer");
            comparisons.iter().map(|files| unreadable(files)).collect()
        }))
    }
}

/// What the child says, if it ends well and in time.
fn ask(mut child: Child, comparisons: &[Vec<ChangedFile>], limit: Duration) -> Option<Vec<u8>> {
    let question = serde_json::to_vec(comparisons).ok()?;
    let (mut stdin, stdout, stderr) = (child.take_stdin()?, child.take_stdout()?, child.take_stderr()?);
    std::thread::scope(|threads| {
        // It may die before it has read all; how it ended says so.
        threads.spawn(move || stdin.write_all(&question));
        let drained = |pipe: &mut dyn Read| {
            let mut said = Vec::new();
            // What does not fit is cut, and no JSON any more.
            pipe.take(ANSWER).read_to_end(&mut said).map(|_| said)
        };
        let said = threads.spawn(move || drained(&mut { stdout }));
        threads.spawn(move || drained(&mut { stderr }));
        let ended = child.wait_exited(Some(limit)).ok().flatten();
        // Whoever is gone already need not be ended.
        let _gone = child.kill();
        let ended = ended == Some(RawExit::Code(0));
        let reaped = child.wait_exited(None).is_ok() && child.reap().is_ok();
        said.join().ok().and_then(Result::ok).filter(|_| ended && reaped)
    })
}

/// The answer, where it speaks of what was asked and of nothing else.
fn read(answer: &[u8], comparisons: &[Vec<ChangedFile>]) -> Option<Vec<Weaker>> {
    let answers: Vec<Weaker> = serde_json::from_slice(answer).ok()?;
    let fits = |(answer, files): (&Weaker, &Vec<ChangedFile>)| {
        let asked: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let found = answer.found.iter().map(|found| &found.path);
        found.chain(answer.inline.iter().map(|inline| &inline.path)).all(|path| asked.contains(path.as_str()))
    };
    let whole = answers.len() == comparisons.len() && answers.iter().zip(comparisons).all(fits);
    whole.then_some(answers)
}

fn unreadable(files: &[ChangedFile]) -> Weaker {
    let found = files.iter().map(|file| Weakened::Unreadable.at(&file.path)).collect();
    Weaker { found, inline: Vec::new() }
}

#[cfg(test)]
mod tests {
    use peers_code::Side;

    use super::*;

    fn files() -> Vec<Vec<ChangedFile>> {
        let text = |text: &str| Side::Text(text.to_owned());
        let before = text("def test_a():\n    assert f() == 1\n");
        let one = |after| ChangedFile {
            path: "tests/test_a.py".into(),
            before: before.clone(),
            after,
            told: false,
        };
        vec![vec![one(text("def test_a():\n    f()\n"))], vec![one(Side::Absent)], vec![]]
    }

    fn lost() -> Vec<Vec<peers_model::weakening::Weakening>> {
        let at = |what: Weakened| vec![what.at("tests/test_a.py")];
        vec![at(Weakened::Assertions { lost: 1 }), at(Weakened::Tests { lost: 1 }), vec![]]
    }

    #[test]
    fn the_child_answers_each_comparison_and_refuses_what_is_no_question() {
        let mut answer = Vec::new();
        let question = serde_json::to_vec(&files()).unwrap();
        assert_eq!(main(question.as_slice(), &mut answer), ExitCode::SUCCESS);
        let answers = read(&answer, &files()).unwrap();
        assert_eq!(answers.into_iter().map(|answer| answer.found).collect::<Vec<_>>(), lost());
        assert_eq!(main(&b"[{}]"[..], Vec::new()), ExitCode::FAILURE);
    }

    #[test]
    fn an_answer_to_something_else_is_none() {
        for answer in ["", "[]", r#"[{"found":[],"inline":[]}]"#, "[1,2,3]"] {
            assert_eq!(read(answer.as_bytes(), &files()), None, "{answer}");
        }
        let other = unreadable(&[ChangedFile { path: "other".into(), ..files()[0][0].clone() }]);
        let answers = [other, Weaker::default(), Weaker::default()];
        assert_eq!(read(&serde_json::to_vec(&answers).unwrap(), &files()), None);
    }
}
