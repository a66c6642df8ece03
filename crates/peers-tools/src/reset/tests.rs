//! What is read from texts of the real tools, and from texts that only look like them.

use proptest::prelude::*;

use super::*;

/// 2026-11-20 (a Friday) 08:00:00 UTC.
const NOW: i64 = 20_777 * DAY + 8 * 3600;

fn after(text: &str) -> Option<i64> {
    reset_at(text, NOW, 0).map(|at| at - NOW)
}

#[test]
fn clock_times_of_codex_are_local_and_the_next_such_moment() {
    let text = "You\u{2019}ve hit your usage limit. Visit https://x.y/z to purchase more credits or try again at 9:10 AM.";
    assert_eq!(after(text), Some(70 * 60));
    assert_eq!(reset_at(text, NOW, 3600).map(|at| at - NOW), Some(10 * 60), "an hour ahead of UTC");
    assert_eq!(reset_at(text, NOW, 2 * 3600).map(|at| at - NOW), Some(23 * 3600 + 10 * 60));
    assert_eq!(reset_at(text, NOW, -5 * 3600).map(|at| at - NOW), Some(6 * 3600 + 10 * 60));
    for blank in ["\u{a0}", "\u{202f}", "\u{2009}", ""] {
        assert_eq!(after(&format!("Try again at 9:10{blank}AM.")), Some(70 * 60), "{blank:?}");
    }
    assert_eq!(after("try again at 9:10:30 am"), Some(70 * 60 + 30));
    assert_eq!(after("try again at 9:10 a.m. or later"), Some(70 * 60));
    assert_eq!(after("try again at 21:10"), Some(13 * 3600 + 10 * 60));
    assert_eq!(after("try again at 12:05 AM"), Some(16 * 3600 + 5 * 60), "midnight");
    assert_eq!(after("try again at 12:05 PM"), Some(4 * 3600 + 5 * 60), "noon");
}

#[test]
fn a_moment_that_has_just_passed_is_now() {
    assert_eq!(after("try again at 8:00 AM"), Some(0));
    assert_eq!(reset_at("try again at 8:00 AM", NOW + 59, 0), Some(NOW + 59));
    assert_eq!(reset_at("try again at 8:00 AM", NOW + 61, 0), Some(NOW + DAY));
    assert_eq!(reset_at("try again at 11:59 PM", NOW + 16 * 3600, 0), Some(NOW + 16 * 3600));
}

#[test]
fn dates_are_taken_with_and_without_a_year() {
    for text in [
        "try again at Nov 25th, 2026 9:10 AM.",
        "try again at Nov 25th, 2026 9:10\u{202f}AM",
        "try again at November 25, 2026, 9:10 AM",
        "try again at Nov 25, 9:10am",
        "resets Nov 25 at 9:10am (UTC)",
        "resets on Nov 25, 9:10am",
    ] {
        assert_eq!(after(text), Some(5 * DAY + 70 * 60), "{text}");
    }
    assert_eq!(after("resets Nov 25, 9am (UTC)"), Some(5 * DAY + 3600));
    let new_year = 20_818 * DAY;
    assert_eq!(days(2026, 12, 31), Some(20_818));
    assert_eq!(reset_at("resets Jan 1, 12am", new_year, 0), Some(new_year + DAY));
    assert_eq!(reset_at("resets Dec 31, 11:59pm (UTC)", new_year + DAY, 0), Some(new_year + DAY));
    for text in
        ["try again at Feb 30th, 2027 9:10 AM", "resets Nov 25", "resets Nov 31, 9am", "resets Nov 0, 9am"]
    {
        assert_eq!(after(text), None, "{text}");
    }
}

#[test]
fn a_zone_that_is_not_known_is_no_guess() {
    assert_eq!(reset_at("resets 9:22am (UTC)", NOW, 7200).map(|at| at - NOW), Some(82 * 60));
    assert_eq!(reset_at("limit reached \u{2219} resets 9am", NOW, 0).map(|at| at - NOW), Some(3600));
    assert_eq!(reset_at("try again at 9:10 AM UTC", NOW, 7200).map(|at| at - NOW), Some(70 * 60));
    for text in [
        "resets 3am (America/New_York)",
        "resets 3am (Europe/Vienna)",
        "resets 3am (in your time zone",
        "try again at 9:10 AM PST",
        "try again at 9:10 AM UTC+2",
    ] {
        assert_eq!(after(text), None, "{text}");
    }
    assert_eq!(after("try again at 9:10 AM. PLEASE upgrade"), Some(70 * 60), "a new sentence");
}

