//! Blocks that are built on request, for tests of execution.

use crate::method::Method;
use crate::wire::{Block32, BuiltPayload, Object, PayloadAttributes};
use node_types::wire::BytesData;

pub(super) fn methods() -> Vec<Method> {
    vec![
        Method::new(
            "testing_buildBlockV1",
            &["parentHash", "payloadAttributes", "transactions?", "extraData?"],
            "Builds a block on top of another one with the given transactions or those of the pool, without storing it.",
            |scope, parameters: (Block32, Object<PayloadAttributes>, Option<Vec<BytesData>>, Option<BytesData>)| {
                let (parent, Object(attributes), transactions, extra_data) = parameters;
                let request = attributes.request(parent, transactions, extra_data);
                Ok(BuiltPayload::from(scope.node.build_block(scope.context, request)?))
            },
        )
        .code(),
    ]
}
