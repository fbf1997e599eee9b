//! Waiting for a block that the client has seen on another server of the same chain.

use super::Exchange;
use crate::problem::HttpError;
use actix_web::http::header::HeaderName;
use node_types::BlockNumber;
use tokio::time::timeout;

/// The lowest number of the head that the client accepts.
const MIN_HEAD: HeaderName = HeaderName::from_static("x-min-head");

impl Exchange {
    /// Waits until the head has at least the number that the request demands, if it does.
    ///
    /// # Errors
    /// [`HttpError::Behind`] if the block does not arrive in time.
    pub(crate) async fn wait_for_head(&self) -> Result<(), HttpError> {
        let Some(wanted) = self.request.headers().get(MIN_HEAD) else { return Ok(()) };
        let wanted = wanted.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let wanted: BlockNumber = wanted.and_then(|text| text.parse().ok()).ok_or(HttpError::InvalidMinHead)?;
        let mut changes = self.service.head_changes.listen();
        let arrives = async {
            loop {
                // Marked as seen before the head is read, so that no change is missed.
                changes.borrow_and_update();
                if self.head()? >= wanted {
                    return Ok(());
                }
                // The sender lives as long as the service.
                let _ = changes.changed().await;
            }
        };
        match timeout(self.config().requests.head_wait, arrives).await {
            Ok(arrived) => arrived,
            Err(_) => Err(HttpError::Behind { head: self.head()?, wanted }),
        }
    }

    fn head(&self) -> Result<BlockNumber, HttpError> {
        Ok(self.service.node.block_number(&self.context())?)
    }
}
