use super::*;
use crate::Genesis;
use crate::genesis::dev_genesis;
use crate::test_support::{chain_of, chained, empty_header, grow, work_genesis};
use node_core::backend::{BackendHealth, CacheUse, HeadListener, MemoryBackend, Record, RecordKind, RecordWrite};
use node_core::block::RecoveredTransaction;
use node_core::executor::{
    AccessListOutcome, BlockExecution, Call, CallOutcome, Contracts, EstimateOutcome, SimulatedExecution,
    SimulationRules, TraceError, Tracing,
};
use node_core::protocol::Fork;
use node_types::BlockNumber;
use node_types::buffer::JsonBuffer;
use node_types::consensus::{EMPTY_REQUESTS_HASH, Receipt, Withdrawal};
use proptest::prelude::*;

fn context() -> Context {
    Context::unbounded()
}

fn head(chain: &BlockImporter) -> BlockRef {
    chain.backend().view().unwrap().head()
}

fn genesis_header(chain: &BlockImporter) -> Arc<SealedHeader> {
    chain.backend().view().unwrap().header(0.into()).unwrap().unwrap()
}

#[test]
fn rejects_unknown_parents() {
    let chain = chain_of(&dev_genesis());
    let orphan = Block {
        header: Header { number: 5, parent_hash: H256::repeat_byte(7), ..Header::default() },
        ..Block::default()
    };
    let error = chain.import_block(&context(), orphan).unwrap_err();
    assert!(matches!(error, ImportError::UnknownParent { parent, .. } if parent == H256::repeat_byte(7)), "{error}");
    let foreign = Block {
        header: Header { number: 1, parent_hash: H256::repeat_byte(7), ..Header::default() },
        ..Block::default()
    };
    let error = chain.import_block(&context(), foreign).unwrap_err();
    let expected = genesis_header(&chain).hash;
    assert!(matches!(error, ImportError::OtherGenesis { genesis, .. } if genesis == expected), "{error}");
    let error = chain.set_head(H256::repeat_byte(7)).unwrap_err();
    assert!(matches!(error, ImportError::UnknownBlock(_)), "{error}");
}

#[test]
fn prefers_the_longer_branch_after_the_merge() {
    let genesis = dev_genesis();
    let (spec, chain) = (&genesis.spec, chain_of(&genesis));
    let root = genesis_header(&chain);
    let (_, a1) = grow(&chain, spec, &root, 12, b"a");
    let (imported, a2) = grow(&chain, spec, &a1, 12, b"a");
    assert_eq!(imported, Imported::Appended);
    let (imported, b1) = grow(&chain, spec, &root, 12, b"b");
    assert_eq!(imported, Imported::SideBranch, "shorter");
    let (imported, b2) = grow(&chain, spec, &b1, 12, b"b");
    assert_eq!(imported, Imported::SideBranch, "a tie: the canonical branch stays");
    let (imported, b3) = grow(&chain, spec, &b2, 12, b"b");
    let expected = HeadChange {
        removed: vec![a2.block_ref(), a1.block_ref()],
        added: vec![b1.block_ref(), b2.block_ref(), b3.block_ref()],
    };
    assert_eq!(imported, Imported::Switched(expected));
    assert_eq!(head(&chain), b3.block_ref());

    // The other branch is still stored, and an explicit head overrides the preference.
    let change = chain.set_head(a2.hash).unwrap();
    assert_eq!(change.added, [a1.block_ref(), a2.block_ref()]);
    assert_eq!(head(&chain), a2.block_ref());
    // A block below the head is a side block.
    let (imported, _) = grow(&chain, spec, &a1, 24, b"c");
    assert_eq!(imported, Imported::SideBranch);
    // The head can also move back.
    let change = chain.set_head(root.hash).unwrap();
    assert_eq!(change, HeadChange { removed: vec![a2.block_ref(), a1.block_ref()], added: vec![] });
    assert_eq!(head(&chain), root.block_ref());
}

#[test]
fn switches_to_a_branch_of_any_length() {
    let genesis = dev_genesis();
    let (spec, chain) = (&genesis.spec, chain_of(&genesis));
    let root = genesis_header(&chain);
    let length = 1_030;
    let mut main = vec![Arc::clone(&root)];
    for _ in 0..length {
        main.push(grow(&chain, spec, &main[main.len() - 1], 12, b"main").1);
    }
    let mut side = vec![root];
    for number in 1..=length {
        let (imported, header) = grow(&chain, spec, &side[side.len() - 1], 12, b"side");
        assert_eq!(imported, Imported::SideBranch, "block {number}");
        side.push(header);
    }
    let (imported, winner) = grow(&chain, spec, &side[length], 12, b"side");
    let Imported::Switched(change) = imported else { panic!("{imported:?}") };
    side.push(winner);
    let references =
        |headers: &[Arc<SealedHeader>]| headers.iter().map(|header| header.block_ref()).collect::<Vec<_>>();
    assert_eq!(change.removed.into_iter().rev().collect::<Vec<_>>(), references(&main[1..]));
    assert_eq!(change.added, references(&side[1..]));
}

