//! The clients whose code, searches or proofs run for long.

use node_core::context::ClientId;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a client counts as heavy after the end of work that was not short.
const MEMORY: Duration = Duration::from_secs(1);

/// Processor time of work from which on it is not short. The elapsed time says little, because threads of low priority
/// wait for others.
const SHORT: Duration = Duration::from_millis(1);

/// Minimum number of entries before those of clients that are no longer heavy are removed.
const MIN_SWEEP: usize = 1_024;

/// The clients that have work in a pool of low priority, or recently had some there that was not short. `None` is the server itself.
#[derive(Default)]
pub(super) struct HeavyClients(Mutex<Known>);

#[derive(Default)]
struct Known {
    clients: HashMap<Option<ClientId>, Client>,
    /// The number of entries at which they are looked through.
    sweep_at: usize,
}

#[derive(Default)]
struct Client {
    /// Number of its jobs that are running or waiting.
    jobs: usize,
    until: Option<Instant>,
}

impl Client {
    fn is_heavy(&self, now: Instant) -> bool {
        self.jobs > 0 || self.until.is_some_and(|until| now < until)
    }
}

/// A job of a client, until it is dropped.
pub(super) struct HeavyJob {
    clients: Arc<HeavyClients>,
    client: Option<ClientId>,
    /// The processor time that the thread had used when it started the job; `None` if it has not started.
    started: Option<Duration>,
}

impl HeavyJob {
    /// Records that this thread runs the job from now on.
    pub(super) fn start(&mut self) {
        self.started = Some(thread_time());
    }
}

/// Returns the processor time that this thread has used.
fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

impl HeavyClients {
    pub(super) fn contains(&self, client: Option<ClientId>) -> bool {
        self.0.lock().clients.get(&client).is_some_and(|known| known.is_heavy(Instant::now()))
    }

    /// Records that `client` has a job.
    pub(super) fn begin(self: &Arc<Self>, client: Option<ClientId>) -> HeavyJob {
        let now = Instant::now();
        let mut known = self.0.lock();
        if known.clients.len() >= known.sweep_at {
            known.clients.retain(|_, client| client.is_heavy(now));
            known.sweep_at = MIN_SWEEP.max(known.clients.len() * 2);
        }
        known.clients.entry(client).or_default().jobs += 1;
        HeavyJob { clients: self.clone(), client, started: None }
    }
}

impl Drop for HeavyJob {
    fn drop(&mut self) {
        let was_long = self.started.is_some_and(|started| thread_time().saturating_sub(started) >= SHORT);
        let mut known = self.clients.0.lock();
        if let Some(client) = known.clients.get_mut(&self.client) {
            client.jobs -= 1;
            if was_long {
                client.until = Some(Instant::now() + MEMORY);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_client_is_heavy_while_and_after_its_code_runs_for_long() {
        let clients = Arc::new(HeavyClients::default());
        let [first, second] = [1, 2].map(|client| Some(ClientId(client)));
        let mut job = clients.begin(first);
        assert!(clients.contains(first) && !clients.contains(second));
        job.start();
        let started = thread_time();
        while thread_time() < started + SHORT {}
        drop(job);
        assert!(clients.contains(first), "for a while");
        let mut job = clients.begin(second);
        job.start();
        thread::sleep(2 * SHORT);
        drop(job);
        assert!(!clients.contains(second), "it waited, but used hardly any processor time");
    }

    #[test]
    fn clients_are_forgotten() {
        let clients = Arc::new(HeavyClients::default());
        for client in 0..10_000 {
            drop(clients.begin(Some(ClientId(client))));
        }
        let jobs: Vec<_> = (0..2_000).map(|client| clients.begin(Some(ClientId(client)))).collect();
        assert!(clients.0.lock().clients.len() < 6_000);
        assert!((0..2_000).all(|client| clients.contains(Some(ClientId(client)))));
        drop(jobs);
    }
}