#[test]
fn lengths_of_time_are_added_up() {
    for (text, seconds) in [
        ("try again in 3 days 4 hours 12 minutes.", 3 * DAY + 4 * 3600 + 12 * 60),
        ("Try again in 45 minutes", 45 * 60),
        ("try again in 7.5s", 8),
        ("Please try again in 6m0s. Visit", 360),
        ("Please try again in 20ms.", 1),
        ("Please retry in 34.074824224s.", 35),
        ("try again in 1 hour, 5 min and 2 secs", 3902),
        ("Try again in less than a minute.", 60),
        ("retry after 90 seconds", 90),
        ("resets in 2h 5m", 7500),
        ("retry after 9:10 AM", 70 * 60),
        ("try again in an hour", 3600),
    ] {
        assert_eq!(after(text), Some(seconds), "{text}");
    }
    assert_eq!(wait_in("try again in 7.5s"), Some(Duration::from_millis(7500)));
    assert_eq!(wait_in("try again at 9:10 AM"), None);
    for text in [
        "try again in 5",
        "try again in five minutes",
        "try again in 5 parsecs",
        "in 5 minutes",
        "try again later",
    ] {
        assert_eq!(after(text), None, "{text}");
    }
}

#[test]
fn seconds_since_the_epoch_are_taken() {
    let text = format!("Claude AI usage limit reached|{}", NOW + 500);
    assert_eq!(after(&text), Some(500));
    assert_eq!(epoch_in(&text), Some(NOW + 500));
    for text in ["a|5", "a|12345678901", "a|1795166922000", "a||", "|"] {
        assert_eq!(epoch_in(text), None, "{text}");
    }
}

#[test]
fn nothing_is_taken_from_the_past_or_too_far_ahead() {
    for text in [
        "try again in 9 days",
        "try again in 99999999 weeks",
        "try again at Nov 30th, 2026 9:10 AM",
        "try again at Nov 19th, 2026 9:10 AM",
        "try again at Nov 25th, 2027 9:10 AM",
        "reached|1000000000",
        "reached|1999999999",
    ] {
        assert_eq!(after(text), None, "{text}");
    }
}

#[test]
fn words_that_only_look_like_it_are_none() {
    for text in [
        "presets 3am",
        "resets 3",
        "resets 13am",
        "resets 25:00",
        "resets 9:60",
        "resets the counter",
        "try again at noon",
        "retrying in 5 seconds",
        "it resets 9:22amp",
        "9:10 AM",
        "",
    ] {
        assert_eq!(after(text), None, "{text}");
    }
    assert_eq!(after("It resets often. Try again in 5 minutes."), Some(300), "the first clear one");
}

#[test]
fn the_reset_survives_when_a_text_is_cut() {
    let long = format!(
        "You've hit your usage limit. {} or try again at Nov 25th, 2026 9:10 AM.",
        "Upgrade. ".repeat(40)
    );
    let short = brief(&long);
    assert!(short.chars().count() <= FAILURE_CHARS, "{short}");
    assert!(
        short.starts_with("You've hit") && short.ends_with("try again at Nov 25th, 2026 9:10 AM"),
        "{short}"
    );
    assert_eq!(after(&short), after(&long));
    let early = format!("Try again in 5 minutes. {}", "x".repeat(500));
    assert_eq!(brief(&early), one_line(&early, FAILURE_CHARS));
}

