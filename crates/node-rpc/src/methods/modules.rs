//! The families of methods.

use crate::method::Method;
use std::collections::BTreeMap;

type Modules = BTreeMap<&'static str, &'static str>;

/// The name of the method.
pub(super) const NAME: &str = "rpc_modules";

/// Returns rpc_modules, which lists the families of all other methods.
pub(super) fn modules(methods: &[Method]) -> Method {
    let families = |methods: &mut dyn Iterator<Item = &Method>| -> Modules {
        let families = methods.filter_map(|method| method.name().split_once('_')).map(|(family, _)| family);
        families.chain(["rpc"]).map(|family| (family, "1.0")).collect()
    };
    let all = families(&mut methods.iter());
    let without_control = families(&mut methods.iter().filter(|method| !method.controls()));
    Method::new(NAME, &[], "The families of methods with their versions.", move |scope, ()| {
        Ok(if scope.node.producer().is_some() { all.clone() } else { without_control.clone() })
    })
}
