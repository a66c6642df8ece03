//! The agent as a child process, with a reader and a writer that cannot hold each other up.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use peers_model::limits::STREAM_LINE;
use peers_sys::spawn::{SpawnError, resolve_program};
use thiserror::Error;

use crate::options::Options;

/// So many messages to the agent may wait for it to read them.
pub(crate) const UNREAD: usize = 1024;
/// So many bytes of answers may.
pub(crate) const UNREAD_BYTES: usize = 256 * 1024;
/// Between two looks whether the agent still lives, while it says nothing.
const LOOK: Duration = Duration::from_millis(250);
/// The same while its end is awaited.
const SOON: Duration = Duration::from_millis(10);

/// Why the agent does not run.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    /// There is no such program, or it cannot be executed.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// The system refused.
    #[error("start {program}")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
}

/// Something of the agent's output.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line, without its end.
    Line(Vec<u8>),
    /// A line beyond the limit, dropped.
    TooLong,
    /// There will be no more; it may live on.
    Closed,
    /// It ended, and nothing more came from whoever holds its output.
    Ended(ExitStatus),
}

/// A message to the agent.
#[derive(Debug)]
struct Words {
    bytes: Vec<u8>,
    /// So many of its bytes count as an answer.
    counted: usize,
}

/// The running agent.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    /// The writer ends with this, and with it the agent's input.
    words: Option<SyncSender<Words>>,
    /// Bytes of answers that are not written yet.
    unread: Arc<AtomicUsize>,
    heard: Receiver<Heard>,
}

impl Agent {
    /// Starts it in our process group and session, so that whoever ends us ends it.
    pub(crate) fn start(options: &Options) -> Result<Self, StartError> {
        let Options { argv, cwd, env, .. } = options;
        let (program, args) =
            argv.split_first().map_or((OsStr::new(""), &[][..]), |(p, a)| (p.as_os_str(), a));
        let file = resolve_program(program, env.var("PATH"), cwd)?;
        let failed = |source| StartError::Start { program: program.to_string_lossy().into_owned(), source };
        let mut child = Command::new(file)
            .arg0(program)
            .args(args)
            .env_clear()
            .envs(env.vars().iter().map(|(name, value)| (name, value)))
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(failed)?;
        let (words, to_write) = sync_channel(UNREAD);
        let unread = Arc::new(AtomicUsize::new(0));
        // One line may wait while one is looked at and one is read.
        let (say, heard) = sync_channel(1);
        if let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
            let unread = Arc::clone(&unread);
            thread::spawn(move || write(stdin, &to_write, &unread));
            thread::spawn(move || read(stdout, &say));
        }
        Ok(Self { child, words: Some(words), unread, heard })
    }

    /// Queues a request of ours. False: the agent does not read what it is told.
    pub(crate) fn send(&self, bytes: Vec<u8>) -> bool {
        self.queue(Words { bytes, counted: 0 })
    }

    /// Queues an answer. The agent decides how many there are, so their bytes are counted. False: it does
    /// not read what it is told.
    pub(crate) fn answer(&self, bytes: Vec<u8>) -> bool {
        let counted = bytes.len();
        // Nobody else adds to it.
        let all = self.unread.load(Ordering::Relaxed).saturating_add(counted);
        if all > UNREAD_BYTES {
            return false;
        }
        self.unread.fetch_add(counted, Ordering::Relaxed);
        self.queue(Words { bytes, counted })
    }

    fn queue(&self, words: Words) -> bool {
        match self.words.as_ref().map(|queue| queue.try_send(words)) {
            Some(Err(TrySendError::Full(_))) => false,
            // Nobody reads any more: its end will be heard.
            Some(Err(TrySendError::Disconnected(_)) | Ok(())) | None => true,
        }
    }

    /// The next thing that it says. Waits for as long as it lives and is silent.
    pub(crate) fn next(&mut self) -> Heard {
        let mut ended = None;
        loop {
            match self.heard.recv_timeout(LOOK) {
                Ok(heard) => return heard,
                Err(RecvTimeoutError::Disconnected) => return Heard::Closed,
                Err(RecvTimeoutError::Timeout) => match ended {
                    Some(status) => return Heard::Ended(status),
                    // A process that it left behind may hold its output.
                    None => ended = self.child.try_wait().ok().flatten(),
                },
            }
        }
    }

    /// Closes its input and waits; what still runs after `patience` is killed. How it ended by itself, if
    /// it did.
    pub(crate) fn finish(mut self, patience: Duration) -> Option<ExitStatus> {
        self.words = None;
        let until = Instant::now() + patience;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= until {
                break;
            }
            // It may have to say something before it can end.
            match self.heard.try_recv() {
                Ok(_) => {}
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => thread::sleep(SOON),
            }
        }
        // Both fail for a process that is gone, which is what is wanted.
        let _gone = self.child.kill();
        let _status = self.child.wait();
        None
    }
}

