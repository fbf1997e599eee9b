//! Polling of filters.

mod resume;

use super::*;
use crate::backend::{LogFilter, Record, RecordWrite};
use crate::clock::ManualClock;
use crate::context::Interrupted;
use crate::pool::PoolLimits;
use crate::protocol::Fork;
use crate::test_world::{Plan, World, account, signed, transfer};
use node_types::H256;
use node_types::consensus::{Log, PooledTransaction, TransactionBody};
use std::collections::HashSet;
use std::sync::mpsc;
use std::thread;
use uuid::{Uuid, Version};

fn log(number: u8) -> Log {
    Log { address: account(number), topics: vec![H256::repeat_byte(number)], data: vec![number].into() }
}

fn plan(salt: u64, logs: &[u8]) -> Plan {
    Plan { salt, logs: logs.iter().copied().map(log).collect(), ..Default::default() }
}

fn open(world: &World, limits: FilterLimits) -> Filters {
    let pool = world.pool(PoolLimits::default());
    Filters::open(world.backend.clone(), pool, world.clock.clone(), limits).unwrap()
}

fn context() -> Context {
    Context::unbounded()
}

fn all_logs(from: u64, to: Option<u64>) -> FilterCriteria {
    FilterCriteria::Logs(LogCriteria { filter: LogFilter::default().into(), from, open_below: false, to })
}

/// Returns the block of each log, negative if it was removed, with the first byte of its data.
fn poll(filters: &Filters, id: FilterId) -> Vec<(i64, u8)> {
    match filters.changes(&Context::unbounded(), id).unwrap() {
        FilterChanges::Logs(changes) => changes
            .iter()
            .map(|change| {
                let number = i64::try_from(change.found.block.number).unwrap();
                (if change.removed { -number } else { number }, change.found.log.data[0])
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn poll_hashes(filters: &Filters, id: FilterId) -> Vec<H256> {
    match filters.changes(&Context::unbounded(), id).unwrap() {
        FilterChanges::Blocks(blocks) => blocks.iter().map(|block| block.hash).collect(),
        FilterChanges::Transactions(arrivals) => arrivals.iter().map(|arrival| arrival.hash).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn logs_are_delivered_once_from_creation_on() {
    let world = World::new(Fork::Osaka);
    world.mine(plan(0, &[1]));
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    assert_eq!(poll(&filters, id), [], "earlier logs are not reported");
    world.mine(plan(0, &[2, 3]));
    world.mine(plan(0, &[4]));
    assert_eq!(poll(&filters, id), [(2, 2), (2, 3), (3, 4)]);
    assert_eq!(poll(&filters, id), []);
    let mut whole = Vec::new();
    let visit = |found: FoundLog<LogRef<'_>>| {
        whole.push(found.log.data[0]);
        ControlFlow::Continue(())
    };
    assert_eq!(filters.visit_logs(&Context::unbounded(), id, 100, visit).unwrap(), None);
    assert_eq!(whole, [1, 2, 3, 4]);
}

#[test]
fn reports_logs_within_criteria_and_range() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let by_address = LogFilter { addresses: vec![account(2)], topics: vec![vec![], vec![]] };
    let by_topic = LogFilter { addresses: vec![], topics: vec![vec![H256::repeat_byte(1), H256::repeat_byte(2)]] };
    let cases = [
        ("range ahead", LogFilter::default(), 2, Some(3), vec![(2, 2), (2, 5), (3, 1)]),
        ("topics", by_topic, 0, None, vec![(1, 1), (2, 2), (3, 1), (4, 2)]),
        ("more topic positions than topics", by_address, 0, None, vec![]),
    ];
    let ids: Vec<_> = (cases.iter())
        .map(|(_, filter, from, to, _)| LogCriteria {
            filter: filter.clone().into(),
            from: *from,
            open_below: false,
            to: *to,
        })
        .map(|criteria| filters.install(&context(), FilterCriteria::Logs(criteria)).unwrap())
        .collect();
    for logs in [&[1][..], &[2, 5], &[1], &[2]] {
        world.mine(plan(0, logs));
    }
    for ((name, .., expected), id) in cases.iter().zip(ids) {
        assert_eq!(poll(&filters, id), *expected, "{name}");
    }
}

#[test]
fn after_a_reorganization_removed_logs_come_first() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    let blocks = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    for number in [1, 2, 3] {
        world.mine(plan(0, &[number]));
    }
    assert_eq!(poll(&filters, id), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(poll_hashes(&filters, blocks).len(), 3);

    // Blocks that joined and left the chain between two polls are not reported.
    world.reorganize(1, vec![plan(1, &[4])]);
    let change = world.reorganize(1, vec![plan(2, &[5]), plan(2, &[]), plan(2, &[6])]);
    assert_eq!(poll(&filters, id), [(-2, 2), (-3, 3), (2, 5), (4, 6)]);
    assert_eq!(poll(&filters, id), []);
    let added: Vec<_> = change.added.iter().map(|block| block.hash).collect();
    assert_eq!(poll_hashes(&filters, blocks), added);

    world.reorganize(2, vec![]);
    assert_eq!(poll(&filters, id), [(-4, 6)], "the head was reverted");
    assert_eq!(poll_hashes(&filters, blocks), []);
}

#[test]
fn a_failed_poll_does_not_advance() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    world.mine(plan(0, &[1]));
    let cancelled = Context::unbounded();
    cancelled.cancel();
    let failed = filters.changes(&cancelled, id);
    assert!(
        matches!(failed, Err(FilterError::Backend(BackendError::Interrupted(Interrupted::Cancelled)))),
        "{failed:?}"
    );
    world.backend.fails.store(true, Ordering::SeqCst);
    let failed = filters.changes(&Context::unbounded(), id);
    assert!(matches!(failed, Err(FilterError::Backend(BackendError::Storage(_)))), "{failed:?}");
    world.backend.fails.store(false, Ordering::SeqCst);
    assert_eq!(poll(&filters, id), [(1, 1)]);
}

#[test]
fn removes_logs_of_a_long_branch_that_were_reported_long_ago() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    world.mine(plan(0, &[1]));
    assert_eq!(poll(&filters, id), [(1, 1)]);
    world.reorganize(0, (0..1_100).map(|_| plan(1, &[])).collect());
    assert_eq!(poll(&filters, id), [(-1, 1)]);
}

#[test]
fn many_logs_come_in_pages() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits { page: 3, ..Default::default() });
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    let blocks = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    for logs in [&[1, 2][..], &[3, 4], &[5, 6, 7, 8], &[], &[9]] {
        world.mine(plan(0, logs));
    }
    assert_eq!(poll(&filters, id), [(1, 1), (1, 2), (2, 3)]);
    drop(filters);
    let filters = open(&world, FilterLimits { page: 3, ..Default::default() });
    assert_eq!(poll(&filters, id), [(2, 4), (3, 5), (3, 6)], "within a block, and after a restart");
    assert_eq!(poll(&filters, id), [(3, 7), (3, 8), (5, 9)]);
    assert_eq!(poll(&filters, id), []);
    assert_eq!([poll_hashes(&filters, blocks).len(), poll_hashes(&filters, blocks).len()], [3, 2]);
}

