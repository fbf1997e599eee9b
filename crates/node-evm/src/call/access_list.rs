//! The access list of a call (EIP-2930).

use crate::call::CallRun;
use crate::call::collector::Collector;
use crate::convert::ToNode;
use crate::trace::defect;
use crate::trace::inspection::Inspection;
use node_core::executor::{AccessListOutcome, ExecutionError};
use node_types::consensus::AccessListItem;
use revm::context_interface::transaction as evm;

/// Runs the call repeatedly, each time with the access list that the previous run collected, until the list no longer
/// grows. The path of a call may depend on the remaining gas, and therefore on the list.
pub(crate) fn find(mut run: CallRun<'_>) -> Result<AccessListOutcome, ExecutionError> {
    let mut list = run.access_list();
    loop {
        let mut inspection = Inspection::AccessList(Box::new(Collector::new(&list)));
        let result = run.with_access_list(list.clone(), &mut inspection)?;
        let Inspection::AccessList(collector) = inspection else { return Err(defect("the run was not inspected")) };
        let touched = collector.into_list();
        if touched == list {
            return Ok(AccessListOutcome {
                access_list: to_node(&list),
                gas_used: result.tx_gas_used(),
                error: run.failure(&result),
            });
        }
        list = touched;
    }
}

fn to_node(list: &evm::AccessList) -> Vec<AccessListItem> {
    let item = |item: &evm::AccessListItem| AccessListItem {
        address: item.address.to_node(),
        storage_keys: item.storage_keys.iter().map(ToNode::to_node).collect(),
    };
    list.iter().map(item).collect()
}
