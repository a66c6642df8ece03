//! Chooses the turn that is due and plays it.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use peers_sys::clock;
use peers_sys::env::Env;
use peers_sys::error::chain;

use crate::UNUSABLE;
use crate::player::Player;
use crate::script::{Condition, Dialect, Script, Turn};
use crate::step::Step;
use crate::turn::{self, Choice};
use crate::wire::{Asked, Session, Wire, tag};

/// Longest prompt that is read, in bytes.
const PROMPT_BYTES: u64 = 64 * 1024 * 1024;

/// What to play, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The script, relative to `cwd`.
    pub script: PathBuf,
    /// The peer's name, over the script's and the loop's.
    pub peer: Option<String>,
    /// Plays this turn, from 1, and counts nothing.
    pub turn: Option<u64>,
    /// Where turns are counted, in place of `<script>.<peer>.state`.
    pub state: Option<PathBuf>,
    /// The switches of the tool that is played. They only say the format of a script that names none.
    pub switches: Vec<String>,
    /// Where the prompt comes from.
    pub prompt: Prompt,
    /// The working folder: the repository that the peer works on.
    pub cwd: PathBuf,
    /// The environment; what the peer starts gets exactly this.
    pub env: Env,
}

/// Where the prompt comes from. It is read only when a script looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompt {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
    /// The command line.
    Text(String),
}

/// The three standard streams.
pub struct Io<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error.
    pub stderr: &'a mut dyn Write,
}

/// What the local zone is ahead of UTC; UTC where that cannot be told.
fn zone(env: &Env) -> i32 {
    let tz = env.var("TZ").and_then(|tz| tz.to_str());
    clock::local_offset(tz, clock::now()).unwrap_or(0)
}

/// Plays the turn that is due and returns the exit code.
///
/// Problems of the script itself are reported on standard error with exit code 3.
#[must_use = "this is the exit code"]
pub fn run(options: &Options, io: Io<'_>) -> u8 {
    let Io { stdin, stdout, stderr } = io;
    let complain = |stderr: &mut dyn Write, text: String| {
        // Nobody is left to be told when standard error is gone.
        let _gone = writeln!(stderr, "fake-peer: {text}");
        UNUSABLE
    };
    let script = match Script::load(&options.cwd.join(&options.script)) {
        Ok(script) => script,
        Err(error) => return complain(stderr, chain(&error)),
    };
    let dialect = script.dialect.unwrap_or_else(|| Dialect::asked_for(&options.switches));
    let peer = options
        .peer
        .as_deref()
        .or(script.peer.as_deref())
        .or_else(|| options.env.text("PEERS_PEER_NAME"))
        .unwrap_or_else(|| dialect.as_str())
        .to_owned();
    let pid = std::process::id().to_string();
    let asked = match dialect {
        Dialect::Acp => match Asked::read(stdin, stdout, &tag(&[&peer, &pid]), PROMPT_BYTES) {
            Ok(asked) => Some(asked),
            Err(error) => return complain(stderr, format!("speak to the client: {error}")),
        },
        Dialect::Claude | Dialect::Codex | Dialect::Opencode | Dialect::Plain => None,
    };
    let text = asked.as_ref().map(|asked| asked.prompt.clone());
    let mut prompt = Lazy { source: &options.prompt, cwd: &options.cwd, stdin, text };
    let selected = match script.turns.iter().find_map(|turn| selects(turn, &mut prompt, options)) {
        Some(Err(error)) => return complain(stderr, format!("read the prompt: {error}")),
        Some(Ok(turn)) => Some(turn),
        None => None,
    };
    let counted: Vec<&Turn> = script.turns.iter().filter(|turn| turn.on.is_none()).collect();
    let number = match turn::number(options, &script, &peer, selected.is_none()) {
        Ok(number) => number,
        // A selected turn needs no number, so its script may be played from anywhere.
        Err(_) if selected.is_some() => 1,
        Err(error) => return complain(stderr, chain(&error)),
    };
    let session = Session {
        cwd: options.cwd.display().to_string(),
        model: script.model.clone().unwrap_or_else(|| "fake-model".to_owned()),
        tag: tag(&[&peer, &number.to_string(), &pid]),
        peer: peer.clone(),
        turn: number,
        zone: zone(&options.env),
        asked,
    };
    let mut player =
        Player { options, wire: Wire::new(dialect, session, stdout, stderr), prompt, peer, number };
    let idle = [Step::Say(NOTHING_LEFT.to_owned())];
    let steps = match (selected, turn::choose(script.after, counted.len(), number)) {
        (Some(turn), _) => turn.steps.as_slice(),
        (None, Choice::Turn(index)) => counted.get(index).map_or(&[][..], |turn| turn.steps.as_slice()),
        (None, Choice::Idle) => idle.as_slice(),
        (None, Choice::Fail) => return player.over(),
    };
    player.play(steps)
}

const NOTHING_LEFT: &str = "Nothing left to do.";

fn selects<'s>(turn: &'s Turn, prompt: &mut Lazy<'_>, options: &Options) -> Option<io::Result<&'s Turn>> {
    let on = turn.on.as_ref()?;
    match holds(on, prompt, options) {
        Ok(true) => Some(Ok(turn)),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    }
}

pub(crate) fn holds(condition: &Condition, prompt: &mut Lazy<'_>, options: &Options) -> io::Result<bool> {
    let Condition { prompt: words, env, file } = condition;
    let env_holds = env.0.iter().all(|wanted| match wanted.split_once('=') {
        Some((name, value)) => options.env.var(name).is_some_and(|is| is == value),
        None => options.env.var(wanted).is_some(),
    });
    if !env_holds || !file.0.iter().all(|path| options.cwd.join(path).exists()) {
        return Ok(false);
    }
    if words.0.is_empty() {
        return Ok(true);
    }
    let text = prompt.text()?;
    Ok(words.0.iter().all(|word| text.contains(word)))
}

/// The prompt, read when it is first looked at.
pub(crate) struct Lazy<'a> {
    source: &'a Prompt,
    cwd: &'a std::path::Path,
    stdin: &'a mut dyn Read,
    text: Option<String>,
}

impl Lazy<'_> {
    pub(crate) fn text(&mut self) -> io::Result<&str> {
        if self.text.is_none() {
            let mut bytes = Vec::new();
            match self.source {
                Prompt::Stdin => (&mut *self.stdin).take(PROMPT_BYTES).read_to_end(&mut bytes)?,
                Prompt::File(path) => {
                    fs::File::open(self.cwd.join(path))?.take(PROMPT_BYTES).read_to_end(&mut bytes)?
                }
                Prompt::Text(text) => {
                    bytes.extend_from_slice(text.as_bytes());
                    bytes.len()
                }
            };
            self.text = Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(self.text.as_deref().unwrap_or_default())
    }
}
