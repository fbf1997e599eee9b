//! Whether endpoints still have a state.

use crate::chain::HashedHeader;
use crate::error::{Needed, UpstreamError};
use crate::flight::Endpoints;
use crate::state::state_question;
use crate::upstream::{Question, Upstream, read};
use node_core::context::Context;
use serde::de::IgnoredAny;

/// How often each endpoint is asked: at one URL may be several servers, of which some have the state.
const TIMES: usize = 3;

impl Upstream {
    /// Returns whether each endpoint says, each time, that it does not have the state as of `block` any longer, and has its
    /// newest one. So it is neither out of order nor behind. The state is read with a method that has the block after `params`.
    pub(crate) fn has_lost_state(&self, context: &Context, block: &HashedHeader, method: &str, params: &str) -> bool {
        let has_lost = |avoid| self.endpoint_has_lost_state(avoid, context, block, method, params);
        self.others().all(|others| (0..TIMES).all(|_| has_lost(others)))
    }

    fn endpoint_has_lost_state(
        &self,
        avoid: Endpoints,
        context: &Context,
        block: &HashedHeader,
        method: &str,
        params: &str,
    ) -> bool {
        let needed = || Needed::Result { method: method.to_owned() };
        let newest = Question::new(needed(), method, format!("[{params},\"latest\"]"));
        let questions = vec![newest, state_question(needed(), method, params, block)];
        let states = self.ask_of(avoid, context, questions, |_, result| read::<IgnoredAny>(result));
        let is_gone =
            |state: &Result<_, UpstreamError>| state.as_ref().is_err_and(UpstreamError::says_that_the_state_is_gone);
        matches!(&states[..], [newest, of_block] if newest.is_ok() && is_gone(of_block))
    }
}