#[test]
fn prefers_the_heavier_branch_before_the_merge() {
    let genesis = work_genesis();
    let (spec, chain) = (&genesis.spec, chain_of(&genesis));
    let root = genesis_header(&chain);
    // Slow blocks have a lower difficulty.
    let (_, a1) = grow(&chain, spec, &root, 900, b"a");
    let (_, a2) = grow(&chain, spec, &a1, 900, b"a");
    let (imported, b1) = grow(&chain, spec, &root, 1, b"b");
    assert_eq!(imported, Imported::SideBranch);
    assert!(b1.header.difficulty > a1.header.difficulty);
    let (imported, b2) = grow(&chain, spec, &b1, 1, b"b");
    let expected =
        HeadChange { removed: vec![a2.block_ref(), a1.block_ref()], added: vec![b1.block_ref(), b2.block_ref()] };
    assert_eq!(imported, Imported::Switched(expected), "as long, but heavier");
    // A later sibling with the same difficulty.
    let (imported, _) = grow(&chain, spec, &b1, 1, b"c");
    assert_eq!(imported, Imported::SideBranch);
}

#[test]
fn known_blocks_become_the_head_by_the_same_rule_as_new_ones() {
    // On one branch the blocks are heavier before the merge, on the other one there are more.
    for (genesis, seconds) in [(dev_genesis(), [12, 12]), (work_genesis(), [900, 1])] {
        let (spec, chain) = (&genesis.spec, chain_of(&genesis));
        let root = genesis_header(&chain);
        let mut branches = [Vec::new(), Vec::new()];
        for (branch, (seconds, length)) in branches.iter_mut().zip(seconds.into_iter().zip([2, 3])) {
            let mut parent = Arc::clone(&root);
            for _ in 0..length {
                let extra: &'static [u8] = if length == 2 { b"a" } else { b"b" };
                parent = grow(&chain, spec, &parent, seconds, extra).1;
                branch.push(Arc::clone(&parent));
            }
        }
        let [a, b] = branches;
        let import = |header: &SealedHeader| {
            let view = chain.backend().view().unwrap();
            let body = view.body(header.hash.into()).unwrap().unwrap();
            chain.import_block(&context(), body.with_header(&header.header)).unwrap()
        };
        assert_eq!(head(&chain), b[2].block_ref());
        for header in a.iter().chain(&b) {
            assert_eq!(import(header), Imported::AlreadyKnown);
        }
        // After the head was set back, the first block that is better becomes the head again.
        chain.set_head(a[1].hash).unwrap();
        for header in &a {
            assert_eq!(import(header), Imported::AlreadyKnown);
        }
        let first = b.iter().position(|header| import(header) != Imported::AlreadyKnown).unwrap();
        assert_eq!(head(&chain), b[first].block_ref());
        chain.set_head(root.hash).unwrap();
        let change = HeadChange { removed: vec![], added: vec![b[0].block_ref(), b[1].block_ref(), b[2].block_ref()] };
        assert_eq!(import(&b[2]), Imported::Switched(change), "with all blocks in between");
        assert_eq!(head(&chain), b[2].block_ref());
    }
}

