//! Operations that fail.

use super::*;

#[test]
fn after_a_failed_sync_nothing_is_taken_and_opening_again_recovers() {
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

        // The operating system shows the entry still. Once it was answered it must stay, though its own sync failed.
        disk.kill();
        assert_eq!(outcome(&disk, 0), Outcome::Recovered(10));
        disk.crash(crash);
        assert_eq!(outcome(&disk, 0), Outcome::Recovered(10), "crash {crash}");
    }
}

#[test]
fn a_full_disk_is_an_error_and_space_cures_it() {
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
fn all_who_wait_for_a_failed_sync_hear_of_it() {
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
