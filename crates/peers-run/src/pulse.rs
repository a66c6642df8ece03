//! A pulse beside the loop, for whoever shows what runs.

use std::time::Duration;

/// Calls `beat` again and again on the thread of the loop until the loop has ended.
///
/// Called inside [`crate::drive::on_this_thread`]. `beat` must be quick: the loop waits for it.
pub fn every(period: Duration, mut beat: impl FnMut() + 'static) {
    // It ends with the runtime; nobody waits for it.
    drop(tokio::task::spawn_local(async move {
        let mut pulse = tokio::time::interval(period);
        pulse.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            pulse.tick().await;
            beat();
        }
    }));
}
