//! Random histories of a log with crashes and failures, compared with a model.

use super::*;
use proptest::prelude::*;

/// An event in the history of a log.
#[derive(Clone, Debug)]
enum Event {
    Append {
        size: usize,
    },
    Sync,
    /// Entries are flushed to the database: this many 256ths of the durable ones.
    Flush {
        part: u8,
    },
    Crash {
        seed: u64,
    },
    Kill,
    /// An operation of the disk fails: the nth from now.
    Fail {
        operation: u64,
    },
    /// Only n bytes of space are left, until the log is opened again.
    Fill {
        room: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..700_usize).prop_map(|size| Event::Append { size }),
        4 => Just(Event::Sync),
        2 => any::<u8>().prop_map(|part| Event::Flush { part }),
        3 => any::<u64>().prop_map(|seed| Event::Crash { seed }),
        1 => Just(Event::Kill),
        1 => (0..12_u64).prop_map(|operation| Event::Fail { operation }),
        1 => (0..1500_u64).prop_map(|room| Event::Fill { room }),
    ]
}

/// The expected content of the log.
struct Model {
    disk: FaultyDisk,
    wal: Option<Wal>,
    /// All appended entries, from the first on.
    appended: Vec<Vec<u8>>,
    /// The number of acknowledged entries.
    acknowledged: usize,
    /// The number of entries that are flushed to the database.
    flushed: usize,
    made: u64,
}

impl Model {
    fn new() -> Self {
        let disk = FaultyDisk::new();
        Self { disk, wal: None, appended: Vec::new(), acknowledged: 0, flushed: 0, made: 0 }
    }

    fn play(&mut self, event: &Event) {
        if let Event::Fail { operation } = event {
            self.disk.fail_operation(*operation);
        }
        let Some(wal) = self.reopened() else { return };
        match event {
            Event::Append { size } => {
                self.made += 1;
                let payload: Vec<u8> = (0..*size).map(|at| (at as u64 ^ self.made) as u8).collect();
                let expected = self.appended.len() as u64 + 1;
                match wal.append(&payload) {
                    Ok(sequence) => {
                        assert_eq!(sequence, Sequence(expected));
                        self.appended.push(payload);
                    }
                    Err(_) => return self.fail(),
                }
            }
            Event::Sync => match wal.sync() {
                Ok(()) => self.acknowledged = self.appended.len(),
                Err(_) => return self.fail(),
            },
            Event::Flush { part } => {
                let durable = wal.synced().0 as usize;
                self.flushed = self.flushed.max(durable * usize::from(*part) / 256);
                if wal.drop_through(Sequence(self.flushed as u64)).is_err() {
                    return self.fail();
                }
            }
            Event::Crash { seed } => {
                // Flushed entries were durable in the log before.
                self.acknowledged = self.acknowledged.max(wal.synced().0 as usize);
                self.disk.crash(*seed);
                return;
            }
            Event::Kill => return self.fail(),
            Event::Fill { room } => self.disk.set_capacity(Some(self.disk.used() + room)),
            Event::Fail { .. } => {}
        }
        self.wal = Some(wal);
    }

    /// The process ends after an error, like that of the node.
    fn fail(&mut self) {
        self.disk.kill();
    }

    /// Opens the log if it is not open, and checks it. `None` if a planned failure happens while opening; the next
    /// attempt has none.
    fn reopened(&mut self) -> Option<Wal> {
        if let Some(wal) = self.wal.take() {
            return Some(wal);
        }
        self.disk.set_capacity(None);
        let wal = match open(&self.disk, self.flushed as u64) {
            Ok(wal) => wal,
            Err(WalError::Io { .. }) => {
                self.disk.fail_nothing();
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        self.disk.fail_nothing();
        let last = wal.last().0 as usize;
        assert!(last >= self.acknowledged, "{} were acknowledged, {last} exist", self.acknowledged);
        assert!(last <= self.appended.len(), "{} were appended, {last} exist", self.appended.len());
        assert_eq!(entries_after(&wal, self.flushed as u64), self.appended[self.flushed..last]);
        self.appended.truncate(last);
        self.acknowledged = last;
        Some(wal)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_entries_survive_everything(events in prop::collection::vec(event(), 1..60)) {
        let mut model = Model::new();
        for event in &events {
            model.play(event);
        }
        model.disk.fail_nothing();
        model.wal = None;
        model.disk.kill();
        prop_assert!(model.reopened().is_some());
    }
}