#[test]
fn accepts_ommers_of_the_last_six_generations() {
    let genesis = work_genesis();
    let (spec, chain) = (&genesis.spec, chain_of(&genesis));
    let mut ancestors = vec![genesis_header(&chain)];
    for _ in 0..8 {
        let (_, next) = grow(&chain, spec, ancestors.last().unwrap(), 10, b"");
        ancestors.push(next);
    }
    // The siblings of the blocks 1 to 8, and a child of the head.
    let ommer =
        |height: usize| Header { extra_data: b"ommer"[..].into(), ..empty_header(spec, &ancestors[height - 1], 10) };
    let import = |ommers: Vec<Header>| {
        let parent = ancestors.last().unwrap();
        let header =
            Header { ommers_hash: node_types::keccak256(rlp::encode_list(&ommers)), ..empty_header(spec, parent, 10) };
        match chain.import_block(&context(), Block { header, ommers, ..Block::default() }) {
            Err(ImportError::Invalid { source, .. }) => chained(&source),
            other => panic!("{other:?}"),
        }
    };
    let wrong_gas = Header { gas_used: 1 << 60, ..ommer(8) };
    let ancestor = ancestors[7].header.clone();
    // A valid block fails only at the state root, which is zero.
    let cases: [(Vec<Header>, &str); 9] = [
        (vec![ommer(8)], "state root 0x0000"),
        (vec![ommer(3)], "state root 0x0000"),
        (vec![ommer(3), ommer(8)], "state root 0x0000"),
        (vec![ommer(2)], "the parent "),
        (vec![ommer(9)], "the parent "),
        (vec![ommer(3), ommer(4), ommer(5)], "3 ommers, at most 2 are allowed"),
        (vec![ommer(3), ommer(3)], "ommer "),
        (vec![ancestor], "ommer "),
        (vec![wrong_gas], "the header of ommer "),
    ];
    for (ommers, expected) in cases {
        let got = import(ommers);
        assert!(got.starts_with(expected), "got: {got}\nwant: {expected}");
    }
}

/// A backend whose `switch` fails.
struct NoSwitch(MemoryBackend);

impl StateBackend for NoSwitch {
    fn view(&self) -> Result<Arc<dyn View>, BackendError> {
        self.0.view()
    }

    fn append_recording(&self, block: ExecutedBlock, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.0.append_recording(block, writes)
    }

    fn switch_recording(
        &self,
        _: BlockNumber,
        _: Vec<ExecutedBlock>,
        _: &[RecordWrite],
    ) -> Result<HeadChange, BackendError> {
        Err(BackendError::Storage("the disk is full".into()))
    }

    fn keep_side_block(&self, block: ExecutedBlock) -> Result<(), BackendError> {
        self.0.keep_side_block(block)
    }

    fn subscribe(&self, listener: Arc<dyn HeadListener>) {
        self.0.subscribe(listener);
    }

    fn proves_quickly(&self) -> bool {
        self.0.proves_quickly()
    }

    fn write_records_unsynced(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.0.write_records_unsynced(writes)
    }

    fn sync_records(&self) -> Result<(), BackendError> {
        self.0.sync_records()
    }

    fn caches(&self) -> Vec<CacheUse> {
        self.0.caches()
    }

    fn health(&self) -> BackendHealth {
        self.0.health()
    }

    fn write_records(&self, writes: &[RecordWrite]) -> Result<(), BackendError> {
        self.0.write_records(writes)
    }

    fn record(&self, kind: RecordKind, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        self.0.record(kind, key)
    }

    fn records(&self, kind: RecordKind) -> Result<Vec<Record>, BackendError> {
        self.0.records(kind)
    }
}

#[test]
fn a_failed_switch_stores_no_block() {
    let genesis = dev_genesis();
    let spec = &genesis.spec;
    let good = chain_of(&genesis);
    let root = genesis_header(&good);
    let (_, a1) = grow(&good, spec, &root, 12, b"a");
    let (_, b1) = grow(&good, spec, &root, 12, b"b");
    let (imported, b2) = grow(&good, spec, &b1, 12, b"b");
    assert!(matches!(imported, Imported::Switched(_)), "{imported:?}");

    let chain = BlockImporter {
        backend: Arc::new(NoSwitch(MemoryBackend::new(genesis.block()).unwrap())),
        ..chain_of(&genesis)
    };
    let import = |header: &SealedHeader| {
        let block = Block { header: header.header.clone(), withdrawals: Some(Vec::new()), ..Block::default() };
        chain.import_block(&context(), block)
    };
    assert_eq!(import(&a1).unwrap(), Imported::Appended);
    assert_eq!(import(&b1).unwrap(), Imported::SideBranch);
    for attempt in 1..=2 {
        let error = import(&b2).unwrap_err();
        assert!(matches!(error, ImportError::Backend(BackendError::Storage(_))), "attempt {attempt}: {error}");
        assert_eq!(head(&chain), a1.block_ref());
        assert_eq!(chain.backend().view().unwrap().header(b2.hash.into()).unwrap(), None);
    }
}

/// An executor that refuses to begin blocks or to finish them.
struct Refusing {
    begins: bool,
}

const REFUSAL: TransactionError = TransactionError::NonceOverflow;

