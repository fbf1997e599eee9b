//! The active fork rules, and which data the node stores.

use crate::method::Method;
use crate::wire::{Capabilities, ForkConfigs};

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "eth_config",
            &[],
            "The current, the next and the last scheduled fork rules (EIP-7910).",
            |scope, ()| Ok(ForkConfigs::from(scope.node.fork_configs(scope.context)?)),
        ),
        Method::new(
            "eth_capabilities",
            &[],
            "For each kind of data, the first block for which it is kept.",
            |scope, ()| Ok(Capabilities::from(scope.node.capabilities(scope.context)?)),
        ),
    ]
}