fn write(mut stdin: ChildStdin, messages: &Receiver<Words>, unread: &AtomicUsize) {
    for Words { bytes, counted } in messages {
        if stdin.write_all(&bytes).is_err() {
            return;
        }
        unread.fetch_sub(counted, Ordering::Relaxed);
    }
}

fn read(stdout: ChildStdout, say: &SyncSender<Heard>) {
    let mut lines = BufReader::with_capacity(64 * 1024, stdout);
    loop {
        let heard = next_line(&mut lines, STREAM_LINE);
        let last = matches!(heard, Heard::Closed);
        if say.send(heard).is_err() || last {
            return;
        }
    }
}

/// A line of at most `cap` bytes; the rest of a longer one is read and forgotten.
fn next_line(lines: &mut impl BufRead, cap: u64) -> Heard {
    let mut line = Vec::new();
    match lines.by_ref().take(cap.saturating_add(1)).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => return Heard::Closed,
        Ok(_) => {}
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if u64::try_from(line.len()).unwrap_or(u64::MAX) > cap {
        // Before the rest is read: it may be endless.
        drop(line);
        return match lines.skip_until(b'\n') {
            Ok(_) => Heard::TooLong,
            Err(_) => Heard::Closed,
        };
    }
    Heard::Line(line)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use peers_model::config::Permissions;
    use peers_sys::env::Env;

    use super::*;

    #[test]
    fn answers_wait_up_to_so_many_bytes_and_our_own_words_do_not_count() {
        let options = Options {
            permissions: Permissions::Allow,
            argv: ["tail", "-f", "/dev/null"].map(OsString::from).to_vec(),
            cwd: std::env::temp_dir(),
            env: Env::from_pairs([("PATH", "/usr/bin:/bin")]),
            patience: Duration::ZERO,
        };
        let agent = Agent::start(&options).unwrap();
        // Beyond what a pipe holds, so that the writer stays with it.
        assert!(agent.send(vec![b'p'; 4 * UNREAD_BYTES]));
        let piece = UNREAD_BYTES / 4;
        let taken = (0..UNREAD).take_while(|_| agent.answer(vec![b'a'; piece])).count();
        assert_eq!(taken, 4);
        assert!(!agent.answer(vec![b'a']), "it is full");
        assert!(agent.send(vec![b'p'; piece]), "what we ask is bounded by ourselves");
        agent.finish(Duration::ZERO);
    }

    #[test]
    fn lines_are_read_one_by_one_and_a_long_one_is_dropped_alone() {
        let mut bytes: &[u8] = b"one\ntoo long\n1234\nlast";
        let mut got = Vec::new();
        loop {
            match next_line(&mut bytes, 4) {
                Heard::Line(line) => got.push(String::from_utf8(line).unwrap()),
                Heard::TooLong => got.push("-".to_owned()),
                Heard::Closed | Heard::Ended(_) => break,
            }
        }
        assert_eq!(got, ["one", "-", "1234", "last"]);
    }
}
