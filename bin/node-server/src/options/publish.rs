//! Options for the store that many servers share.

use super::shared_store::open;
use crate::error::CommandError;
use clap::{Args, value_parser};
use node_store::PublishOptions;
use node_store::shared::{self, RetryPolicy};
use std::sync::Arc;
use std::time::Duration;

/// Time for which a server that starts repeats a request before it reports that, and begins again.
const ROUND: Duration = Duration::from_secs(10);

/// Publishing the chain.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Shared store")]
pub(crate) struct PublishArguments {
    /// Publish the chain, as its only writer, to a store from which other servers serve it: s3://BUCKET/PREFIX, gs://…,
    /// az://… or file:///FOLDER; continues where the store ends
    #[arg(long, value_name = "URL", group = "shared_store")]
    publish: Option<String>,
    /// Acknowledge a change only when the shared store has it
    #[arg(long, requires = "shared_store")]
    publish_sync: bool,
    /// Time between two objects of the log in the shared store, in milliseconds; each is one request
    #[arg(long, value_name = "MS", default_value_t = 250, value_parser = value_parser!(u32).range(1..))]
    publish_interval: u32,
    /// How long readers may use what was replaced in the shared store before it is deleted, in hours
    #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = value_parser!(u32).range(1..))]
    keep_for: u32,
}

/// Replacing a lost writer.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Shared store")]
pub(crate) struct RestoreArguments {
    /// Like --publish, but first copies the chain from the store if the data folder has none, to replace a lost server
    #[arg(long, value_name = "URL", group = "shared_store")]
    pub(crate) restore: Option<String>,
}

/// A shared store of which the command becomes the writer.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) objects: Arc<dyn shared::Objects>,
    pub(crate) options: PublishOptions,
    /// Whether to wait as long as the store does not respond.
    pub(crate) waits: bool,
}

impl Target {
    /// Returns the store of the options; `None` if there is none. Servers, which can restore, wait for it as long as it does
    /// not respond. Makes no request.
    pub(crate) fn new(
        publish: &PublishArguments,
        restore: Option<&RestoreArguments>,
    ) -> Result<Option<Self>, CommandError> {
        let restored = restore.and_then(|arguments| arguments.restore.as_ref());
        let Some(url) = publish.publish.as_ref().or(restored) else { return Ok(None) };
        let waits = restore.is_some();
        let retry = RetryPolicy::default();
        let options = PublishOptions {
            retry: if waits { RetryPolicy { deadline: ROUND, ..retry } } else { retry },
            sync: publish.publish_sync,
            interval: Duration::from_millis(publish.publish_interval.into()),
            keep_for: Duration::from_secs(3_600 * u64::from(publish.keep_for)),
            ..PublishOptions::default()
        };
        Ok(Some(Self { url: url.clone(), objects: open(url)?, options, waits }))
    }
}
