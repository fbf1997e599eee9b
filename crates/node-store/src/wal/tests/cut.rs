//! Removing the last entries.

use super::*;

#[test]
fn the_last_entries_are_removed_and_their_numbers_used_again() {
    for last in 0..=10 {
        let disk = nine_entries();
        assert_eq!(remove_after(&*disk.folder(), Sequence(last)).unwrap(), 9u64.saturating_sub(last), "{last}");
        assert_eq!(remove_after(&*disk.folder(), Sequence(last)).unwrap(), 0, "{last}");
        let wal = open(&disk, 0).unwrap();
        let kept = last.min(9);
        assert_eq!(entries_after(&wal, 0), (1..=kept).map(payload).collect::<Vec<_>>());
        assert_eq!(wal.append(&payload(20)).unwrap(), Sequence(kept + 1));
        wal.sync().unwrap();
        drop(wal);
        assert_eq!(entries_after(&open(&disk, 0).unwrap(), kept), [payload(20)]);
    }
}

#[test]
fn entries_that_are_kept_survive_an_interruption() {
    for last in 0..9 {
        for operation in 0.. {
            let disk = nine_entries();
            disk.fail_operation(operation);
            let done = remove_after(&*disk.folder(), Sequence(last));
            let is_over = disk.fail_nothing();
            disk.crash(operation);
            let left = entries_after(&open(&disk, 0).unwrap(), 0).len() as u64;
            assert!(
                if done.is_ok() { left == last } else { (last..=9).contains(&left) },
                "{last}, {operation}: {left}"
            );
            remove_after(&*disk.folder(), Sequence(last)).unwrap();
            assert_eq!(entries_after(&open(&disk, 0).unwrap(), 0).len() as u64, last);
            if is_over {
                break;
            }
        }
    }
}
