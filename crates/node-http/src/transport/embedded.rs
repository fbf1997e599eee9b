//! Calling the node in routes of the application that its own routes are part of.

use crate::exchange::request_id::{REQUEST_ID, RequestId};
use crate::problem::report::{self, ProblemResponse};
use crate::problem::sent::Sent;
use crate::problem::{self, HttpError};
use crate::scheduling;
use crate::service::Service;
use crate::transport::mount::Routes;
#[cfg(feature = "tower")]
use crate::transport::tower::NodeService;
use actix_web::{HttpRequest, web};
use node_core::context::Context;
use node_core::cost::Cost;
use node_core::node::{Node, NodeError};
use node_core::sources::Sources;

/// A request of actix-web or, with the feature `tower`, of the crate http.
pub trait RequestHead: sealed::Head {}

impl<T: sealed::Head> RequestHead for T {}

mod sealed {
    pub trait Head {
        fn query(&self) -> &str;
        fn request_id(&self) -> Option<&[u8]>;
    }
}

impl sealed::Head for HttpRequest {
    fn query(&self) -> &str {
        self.query_string()
    }

    fn request_id(&self) -> Option<&[u8]> {
        self.headers().get(REQUEST_ID).map(|id| id.as_bytes())
    }
}

#[cfg(feature = "tower")]
impl sealed::Head for http::request::Parts {
    fn query(&self) -> &str {
        self.uri.query().unwrap_or_default()
    }

    fn request_id(&self) -> Option<&[u8]> {
        self.headers.get(REQUEST_ID.as_str()).map(|id| id.as_bytes())
    }
}

#[cfg(feature = "tower")]
impl<B> sealed::Head for http::Request<B> {
    fn query(&self) -> &str {
        self.uri().query().unwrap_or_default()
    }

    fn request_id(&self) -> Option<&[u8]> {
        self.headers().get(REQUEST_ID.as_str()).map(|id| id.as_bytes())
    }
}

/// The same methods for both ways to mount the routes.
macro_rules! embedded {
    ($($(#[$attribute:meta])* $name:ident),+) => {$(
        $(#[$attribute])*
        impl $name {
            /// Runs `work`, which blocks, on a thread of the pool for requests, and returns its result without blocking the
            /// caller. The context has the deadline `call_timeout`, and is cancelled if the returned future is dropped.
            ///
            /// `work` may run twice, so it should be a read, or send one transaction.
            ///
            /// # Errors
            /// The problem that describes the error of `work`, as by [`problem`](Self::problem), or a problem of status
            /// 503 if too many requests wait for a thread.
            pub async fn run<T: Send + 'static>(
                &self,
                work: impl Fn(&Node, &Context) -> Result<T, NodeError> + Send + 'static,
            ) -> Result<T, ProblemResponse> {
                run(self.service(), work).await
            }

            /// Returns the problem that describes `error`, with the URL of its page below the base path of the routes.
            /// Logs an error that is not the client's fault, because the problem does not contain its text.
            pub fn problem(&self, error: NodeError) -> ProblemResponse {
                describe(self.service(), &error.into(), &Sent::default(), RequestId::new())
            }

            /// Like [`problem`](Self::problem), for an error of `request`: the problem has its `X-Request-Id`, and faults
            /// of parameters in its query have their location and value.
            pub fn problem_of(&self, request: &impl RequestHead, error: NodeError) -> ProblemResponse {
                let id = RequestId::from_header(request.request_id());
                describe(self.service(), &error.into(), &Sent::of_query(request.query()), id)
            }
        }
    )+};
}

embedded!(
    Routes,
    #[cfg(feature = "tower")]
    NodeService
);

async fn run<T: Send + 'static>(
    service: &web::Data<Service>,
    work: impl Fn(&Node, &Context) -> Result<T, NodeError> + Send + 'static,
) -> Result<T, ProblemResponse> {
    let context = Context::unbounded().with_timeout(service.config.requests.call_timeout);
    let node = service.node.clone();
    let work = Box::new(move |context: &Context| Ok(work(&node, context)?));
    let result = scheduling::run(&service.pools, Cost::Long, context, work).await;
    result.map_err(|error| describe(service, &error, &Sent::default(), RequestId::new()))
}

fn describe(service: &Service, error: &HttpError, sent: &Sent, id: RequestId) -> ProblemResponse {
    let description = problem::describe(error, sent);
    if description.status.is_server_error() && !error.is_expected() {
        tracing::error!(%id, error = %Sources(error), "request failed");
    }
    ProblemResponse(report::problem(description, &id, service.config.listen.base_path.as_str()))
}
