//! "Did you mean".

/// The candidate that `word` most likely is a misspelling of, if one is close enough.
pub fn closest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Long input is no misspelling, and the distance is quadratic.
    if word.len() > 80 {
        return None;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace(['_', ' ', '.'], "-");
    let word = plain(word);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = distance(&word, &plain(candidate));
            let allowed = word.chars().count().max(candidate.chars().count()).div_ceil(3).min(3);
            (distance <= allowed).then_some((distance, candidate))
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let at = |row: &[usize], i: usize| row.get(i).copied().unwrap_or(usize::MAX / 2);
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (i, ca) in a.chars().enumerate() {
        let mut row = vec![i + 1];
        for (j, &cb) in b.iter().enumerate() {
            let replaced = at(&above, j) + usize::from(ca != cb);
            let mut best = replaced.min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            if let Some(left) = j.checked_sub(1)
                && previous == Some(cb)
                && b.get(left) == Some(&ca)
            {
                best = best.min(at(&before, left) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
        previous = Some(ca);
    }
    at(&above, b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("cmd", "cmnd", 1),
            ("chekc", "check", 1),
            ("abc", "xyz", 3),
            ("ab", "", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_close_candidate_is_found_and_a_far_one_is_not() {
        let keys = ["cmd", "check", "timeout_s", "max-ticks"];
        assert_eq!(closest("cmnd", keys), Some("cmd"));
        assert_eq!(closest("chekc", keys), Some("check"));
        assert_eq!(closest("Timeout-S", keys), Some("timeout_s"));
        assert_eq!(closest("max_tick", keys), Some("max-ticks"));
        assert_eq!(closest("banana", keys), None);
        assert_eq!(closest("x", ["y"]), Some("y"));
        assert_eq!(closest(&"cmd".repeat(50), keys), None);
    }
}