#[test]
fn numbers_of_the_failure_outrank_its_words() {
    let text = "try again in 5 minutes";
    let at = |kind| opens_at(kind, text, NOW, 0).map(|at| at - NOW);
    assert_eq!(at(FailureKind::UsageCap { resets_at: Some(NOW + 7) }), Some(7));
    assert_eq!(at(FailureKind::UsageCap { resets_at: Some(NOW - 7) }), Some(300), "a past one is none");
    for far in [NOW + 9 * 24 * 3600, i64::MAX] {
        assert_eq!(at(FailureKind::UsageCap { resets_at: Some(far) }), Some(300), "no limit lasts so long");
    }
    assert_eq!(at(FailureKind::UsageCap { resets_at: None }), Some(300));
    assert_eq!(at(FailureKind::RateLimit { retry_after: Some(Duration::from_millis(1500)) }), Some(2));
    assert_eq!(at(FailureKind::Overload), Some(300));
    assert_eq!(at(FailureKind::Auth), None, "only a person can help");
}

fn prose() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "try again",
        "resets",
        "reset",
        "retry",
        " in ",
        " at ",
        " after ",
        "Nov 25th, 2026 ",
        "Feb 29",
        "9:10",
        "9",
        " AM",
        "pm",
        "(UTC)",
        "(",
        ")",
        " UTC",
        "+",
        "3 days",
        "7.5s",
        "99999999999",
        "|1795166922",
        ".",
        ",",
        "\u{202f}",
        "\u{e9}",
        "less than a minute",
        "4h",
        " and ",
        "00",
        ":",
    ]);
    prop::collection::vec(prop_oneof![3 => words.prop_map(str::to_owned), 1 => "\\PC{0,6}"], 0..14)
        .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn any_text_gives_nothing_or_a_moment_that_is_near(
        text in prose(), now in prop_oneof![any::<i64>(), Just(NOW)], offset in any::<i32>(),
    ) {
        if let Some(at) = reset_at(&text, now, offset) {
            prop_assert!(at >= now && at - now <= MOST_S);
        }
        prop_assert!(brief(&text).chars().count() <= FAILURE_CHARS);
        prop_assert!(wait_in(&text).is_none_or(|wait| whole_seconds(wait) <= MOST_S));
    }

    #[test]
    fn a_cut_text_still_says_what_the_whole_said(text in prose(), filler in 0usize..300) {
        let whole = format!("{}. {text}", "x".repeat(filler));
        if let Some(at) = reset_at(&one_line(&whole, 10_000), NOW, 0)
            && statements(&whole).count() == 1
        {
            prop_assert_eq!(reset_at(&brief(&whole), NOW, 0), Some(at));
        }
    }
}

#[test]
fn a_cut_text_says_it_also_where_its_words_stand_in_what_says_nothing() {
    // The longer number contains the words, and the cut falls into what says it.
    let text = format!("{}. |17951669229:10|1795166922", "x".repeat(173));
    assert_eq!(reset_at(&text, NOW, 0), Some(1_795_166_922));
    assert_eq!(reset_at(&brief(&text), NOW, 0), Some(1_795_166_922));
    // A cut within the words would say something else.
    for filler in 150..200 {
        let text = format!("{} try again in 3 days 4 hours 12 minutes", "x".repeat(filler));
        assert_eq!(reset_at(&brief(&text), NOW, 0), reset_at(&text, NOW, 0), "{filler}");
    }
}

#[test]
fn a_header_tells_seconds_or_a_date() {
    let read = |value| header_wait(value, Some(NOW * 1000)).map(|wait| wait.as_millis());
    for (value, ms) in [
        ("1", 1000),
        (" 7.5 ", 7500),
        ("0", 0),
        ("Fri, 20 Nov 2026 08:00:30 GMT", 30_000),
        ("Fri, 20 Nov 2026 07:00:00 GMT", 0),
    ] {
        assert_eq!(read(value), Some(ms), "{value}");
    }
    for value in [
        "",
        "-1",
        "NaN",
        "inf",
        "1e30",
        "700000",
        "soon",
        "Fri, 20 Nov 2026 08:00:30 CET",
        "Fri, 20 Nov 2026 08:00:30",
        "Fri, 99 Nov 2026 08:00:30 GMT",
        "Fri, 20 Nov 2027 08:00:30 GMT",
    ] {
        assert_eq!(read(value), None, "{value}");
    }
    assert_eq!(header_wait("Fri, 20 Nov 2026 08:00:30 GMT", None), None, "from when?");
}
