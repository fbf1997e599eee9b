//! Asking the upstream what a call reads.

use super::Base;
use crate::error::{Needed, is_refusal};
use node_core::backend::BaseRead;
use node_core::executor::Call;
use node_core::sources::Sources;
use node_types::wire::Data;
use node_types::{Address, H256};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use std::sync::atomic::Ordering;

/// Maximum number of accounts and slots that are believed to be read.
const MAX_READS: usize = 10_000;

/// How often in a row an upstream that does not say what a call reads is asked. It may refuse a call because of what that
/// does, or any because it does not have the method, in whatever words.
const ATTEMPTS: u32 = 3;

/// The result of eth_createAccessList. If the call fails, it has the reads up to the failure.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessList {
    access_list: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    address: Data<Address>,
    storage_keys: Vec<Data<H256>>,
}

impl Base {
    /// Returns what a call reads according to the upstream's `eth_createAccessList` as of the block of this state, which is
    /// a guess: the fork may have changed since. Empty if the upstream does not say.
    pub(super) fn ask_reads_of(&self, call: &Call) -> Vec<BaseRead> {
        let unlisted = &self.0.source.unlisted;
        if unlisted.load(Ordering::Relaxed) >= ATTEMPTS {
            return Vec::new();
        }
        let number = self.block().header().number;
        let request = json!([{
            "from": Data(call.from), "to": call.to.map(Data), "value": format!("{:#x}", call.value),
            "input": Data(call.input.clone()),
        }, format!("{number:#x}")]);
        let Ok(params) = to_raw_value(&request) else { return Vec::new() };
        let address = call.to.unwrap_or(call.from);
        let needed = || Needed::State { address, slot: None, others: 0, block: number };
        let listed =
            self.ask(1, needed, |upstream, context| upstream.forward(context, "eth_createAccessList", &params));
        let list = match listed {
            Ok(result) => serde_json::from_str::<AccessList>(result.get()).ok(),
            Err(error) => {
                tracing::debug!(error = %Sources(&error), "the upstream does not say what a call reads");
                if !is_refusal(&error) {
                    // It may say so later.
                    return Vec::new();
                }
                None
            }
        };
        let Some(AccessList { access_list }) = list else {
            unlisted.fetch_add(1, Ordering::Relaxed);
            return Vec::new();
        };
        unlisted.store(0, Ordering::Relaxed);
        let mut left = MAX_READS;
        let mut read = |Item { address, storage_keys }: Item| {
            left = left.checked_sub(1 + storage_keys.len())?;
            Some(BaseRead { address: address.0, slots: storage_keys.into_iter().map(|key| key.0).collect() })
        };
        access_list.into_iter().map_while(&mut read).collect()
    }
}
