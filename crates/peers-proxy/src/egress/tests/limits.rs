//! New connections are spread over time.

use std::time::Duration;

use tokio::time::{Instant, advance};

use super::super::limits::{Limits, Pace};

#[tokio::test(start_paused = true)]
async fn sixty_connections_pass_at_once_and_then_twenty_in_a_second() {
    let pace = Pace::new(&Limits::default());
    let began = Instant::now();
    for _ in 0..60 {
        pace.turn().await;
    }
    assert!(began.elapsed() < Duration::from_millis(50));
    for _ in 0..40 {
        pace.turn().await;
    }
    assert_eq!(began.elapsed().as_millis() / 50, 40, "40 more take two seconds");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_time_earns_a_burst_and_no_more() {
    let pace = Pace::new(&Limits { per_second: 10, burst: 5, ..Limits::default() });
    for _ in 0..5 {
        pace.turn().await;
    }
    advance(Duration::from_hours(1)).await;
    let began = Instant::now();
    for _ in 0..6 {
        pace.turn().await;
    }
    assert_eq!(began.elapsed().as_millis() / 100, 1);
}
