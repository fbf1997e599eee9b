//! Bodies of REST requests, and JSON-RPC messages, which are executed.

use super::{Check, Format, Target};
use node_core::context::Context;
use node_dev::DevNode;
use node_rpc::{Client, Rpc, RpcLimits};
use node_types::wire::{self, Decode, decode_body};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::time::Duration;

/// After this many messages, a new chain begins.
const CHAIN_MESSAGES: u32 = 2_000;

/// Code of "internal error".
const INTERNAL: i64 = -32603;

pub(super) fn targets() -> Vec<Target> {
    let json = |name, seeds, check| Target { name, format: Format::Json, seeds, check };
    vec![
        json("rest-bodies", bodies, || Box::new(body)),
        json("json-rpc", messages, json_rpc),
        json("filters", filters, json_rpc),
        json("tracer-options", traces, json_rpc),
    ]
}

fn document() -> Value {
    serde_json::from_str(include_str!("../../../docs/openapi.json")).expect("the document is JSON")
}

/// The operations of the OpenAPI document: method, path, and the example of the body.
fn operations() -> Vec<(String, String, Option<Value>)> {
    let document = document();
    let paths = document["paths"].as_object().expect("there are paths");
    let operations = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.filter(|(method, _)| *method == "get" || *method == "post").map(move |(method, operation)| {
            let body = &operation["requestBody"]["content"]["application/json"];
            let example = body.get("example").or_else(|| body["examples"].as_object()?.values().next()?.get("value"));
            (method.to_uppercase(), filled_path(path, operation), example.cloned())
        })
    });
    operations.collect()
}

/// Returns the path with the examples of its parameters.
fn filled_path(path: &str, operation: &Value) -> String {
    let mut filled = path.to_owned();
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap_or_default();
        let example = match &parameter["example"] {
            Value::String(text) => text.clone(),
            Value::Null => "latest".to_owned(),
            other => other.to_string(),
        };
        match parameter["in"].as_str() {
            Some("path") => filled = filled.replace(&format!("{{{name}}}"), &example),
            Some("query") => query.push(format!("{name}={example}")),
            _ => {}
        }
    }
    if query.is_empty() { filled } else { format!("{filled}?{}", query.join("&")) }
}

/// A line with method and path, and the body, of each operation.
pub(super) fn rest_requests() -> Vec<Vec<u8>> {
    let request = |(method, path, body): (String, String, Option<Value>)| {
        let body = body.map_or_else(String::new, |body| body.to_string());
        format!("{method} {path}\n{body}").into_bytes()
    };
    operations().into_iter().map(request).collect()
}

fn bodies() -> Vec<Vec<u8>> {
    operations().into_iter().filter_map(|(_, _, body)| Some(body?.to_string().into_bytes())).collect()
}

/// What any operation accepts is accepted again after it was encoded, as the same value.
fn body(input: &[u8]) -> Result<bool, String> {
    fn decode<T: Decode + Serialize>(input: &[u8]) -> Result<bool, String> {
        let Ok(first) = decode_body::<T>(input) else { return Ok(false) };
        let text = serde_json::to_vec(&first).map_err(|error| error.to_string())?;
        let again = decode_body::<T>(&text);
        let shown = || String::from_utf8_lossy(&text).into_owned();
        let second = again.map_err(|error| format!("{} is refused: {error:?}", shown()))?;
        let text_again = serde_json::to_vec(&second).map_err(|error| error.to_string())?;
        if text == text_again { Ok(true) } else { Err(format!("{} is another value", shown())) }
    }
    macro_rules! decode_all {
        ($($input:ident),+) => {{
            let mut accepted = false;
            $(accepted |= decode::<wire::$input>(input).map_err(|fault| format!("{}: {fault}", stringify!($input)))?;)+
            Ok(accepted)
        }};
    }
    decode_all!(
        CallInput,
        EstimateGasInput,
        FeeHistoryInput,
        GetLogsInput,
        GetProofInput,
        GetStorageAtInput,
        NewFilterInput,
        SendRawTransactionInput,
        SendTransactionInput,
        MineInput,
        ReorganizeInput,
        ResetInput,
        SetForkUrlInput,
        SetBalanceInput,
        SetCodeInput,
        SetNonceInput,
        SetStorageInput,
        SetNextBlockBaseFeeInput,
        SetNextBlockTimestampInput,
        ImpersonateInput,
        IncreaseTimeInput,
        DropTransactionInput
    )
}

const ACCOUNT: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

fn call() -> Value {
    json!({"from": ACCOUNT, "to": "0x1111111111111111111111111111111111111111", "gas": "0x52080", "value": "0x1",
        "data": "0x60006000f3"})
}

/// A transaction that deploys code, which emits a log and stores a word.
fn deployment() -> Value {
    json!({"from": ACCOUNT, "gas": "0x30d40", "data": "0x336000555960006000a1606060005360016000f3"})
}

fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn to_bytes(messages: impl IntoIterator<Item = Value>) -> Vec<Vec<u8>> {
    messages.into_iter().map(|message| message.to_string().into_bytes()).collect()
}

