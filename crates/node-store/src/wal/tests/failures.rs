//! Operations that fail.

use super::*;

#[test]
fn a_failed_sync_stops_the_log_until_it_is_opened_again() {
    for crash in 0..16 {
        let disk = nine_entries();
        let wal = open(&disk, 0).unwrap();
        let sequence = wal.append(&payload(10)).unwrap();
        // The write comes first, then the sync.
        disk.fail_operation(1);
        let error = wal.sync().unwrap_err();
        assert!(matches!(error, WalError::Io { action: "sync", .. }), "{error}");
        for error in [wal.append(&payload(11)).unwrap_err(), wal.sync().unwrap_err()] {
            assert!(matches!(error, WalError::Poisoned { .. }), "{error}");
        }
        assert_eq!(wal.synced(), sequence.previous());
        wal.sync_through(Sequence(9)).unwrap();

        // The operating system still shows the entry. Once it was returned it must remain, although its sync failed.
        disk.kill();
        assert_eq!(outcome(&disk, 0), Outcome::Recovered(10));
        disk.crash(crash);
        assert_eq!(outcome(&disk, 0), Outcome::Recovered(10), "crash {crash}");
    }
}

#[test]
fn a_full_disk_is_an_error_until_there_is_space() {
    for room in 0..FRAME as u64 * 2 {
        let disk = nine_entries();
        let wal = open(&disk, 0).unwrap();
        disk.set_capacity(Some(disk.used() + room));
        wal.append(&payload(10)).unwrap();
        wal.append(&payload(11)).unwrap();
        let error = wal.sync().unwrap_err();
        let WalError::Io { action: "write", source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);

        disk.kill();
        disk.set_capacity(None);
        let wal = open(&disk, 0).unwrap();
        let last = wal.last().0;
        assert_eq!(last, 9 + room / FRAME as u64, "room for {room} bytes");
        wal.append(&payload(last + 1)).unwrap();
        wal.sync().unwrap();
        disk.crash(room);
        assert_eq!(outcome(&disk, 0), Outcome::Recovered(last + 1));
    }
}

#[test]
fn a_failed_sync_fails_for_all_who_wait_for_it() {
    let disk = nine_entries();
    let wal = open(&disk, 0).unwrap();
    disk.set_sync_time(Duration::from_millis(20));
    disk.fail_operation(1);
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| wal.append(b"entry").and_then(|sequence| wal.sync_through(sequence))))
            .collect();
        for thread in waiting {
            let error = thread.join().unwrap().unwrap_err();
            assert!(matches!(error, WalError::Io { .. } | WalError::Poisoned { .. }), "{error}");
        }
    });
    assert_eq!(wal.synced(), Sequence(9));
}

/// While one thread waits for its turn to write an entry, another fails to create the next segment. The entry must not
/// be written to the previous segment: opening the log would skip it, because the next segment may exist.
#[test]
fn nothing_is_written_after_a_segment_could_not_be_created() {
    for failing in 0..4 {
        let disk = FaultyDisk::new();
        let wal = open(&disk, 0).unwrap();
        let flushed = wal.append(&payload(1)).unwrap();
        wal.sync().unwrap();
        let entry = wal.append(&payload(2)).unwrap();
        let acknowledged = std::thread::scope(|scope| {
            let mut writer = wal.writer.lock();
            let syncing = scope.spawn(|| wal.sync_through(entry));
            while !wal.pending.lock().syncing {
                std::thread::yield_now();
            }
            disk.fail_operation(failing);
            writer.forget_segments(flushed).unwrap_err();
            drop(writer);
            syncing.join().unwrap().is_ok()
        });
        assert!(!acknowledged && wal.has_failed());
        wal.roll_back(flushed).unwrap();
        wal.append(&payload(3)).unwrap();
        wal.sync().unwrap();
        disk.crash(failing);
        assert_eq!(entries_after(&open(&disk, flushed.0).unwrap(), flushed.0), [payload(3)]);
    }
}
