//! `peers goals restore`.

use std::process::ExitCode;

use clap::ValueEnum;
use peers_console::cx::Cx;
use peers_console::error::CommandError;
use peers_model::command::Step;
use peers_model::{exit, limits};
use peers_store::layout::peers;
use peers_store::{Area, Disk as _, DiskError, DiskErrorKind, FsDisk, accept};
use peers_sys::term;
use serde_json::json;

use super::edit;

/// Put the accepted goals or configuration back
///
/// Replaces each file that differs from what was accepted, or only FILE. The replaced content is kept in
/// the trusted store; the command prints where.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Restore this file alone
    #[arg(value_enum)]
    file: Option<File>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum File {
    #[value(alias = "goals.yaml", alias = ".peers/goals.yaml")]
    Goals,
    #[value(alias = "config.yaml", alias = ".peers/config.yaml")]
    Config,
}

/// A file that differs from what was accepted.
struct Changed {
    file: &'static str,
    accepted: Vec<u8>,
    /// Absent where the file is missing.
    there: Option<Vec<u8>>,
}

pub(super) fn run(args: &Args, cx: &Cx) -> Result<ExitCode, CommandError> {
    cx.operators_alone_here("goals restore")?;
    let (place, mut disk) = cx.store()?;
    if disk.dir(Area::Peers).is_none() {
        return Err(CommandError::new(exit::INVALID, "there is no .peers directory")
            .hint("`peers init --upgrade` lays it down again as it was accepted"));
    }
    let Some(accepted) = accept::read(&mut disk)? else {
        return Err(CommandError::new(exit::REFUSED, "nothing was accepted yet")
            .hint("read both files in .peers/, then run `peers goals accept`"));
    };
    let files = match args.file {
        Some(File::Goals) => vec![peers::GOALS],
        Some(File::Config) => vec![peers::CONFIG],
        None => vec![peers::GOALS, peers::CONFIG],
    };
    let mut changed = Vec::new();
    for file in &files {
        changed.extend(Changed::find(&mut disk, file)?);
    }
    if changed.is_empty() && !args.json {
        let are = if files.len() == 1 { "is" } else { "are" };
        cx.out.talk(&format!(
            "nothing differs: {} {are} as accepted on {} by {}",
            files.join(" and "),
            accepted.at,
            term::inline(&accepted.by)
        ));
    }
    // Every copy is safe before the first file is overwritten.
    let mut restored = Vec::new();
    for change in changed {
        let kept = match &change.there {
            Some(there) => {
                let (copies, name) = edit::new_copy(&place)?;
                let dir = copies.subdir(&name)?;
                dir.publish(change.file, there)?;
                Some(dir.path().join(change.file).to_string_lossy().into_owned())
            }
            None => None,
        };
        restored.push((change, kept));
    }
    for (change, kept) in &restored {
        disk.publish(Area::Peers, change.file, &change.accepted, true)?;
        if !args.json {
            let was = match kept {
                Some(kept) => format!("; what stood there is kept: {}", term::inline(kept)),
                None => ", which was missing".to_owned(),
            };
            cx.out.line(&format!("Restored {}{was}", change.file))?;
        }
    }
    if args.json {
        let rows: Vec<_> =
            restored.iter().map(|(change, kept)| json!({"file": change.file, "kept": kept})).collect();
        cx.out.json("peers.goals-restore/1", &json!({ "restored": rows }))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Changed {
    fn find(disk: &mut FsDisk, file: &'static str) -> Result<Option<Self>, CommandError> {
        let there = disk.read(Area::Peers, file, limits::CONFIG).map_err(|error| unkept(file, &error))?;
        let accepted = accept::read_bytes(disk, file)?.filter(|accepted| there.as_ref() != Some(accepted));
        Ok(accepted.map(|accepted| Self { file, accepted, there }))
    }
}

/// What is no plain file of a sane size cannot be kept, so it is not overwritten either.
fn unkept(file: &str, error: &DiskError) -> CommandError {
    let code = if error.kind == DiskErrorKind::Unsafe { exit::REFUSED } else { exit::INVALID };
    CommandError::new(code, &error.detail).hint(Step::text(
        "move .peers/{} out of the repository, then run `peers goals restore` again",
        &[file],
    ))
}