#[test]
fn filters_survive_a_restart_even_with_a_reorganization() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let criteria = FilterCriteria::Logs(LogCriteria {
        filter: LogFilter { addresses: vec![account(1), account(2)], topics: vec![vec![], vec![]] }.into(),
        from: 7,
        open_below: false,
        to: Some(9),
    });
    let exact = filters.install(&context(), criteria.clone()).unwrap();
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    world.mine(plan(0, &[1]));
    assert_eq!(poll(&filters, id), [(1, 1)]);
    drop(filters);
    world.reorganize(0, vec![plan(1, &[2])]);
    let broken = Record { key: vec![1], value: vec![0xff; 9] };
    world.backend.write_records(&[RecordWrite::Put(RecordKind::Filter, broken)]).unwrap();

    let filters = open(&world, FilterLimits::default());
    assert_eq!(poll(&filters, id), [(-1, 1), (1, 2)]);
    let restored = filters.find(exact).unwrap().state.lock().clone().unwrap().criteria;
    assert_eq!(restored, criteria);
    assert_eq!(world.backend.records(RecordKind::Filter).unwrap().len(), 3, "the broken record is gone");
}

#[test]
fn a_client_leaves_as_many_filters_to_others_as_it_has() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits { count: 8, ..FilterLimits::default() });
    let installed = |client: u128| {
        let context = context().on_behalf_of(ClientId(client));
        (0..9).take_while(|_| filters.install(&context, FilterCriteria::Blocks).is_ok()).count()
    };
    assert_eq!([installed(1), installed(2), installed(3), installed(1)], [4, 2, 1, 0]);
    assert!(
        filters.install(&context(), FilterCriteria::Blocks).is_ok(),
        "filters of the program itself are not limited by a share"
    );
}

