//! `peers watch`.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::config::Config;
use peers_model::{PeerName, exit, limits};
use peers_run::boot;
use peers_store::layout::peers;
use peers_store::{Area, Disk, FsDisk};
use peers_sys::dir::Kind;
use peers_sys::{term, yaml};
use peers_view::{Feed, watch_json, watch_line};
use serde_json::json;

/// Where delivered messages are kept, below `comms/`.
const ARCHIVE: &str = "archive/";
/// Most pairs of sender and receiver that are looked at.
const PAIRS: usize = 1000;

/// Print what happens as it happens, or the messages for one peer
///
/// Prints every new record of the journal. With a peer's name, prints the messages that peers send it by
/// file (`comm: hybrid`): those delivered, then those that wait. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The peer whose messages are printed
    receiver: Option<String>,
    /// Poll every S seconds
    #[arg(long, value_name = "S", default_value = "1.0", value_parser = seconds)]
    poll_s: Duration,
    /// Begin N records before the end
    #[arg(long, value_name = "N", default_value_t = 10)]
    lines: usize,
    /// Print what exists and exit
    #[arg(long)]
    once: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time >= Duration::from_millis(10) && time <= Duration::from_hours(1) => Ok(time),
        _ => Err("must be between 0.01 and 3600".to_owned()),
    }
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let (_, mut disk) = cx.view()?;
    match &args.receiver {
        None => follow(args, &mut disk, cx),
        Some(name) => messages(&peer_of(name, &boot::load(&mut disk)?.config)?, args, &mut disk, cx),
    }
}

fn follow(args: &Args, disk: &mut FsDisk, cx: &Cx) -> Result<ExitCode, CommandError> {
    let unreadable = |error: peers_store::JournalError| CommandError::of(exit::INVALID, &error);
    let mut feed = Feed::tail(disk, args.lines).map_err(unreadable)?;
    loop {
        let polled = feed.poll(disk).map_err(unreadable)?;
        for item in &polled.items {
            if args.json {
                cx.out.stream(watch_json(item).as_bytes())?;
            } else {
                cx.out.stream(cx.out.folded(&watch_line(item, cx.out.colour())).as_bytes())?;
            }
        }
        if polled.more {
            continue;
        }
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(args.poll_s);
    }
}

/// The peer of this name.
pub(super) fn peer_of(name: &str, config: &Config) -> Result<PeerName, CommandError> {
    let peer = PeerName::new(name).map_err(|error| CommandError::usage(error.to_string()))?;
    if config.peers.iter().any(|known| known.name == peer) {
        return Ok(peer);
    }
    let names: Vec<&str> = config.peers.iter().map(|known| known.name.as_str()).collect();
    let near = yaml::closest(name, names.iter().copied());
    Err(CommandError::usage(format!("no peer is called `{peer}`"))
        .hint_opt(near.map(|near| format!("did you mean `{near}`?")))
        .hint(format!("the peers are {}", names.join(", "))))
}

fn messages(to: &PeerName, args: &Args, disk: &mut FsDisk, cx: &Cx) -> Result<ExitCode, CommandError> {
    let mut seen = BTreeSet::new();
    loop {
        for path in sent(to, disk)? {
            let delivered = path.starts_with(ARCHIVE);
            // One that was shown while it waited is not shown again from the archive.
            if !seen.insert(path.strip_prefix(ARCHIVE).unwrap_or(&path).to_owned()) {
                continue;
            }
            let full = format!("{}/{path}", peers::COMMS);
            // One that is archived at this moment is found there by the next look.
            let Some(bytes) = disk.read(Area::Peers, &full, limits::MESSAGE * 2)? else {
                seen.remove(&path);
                continue;
            };
            let text = term::block_bytes(&bytes);
            if args.json {
                let line =
                    json!({"schema": "peers.message/1", "path": path, "delivered": delivered, "text": text});
                cx.out.stream(peers_view::terminal_safe(&format!("{line}\n")).as_bytes())?;
            } else {
                let state = if delivered { "delivered" } else { "waits" };
                cx.out.stream(
                    format!("── {} ({state})\n{}\n", term::inline(&path), text.trim_end()).as_bytes(),
                )?;
            }
        }
        if args.once {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(args.poll_s);
    }
}

/// Messages for a peer, the delivered ones first: paths below `comms/`.
fn sent(to: &PeerName, disk: &mut FsDisk) -> Result<Vec<String>, CommandError> {
    let mut found = messages_in(ARCHIVE, to, disk)?;
    found.extend(messages_in("", to, disk)?);
    Ok(found)
}

/// Messages for a peer in the pairs of `group`, which is empty or ends in a slash.
fn messages_in(group: &str, to: &PeerName, disk: &mut FsDisk) -> Result<Vec<String>, CommandError> {
    let Some(dir) = disk.dir(Area::Peers) else { return Ok(Vec::new()) };
    let above = format!("{}/{group}", peers::COMMS);
    let pairs = match dir.open_path(above.trim_end_matches('/')).and_then(|comms| comms.list(PAIRS)) {
        Ok(listing) => listing.entries,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let suffix = format!("-to-{to}");
    let pairs: BTreeSet<String> = pairs
        .into_iter()
        .filter(|entry| entry.kind == Kind::Dir)
        .filter_map(|entry| entry.name.into_string().ok())
        .filter(|name| name.ends_with(&suffix))
        .collect();
    let mut found = Vec::new();
    for pair in pairs {
        let names = disk.list(Area::Peers, &format!("{above}{pair}"))?;
        found.extend(names.into_iter().map(|name| format!("{group}{pair}/{name}")));
    }
    Ok(found)
}
