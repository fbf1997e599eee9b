//! Clients that store the cursor themselves resume where they were interrupted.

use super::*;
use crate::block::LogPosition;
use crate::logs;
use proptest::collection::vec;
use proptest::prelude::*;

/// A client: the logs that it knows, and the cursor from which it resumes.
#[derive(Clone)]
struct Client {
    logs: Vec<(H256, u64)>,
    cursor: Cursor,
}

impl Client {
    fn apply(&mut self, change: &ChangedLog) {
        let log = (change.found.block.hash, change.found.log_index);
        if change.removed {
            let index = self.logs.iter().position(|known| *known == log);
            self.logs.remove(index.unwrap_or_else(|| panic!("{log:?} is removed but was not reported")));
        } else {
            assert!(!self.logs.contains(&log), "{log:?} is reported twice");
            self.logs.push(log);
        }
        if let Some(reached) = change.reached {
            self.cursor = Cursor::Chain(reached);
        }
    }
}

struct Reader {
    world: World,
    pool: Arc<Pool>,
    criteria: FilterCriteria,
    /// As of the last cursor that the client received.
    client: Client,
}

impl Reader {
    fn new(filter: LogFilter, from: u64) -> Self {
        let world = World::new(Fork::Osaka);
        let pool = world.pool(PoolLimits::default());
        let cursor = Cursor::Chain(ChainPosition::end_of(world.head()));
        let criteria = FilterCriteria::Logs(LogCriteria { filter: filter.into(), from, open_below: false, to: None });
        Self { world, pool, criteria, client: Client { logs: Vec::new(), cursor } }
    }

    fn next(&self, cursor: Cursor, page: usize) -> (Vec<ChangedLog>, Cursor) {
        let view = self.world.backend.view().unwrap();
        let subscription = Subscription { criteria: self.criteria.clone(), cursor };
        match subscription.next(&Context::unbounded(), &*view, &self.pool, PageSize::of_entries(page)).unwrap() {
            (FilterChanges::Logs(changes), cursor) => (changes, cursor),
            other => panic!("{other:?}"),
        }
    }

    /// Reads at most `count` changes in pages, then loses its connection: what it received since the last cursor is
    /// discarded. Returns whether there was nothing more.
    fn read(&mut self, mut count: usize, page: usize) -> bool {
        let mut current = self.client.clone();
        let mut added = false;
        loop {
            let (changes, cursor) = self.next(current.cursor, page);
            assert!(changes.len() <= page, "{} changes", changes.len());
            for change in &changes {
                if count == 0 {
                    return false;
                }
                count -= 1;
                assert!(!(added && change.removed), "removed logs come first");
                added |= !change.removed;
                current.apply(change);
                if change.reached.is_some() {
                    self.client = current.clone();
                }
            }
            let dry = current.cursor == cursor && changes.is_empty();
            current.cursor = cursor;
            self.client = current.clone();
            if dry {
                return true;
            }
        }
    }

    /// Returns the logs that an up-to-date client must know.
    fn expected(&self) -> Vec<(H256, u64)> {
        let FilterCriteria::Logs(criteria) = &self.criteria else { panic!("{:?}", self.criteria) };
        let view = self.world.backend.view().unwrap();
        let from = LogPosition { block: criteria.from, log_index: 0 };
        let page = PageSize::of_entries(10_000);
        let scan = logs::scan(&*view, &Context::unbounded(), &criteria.filter, from, view.head().number, page);
        scan.unwrap().logs.iter().map(|found| (found.block.hash, found.log_index)).collect()
    }
}

/// Appends a block whose logs depend only on its salt, so that the same block can return.
fn block(salt: u64) -> Plan {
    let logs: Vec<_> = (0..salt * 7 % 5).map(|index| 1 + u8::try_from((salt + index) % 3).unwrap()).collect();
    plan(salt, &logs)
}

#[derive(Clone, Debug)]
enum Step {
    Mine(u64),
    /// Number of blocks that leave the chain, and of those that join it.
    Reorganize(u64, Vec<u64>),
    /// Changes read before the interruption, and changes per page.
    Read(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5u64).prop_map(Step::Mine),
        2 => (1..5u64, vec(0..5u64, 0..5)).prop_map(|(depth, salts)| Step::Reorganize(depth, salts)),
        4 => (0..8usize, 1..5usize).prop_map(|(count, page)| Step::Read(count, page)),
    ];
    vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// However the chain changes and wherever a client is interrupted, every log is reported once, and its removal once
    /// if its block leaves.
    #[test]
    fn every_log_is_reported_once(steps in steps(), topic in proptest::option::of(1..4u8), from in 0..6u64) {
        let topics = topic.map(|topic| vec![H256::repeat_byte(topic)]).into_iter().collect();
        let mut reader = Reader::new(LogFilter { addresses: Vec::new(), topics }, from);
        for step in steps {
            match step {
                Step::Mine(salt) => drop(reader.world.mine(block(salt))),
                Step::Reorganize(depth, salts) => {
                    let ancestor = reader.world.head().number.saturating_sub(depth);
                    reader.world.reorganize(ancestor, salts.into_iter().map(block).collect());
                }
                Step::Read(count, page) => drop(reader.read(count, page)),
            }
        }
        prop_assert!(reader.read(usize::MAX, 3));
        prop_assert_eq!(&reader.client.logs, &reader.expected());
    }
}

#[test]
fn a_partly_reported_block_removes_only_that_part() {
    let mut reader = Reader::new(LogFilter::default(), 0);
    reader.world.mine(plan(0, &[1, 2, 3]));
    assert!(!reader.read(2, 10));
    let reported = reader.client.logs.clone();
    assert_eq!(reported.len(), 2);

    reader.world.reorganize(0, vec![plan(1, &[4])]);
    let (changes, _) = reader.next(reader.client.cursor, 10);
    let shown: Vec<_> = (changes.iter())
        .map(|change| (change.removed, change.found.log.data[0], change.reached.map(|reached| reached.block.number)))
        .collect();
    let genesis = Some(0);
    assert_eq!(shown, [(true, 1, None), (true, 2, genesis), (false, 4, Some(1))]);
    assert_eq!(changes[1].reached.unwrap().log_index, None, "the ancestor is fully reported");
    assert!(reader.read(usize::MAX, 1));
    assert_eq!(reader.client.logs, reader.expected());
}

#[test]
fn resuming_inside_a_block_reports_the_rest() {
    for taken in 0..=4 {
        let mut reader = Reader::new(LogFilter::default(), 0);
        reader.world.mine(plan(0, &[1, 2, 3, 4]));
        reader.world.mine(plan(0, &[]));
        reader.read(taken, 2);
        assert_eq!(reader.client.logs.len(), taken);
        let (rest, cursor) = reader.next(reader.client.cursor, 10);
        assert_eq!(rest.iter().map(|change| change.found.log_index).collect::<Vec<_>>(), [0, 1, 2, 3][taken..]);
        assert_eq!(cursor, Cursor::Chain(ChainPosition::end_of(reader.world.head())), "after {taken}");
    }
}