#[test]
fn unused_filters_expire_and_polls_keep_them_alive() {
    let world = World::new(Fork::Osaka);
    let filters =
        open(&world, FilterLimits { ttl: Duration::from_secs(10), count: 2, page: 10, ..FilterLimits::default() });
    let unused = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    let used = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    assert!(matches!(filters.install(&context(), FilterCriteria::Blocks), Err(FilterError::TooMany(2))));
    world.clock.advance(9_500);
    assert_eq!(poll_hashes(&filters, used), []);
    world.clock.advance(9_500);
    let expired = filters.changes(&Context::unbounded(), unused);
    assert!(matches!(expired, Err(FilterError::NotFound(id)) if id == unused), "{expired:?}");
    assert_eq!(poll_hashes(&filters, used), [], "an empty poll counts as use");
    filters.install(&context(), FilterCriteria::Blocks).unwrap();
    assert_eq!(world.backend.records(RecordKind::Filter).unwrap().len(), 2);

    drop(filters);
    world.clock.advance(9_500);
    let filters =
        open(&world, FilterLimits { ttl: Duration::from_secs(10), count: 2, page: 10, ..FilterLimits::default() });
    assert_eq!(poll_hashes(&filters, used), [], "the last use survives a restart");
}

#[test]
fn only_a_poll_that_finds_something_writes_and_only_its_cursor() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let filter = LogFilter { addresses: vec![account(2)], topics: vec![(0..=255).map(H256::repeat_byte).collect()] };
    let criteria = LogCriteria { filter: filter.into(), from: 0, open_below: false, to: None };
    let id = filters.install(&context(), FilterCriteria::Logs(criteria)).unwrap();
    let records = || -> HashMap<_, _> {
        let records = world.backend.records(RecordKind::Filter).unwrap();
        records.into_iter().map(|Record { key, value }| (key, value)).collect()
    };
    let poll = |filters: &Filters| match filters.changes(&Context::unbounded(), id).unwrap() {
        FilterChanges::Logs(logs) => logs.len(),
        other => panic!("{other:?}"),
    };
    let installed = records();
    world.mine(plan(0, &[1]));
    assert_eq!(poll(&filters), 0);
    assert_eq!(records(), installed, "nothing was found");
    world.mine(plan(1, &[2]));
    assert_eq!(poll(&filters), 1);
    let mut found = records();
    let position = found.extract_if(|key, _| !installed.contains_key(key)).map(|(_, value)| value.len());
    assert_eq!(position.collect::<Vec<_>>().len(), 1);
    assert_eq!(found, installed, "the criteria are not written again");
    drop(filters);
    let filters = open(&world, FilterLimits::default());
    assert_eq!(poll(&filters), 0, "everything was reported before the restart");
    filters.uninstall(id).unwrap();
    assert!(records().is_empty());
}

#[test]
fn lifetimes_do_not_depend_on_the_time_of_day() {
    let world = World::new(Fork::Osaka);
    let filters =
        open(&world, FilterLimits { ttl: Duration::from_secs(10), count: 2, page: 10, ..FilterLimits::default() });
    let filter = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    world.clock.set(0);
    world.clock.advance(10_001);
    let expired = filters.changes(&Context::unbounded(), filter);
    assert!(matches!(expired, Err(FilterError::NotFound(_))), "{expired:?}");
    let filter = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    world.clock.set(u64::MAX / 2);
    assert_eq!(poll_hashes(&filters, filter), []);
}

#[test]
fn pending_transactions_are_reported_after_a_restart_with_the_clock_set_back() {
    let mut world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), FilterCriteria::PendingTransactions).unwrap();
    drop(filters);
    world.clock = Arc::new(ManualClock::at(1_000));
    let filters = open(&world, FilterLimits::default());
    let transaction = signed(TransactionBody::DynamicFee(transfer(0)), account(1));
    let hash = filters.pool.add_transaction(PooledTransaction { transaction, sidecar: None }).unwrap();
    assert_eq!(poll_hashes(&filters, id), [hash]);
}

