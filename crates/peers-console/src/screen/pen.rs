//! Standard error, written by a thread of its own while a loop runs: a reader that stops reading (a
//! stopped terminal, a pipe that nobody empties) holds up words, never the loop.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Texts that wait for a reader. More are counted and left out.
const WAITING: usize = 1000;

/// The thread that writes. It ends with this value, or with the process when nobody reads.
#[derive(Debug)]
pub(super) struct Pen {
    to: SyncSender<Vec<u8>>,
    waiting: Arc<Waiting>,
    lost: usize,
}

/// How many texts wait for a reader.
#[derive(Debug, Default)]
struct Waiting {
    count: Mutex<usize>,
    less: Condvar,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, usize> {
        // A number is whole whoever panicked.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_less(&self) {
        let mut count = self.lock();
        *count = count.saturating_sub(1);
        self.less.notify_all();
    }
}

impl Pen {
    /// Starts the thread, which writes to `end`.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(end: impl Write + Send + 'static) -> io::Result<Self> {
        let (to, from) = sync_channel(WAITING);
        let waiting = Arc::new(Waiting::default());
        let count = Arc::clone(&waiting);
        std::thread::Builder::new().name("talk".to_owned()).spawn(move || write(end, &from, &count))?;
        Ok(Self { to, waiting, lost: 0 })
    }

    /// Nothing waits for a reader.
    pub(super) fn is_idle(&self) -> bool {
        *self.waiting.lock() == 0
    }

    /// Hands a text over, or counts it as lost.
    pub(super) fn write(&mut self, mut bytes: Vec<u8>) {
        if self.lost > 0 {
            let mut told = lost(self.lost);
            told.append(&mut bytes);
            bytes = told;
        }
        *self.waiting.lock() += 1;
        if self.to.try_send(bytes).is_ok() {
            self.lost = 0;
        } else {
            self.waiting.one_less();
            self.lost += 1;
        }
    }

    /// Waits until all of it is written, but no longer than `patience`. Returns whether it is.
    pub(super) fn settle(&mut self, patience: Duration) -> bool {
        let waited = |pen: &Self| {
            let count = pen.waiting.lock();
            let done = pen.waiting.less.wait_timeout_while(count, patience, |count| *count > 0);
            *done.unwrap_or_else(PoisonError::into_inner).0 == 0
        };
        if waited(self) && self.lost > 0 {
            self.write(Vec::new());
        }
        waited(self) && self.lost == 0
    }
}

fn lost(texts: usize) -> Vec<u8> {
    format!("({texts} lines are left out here: the terminal was too slow; `peers report` has them all)\n")
        .into_bytes()
}

fn write(mut end: impl Write, from: &Receiver<Vec<u8>>, waiting: &Waiting) {
    for bytes in from {
        // Whoever closed standard error does not want to be told.
        let _unheard = end.write_all(&bytes).and_then(|()| end.flush());
        waiting.one_less();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    /// A reader that takes the first byte when it is let, and the rest then.
    struct Slow {
        let_go: Receiver<()>,
        taken: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Nobody holds it back any more.
            let _free = self.let_go.recv();
            self.taken.send(bytes.to_vec()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_writes_never_waits_and_what_was_left_out_is_counted() {
        let (go, let_go) = channel();
        let (taken, all) = channel();
        let mut pen = Pen::start(Slow { let_go, taken }).unwrap();
        // One more may be in the writer's hand.
        let many = WAITING + 1 + 7;
        for number in 0..many {
            pen.write(format!("{number}\n").into_bytes());
        }
        assert!(!pen.is_idle());
        let lost = pen.lost;
        assert!((7..=8).contains(&lost), "{lost}");
        assert!(!pen.settle(Duration::ZERO), "nobody reads, and nobody waits for that");
        drop(go);
        assert!(pen.settle(Duration::MAX));
        drop(pen);
        let text: Vec<u8> = all.iter().flatten().collect();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (many - lost + 1, "0"));
        assert!(lines.last().unwrap().starts_with(&format!("({lost} lines are left out here")), "{text}");
    }
}
