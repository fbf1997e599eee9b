//! Selection of the operations and methods that are enabled.

use std::fmt;
use std::str::FromStr;

/// The namespace of the REST operations that control a chain. All others are in [`REST`].
pub(crate) const DEVELOPMENT: &str = "dev";

/// The namespace of REST operations, which they share with `eth_` methods.
pub(crate) const REST: &str = "eth";

/// A namespace of JSON-RPC methods, such as `debug`, or the name of a single method or REST operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiName(String);

impl ApiName {
    /// Returns whether it selects the JSON-RPC method `name`.
    pub(crate) fn selects_method(&self, name: &str) -> bool {
        self.0 == name || name.split_once('_').is_some_and(|(namespace, _)| namespace == self.0)
    }

    /// Returns whether it selects a REST operation. `controls` is whether the operation controls the chain.
    pub(crate) fn selects_operation(&self, name: &str, controls: bool) -> bool {
        self.0 == name || self.0 == if controls { DEVELOPMENT } else { REST }
    }
}

/// Returns whether the JSON-RPC method `name` is enabled. All are if `names` is empty.
pub(crate) fn has_method(names: &[ApiName], name: &str) -> bool {
    // rpc_modules, which lists the namespaces, is always enabled.
    names.is_empty() || name == "rpc_modules" || names.iter().any(|api| api.selects_method(name))
}

/// Returns whether the REST operation `name` is enabled. All are if `names` is empty.
pub(crate) fn has_operation(names: &[ApiName], name: &str, controls: bool) -> bool {
    names.is_empty() || names.iter().any(|api| api.selects_operation(name, controls))
}

impl FromStr for ApiName {
    type Err = InvalidApiName;

    fn from_str(text: &str) -> Result<Self, InvalidApiName> {
        let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| Self(text.to_owned())).ok_or(InvalidApiName)
    }
}

impl fmt::Display for ApiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a namespace, such as eth or debug, or the name of a JSON-RPC method or of a REST operation")]
pub struct InvalidApiName;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_and_single_names_select() {
        let names: Vec<ApiName> = ["net", "debug_traceCall", "getLogs"].map(|name| name.parse().unwrap()).into();
        let methods = [("net_version", true), ("debug_traceCall", true), ("debug_traceBlockByHash", false)];
        for (method, expected) in methods.into_iter().chain([("eth_chainId", false), ("rpc_modules", true)]) {
            assert_eq!(has_method(&names, method), expected, "{method}");
        }
        assert!(has_operation(&names, "getLogs", false) && !has_operation(&names, "call", false));
        let eth: Vec<ApiName> = vec!["eth".parse().unwrap()];
        assert!(has_operation(&eth, "call", false) && !has_operation(&eth, "mine", true));
        assert!(has_operation(&["dev".parse().unwrap()], "mine", true));
        assert!(has_method(&[], "eth_chainId") && has_operation(&[], "mine", true));
        for unknown in ["", "*", "eth net"] {
            assert!(unknown.parse::<ApiName>().is_err(), "{unknown}");
        }
    }
}