#[test]
fn removed_filters_are_unknown() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    let visit = |_: FoundLog<LogRef<'_>>| ControlFlow::Continue(());
    assert!(matches!(filters.visit_logs(&Context::unbounded(), id, 1, visit), Err(FilterError::NotALogFilter(_))));
    assert!(filters.uninstall(id).unwrap());
    assert!(!filters.uninstall(id).unwrap());
    assert!(matches!(filters.changes(&Context::unbounded(), id), Err(FilterError::NotFound(_))));
    assert!(world.backend.records(RecordKind::Filter).unwrap().is_empty());
}

#[test]
fn removed_logs_come_in_pages_too() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    for logs in [&[1, 2][..], &[3], &[], &[4, 5, 6, 7], &[8, 9]] {
        world.mine(plan(0, logs));
    }
    assert_eq!(poll(&filters, id).len(), 9);
    drop(filters);
    world.reorganize(0, vec![plan(1, &[10]), plan(1, &[11, 12])]);
    let filters = open(&world, FilterLimits { page: 3, ..Default::default() });
    let pages = [
        vec![(-4, 7), (-5, 8), (-5, 9)],
        vec![(-4, 4), (-4, 5), (-4, 6)],
        vec![(-1, 1), (-1, 2), (-2, 3)],
        vec![(1, 10), (2, 11), (2, 12)],
        vec![],
    ];
    for (number, page) in pages.into_iter().enumerate() {
        assert_eq!(poll(&filters, id), page, "page {number}");
    }
}

#[test]
fn the_removal_of_very_many_blocks_is_read_in_steps() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    world.mine(plan(0, &[1]));
    let [logs, blocks] = [all_logs(0, None), FilterCriteria::Blocks];
    let [log_filter, block_filter] = [&logs, &blocks].map(|it| filters.install(&context(), it.clone()).unwrap());
    let removed = i64::try_from(2 * walk::MAX_REMOVED + 2).unwrap();
    for _ in 2..removed {
        world.mine(plan(0, &[]));
    }
    let last = world.mine(plan(0, &[2]));
    assert_eq!(poll(&filters, log_filter), [(removed, 2)]);
    assert_eq!(poll_hashes(&filters, block_filter).len(), usize::try_from(removed).unwrap() - 1);
    world.reorganize(0, vec![plan(1, &[3])]);

    let view = world.backend.view().unwrap();
    for criteria in [&logs, &blocks] {
        let mut state = Subscription { criteria: criteria.clone(), cursor: Cursor::Chain(ChainPosition::end_of(last)) };
        let mut steps = 0;
        while !state.cursor.is_at(view.head()) {
            let pool = world.pool(PoolLimits::default());
            state.cursor = state.next(&context(), &*view, &pool, PageSize::of_entries(10)).unwrap().1;
            steps += 1;
        }
        assert_eq!(steps, 3, "{criteria:?}");
    }
    let pages = [vec![(-removed, 2)], vec![(-1, 1), (1, 3)], vec![]];
    assert_eq!(pages.clone().map(|_| poll(&filters, log_filter)), pages);
    assert_eq!(poll_hashes(&filters, block_filter), [world.head().hash], "one poll takes all steps without blocks");
}

#[test]
fn changes_that_do_not_reach_the_client_are_reported_again() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    world.mine(plan(0, &[1]));
    let lost = context();
    let changes = filters.changes(&lost, id).unwrap();
    lost.results_are_lost();
    drop(filters);
    let filters = open(&world, FilterLimits::default());
    let again = context();
    assert_eq!(filters.changes(&again, id).unwrap(), changes);
    world.mine(plan(0, &[2]));
    assert_eq!(poll(&filters, id), [(2, 2)]);
    again.results_are_lost();
    assert_eq!(poll(&filters, id), [], "another poll has moved the cursor on");
}

#[test]
fn a_page_ends_after_enough_data() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    let logs = |sizes: &[usize]| {
        let log = |size: &usize| Log { data: vec![0; *size].into(), ..log(1) };
        Plan { salt: sizes.len() as u64, logs: sizes.iter().map(log).collect(), ..Default::default() }
    };
    world.mine(logs(&[PageSize::BYTES, 1, PageSize::BYTES - 1, 0]));
    let page = |expected: &[bool]| match filters.changes(&context(), id).unwrap() {
        FilterChanges::Logs(logs) => assert_eq!(logs.iter().map(|log| log.removed).collect::<Vec<_>>(), expected),
        other => panic!("{other:?}"),
    };
    page(&[false]);
    page(&[false, false]);
    page(&[false]);
    world.reorganize(0, vec![logs(&[1])]);
    page(&[true, true, true]);
    page(&[true]);
    page(&[false]);
    page(&[]);
}

