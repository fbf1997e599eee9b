//! A chain that other nodes serve.

use crate::dispatch::Dispatcher;
use crate::endpoint::{Endpoint, InvalidUrl};
use crate::error::{Needed, UpstreamError, Wrong};
use crate::flight::{Call, Endpoints, Failure};
use crate::message::clean;
use crate::options::UpstreamOptions;
use node_core::context::{Context, Interrupted};
use node_core::remote::EndpointUse;
use node_core::waiting;
use node_types::wire::Quantity64;
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A chain that one or more endpoints serve over JSON-RPC: see the [crate](crate) documentation.
///
/// Methods block until the result is there; they need a thread that [may wait](node_core::waiting). Clones share
/// connections, limits and requests under way.
#[derive(Clone, Debug)]
pub struct Upstream {
    dispatcher: Arc<Dispatcher>,
}

/// Why a result is not accepted.
pub(crate) enum Rejection {
    Wrong(Box<Wrong>),
    /// The result is null.
    NotFound,
    Unsupported(String),
}

impl From<Wrong> for Rejection {
    fn from(wrong: Wrong) -> Self {
        Self::Wrong(Box::new(wrong))
    }
}

/// A call, and what it is for.
pub(crate) struct Question {
    pub(crate) needed: Needed,
    pub(crate) call: Call,
}

impl Question {
    /// Creates a question whose parameters do not depend on the hash of a block.
    pub(crate) fn new(needed: Needed, method: &str, params: String) -> Self {
        Self { needed, call: Call { method: method.to_owned(), params, by_number: None, response: 0 } }
    }
}

impl Upstream {
    /// Creates an upstream with endpoints at these URLs. Nothing is sent yet.
    ///
    /// # Errors
    /// If a URL is not one of an endpoint, or there are none, or more than 64.
    pub fn new<U: AsRef<str>>(urls: &[U], options: UpstreamOptions) -> Result<Self, InvalidUrl> {
        if urls.is_empty() || urls.len() > Endpoints::MAX {
            return Err(InvalidUrl::Count);
        }
        let endpoints = urls.iter().map(|url| Endpoint::new(url.as_ref(), &options)).collect::<Result<_, _>>()?;
        Ok(Self { dispatcher: Arc::new(Dispatcher::new(endpoints, options)) })
    }

    /// Returns how the endpoints are used.
    pub fn options(&self) -> &UpstreamOptions {
        &self.dispatcher.options
    }

    /// Returns host and port of each endpoint. The rest of a URL may be secret.
    pub fn endpoints(&self) -> impl Iterator<Item = &str> {
        self.dispatcher.endpoints.iter().map(Endpoint::name)
    }

    /// Returns scheme, host and port of each endpoint.
    pub fn origins(&self) -> Vec<String> {
        self.dispatcher.endpoints.iter().map(Endpoint::origin).collect()
    }

    /// Returns whether the only endpoint has this URL.
    pub fn is_at(&self, url: &str) -> bool {
        matches!(&self.dispatcher.endpoints[..], [only] if url.parse().is_ok_and(|url: ureq::http::Uri| url == *only.url()))
    }

    /// Returns how each endpoint was used so far.
    pub fn usage(&self) -> Vec<EndpointUse> {
        self.dispatcher.endpoints.iter().map(Endpoint::usage).collect()
    }

    /// Returns how often a message was repeated so far because it had failed at every endpoint.
    pub fn retries(&self) -> u64 {
        self.dispatcher.retries.load(Ordering::Relaxed)
    }

    /// Returns whether several proofs should be requested with one request: no endpoint accepts batches, which bring as much
    /// in one message, and none has refused eth_getMultiProof yet.
    pub(crate) fn prefers_multi_proofs(&self) -> bool {
        let lacks = self.dispatcher.lacks_multi_proofs.load(Ordering::Relaxed);
        !lacks && self.dispatcher.endpoints.iter().all(|endpoint| endpoint.batch() == 1)
    }

    /// Records that no endpoint has eth_getMultiProof.
    pub(crate) fn record_that_it_lacks_multi_proofs(&self) {
        self.dispatcher.lacks_multi_proofs.store(true, Ordering::Relaxed);
    }

    /// Returns, for each endpoint, the others.
    pub(crate) fn others(&self) -> impl Iterator<Item = Endpoints> + use<> {
        (0..self.dispatcher.endpoints.len()).map(Endpoints::all_but)
    }

