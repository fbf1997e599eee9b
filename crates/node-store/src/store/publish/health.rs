//! The health of publishing.

use super::{End, PUBLISHER, Publication, UPLOADER};
use crate::wal::Wal;
use node_core::backend::{PublicationHealth, RequestUse};
use node_core::sources::Sources;
use std::time::Duration;

/// Time for which the shared store may be behind or fail before that is reported.
const TOLERANCE: Duration = Duration::from_secs(10);

impl Publication {
    pub(in crate::store) fn requests(&self) -> RequestUse {
        self.counted.usage()
    }

    pub(in crate::store) fn health(&self, log: &Wal) -> PublicationHealth {
        let (synced, bytes) = (log.synced(), log.synced_bytes());
        let outage = self.objects.outage();
        let state = self.state.lock();
        let lag = state.behind.map_or(Duration::ZERO, |behind| behind.elapsed());
        let reason = || {
            let outage = outage.as_ref().map(|outage| outage.reason.clone());
            let failures = [&state.failures[PUBLISHER], &state.failures[UPLOADER]];
            outage.or_else(|| failures.into_iter().flatten().next().cloned())
        };
        let failure = match (state.end, state.uploading) {
            (Some(End::Fenced(_) | End::Vanished(_) | End::Failed), _) => {
                state.end.map(|end| Sources(&end.error()).to_string())
            }
            (_, Some(left)) if outage.is_none() => Some(format!("{left} bytes of runs have to be uploaded first")),
            _ if lag > TOLERANCE => {
                let reason = reason().unwrap_or_else(|| "changes come faster than they are published".to_owned());
                Some(format!("the oldest change that it lacks is {} s old: {reason}", lag.as_secs()))
            }
            _ => reason().filter(|_| outage.as_ref().is_none_or(|outage| outage.since.elapsed() > TOLERANCE)),
        };
        PublicationHealth {
            epoch: self.epoch,
            lag,
            lag_entries: synced.0.saturating_sub(state.published.0),
            lag_bytes: state.lag_bytes(bytes),
            published_entries: state.published_entries,
            uploading_bytes: state.uploading.unwrap_or(0),
            uploaded_bytes: state.uploaded_bytes,
            has_ended: matches!(state.end, Some(End::Fenced(_) | End::Vanished(_))),
            failure,
        }
    }
}
