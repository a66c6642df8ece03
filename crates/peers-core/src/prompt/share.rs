//! Fair sharing of a byte budget.

/// Splits `available` among `wants`: whoever wants less than an equal share gets all of it, the
/// rest is split equally among the others. The sum never exceeds `available`.
pub(crate) fn share(available: usize, wants: &[usize]) -> Vec<usize> {
    let mut by_want: Vec<(usize, usize)> = wants.iter().copied().enumerate().collect();
    by_want.sort_by_key(|(_, want)| *want);
    let mut shares = vec![0; wants.len()];
    let mut left = available;
    let mut takers = wants.len();
    for (index, want) in by_want {
        let given = want.min(left.checked_div(takers).unwrap_or(0));
        if let Some(slot) = shares.get_mut(index) {
            *slot = given;
        }
        left -= given;
        takers -= 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_wants_are_met_and_large_ones_share_the_rest() {
        assert_eq!(share(100, &[10, 500, 20, 500]), [10, 35, 20, 35]);
        assert_eq!(share(100, &[10, 20]), [10, 20]);
        assert_eq!(share(0, &[10, 20]), [0, 0]);
        assert_eq!(share(5, &[]), Vec::<usize>::new());
    }
}
