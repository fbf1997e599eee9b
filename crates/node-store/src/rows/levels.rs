//! Choosing the runs to merge.
//!
//! Runs are merged when there are several of about the same size. This way, every row is written only a few times in
//! its life, and reads search few runs.

use std::ops::Range;

/// Runs smaller than this, in bytes, count as equally large.
const SMALLEST: u64 = 16 << 10;

/// Returns the runs to merge, given the sizes in bytes of all runs, the oldest first: at least `fan_in` of the
/// newest, which together are about `fan_in` times as large as most of them. Returns `None` if there are not enough
/// of them.
pub(crate) fn choose(sizes: &[u64], fan_in: usize) -> Option<Range<usize>> {
    let mut chosen: Option<Range<usize>> = None;
    let mut bound = SMALLEST;
    loop {
        let start = sizes.iter().rposition(|size| *size >= bound).map_or(0, |index| index + 1);
        // Runs that are already chosen for a smaller bound count as one run.
        let count = chosen.as_ref().map_or(sizes.len() - start, |chosen| chosen.start - start + 1);
        let total: u64 = sizes[start..].iter().sum();
        if count >= fan_in && (total >= bound || bound == SMALLEST) {
            chosen = Some(start..sizes.len());
        } else if chosen.is_some() {
            return chosen;
        }
        if start == 0 {
            return chosen;
        }
        bound = bound.saturating_mul(fan_in as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_a_few_times() {
        for fan_in in [4, 5, 8] {
            let mut sizes: Vec<u64> = Vec::new();
            let (mut written, mut most) = (0, 0);
            let flushes = 2_000u64;
            for flush in 0..flushes {
                // Some flushes are tiny.
                let size = if flush % 7 == 0 { 10_000 } else { 5 << 20 };
                written += size;
                sizes.push(size);
                while let Some(range) = choose(&sizes, fan_in) {
                    assert!(range.len() >= fan_in);
                    let total: u64 = sizes[range.clone()].iter().sum();
                    written += total;
                    sizes.splice(range, [total]);
                }
                most = most.max(sizes.len());
            }
            let total: u64 = sizes.iter().sum();
            let levels = (flushes as f64).log(fan_in as f64);
            let times = written as f64 / total as f64;
            assert!(times < levels + 2.0, "{times} times with {fan_in}");
            assert!(most <= fan_in * (levels as usize + 4), "{most} runs with {fan_in}");
        }
    }
}