    /// Returns the chain id. It is the word of an endpoint.
    ///
    /// # Errors
    /// If no endpoint returns it.
    pub fn chain_id(&self, context: &Context) -> Result<u64, UpstreamError> {
        let needed = Needed::Result { method: "eth_chainId".to_owned() };
        let question = Question::new(needed, "eth_chainId", "[]".to_owned());
        self.ask_one(context, question, |result| Ok(read::<Quantity64>(result)?.0))
    }

    /// Returns the result of a method as an endpoint returned it, without any check. `params` are its parameters as a
    /// JSON array.
    ///
    /// # Errors
    /// [`UpstreamError::Refused`] if the endpoints return errors, and [`UpstreamError::Unavailable`] if none responds.
    pub fn forward(&self, context: &Context, method: &str, params: &RawValue) -> Result<Arc<RawValue>, UpstreamError> {
        self.ask_one(context, forwarded(method, params), |result| Ok(Arc::clone(result)))
    }

    /// Returns what `check` makes of the result of a method. `params` are the parameters as a JSON array. If `check` returns
    /// `None`, because the endpoint does not have it, or the reason why the result is wrong, the other endpoints are asked.
    ///
    /// # Errors
    /// Those of [`Self::forward`]; [`UpstreamError::NotFound`], and [`Wrong::Malformed`] with the reason.
    pub fn forward_checked<T>(
        &self,
        context: &Context,
        method: &str,
        params: &RawValue,
        check: impl Fn(&RawValue) -> Result<Option<T>, String>,
    ) -> Result<T, UpstreamError> {
        self.ask_one(context, forwarded(method, params), |result| {
            check(result).map_err(|reason| Wrong::Malformed(clean(&reason)))?.ok_or(Rejection::NotFound)
        })
    }

    /// Asks one question; see [`Self::ask`].
    pub(crate) fn ask_one<T>(
        &self,
        context: &Context,
        question: Question,
        check: impl Fn(&Arc<RawValue>) -> Result<T, Rejection>,
    ) -> Result<T, UpstreamError> {
        self.ask_one_of(Endpoints::default(), context, question, check)
    }

    /// Asks one question of endpoints outside `avoid`; see [`Self::ask`].
    pub(crate) fn ask_one_of<T>(
        &self,
        avoid: Endpoints,
        context: &Context,
        question: Question,
        check: impl Fn(&Arc<RawValue>) -> Result<T, Rejection>,
    ) -> Result<T, UpstreamError> {
        let mut results = self.ask_of(avoid, context, vec![question], |_, result| check(result));
        // There is one result for each question.
        results.swap_remove(0)
    }

    /// Asks independent questions, in as few messages as possible, and returns a result for each. `check` converts the
    /// result of the question with this index; what it rejects is asked of the other endpoints.
    pub(crate) fn ask<T>(
        &self,
        context: &Context,
        questions: Vec<Question>,
        check: impl Fn(usize, &Arc<RawValue>) -> Result<T, Rejection>,
    ) -> Vec<Result<T, UpstreamError>> {
        self.ask_of(Endpoints::default(), context, questions, check)
    }