/// A message for each method, and a batch.
fn messages() -> Vec<Vec<u8>> {
    let word = format!("0x{}", "22".repeat(32));
    let parameter = |name: &&str| match name.trim_end_matches('?') {
        "address" | "sender" => json!(ACCOUNT),
        "block" | "newestBlock" => json!("latest"),
        "blockCount" | "index" | "nonce" | "slot" | "id" | "key" => json!("0x1"),
        "blockOverrides" => json!({"number": "0x5", "baseFeePerGas": "0x0"}),
        "call" => call(),
        "transaction" => deployment(),
        "data" | "extraData" => json!("0x1234"),
        "filter" => json!({"fromBlock": "0x0", "toBlock": "latest", "address": [ACCOUNT], "topics": [null, []]}),
        "hash" | "parentHash" => json!(word),
        "hydrated" => json!(true),
        "kind" => json!("logs"),
        "options" => json!({"tracer": "callTracer"}),
        "rewardPercentiles" => json!([25, 75.5]),
        "simulation" => json!({"blockStateCalls": [{"calls": [call()]}], "validation": false}),
        "slots" => json!(["0x0"]),
        "stateOverrides" => json!({ACCOUNT: {"balance": "0x5", "stateDiff": {&word: &word}, "code": "0x6001"}}),
        "transactions" => json!([]),
        _ => Value::Null,
    };
    let table = node_rpc::table();
    let single = table.iter().map(|method| {
        let params: Vec<_> = method.parameters().iter().map(parameter).collect();
        message(method.name(), params.into())
    });
    let batch = json!([message("eth_blockNumber", json!([])), message("eth_sendTransaction", json!([deployment()]))]);
    to_bytes(single.chain([batch]))
}

fn filters() -> Vec<Vec<u8>> {
    let word = format!("0x{}", "22".repeat(32));
    let criteria = [
        json!({"fromBlock": "0x0", "toBlock": "latest", "address": [ACCOUNT], "topics": [null, []]}),
        json!({"fromBlock": "earliest", "address": ACCOUNT, "topics": [[word, null], word]}),
        json!({"blockHash": word}),
        json!({"topics": []}),
    ];
    let log_messages = criteria
        .iter()
        .flat_map(|criteria| ["eth_newFilter", "eth_getLogs"].map(|method| message(method, json!([criteria]))));
    let ids = ["eth_getFilterChanges", "eth_getFilterLogs", "eth_uninstallFilter"];
    let by_id = ids.map(|method| message(method, json!([format!("0x{}", "ab".repeat(16))])));
    let others = ["eth_newBlockFilter", "eth_newPendingTransactionFilter"].map(|method| message(method, json!([])));
    to_bytes(log_messages.chain(by_id).chain(others))
}

fn traces() -> Vec<Vec<u8>> {
    let options = [
        json!({"tracer": "callTracer", "tracerConfig": {"onlyTopCall": false, "withLog": true}, "timeout": "1s"}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true, "disableCode": true, "disableStorage": true}}),
        json!({"tracer": "flatCallTracer", "tracerConfig": {"convertParityErrors": true, "includePrecompiles": true}}),
        json!({"tracer": "4byteTracer"}),
        json!({"tracer": "muxTracer", "tracerConfig": {"callTracer": {"withLog": true}, "noopTracer": null}}),
        json!({"disableStorage": true, "disableStack": true, "enableMemory": true, "enableReturnData": true, "limit": 5}),
        json!({"stateOverrides": {ACCOUNT: {"balance": "0x0"}}, "blockOverrides": {"number": "0x7"}, "txIndex": "0x0"}),
    ];
    to_bytes(options.iter().flat_map(|options| {
        let block = message("debug_traceBlockByNumber", json!(["0x1", options]));
        [message("debug_traceCall", json!([deployment(), "latest", options])), block]
    }))
}

/// A chain with a block.
fn begin() -> Result<(DevNode, Rpc), String> {
    let chain = DevNode::spawn().map_err(|error| error.to_string())?;
    let rpc = Rpc::new(chain.node().clone(), RpcLimits::default());
    respond(&rpc, message("eth_sendTransaction", json!([deployment()])).to_string().as_bytes())?;
    Ok((chain, rpc))
}

/// Executes messages on a development chain.
fn json_rpc() -> Check {
    let mut state = None;
    let mut count = 0u32;
    Box::new(move |input| {
        if count.is_multiple_of(CHAIN_MESSAGES) {
            state = Some(begin()?);
        }
        count += 1;
        let Some((_, rpc)) = &state else { return Err("there is no chain".to_owned()) };
        respond(rpc, input)
    })
}

/// Executes a message within a second, and checks that the response is JSON and not an internal error.
fn respond(rpc: &Rpc, input: &[u8]) -> Result<bool, String> {
    let message = match rpc.read(input) {
        Ok(message) => message,
        Err(_) => return Ok(false),
    };
    let context = Context::holding_view().with_timeout(Duration::from_secs(1)).with_gas_budget(1_000_000);
    let reply = rpc.respond(&context, &message, Client { control: Ok(()), ..Client::default() });
    let succeeded = reply.error().is_none();
    let Some(body) = reply.body else { return Ok(succeeded) };
    let response: Value = match serde_json::from_slice(&body) {
        Ok(response) => response,
        // The id of a request is repeated, also a number that `Value` cannot hold.
        Err(_) if serde_json::from_slice::<IgnoredAny>(&body).is_ok() => return Ok(succeeded),
        Err(error) => return Err(format!("the response is not JSON: {error}")),
    };
    let responses = response.as_array().map_or(std::slice::from_ref(&response), Vec::as_slice);
    match responses.iter().find(|response| response["error"]["code"] == INTERNAL) {
        Some(internal) => Err(internal.to_string()),
        None => Ok(succeeded),
    }
}