impl Executor for Refusing {
    fn begin_block<'a>(
        &'a self,
        _: &'a Context,
        _: &'a dyn View,
        _: &'a Header,
    ) -> Result<Box<dyn BlockExecution + 'a>, ExecutionError> {
        if self.begins { Ok(Box::new(Unfinished)) } else { Err(REFUSAL.into()) }
    }

    fn begin_simulated<'a>(
        &'a self,
        _: &'a Context,
        _: &'a dyn View,
        _: &'a Header,
        _: &SimulationRules<'_>,
    ) -> Result<Box<dyn SimulatedExecution + 'a>, ExecutionError> {
        Err(REFUSAL.into())
    }

    fn contracts(&self, _: Fork) -> Contracts {
        Contracts::default()
    }

    fn call(&self, _: &Context, _: &dyn View, _: &Header, _: &Call) -> Result<CallOutcome, ExecutionError> {
        Err(REFUSAL.into())
    }

    fn estimate(&self, _: &Context, _: &dyn View, _: &Header, _: &Call) -> Result<EstimateOutcome, ExecutionError> {
        Err(REFUSAL.into())
    }

    fn trace_call(
        &self,
        _: &Context,
        _: &dyn View,
        _: &Header,
        _: &Call,
        _: &Tracing,
        _: &mut JsonBuffer,
    ) -> Result<(), TraceError> {
        Err(ExecutionError::from(REFUSAL).into())
    }

    fn access_list(
        &self,
        _: &Context,
        _: &dyn View,
        _: &Header,
        _: &Call,
    ) -> Result<AccessListOutcome, ExecutionError> {
        Err(REFUSAL.into())
    }

    fn caches(&self) -> Vec<CacheUse> {
        Vec::new()
    }
}

/// A block that cannot be finished.
struct Unfinished;

impl BlockExecution for Unfinished {
    fn transact(&mut self, _: &RecoveredTransaction) -> Result<&Receipt, ExecutionError> {
        Err(REFUSAL.into())
    }

    fn trace(&mut self, _: &RecoveredTransaction, _: &Tracing, _: &mut JsonBuffer) -> Result<(), TraceError> {
        Err(ExecutionError::from(REFUSAL).into())
    }

    fn trace_call(self: Box<Self>, _: &Call, _: &Tracing, _: &mut JsonBuffer) -> Result<(), TraceError> {
        Err(ExecutionError::from(REFUSAL).into())
    }

    fn gas_used(&self) -> u64 {
        0
    }

    fn blob_gas_used(&self) -> u64 {
        0
    }

    fn finish(self: Box<Self>, _: &[Header], _: Option<&[Withdrawal]>) -> Result<BlockOutcome, ExecutionError> {
        Err(REFUSAL.into())
    }
}

#[test]
fn a_refusal_outside_of_transactions_blames_none_of_them() {
    let genesis = dev_genesis();
    for begins in [false, true] {
        let chain = BlockImporter { executor: Arc::new(Refusing { begins }), ..chain_of(&genesis) };
        let header = empty_header(&genesis.spec, &genesis_header(&chain), 12);
        let block = Block { header, withdrawals: Some(Vec::new()), ..Block::default() };
        let error = chain.import_block(&context(), block).unwrap_err();
        let ImportError::Invalid { source, .. } = error else { panic!("{error}") };
        assert!(matches!(source, BlockError::Refused(REFUSAL)), "begins: {begins}: {}", chained(&source));
    }
}

#[test]
fn a_cancelled_import_does_not_change_the_chain() {
    let genesis = dev_genesis();
    let chain = chain_of(&genesis);
    let cancelled = context();
    cancelled.cancel();
    let block = Block { header: empty_header(&genesis.spec, &genesis_header(&chain), 12), ..Block::default() };
    let error = chain.import_block(&cancelled, block).unwrap_err();
    assert!(matches!(error, ImportError::Interrupted(_)), "{error}");
}

/// Returns a block of the development chain, encoded.
fn encoded_block(genesis: &Genesis) -> Vec<u8> {
    let header =
        Header { requests_hash: Some(EMPTY_REQUESTS_HASH), ..empty_header(&genesis.spec, &genesis.block().header, 12) };
    rlp::encode(&Block { header, withdrawals: Some(Vec::new()), ..Block::default() }).to_vec()
}

proptest! {
    #[test]
    fn rejects_random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let chain = chain_of(&work_genesis());
        prop_assert!(chain.import_bytes(&context(), &bytes).is_err());
    }

    #[test]
    fn rejects_a_damaged_block(position in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let genesis = dev_genesis();
        let chain = chain_of(&genesis);
        let mut bytes = encoded_block(&genesis);
        let position = position.index(bytes.len());
        bytes[position] = byte;
        // The state root is zero, so the block is invalid even if the byte does not change.
        prop_assert!(chain.import_bytes(&context(), &bytes).is_err());
    }
}
