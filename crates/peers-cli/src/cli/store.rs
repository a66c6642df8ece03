//! `peers store`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_console::operator;
use peers_model::exit;
use peers_model::record::OperatorOp;
use peers_place::{Place, cut_off, project_id, sign};
use peers_store::{FsDisk, layout, project, runs};
use peers_sys::dir::SafeDir;
use peers_sys::lock::{Acquired, FileLock, Sharing};
use peers_sys::{env, term};
use serde_json::json;

/// Attach the trusted store of a repository that was moved
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Reconnect a moved repository to the store that it had at OLD-PATH
    ///
    /// The store is found by the path that the repository had. Refused if another repository is at that
    /// path now.
    #[command(verbatim_doc_comment)]
    Attach {
        /// Where the repository was
        #[arg(value_name = "OLD-PATH")]
        old: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    let What::Attach { old, json } = &args.what;
    attach(old, *json, cx)
}

fn attach(old: &Path, as_json: bool, cx: &Cx) -> Result<ExitCode, CommandError> {
    let place = cx.place()?;
    cx.operators_alone(&place, "store attach")?;
    let old = absolute(old)?;
    let shown = term::inline(&old.to_string_lossy());
    let Some(stores) = place.store_dir().parent() else {
        return Err(CommandError::new(exit::BUG, "the trusted store has no parent directory"));
    };
    let unknown = || {
        CommandError::new(exit::INVALID, format!("no store was made for a repository at {shown}"))
            .hint("give the path that the repository had when `peers init` ran, as `project.json` of a store names it")
    };
    let dir = SafeDir::open_root(stores).map_err(|_| unknown())?;
    let from = project_id(&old);
    let to = place.id().clone();
    let source = if dir.stat(from.as_str())?.is_some() { from.clone() } else { to.clone() };
    let store = match dir.subdir(source.as_str()) {
        Ok(store) => store,
        Err(error) if error.is_not_found() => return Err(unknown()),
        Err(error) => return Err(error.into()),
    };
    let found = project::read(&mut FsDisk::new(store.try_clone()?, None))?;
    let Some(found) = found.filter(|found| Path::new(&found.path) == old) else { return Err(unknown()) };
    refuse_other(&old, &place, (found.dev, found.ino))?;
    if source != to && dir.stat(to.as_str())?.is_some() {
        return Err(CommandError::new(exit::CONFLICT, "this repository has a store of its own already")
            .hint("`peers deinit --purge` removes it"));
    }
    // Held while it moves; the lock is on the file and moves with it.
    let patience = std::time::Duration::from_secs(1);
    let lock = match FileLock::acquire(&store, layout::store::RUN_LOCK, Sharing::Exclusive, patience)? {
        Acquired::Held(mut lock) => {
            sign(&mut lock, "store attach");
            lock
        }
        Acquired::Busy { .. } => {
            return Err(CommandError::new(exit::CONFLICT, "a run holds the lock of that store")
                .hint("wait for it, or stop it"));
        }
    };
    if source != to {
        dir.rename(source.as_str(), to.as_str())?;
    }
    let mut disk = FsDisk::new(dir.subdir(to.as_str())?, None);
    // Before the store is this repository's: what is cut short here is done again by another call.
    moved(&mut disk, &old, &place)?;
    project::write(&mut disk, &place.describe(found.created_at, found.base))?;
    drop(lock);
    let (records, _) = runs::list(&mut disk)?;
    let cut_off = cut_off(&records, place.project_dir());
    let op = OperatorOp::StoreAttached { old_path: old.to_string_lossy().into_owned() };
    operator::act(cx, &place, ("store attach", op), |_| Ok(()))?;
    let row = |(dir, command): &(PathBuf, String)| json!({"worktree": dir, "command": command});
    let worktrees: Vec<_> = cut_off.iter().map(row).collect();
    if as_json {
        cx.out.json(
            "peers.store-attach/1",
            &json!({"old_path": shown, "project": to, "store": place.store_dir(), "cut_off": worktrees}),
        )?;
    } else {
        let here = term::inline(&place.project_dir().to_string_lossy());
        cx.out.line(&format!("The store of {shown} belongs to {here} now"))?;
        for (dir, command) in &cut_off {
            let dir = term::inline(&dir.to_string_lossy());
            cx.out.talk(&format!(
                "the worktree {dir} does not find the repository here yet: `{command}` connects it again"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs that worked in the work tree itself worked in this directory: it was called otherwise.
fn moved(disk: &mut FsDisk, old: &Path, place: &Place) -> Result<(), CommandError> {
    let (was, is) = (old.to_string_lossy(), place.project_dir().to_string_lossy());
    for record in runs::list(disk)?.0 {
        if record.workdir == was {
            runs::write(disk, &runs::RunRecord { workdir: is.clone().into_owned(), ..record })?;
        }
    }
    Ok(())
}

/// A copy must not take the store of the repository that it was copied from.
fn refuse_other(old: &Path, place: &Place, recorded: (u64, u64)) -> Result<(), CommandError> {
    if old == place.project_dir() {
        return Ok(());
    }
    let Ok(there) = SafeDir::open_shared(old) else { return Ok(()) };
    let id = there.identity();
    if (id.dev, id.ino) != recorded && there.stat(".git").is_ok_and(|git| git.is_none()) {
        return Ok(());
    }
    Err(CommandError::new(
        exit::REFUSED,
        format!(
            "a repository still is at {}, and the store is its own",
            term::inline(&old.to_string_lossy())
        ),
    )
    .hint("a copy gets a store of its own by `peers init --force`"))
}

/// `path` made absolute and plain, as far as it exists without symlinks.
fn absolute(path: &Path) -> Result<PathBuf, CommandError> {
    let full = if path.is_absolute() {
        path.to_owned()
    } else {
        env::current_dir()
            .map_err(|error| {
                CommandError::new(exit::INVALID, format!("the working directory is unknown: {error}"))
            })?
            .join(path)
    };
    let mut plain = PathBuf::new();
    for part in full.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    // The directory itself may be gone while the ones above it lead through links.
    let real = plain.ancestors().find_map(|base| {
        let rest = plain.strip_prefix(base).ok()?;
        Some(base.canonicalize().ok()?.join(rest))
    });
    let mut real = real.unwrap_or(plain);
    // `join` of an empty rest leaves a slash.
    real = real.components().collect();
    Ok(real)
}
