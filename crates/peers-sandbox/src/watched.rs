//! One child from its start to its end: time limit, caps, and nothing left in its group.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use peers_sys::clock;
use peers_sys::signal::Signal;
use peers_sys::spawn::Spawn;

use crate::port::{ExecError, OUTPUT_CAP, Output, Ran};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Pipes that somebody outside of the group holds open are read for so long after the exit.
const DRAIN: Duration = Duration::from_secs(2);
const CHUNK: usize = 64 * 1024;

/// Starts a child, waits for its end, at most `limit`, and ends what is left of its group.
///
/// Call it from a thread that lives as long as the process: the kernel kills the child with that thread.
///
/// # Errors
/// [`ExecError`]; no process of its group is left behind.
pub fn run_watched(spawn: &Spawn, limit: Duration) -> Result<Ran, ExecError> {
    let mut child = spawn.start()?;
    let stdout = child.take_stdout().map(read);
    let stderr = child.take_stderr().map(read);
    let waited = child.wait_exited(Some(limit));
    if matches!(waited, Ok(None)) {
        // Both fail only for a child that is gone, which is what they are for.
        let _gone = child.terminate();
        let _ended = child.wait_exited(Some(GRACE));
        let _gone = child.kill();
        let _ended = child.wait_exited(Some(GRACE));
    }
    // As long as the leader is not reaped this reaches its group or nobody.
    let _empty = child.sweep_group(Signal::Kill);
    let until = clock::mono().plus(DRAIN);
    let finish =
        |stream: Option<Receiver<Vec<u8>>>| stream.map_or_else(Output::default, |s| collect(&s, until));
    let (stdout, stderr) = (finish(stdout), finish(stderr));
    let reaped = child.reap();
    let exit = match waited? {
        None => None,
        Some(_) => Some(reaped?),
    };
    Ok(Ran { exit, stdout, stderr })
}

/// Reads to the end; what is beyond the cap is read and dropped by the receiver.
fn read(mut stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    thread::spawn(move || {
        let mut kept = 0;
        let mut chunk = vec![0; CHUNK];
        loop {
            match stream.read(&mut chunk) {
                Ok(0) => return,
                Ok(n) => {
                    // One byte more than the cap says that there was more.
                    let n = n.min((OUTPUT_CAP + 1).saturating_sub(kept));
                    kept += n;
                    // Nobody listens once the drain is over: then there is nothing to keep.
                    if n > 0 && tell.send(chunk.iter().take(n).copied().collect()).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    told
}

fn collect(stream: &Receiver<Vec<u8>>, until: peers_model::Mono) -> Output {
    let mut output = Output::default();
    loop {
        match stream.recv_timeout(until.since(clock::mono())) {
            Ok(chunk) => output.bytes.extend(chunk),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                output.cut = true;
                break;
            }
        }
    }
    output.cut |= output.bytes.len() > OUTPUT_CAP;
    output.bytes.truncate(OUTPUT_CAP);
    output
}
