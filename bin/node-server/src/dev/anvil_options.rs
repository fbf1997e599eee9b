//! Options of anvil that `dev` does not have, with alternatives. `anvil` has some of them.

const ALL_STATES: &str = "the state after every block is kept, in memory or with --data-dir in a folder";

/// Options without their dashes, each with a sentence that describes an alternative.
const INSTEAD: [(&[&str], &str); 22] = [
    (&["ipc", "ipcpath"], "there is no IPC: JSON-RPC is served over HTTP and WebSocket, see --host and --port"),
    (&["j", "threads", "jobs"], "see --workers and --call-threads"),
    (&["max-persisted-states", "prune-history", "preserve-historical-states"], ALL_STATES),
    (&["cache-path", "transaction-block-keeper"], ALL_STATES),
    (&["max-transactions"], "the gas limit alone bounds the transactions of a block, see --gas-limit"),
    (&["mnemonic-random", "mnemonic-seed-unsafe"], "choose the words yourself with --mnemonic"),
    (&["number"], "the genesis block has the number 0; anvil_mine mines empty blocks up to another"),
    (&["slots-in-an-epoch"], "safe is 32 blocks below the head, finalized 64; anvil_mine moves both"),
    (&["color"], "there are colors if the output is a terminal and NO_COLOR is not set"),
    (&["json", "md"], "use --log-format json"),
    (&["allow-origin"], "use --cors-origins"),
    (&["no-cors"], "use --cors-origins none"),
    (&["no-request-size-limit"], "use --max-body"),
    (&["disable-block-gas-limit", "disable-gas-limit"], "every block has a gas limit; set a high one with --gas-limit"),
    (&["gas-price"], "the gas price follows from the base fee, see --base-fee"),
    (&["disable-default-create2-deployer", "no-create2"], "write a genesis without it and use --genesis"),
    (&["disable-pool-balance-checks"], "a transaction must be paid for; see --balance, and anvil_setBalance"),
    (&["disable-min-priority-fee", "no-priority-fee"], "a tip of zero is always accepted"),
    (
        &["enable-tx-gas-limit", "tx-gas-limit"],
        "the limit of EIP-7825 applies from Osaka on; see --disable-tx-gas-limit",
    ),
    (&["steps-tracing", "tracing"], "debug_traceTransaction and its relatives are always available"),
    (&["memory-limit"], "gas bounds the memory of an execution, see --gas-cap and --gas-limit"),
    (&["celo", "optimism", "odyssey", "n", "network"], "the network is Ethereum; see --hardfork and --chain-id"),
];

/// Returns a sentence that describes an alternative to an option of anvil that `dev` does not have, or `None` for any
/// other option. `option` includes its dashes.
pub(crate) fn instead(option: &str) -> Option<&'static str> {
    let name = option.trim_start_matches('-').split('=').next()?;
    INSTEAD.iter().find(|(names, _)| names.contains(&name)).map(|(_, sentence)| *sentence)
}

#[cfg(test)]
pub(super) fn sentences() -> impl Iterator<Item = &'static str> {
    INSTEAD.iter().map(|(_, sentence)| *sentence)
}
