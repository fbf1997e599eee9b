//! Ending the right of the present writer.

use super::error::SharedError;
use super::log::{LogHeader, LogObject, NewObject};
use super::names::{Epoch, LogNumber};
use super::objects::Objects;
use super::place::{Placed, place};
use super::reader::last_from;
use crate::wal::Sequence;

/// Number of attempts after which the present writer is asked for a pause, at first and again.
const POLITE: u32 = 4;

/// Number of attempts to create the object after the last one.
const ATTEMPTS: u32 = 400;

/// Creates the fence of a new epoch after `last`, or after the objects that others create there first. Returns `None` if
/// objects appear and disappear.
///
/// A writer that publishes without pauses needs one round trip for an object, and whoever wants to follow it at least two:
/// a fence contains the checksum of the object before it. So the writer is asked for a pause.
pub(super) fn place_fence(
    objects: &dyn Objects,
    mut last: Option<LogHeader>,
    writer: u64,
    now: u64,
) -> Result<Option<LogHeader>, SharedError> {
    let mut claimed = None;
    for attempt in 1..=ATTEMPTS {
        let fence = fence_after(last.as_ref(), writer, now);
        let bytes = fence.encode(std::iter::empty());
        let is_intact = |bytes: &[u8]| LogObject::decode(fence.number, bytes).is_ok();
        let theirs = match place(objects, &fence.number.object(), &bytes, is_intact)? {
            Placed::Ours => {
                if let Some(epoch) = claimed {
                    withdraw(objects, epoch);
                }
                return Ok(Some(LogHeader::decode(fence.number, &bytes)?));
            }
            Placed::Theirs(bytes) => LogHeader::decode(fence.number, &bytes)?,
            Placed::Gone => return Ok(None),
        };
        if attempt % POLITE == 0 {
            objects.create(&theirs.epoch.claim(), &[])?;
            claimed = Some(theirs.epoch);
        }
        // Many objects may have been created since.
        last = if claimed.is_some() { last_from(objects, theirs.number)? } else { Some(theirs) };
    }
    Err(SharedError::Restless { attempts: ATTEMPTS as usize })
}

fn fence_after(last: Option<&LogHeader>, writer: u64, now: u64) -> NewObject {
    match last {
        Some(last) => NewObject {
            number: last.number.next(),
            epoch: Epoch(last.epoch.0 + 1),
            writer,
            previous: last.sum(),
            manifest: last.manifest,
            time: now.max(last.time),
            first: last.end(),
            is_fence: true,
        },
        None => NewObject {
            number: LogNumber(1),
            epoch: Epoch(1),
            writer,
            previous: 0,
            manifest: None,
            time: now,
            first: Sequence(1),
            is_fence: true,
        },
    }
}

/// Deletes the request for a pause.
fn withdraw(objects: &dyn Objects, epoch: Epoch) {
    // If this fails, an empty object remains that no one looks for, because the epoch has ended.
    let _ = objects.delete(&epoch.claim());
}
