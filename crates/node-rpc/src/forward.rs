//! Passing single requests on to the server that writes the chain.

use crate::error::RpcError;
use crate::message::Call;
use crate::method;
use crate::scope::PassOn;
use node_core::context::Context;
use node_core::waiting;
use node_types::wire::{BytesData, JsonBuffer};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The response of the writer.
#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    message: String,
    data: Option<BytesData>,
}

/// Passes a call on, and appends its result.
pub(crate) fn run(call: &Call, pass_on: PassOn<'_>, context: &Context, out: &mut JsonBuffer) -> Result<(), RpcError> {
    if !waiting::is_allowed() {
        waiting::refuse();
        return Err(RpcError::server("the request must wait".to_owned()));
    }
    let parameters = call.parameters.as_deref().map_or("[]", RawValue::get);
    let request = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"{}","params":{parameters}}}"#, call.method.name());
    let response = waiting::aside(|| pass_on(request, call.method.controls()))?;
    // The chain may have changed.
    context.release_view();
    let invalid =
        |_| RpcError::server("the response of the server that writes the chain (`writer`) is invalid".to_owned());
    let response: Response<'_> = serde_json::from_slice(&response).map_err(invalid)?;
    match response {
        Response { error: Some(ErrorObject { code, message, data }), .. } => {
            Err(RpcError { data, ..RpcError::new(code, message) })
        }
        Response { result, .. } => method::write(out, &result),
    }
}

/// Returns whether a result says that there is no such thing.
pub(crate) fn is_nothing(result: &[u8]) -> bool {
    matches!(result, b"null" | br#""0x""#)
}