    /// Asks questions of endpoints outside `avoid`; see [`Self::ask`].
    pub(crate) fn ask_of<T>(
        &self,
        avoid: Endpoints,
        context: &Context,
        questions: Vec<Question>,
        check: impl Fn(usize, &Arc<RawValue>) -> Result<T, Rejection>,
    ) -> Vec<Result<T, UpstreamError>> {
        if !waiting::is_allowed() {
            // The caller repeats all of its work on a thread that may wait.
            waiting::refuse();
            return questions.iter().map(|_| Err(UpstreamError::MayNotWait)).collect();
        }
        if let Err(interrupted) = context.check() {
            return questions.iter().map(|_| Err(interrupted.into())).collect();
        }
        let mut results: Vec<Option<Result<T, UpstreamError>>> = questions.iter().map(|_| None).collect();
        let mut open: Vec<(usize, Endpoints)> = (0..questions.len()).map(|index| (index, avoid)).collect();
        let mut first_rejections: Vec<Option<UpstreamError>> = questions.iter().map(|_| None).collect();
        let mut accepted = Vec::new();
        while !open.is_empty() {
            let calls = open.iter().map(|(index, avoid)| (questions[*index].call.clone(), *avoid)).collect();
            let passengers = self.dispatcher.send(calls);
            for ((index, avoid), passenger) in std::mem::take(&mut open).into_iter().zip(passengers) {
                let needed = &questions[index].needed;
                let first = &mut first_rejections[index];
                let answer = match waiting::aside(|| passenger.wait(context)) {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(failure)) => {
                        let error = self.error(needed.clone(), failure);
                        results[index] = Some(Err(prefer_first(first, error)));
                        continue;
                    }
                    Err(Interrupted::DeadlineExceeded) => {
                        let error = UpstreamError::TimedOut { needed: needed.clone(), reason: self.reason() };
                        results[index] = Some(Err(error));
                        continue;
                    }
                    Err(cancelled) => {
                        results[index] = Some(Err(cancelled.into()));
                        continue;
                    }
                };
                match check(index, &answer.result) {
                    Ok(value) => {
                        results[index] = Some(Ok(value));
                        accepted.push((index, avoid, answer));
                    }
                    Err(rejection) => {
                        let error = self.rejected(needed.clone(), answer.endpoint, rejection);
                        let error = prefer_first(first, error);
                        let avoid = avoid.with(answer.endpoint);
                        if (0..self.dispatcher.endpoints.len()).any(|endpoint| !avoid.contains(endpoint)) {
                            *first = Some(error);
                            open.push((index, avoid));
                        } else {
                            results[index] = Some(Err(error));
                        }
                    }
                }
            }
        }
        if results.iter().any(|result| matches!(result, Some(Err(UpstreamError::TimedOut { .. })))) {
            for (index, avoid, answer) in accepted {
                self.dispatcher.flights.keep((questions[index].call.clone(), avoid), answer);
            }
        }
        // Each question left the loop with a result.
        results.into_iter().flatten().collect()
    }

    /// Reads something that consists of several results with one endpoint after the other, until `read` succeeds. Its
    /// parameter are the endpoints to avoid.
    pub(crate) fn one_by_one<T>(
        &self,
        read: impl Fn(Endpoints) -> Result<T, UpstreamError>,
    ) -> Result<T, UpstreamError> {
        let mut result = read(Endpoints::all_but(0));
        for endpoint in 1..self.dispatcher.endpoints.len() {
            match result {
                Err(first) if !first.is_end() => {
                    result = read(Endpoints::all_but(endpoint)).map_err(|error| first.or(error))
                }
                _ => break,
            }
        }
        result
    }

    /// Converts what several results of one endpoint have in common.
    pub(crate) fn rejected_of(&self, avoid: Endpoints, needed: Needed, rejection: Rejection) -> UpstreamError {
        let endpoint = (0..self.dispatcher.endpoints.len()).find(|endpoint| !avoid.contains(*endpoint));
        self.rejected(needed, endpoint.unwrap_or_default(), rejection)
    }

    fn rejected(&self, needed: Needed, endpoint: usize, rejection: Rejection) -> UpstreamError {
        match rejection {
            Rejection::Wrong(source) => {
                let endpoint = &self.dispatcher.endpoints[endpoint];
                endpoint.record_lie();
                let error = UpstreamError::Wrong { needed, endpoint: endpoint.name().to_owned(), source };
                tracing::warn!(error = &error as &dyn std::error::Error, "the upstream returned something wrong");
                error
            }
            Rejection::NotFound => UpstreamError::NotFound { needed },
            Rejection::Unsupported(unknown) => UpstreamError::Unsupported { needed, unknown },
        }
    }

    /// Returns why there is no response yet: the last failure, or that there was none.
    fn reason(&self) -> String {
        let failure = self.usage().into_iter().find_map(|endpoint| endpoint.last_failure);
        failure.unwrap_or_else(|| format!("no response from {}", self.endpoints().collect::<Vec<_>>().join(", ")))
    }

    fn error(&self, needed: Needed, failure: Failure) -> UpstreamError {
        match failure {
            Failure::Unavailable(reason) => UpstreamError::Unavailable { needed, reason },
            Failure::Refused { endpoint, code, message } => {
                let endpoint = self.dispatcher.endpoints[endpoint].name().to_owned();
                UpstreamError::Refused { needed, endpoint, code, message }
            }
            Failure::TooLarge => UpstreamError::TooLarge { needed },
        }
    }
}

pub(crate) fn forwarded(method: &str, params: &RawValue) -> Question {
    Question::new(Needed::Result { method: method.to_owned() }, method, params.get().to_owned())
}

/// Returns the first of two errors that endpoints caused, if there was one before.
fn prefer_first(first: &mut Option<UpstreamError>, error: UpstreamError) -> UpstreamError {
    match first.take() {
        Some(first) => first.or(error),
        None => error,
    }
}

/// Reads a result that is not null.
pub(crate) fn read<'a, T: serde::Deserialize<'a>>(result: &'a RawValue) -> Result<T, Rejection> {
    let read: Option<T> =
        serde_json::from_str(result.get()).map_err(|error| Wrong::Malformed(clean(&error.to_string())))?;
    read.ok_or(Rejection::NotFound)
}
