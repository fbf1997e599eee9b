//! Methods: the rows of the table.

use crate::error::RpcError;
use crate::parameters::{self, Parameters};
use crate::scope::Scope;
use node_core::cost::Cost;
use node_core::node::{Node, NodeError};
use node_types::wire::{JsonBuffer, append_json};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;

type Run = dyn Fn(Scope<'_>, Option<&RawValue>, &mut JsonBuffer) -> Result<(), RpcError> + Send + Sync;

/// A method of the interface.
pub struct Method {
    name: &'static str,
    parameters: &'static [&'static str],
    about: &'static str,
    cost: fn(&Node, &str) -> Cost,
    /// Whether it may change the chain or the pool, in which case later requests need a new view.
    pub(crate) changes: bool,
    controls: bool,
    by_writer: bool,
    may_need_writer: bool,
    pub(crate) sends: bool,
    pub(crate) run: Box<Run>,
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.parameters.join(", "))
    }
}

impl Method {
    /// Creates a method that takes a few microseconds. `parameters` are the names of the parameters in order; those
    /// of optional ones end with a question mark. `about` is a description in one sentence.
    pub fn new<P: Parameters, R: Serialize>(
        name: &'static str,
        parameters: &'static [&'static str],
        about: &'static str,
        run: impl Fn(Scope<'_>, P) -> Result<R, RpcError> + Send + Sync + 'static,
    ) -> Self {
        Self::writing(name, parameters, about, move |scope, read, out| write(out, &run(scope, read)?))
    }

    /// Like [`new`](Self::new), but for a method that writes the JSON of its result itself.
    pub(crate) fn writing<P: Parameters>(
        name: &'static str,
        parameters: &'static [&'static str],
        about: &'static str,
        run: impl Fn(Scope<'_>, P, &mut JsonBuffer) -> Result<(), RpcError> + Send + Sync + 'static,
    ) -> Self {
        debug_assert_eq!(P::COUNT, parameters.len(), "{name}");
        let required = parameters.iter().take_while(|name| !name.ends_with('?')).count();
        let run = move |scope: Scope<'_>, raw: Option<&RawValue>, out: &mut JsonBuffer| {
            run(scope, parameters::read(raw, required)?, out)
        };
        Self {
            name,
            parameters,
            about,
            cost: |_, _| Cost::Instant,
            changes: false,
            controls: false,
            by_writer: false,
            may_need_writer: false,
            sends: false,
            run: Box::new(run),
        }
    }

    /// Declares that the method may take long.
    pub fn long(self) -> Self {
        Self { cost: |_, _| Cost::Long, ..self }
    }

    /// Declares that the method executes code.
    pub fn code(self) -> Self {
        Self { cost: |_, _| Cost::Code, ..self }
    }

    /// Declares the cost of the method, which may depend on the node and on the parameters as JSON.
    pub fn costing(self, cost: fn(&Node, &str) -> Cost) -> Self {
        Self { cost, ..self }
    }

    /// Declares that the method is about what only one server has: its filters, its pool and its accounts.
    pub fn by_writer(self) -> Self {
        Self { by_writer: true, ..self }
    }

    /// Declares that the method finds what is in the pool if it is not in the chain.
    pub fn or_by_writer(self) -> Self {
        Self { may_need_writer: true, ..self }
    }

    /// Declares that the method may change the chain or the pool. It takes as long as writing to the disk and mining
    /// blocks.
    pub fn changing(self) -> Self {
        Self { changes: true, by_writer: true, ..self.costing(|_, _| Cost::SEND) }
    }

    /// Declares that the method controls a development chain.
    pub fn controlling(self) -> Self {
        Self { controls: true, ..self.changing().costing(|_, _| Cost::CONTROL) }
    }

    /// Declares that the method sends a signed transaction.
    pub fn sending(self) -> Self {
        Self { sends: true, ..self }
    }

    /// Makes the method refuse all requests, because the operator has switched it off.
    pub fn switched_off(self) -> Self {
        let name = self.name;
        let run = move |_: Scope<'_>, _: Option<&RawValue>, _: &mut JsonBuffer| {
            let message = format!("the method {name} is switched off (`api`)");
            Err(RpcError::new(RpcError::METHOD_NOT_FOUND, message))
        };
        Self {
            cost: |_, _| Cost::Instant,
            changes: false,
            controls: false,
            by_writer: false,
            sends: false,
            run: Box::new(run),
            ..self
        }
    }

    /// Returns the name of the method, as it is in requests.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the names of the parameters in order; those of optional ones end with a question mark.
    pub fn parameters(&self) -> &'static [&'static str] {
        self.parameters
    }

    /// Returns a description in one sentence.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Returns whether the method is available only on development chains.
    pub fn controls(&self) -> bool {
        self.controls
    }

    /// Returns whether a server that only reads the chain passes calls with these parameters, as JSON, on to the one that
    /// writes it.
    pub(crate) fn needs_writer(&self, parameters: &str) -> bool {
        self.by_writer || parameters::is_pending(parameters)
    }

    /// Returns whether it does so if it does not find what was asked for.
    pub(crate) fn may_need_writer(&self) -> bool {
        self.may_need_writer
    }

    /// Returns the cost of a call on `node` with these parameters as JSON.
    pub fn cost(&self, node: &Node, parameters: &str) -> Cost {
        // Assembling the pending block executes code.
        if parameters::is_pending(parameters) { Cost::Code } else { (self.cost)(node, parameters) }
    }
}

/// Appends the JSON of a result to `out`.
pub(crate) fn write(out: &mut JsonBuffer, result: &impl Serialize) -> Result<(), RpcError> {
    append_json(out, result).map_err(|error| match out.full() {
        Some(full) => NodeError::ResponseTooLarge(full).into(),
        None => RpcError::internal(&error),
    })
}
