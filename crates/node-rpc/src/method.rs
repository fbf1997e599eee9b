//! What a row of the table of methods says.

use crate::error::RpcError;
use crate::parameters::{self, Parameters};
use crate::session::Session;
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::node::Node;
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt;

/// What a method runs with.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// The node that is asked.
    pub node: &'a Node,
    /// The bounds of the request, and the view that it reads.
    pub context: &'a Context,
    /// Who asks.
    pub client: Client<'a>,
}

/// Who asks, as far as the transport knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Client<'a> {
    /// The connection that subscriptions belong to; none where the transport cannot tell anything later.
    pub session: Option<&'a Session>,
    /// Whether it may control a chain that the node makes itself.
    pub controls: bool,
}

type Run = dyn Fn(Scope<'_>, Option<&RawValue>, &mut Vec<u8>) -> Result<(), RpcError> + Send + Sync;

/// A method of the interface.
pub struct Method {
    name: &'static str,
    parameters: &'static [&'static str],
    about: &'static str,
    cost: fn(&str) -> Cost,
    /// Whether it may change the chain or the pool, so that what comes later has to look anew.
    pub(crate) changes: bool,
    controls: bool,
    pub(crate) run: Box<Run>,
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.parameters.join(", "))
    }
}

impl Method {
    /// A method of a few microseconds. `parameters` are named in order, and those that may be left out end with a question
    /// mark; `about` is one sentence.
    pub fn new<P: Parameters, R: Serialize>(
        name: &'static str,
        parameters: &'static [&'static str],
        about: &'static str,
        run: impl Fn(Scope<'_>, P) -> Result<R, RpcError> + Send + Sync + 'static,
    ) -> Self {
        debug_assert_eq!(P::COUNT, parameters.len(), "{name}");
        let required = parameters.iter().take_while(|name| !name.ends_with('?')).count();
        let run = move |scope: Scope<'_>, raw: Option<&RawValue>, out: &mut Vec<u8>| {
            let result = run(scope, parameters::read(raw, required)?)?;
            serde_json::to_writer(out, &result).map_err(|error| {
                tracing::error!(%error, method = name, "an answer could not be written");
                RpcError::new(RpcError::INTERNAL, "internal error")
            })
        };
        Self { name, parameters, about, cost: |_| Cost::Instant, changes: false, controls: false, run: Box::new(run) }
    }

    /// It may take long.
    pub fn long(self) -> Self {
        Self { cost: |_| Cost::Long, ..self }
    }

    /// It runs code.
    pub fn code(self) -> Self {
        Self { cost: |_| Cost::Code, ..self }
    }

    /// Its cost depends on the text of the parameters.
    pub fn costing(self, cost: fn(&str) -> Cost) -> Self {
        Self { cost, ..self }
    }

    /// It may change the chain or the pool. It takes as long as a disk does, and as the blocks that are made.
    pub fn changing(self) -> Self {
        Self { changes: true, ..self.long() }
    }

    /// It controls a chain that the node makes itself.
    pub fn controlling(self) -> Self {
        Self { controls: true, ..self.changing() }
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Names of the parameters in order; those that may be left out end with a question mark.
    pub fn parameters(&self) -> &'static [&'static str] {
        self.parameters
    }

    /// What it does, in a sentence.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Whether it is there only where the node makes its chain itself.
    pub fn controls(&self) -> bool {
        self.controls
    }

    /// What it needs with these parameters.
    pub fn cost(&self, parameters: &str) -> Cost {
        // To assemble the pending block runs code. Its name may be written with escapes.
        let may_be_pending = parameters.contains("\"pending\"") || parameters.contains('\\');
        if may_be_pending { Cost::Code } else { (self.cost)(parameters) }
    }
}
