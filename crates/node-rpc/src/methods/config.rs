//! Which rules are in force, and what the node can be asked for.

use crate::method::Method;
use crate::wire::{Capabilities, ForkConfigs};

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new("eth_config", &[], "The rules in force now, next, and last (EIP-7910).", |scope, ()| {
            Ok(ForkConfigs::from(scope.node.fork_configs(scope.context)?))
        }),
        Method::new("eth_capabilities", &[], "From which block on there is what.", |scope, ()| {
            Ok(Capabilities::from(scope.node.capabilities(scope.context)?))
        }),
    ]
}