#[test]
fn every_walk_checks_the_context() {
    let world = World::new(Fork::Osaka);
    let pool = world.pool(PoolLimits::default());
    let cursor = world.head();
    world.mine(plan(0, &[1]));
    let view = world.backend.view().unwrap();
    let cancelled = Context::unbounded();
    cancelled.cancel();
    for criteria in [FilterCriteria::Blocks, all_logs(0, None)] {
        let state = Subscription { criteria: criteria.clone(), cursor: Cursor::Chain(ChainPosition::end_of(cursor)) };
        let result = state.next(&cancelled, &*view, &pool, PageSize::of_entries(10));
        let Err(ChangesError::Backend(BackendError::Interrupted(Interrupted::Cancelled))) = result else {
            panic!("{criteria:?}: {result:?}");
        };
    }
}

/// Runs `meanwhile` during a poll of `id`. Returns the result of the poll, and that of `meanwhile` if it took less than
/// 5 s.
fn during_a_poll<T: Send>(
    world: &World,
    filters: &Filters,
    id: FilterId,
    meanwhile: impl FnOnce() -> T + Send,
) -> (Result<FilterChanges, FilterError>, Option<T>) {
    thread::scope(|scope| {
        let release = world.backend.stall();
        let poll = scope.spawn(|| filters.changes(&Context::unbounded(), id));
        while !world.backend.has_stalled() {
            thread::yield_now();
        }
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || sender.send(meanwhile()).unwrap());
        let result = receiver.recv_timeout(Duration::from_secs(5)).ok();
        drop(release);
        (poll.join().unwrap(), result)
    })
}

#[test]
fn a_poll_blocks_nothing_else() {
    let world = World::new(Fork::Osaka);
    let limits = FilterLimits { count: 1, ..FilterLimits::default() };
    let filters = open(&world, limits);
    let id = filters.install(&context(), all_logs(0, None)).unwrap();
    world.mine(plan(0, &[1]));
    let (slow, fast) = during_a_poll(&world, &filters, id, || poll(&filters, id));
    assert_eq!(fast, Some(vec![(1, 1)]), "another poll");
    let slow = slow.unwrap();
    assert_eq!(slow, FilterChanges::Logs(Vec::new()), "changes are not reported twice");

    let (slow, ended) = during_a_poll(&world, &filters, id, || filters.uninstall(id).unwrap());
    assert_eq!(ended, Some(true), "the filter is removed during the poll");
    assert!(matches!(slow, Err(FilterError::NotFound(_))), "{slow:?}");

    let id = filters.install(&context(), FilterCriteria::Blocks).unwrap();
    let (slow, swept) = during_a_poll(&world, &filters, id, || {
        world.clock.advance(2 * u64::try_from(limits.ttl.as_millis()).unwrap());
        filters.install(&context(), FilterCriteria::Blocks).map_err(|error| error.to_string())
    });
    assert!(matches!(swept, Some(Ok(_))), "a new filter in the place of an expired one: {swept:?}");
    assert!(matches!(slow, Err(FilterError::NotFound(_))), "{slow:?}");
}

#[test]
fn pending_transactions_are_reported_in_order_of_arrival() {
    let world = World::new(Fork::Osaka);
    let filters = open(&world, FilterLimits::default());
    let send = |nonce| {
        let transaction = signed(TransactionBody::DynamicFee(transfer(nonce)), account(1));
        filters.pool.add_transaction(PooledTransaction { transaction, sidecar: None }).unwrap()
    };
    send(0);
    let id = filters.install(&context(), FilterCriteria::PendingTransactions).unwrap();
    let (second, third) = (send(1), send(2));
    assert_eq!(poll_hashes(&filters, id), [second, third]);
    assert_eq!(poll_hashes(&filters, id), []);
}

#[test]
fn parses_only_its_own_ids() {
    let id = FilterId::random();
    assert_eq!(id.to_string().parse(), Ok(id));
    let ids: HashSet<_> = (0..64).map(|_| FilterId::random()).collect();
    assert_eq!(ids.len(), 64);
    for id in ids {
        assert_eq!(Uuid::from_bytes(id.0).get_version(), Some(Version::Random), "{id}");
    }
    for text in ["", "0x", "1", "0x1", "0x+0000000000000000000000000000001", &id.to_string()[2..]] {
        assert_eq!(text.parse::<FilterId>(), Err(InvalidFilterId), "{text}");
    }
}
