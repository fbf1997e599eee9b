//! `ethnode anvil`: a development chain with anvil's options, defaults and output.

use super::DevOptions;
use clap::Args;
use node_http::{AllowedOrigin, InvalidUrl, Origin, RateLimit};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The version of anvil whose options are accepted.
const VERSION: &str = "1.7.1";

/// Anvil's variable for the address to listen on.
const HOST_VARIABLE: &str = "ANVIL_IP_ADDR";

/// Options of `anvil`: those of `dev`, and those of anvil that `dev` does not have.
#[derive(Args, Debug)]
pub(crate) struct AnvilOptions {
    #[command(flatten)]
    dev: DevOptions,
    #[command(flatten)]
    own: AnvilArguments,
}

/// Options of anvil that `dev` does not have.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options of anvil that dev does not have")]
struct AnvilArguments {
    /// Apply the limit of EIP-7825 to the gas of a transaction
    #[arg(long, alias = "tx-gas-limit", conflicts_with = "disable_tx_gas_limit")]
    enable_tx_gas_limit: bool,
    /// Origin of the pages that may use the server, or * for any
    #[arg(long, value_name = "ORIGIN", default_value = "*", value_parser = origin)]
    allow_origin: AllowedOrigin,
    /// Allow no pages of other origins
    #[arg(long)]
    no_cors: bool,
    /// Accept request bodies as long as --transfer-memory allows
    #[arg(long)]
    no_request_size_limit: bool,
    /// Accepted, and without effect: prices follow from the base fee from London on, as in anvil, and before London any
    /// price is enough
    #[arg(long, value_name = "WEI")]
    gas_price: Option<u128>,
    /// Accepted: a tip of zero is always enough
    #[arg(long, alias = "no-priority-fee")]
    disable_min_priority_fee: bool,
    /// Accepted: every transaction can be traced
    #[arg(long, alias = "tracing")]
    steps_tracing: bool,
    /// Accepted: see --workers and --call-threads
    #[arg(short = 'j', long, alias = "jobs", value_name = "COUNT")]
    threads: Option<usize>,
    /// Accepted: every state is kept
    #[arg(long, value_name = "COUNT")]
    max_persisted_states: Option<usize>,
    /// Accepted: every state is kept
    #[arg(long, value_name = "COUNT", num_args = 0..=1)]
    prune_history: Option<Option<usize>>,
    /// Accepted: every block is kept
    #[arg(long, value_name = "COUNT")]
    transaction_block_keeper: Option<usize>,
    /// Accepted: see --data-dir
    #[arg(long, value_name = "FOLDER")]
    cache_path: Option<PathBuf>,
}

/// Parses an origin whose pages may also control the chain, as with anvil.
fn origin(text: &str) -> Result<AllowedOrigin, InvalidUrl> {
    Ok(AllowedOrigin { origin: text.parse::<Origin>()?, controls: true })
}

impl AnvilOptions {
    /// Returns the options with which `dev` behaves like anvil, unless others were chosen: everyone who can reach the
    /// server may do everything.
    pub(crate) fn into_dev(self) -> DevOptions {
        let Self { mut dev, own } = self;
        let access = &mut dev.server.http.access;
        if access.cors_origins.is_empty() {
            let none = AllowedOrigin::from(Origin::None);
            access.cors_origins = vec![if own.no_cors { none } else { own.allow_origin }];
        }
        if access.allowed_hosts.is_empty() {
            access.allowed_hosts.extend("*".parse());
        }
        if access.rate_limit == RateLimit::Auto {
            access.rate_limit = RateLimit::Off;
        }
        if own.no_request_size_limit {
            dev.server.http.requests.max_body = dev.server.http.clients.transfer_memory;
        }
        dev.force_control = true;
        dev.chain.bare = true;
        dev.rules.disable_tx_gas_limit = !own.enable_tx_gas_limit;
        dev.rules.requires_tx_gas_limit = own.enable_tx_gas_limit;
        dev.rules.allow_equal_timestamps = true;
        dev.rules.constant_zero_base_fee = true;
        dev.is_anvil = true;
        dev
    }
}

/// Inserts the command `anvil` if the first of `arguments`, the name of the program, is `anvil`. For that command, adds
/// the option that anvil's own variable sets.
pub(crate) fn insert_command(arguments: &mut Vec<OsString>) {
    let name = arguments.first().and_then(|program| Path::new(program).file_stem());
    if name == Some(OsStr::new("anvil")) {
        // Usage begins with the name of the program.
        arguments[0] = "ethnode".into();
        arguments.insert(1, "anvil".into());
    }
    let host = std::env::var_os(HOST_VARIABLE).filter(|host| !host.is_empty());
    let is_given = arguments.iter().any(|argument| argument.to_string_lossy().starts_with("--host"));
    if arguments.get(1).is_some_and(|command| command == "anvil")
        && !is_given
        && let Some(host) = host
    {
        arguments.splice(2..2, ["--host".into(), host]);
    }
}

/// Returns the text of `anvil --version` if the arguments ask for it.
pub(crate) fn version(arguments: &[OsString]) -> Option<String> {
    let asks = |argument: &OsString| argument == "--version" || argument == "-V";
    let own = concat!("ethnode ", env!("CARGO_PKG_VERSION"));
    let is_anvil = arguments.get(1).is_some_and(|command| command == "anvil");
    (is_anvil && arguments.get(2).is_some_and(asks)).then(|| format!("anvil Version: {VERSION} ({own})\n"))
}
