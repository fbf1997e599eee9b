//! Methods of other servers that are not there, so that whoever asks for one learns why.

/// Families by the beginning of the name, with the reason.
const FAMILIES: [(&str, &str); 20] = [
    ("admin_", "the node has no peers, and its settings are those it was started with"),
    ("clique_", "there is no proof of authority"),
    ("engine_", "there is no consensus layer: chains are imported or made by the node itself"),
    ("erigon_", "it is known from erigon; blocks, logs and receipts come from eth_ methods"),
    ("flashbots_", "there is no builder"),
    ("les_", "there is no light protocol"),
    ("mev_", "there is no builder"),
    ("miner_", "there is no mining; development chains have evm_ and anvil_ methods"),
    ("ots_", "it is known from otterscan's servers"),
    ("parity_", "it is known from OpenEthereum"),
    ("personal_", "the node keeps no accounts; development chains have eth_accounts and eth_sign"),
    ("reth_", "it is known from reth"),
    ("ssz_", "there is no consensus layer"),
    ("tenderly_", "it is known from Tenderly"),
    ("trace_", "it is known from OpenEthereum and erigon; use debug_trace methods with the tracer flatCallTracer"),
    ("anvil_", "of anvil's methods those are here that docs/json-rpc.md lists"),
    ("evm_", "of such methods those are here that docs/json-rpc.md lists"),
    ("hardhat_", "of hardhat's methods those are here that docs/json-rpc.md lists"),
    ("bor_", "it is known from Polygon"),
    ("debug_", "of geth's debug methods those are here that docs/json-rpc.md lists"),
];

/// Single methods with the reason.
const METHODS: [(&str, &str); 19] = [
    (
        "debug_storageRangeAt",
        "storage is not listed; use eth_getStorageValues, or debug_trace methods with the prestateTracer",
    ),
    ("debug_accountRange", "accounts are not listed"),
    ("debug_dumpBlock", "states are not listed"),
    ("debug_setHead", "the head follows imports; development chains have evm_revert and anvil_rollback"),
    ("debug_executionWitness", "it is known from reth; use eth_getProof"),
    ("debug_chaindbProperty", "the database is not geth's; see the command stats and the metrics"),
    ("eth_getWork", "there is no mining"),
    ("eth_submitWork", "there is no mining"),
    ("eth_submitHashrate", "there is no mining"),
    ("eth_hashrate", "there is no mining"),
    ("eth_getCompilers", "there are no compilers"),
    ("eth_protocolVersion", "the node has no peers"),
    ("eth_mining", "there is no mining"),
    ("eth_getBlockAccessList", "no fork in force has lists of a block's accesses (EIP-7928)"),
    ("eth_signTypedData_v3", "use eth_signTypedData_v4 on development chains"),
    (
        "eth_sendTransactionSync",
        "use eth_sendTransaction on development chains: it answers when the transaction is mined, as a rule",
    ),
    ("eth_sendBundle", "there is no builder"),
    ("eth_pendingTransactions", "use txpool_content"),
    (
        "eth_getTransactionBySenderAndNonce",
        "there is no index of transactions by sender; use txpool_contentFrom for those that wait",
    ),
];

/// Why a method that other servers have is not there; none for one that is not known.
pub fn elsewhere(name: &str) -> Option<&'static str> {
    let single = METHODS.iter().find(|(method, _)| *method == name);
    let family = || FAMILIES.iter().find(|(family, _)| name.starts_with(family));
    single.or_else(family).map(|(_, reason)| *reason)
}
