//! Reasons why methods of other servers are not available.

/// Families of methods by prefix, with the reason.
const FAMILIES: [(&str, &str); 20] = [
    ("admin_", "the node has no peers, and its settings are set at the start"),
    ("clique_", "there is no proof of authority"),
    ("engine_", "there is no consensus layer: the chain is imported, or produced by the node itself"),
    ("erigon_", "it is a method of erigon; use eth_ methods"),
    ("flashbots_", "there is no builder"),
    ("les_", "there is no light protocol"),
    ("mev_", "there is no builder"),
    ("miner_", "there is no proof-of-work mining; use the evm_ and anvil_ methods of development chains"),
    ("ots_", "it is a method of Otterscan"),
    ("parity_", "it is a method of OpenEthereum"),
    ("personal_", "`run` has no keys; development chains have eth_accounts and eth_sign"),
    ("reth_", "it is a method of reth"),
    ("ssz_", "there is no consensus layer"),
    ("tenderly_", "it is a method of Tenderly"),
    (
        "trace_",
        "it is a method of OpenEthereum and erigon; trace_transaction, trace_block, and debug_trace methods with the tracer \
         flatCallTracer are available",
    ),
    ("anvil_", "docs/json-rpc.md lists the methods of anvil that are available"),
    ("evm_", "docs/json-rpc.md lists the methods of this family that are available"),
    ("hardhat_", "docs/json-rpc.md lists the methods of hardhat that are available"),
    ("bor_", "it is a method of Polygon"),
    ("debug_", "docs/json-rpc.md lists the debug methods of geth that are available"),
];

/// Single methods, with the reason.
const METHODS: [(&str, &str); 15] = [
    (
        "debug_storageRangeAt",
        "storage is not listed; use eth_getStorageValues, or debug_trace methods with the prestateTracer",
    ),
    ("debug_accountRange", "accounts are not listed"),
    ("debug_dumpBlock", "states are not listed"),
    ("debug_setHead", "the head follows imports; development chains have evm_revert and anvil_rollback"),
    ("debug_executionWitness", "it is a method of reth; use eth_getProof"),
    ("debug_chaindbProperty", "the database is not geth's; see the command stats and the metrics"),
    ("eth_getWork", "the node has no proof-of-work miner"),
    ("eth_submitWork", "the node has no proof-of-work miner"),
    ("eth_submitHashrate", "the node has no proof-of-work miner"),
    ("eth_hashrate", "the node has no proof-of-work miner"),
    ("eth_getCompilers", "there are no compilers"),
    ("eth_protocolVersion", "the node has no peers"),
    ("eth_getBlockAccessList", "no active fork has block access lists (EIP-7928)"),
    ("eth_sendBundle", "there is no builder"),
    ("eth_pendingTransactions", "use txpool_content"),
];

/// Returns why a method of other servers is not available here, or `None` if the name is unknown.
pub fn unavailable(name: &str) -> Option<&'static str> {
    let single = METHODS.iter().find(|(method, _)| *method == name);
    let family = || FAMILIES.iter().find(|(family, _)| name.starts_with(family));
    single.or_else(family).map(|(_, reason)| *reason)
}
