//! Standard error, written by a thread of its own while a loop runs: a reader that stops reading (a
//! stopped terminal, a pipe that nobody empties) holds up words, never the loop.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Texts that wait for a reader. More are counted and left out.
const WAITING: usize = 1000;

/// The thread that writes.
#[derive(Debug)]
pub(super) struct Pen {
    to: SyncSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    lost: usize,
    thread: JoinHandle<()>,
}

impl Pen {
    /// Starts the thread, which writes to `end`.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(end: impl Write + Send + 'static) -> io::Result<Self> {
        let (to, from) = sync_channel(WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&waiting);
        let thread =
            std::thread::Builder::new().name("talk".to_owned()).spawn(move || write(end, &from, &count))?;
        Ok(Self { to, waiting, lost: 0, thread })
    }

    /// Nothing waits for a reader.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Hands a text over, or counts it as lost.
    pub(super) fn write(&mut self, mut bytes: Vec<u8>) {
        if self.lost > 0 {
            let mut told = lost(self.lost);
            told.append(&mut bytes);
            bytes = told;
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        if self.to.try_send(bytes).is_ok() {
            self.lost = 0;
        } else {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            self.lost += 1;
        }
    }

    /// Waits until all of it is written.
    pub(super) fn finish(self) {
        if self.lost > 0 {
            // The one text that waits for room.
            let _gone = self.to.send(lost(self.lost));
        }
        drop(self.to);
        let _ended = self.thread.join();
    }
}

fn lost(texts: usize) -> Vec<u8> {
    format!("({texts} lines are left out here: nobody read them in time; `peers report` has what happened)\n")
        .into_bytes()
}

fn write(mut end: impl Write, from: &Receiver<Vec<u8>>, waiting: &AtomicUsize) {
    for bytes in from {
        // Whoever closed standard error does not want to be told.
        let _unheard = end.write_all(&bytes).and_then(|()| end.flush());
        waiting.fetch_sub(1, Ordering::AcqRel);
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
        drop(go);
        pen.finish();
        let text: Vec<u8> = all.iter().flatten().collect();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (many - lost + 1, "0"));
        assert!(lines.last().unwrap().starts_with(&format!("({lost} lines are left out here")), "{text}");
    }
}
