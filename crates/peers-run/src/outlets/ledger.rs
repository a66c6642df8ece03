//! What peers used, as the auth proxy saw it: its log, read on from where it was read last.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};

use peers_model::{PeerName, RunId, Tokens, limits};
use peers_sys::SafeDir;
use peers_tools::Usage;
use serde::Deserialize;

/// Bytes that are read at once.
const WINDOW: u64 = 4 * limits::MIB;

/// What a peer was seen to use, by model.
pub type Metered = BTreeMap<String, Usage>;

/// The log, and how far it was read.
#[derive(Debug)]
pub(super) struct Reader {
    dir: SafeDir,
    name: String,
    run: RunId,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    read: u64,
    /// What nobody asked for yet.
    waiting: BTreeMap<String, Metered>,
}

#[derive(Deserialize)]
struct Line {
    run: String,
    peer: String,
    #[serde(default)]
    model: Option<String>,
    #[serde(default, rename = "in")]
    input: Option<u64>,
    #[serde(default)]
    out: Option<u64>,
    #[serde(default)]
    cache_read: Option<u64>,
    #[serde(default)]
    cache_write: Option<u64>,
    /// With an estimate of what the service did not come to report: who hangs up early has used it all the same.
    #[serde(default)]
    counted: Option<u64>,
}

impl Reader {
    pub(super) fn new(dir: SafeDir, name: String, run: RunId) -> Self {
        let read = dir.stat(&name).ok().flatten().map_or(0, |stat| stat.size);
        Self { dir, name, run, state: RefCell::new(State { read, ..State::default() }) }
    }

    /// What `peer` used since this was asked last; `None` where it asked for nothing.
    pub(super) fn used(&self, peer: &PeerName) -> Option<Metered> {
        while self.read_on() {}
        self.state.borrow_mut().waiting.remove(peer.as_str())
    }

    /// Whether there is more.
    fn read_on(&self) -> bool {
        let mut state = self.state.borrow_mut();
        // What cannot be read now is read with the next turn; the tool's own account stands meanwhile.
        let Ok(Some(stat)) = self.dir.stat(&self.name) else { return false };
        // A log that was full begins anew.
        let from = if stat.size < state.read { 0 } else { state.read };
        let mut bytes = Vec::new();
        let Ok(mut file) = self.dir.open_read(&self.name) else { return false };
        if file.seek(SeekFrom::Start(from)).and_then(|_| file.take(WINDOW).read_to_end(&mut bytes)).is_err() {
            return false;
        }
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
        for line in bytes.get(..whole).unwrap_or_default().split(|b| *b == b'\n') {
            let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
            if line.run == self.run.as_str() {
                state.add(line);
            }
        }
        state.read = from.saturating_add(u64::try_from(whole).unwrap_or(u64::MAX));
        whole > 0 && state.read < stat.size
    }
}

impl State {
    fn add(&mut self, line: Line) {
        let Line { peer, model, input, out, cache_read, cache_write, counted, .. } = line;
        if input.is_none() && out.is_none() && counted.unwrap_or(0) == 0 {
            return;
        }
        let (read, written) = (cache_read.unwrap_or(0), cache_write.unwrap_or(0));
        let input = input.unwrap_or(0).saturating_add(read).saturating_add(written);
        // What is not known to have come back is taken for that.
        let output = out.unwrap_or(0).max(counted.unwrap_or(0).saturating_sub(input));
        let usage = self.waiting.entry(peer).or_default().entry(model.unwrap_or_default()).or_default();
        usage.input += Tokens(input);
        usage.cached_input += Tokens(read);
        usage.cache_write += Tokens(written);
        usage.output += Tokens(output);
        usage.total += Tokens(input.saturating_add(output));
        usage.turns = usage.turns.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn each_request_counts_once_and_for_its_peer() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = SafeDir::create_root(tmp.path().join("net")).unwrap();
        let run = RunId::new("0123456789abcdef").unwrap();
        let reader = Reader::new(dir.try_clone().unwrap(), "auth.log".to_owned(), run);
        let (ann, ben) = (PeerName::new("ann").unwrap(), PeerName::new("ben").unwrap());
        assert_eq!(reader.used(&ann), None, "there is no log yet");
        let line = |run: &str, peer: &str, input: u64| {
            format!(
                "{{\"run\":\"{run}\",\"peer\":\"{peer}\",\"model\":\"m\",\"in\":{input},\"out\":2,\"cache_read\":10}}\n"
            )
        };
        let append = |text: String| {
            let path = dir.path().join("auth.log");
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        append(line("ffffffffffffffff", "ann", 7) + &line("0123456789abcdef", "ann", 1));
        append(line("0123456789abcdef", "ben", 5) + "{\"run\":\"0123456789abcdef\",\"pe");
        let used = reader.used(&ann).unwrap();
        assert_eq!(
            (used["m"].input, used["m"].cached_input, used["m"].total),
            (Tokens(11), Tokens(10), Tokens(13))
        );
        assert_eq!(reader.used(&ann), None);
        append("er\":\"ann\",\"model\":null,\"in\":3,\"out\":4}\n".to_owned());
        assert_eq!(
            reader.used(&ann).unwrap()[""].total,
            Tokens(7),
            "a line that was cut is read when it is whole"
        );
        append("{\"run\":\"0123456789abcdef\",\"peer\":\"ann\",\"model\":\"m\",\"in\":7,\"out\":1,\"counted\":5000}\n".to_owned());
        assert_eq!(
            reader.used(&ann).unwrap()["m"].total,
            Tokens(5000),
            "who hangs up early has used it all the same"
        );
        assert_eq!(reader.used(&ben).unwrap()["m"].total, Tokens(17));
    }
}
