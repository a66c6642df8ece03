//! Who asks for something, and how that is recorded.

use peers_model::record::{OperatorOp, OperatorRecord, Record};
use peers_store::{FsDisk, Store, StoreError, commands, projection};
use peers_sys::clock;
use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::term;

use crate::error::PlaceError;
use crate::place::Place;

/// Cells of a name.
const NAME: usize = 64;

/// The login name of who asks, else the number of the user.
#[must_use]
pub fn name(env: &Env) -> String {
    let named = ["USER", "LOGNAME"].iter().filter_map(|name| env.text(name));
    let name = named.map(str::trim).find(|name| !name.is_empty()).map(str::to_owned);
    let name = name.or_else(|| user_id().map(|id| format!("uid {id}")));
    term::line(&name.unwrap_or_else(|| "unknown".to_owned()), NAME)
}

/// The user that this process runs as, where the system tells.
fn user_id() -> Option<u32> {
    let proc = SafeDir::open_shared("/proc").ok()?;
    Some(proc.stat(std::process::id().to_string()).ok()??.owner)
}

/// Records acts of an operator. The run lock is held by the caller; `before` is done first.
///
/// # Errors
/// The store cannot be opened or written, or `before` fails.
pub fn record<E: From<PlaceError> + From<StoreError>>(
    place: &Place,
    by: &str,
    ops: Vec<OperatorOp>,
    before: impl FnOnce(&mut FsDisk) -> Result<(), E>,
) -> Result<(), E> {
    let at = clock::now();
    let (mut store, _) = Store::open(place.open_store_disk()?)?;
    // What was handed to a loop that ended before it took it comes first.
    commands::record_waiting(&mut store, at, None)?;
    before(store.disk())?;
    let records: Vec<Record> =
        ops.into_iter().map(|op| Record::Operator(OperatorRecord { op, by: by.to_owned() })).collect();
    store.append(at, None, &records)?;
    // It stands in the journal, which counts: whoever is told to do it again would do it twice.
    if let Err(error) = store.write_snapshot() {
        tracing::warn!(%error, "the snapshot was not written");
    }
    let (state, position) = (store.state().clone(), store.position().clone());
    // For people: the next run writes it anyway.
    if let Err(error) = projection::write_state(store.disk(), &state, &position) {
        tracing::warn!(%error, "state.json was not written");
    }
    Ok(())
}
