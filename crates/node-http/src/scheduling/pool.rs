//! A fixed number of threads with a bounded queue. Clients share both fairly.

use node_core::context::{ClientId, is_fair_share};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolUsage {
    pub(crate) threads: usize,
    /// Number of threads that are running a job.
    pub(crate) busy: usize,
    /// Number of jobs waiting for a thread.
    pub(crate) queued: usize,
    /// Number of jobs refused since the start because the queue was full.
    pub(crate) refused: u64,
}

#[derive(Debug)]
pub(crate) struct QueueFull;

type Job = Box<dyn FnOnce() + Send>;

struct Queued {
    /// The client of the job; `None` for a job of the server itself.
    client: Option<ClientId>,
    /// Whether the client had long jobs recently.
    is_heavy: bool,
    job: Job,
}

/// Number of threads of a pool from which on one of them is for clients that are not heavy.
const MIN_RESERVING: usize = 4;

/// Duration of a job after which its thread is replaced. Allocators keep memory for a thread as long as it lives, and
/// such a job may have used much.
const LONG: Duration = Duration::from_secs(1);

/// Threads that run jobs. Dropping the pool ends them once the queue is empty.
///
/// The next job is the oldest one of the clients with the fewest running jobs, but not of the same client twice in a
/// row. A client may occupy as many threads as it leaves idle for others, and at least one. Heavy clients together leave
/// one thread to others, so that these do not wait until a long job ends. If the queue is full, a
/// new job takes the place of a job of the client that has the most in the queue, unless that is the same client.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    threads: usize,
    queue: Mutex<Queue>,
    /// Maximum number of jobs that may wait while all threads are busy.
    capacity: usize,
}

struct Queue {
    jobs: VecDeque<Queued>,
    /// The number of running jobs of each client that has any.
    running: HashMap<Option<ClientId>, usize>,
    /// The client of the job that was started last.
    latest: Option<ClientId>,
    /// Number of threads without a job.
    idle: usize,
    /// Number of threads that heavy clients leave idle.
    reserved: usize,
    /// The idle threads that sleep. The last one to fall asleep is woken first, because its data is still in the
    /// processor's caches.
    asleep: Vec<Thread>,
    refused: u64,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads with a queue of `capacity` jobs. Each thread calls `prepare` first.
    pub(crate) fn new(name: &str, threads: usize, capacity: usize, prepare: fn()) -> io::Result<Self> {
        // Threads count as idle before they have started, so that no job is refused in the meantime.
        let queue = Queue {
            jobs: VecDeque::new(),
            running: HashMap::new(),
            latest: None,
            idle: threads,
            reserved: usize::from(threads >= MIN_RESERVING),
            asleep: Vec::new(),
            refused: 0,
            closed: false,
        };
        let shared = Arc::new(Shared { threads, queue: Mutex::new(queue), capacity });
        let pool = Self { shared };
        for number in 0..threads {
            start(pool.shared.clone(), format!("{name}-{number}"), prepare)?;
        }
        Ok(pool)
    }

    pub(crate) fn usage(&self) -> PoolUsage {
        let queue = self.shared.lock();
        let threads = self.shared.threads;
        // Queued jobs that an idle thread is about to take count as running.
        let taken = queue.runnable();
        let busy = threads - queue.idle + taken;
        PoolUsage { threads, busy, queued: queue.jobs.len() - taken, refused: queue.refused }
    }

    /// Queues a job of `client`, which is heavy if it had long jobs recently.
    ///
    /// # Errors
    /// [`QueueFull`] if the client may not have another thread, the queue is full, and no other client has enough
    /// queued jobs to be displaced. A job that loses its place to another one is dropped.
    pub(crate) fn submit(&self, client: Option<ClientId>, is_heavy: bool, job: Job) -> Result<(), QueueFull> {
        let mut queue = self.shared.lock();
        let mut displaced = None;
        if queue.jobs.len() >= queue.idle + self.shared.capacity {
            queue.refused += 1;
            displaced = Some(queue.displace_for(client).ok_or(QueueFull)?);
        }
        queue.jobs.push_back(Queued { client, is_heavy, job });
        let woken = queue.asleep.pop();
        drop(queue);
        // Dropping a job may run code of the request, which must not hold the lock.
        drop(displaced);
        woken.iter().for_each(Thread::unpark);
        Ok(())
    }
}

/// Starts a thread of a pool.
fn start(shared: Arc<Shared>, name: String, prepare: fn()) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.clone());
    let run = move || {
        prepare();
        while shared.work() && start(shared.clone(), name.clone(), prepare).is_err() {}
    };
    thread.spawn(run).map(drop)
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        queue.asleep.drain(..).for_each(|thread| thread.unpark());
    }
}

impl Queue {
    /// Takes the next job, or returns `None` if no client with a queued job may have another thread.
    fn next(&mut self) -> Option<Queued> {
        let candidates = self.jobs.iter().enumerate().filter(|(_, queued)| self.may_run(queued));
        let (at, _) =
            candidates.min_by_key(|(_, queued)| (self.running(queued.client), queued.client == self.latest))?;
        let next = self.jobs.remove(at)?;
        self.latest = next.client;
        Some(next)
    }

    fn running(&self, client: Option<ClientId>) -> usize {
        self.running.get(&client).copied().unwrap_or(0)
    }

    /// Returns whether the client of a job may have another thread, if one is idle.
    fn may_run(&self, queued: &Queued) -> bool {
        self.closed && self.idle > 0 || self.is_fair(queued, self.idle, self.running(queued.client))
    }

    /// Returns whether a client with this number of running jobs may have another one of `idle` threads.
    fn is_fair(&self, Queued { client, is_heavy, .. }: &Queued, idle: usize, running: usize) -> bool {
        let reserved = if *is_heavy { self.reserved } else { 0 };
        idle > reserved && (client.is_none() || is_fair_share(running + 1, idle - 1))
    }

    fn ended(&mut self, client: Option<ClientId>) {
        if let Some(running) = self.running.get_mut(&client) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&client);
            }
        }
    }

    /// Returns the number of queued jobs that idle threads will take immediately.
    fn runnable(&self) -> usize {
        let (mut idle, mut running) = (self.idle, self.running.clone());
        for queued in &self.jobs {
            let held = running.entry(queued.client).or_default();
            if self.is_fair(queued, idle, *held) {
                *held += 1;
                idle -= 1;
            }
        }
        self.idle - idle
    }

    /// Removes the newest job of the client that has the most in the queue, if it has at least two more than `client`
    /// has.
    fn displace_for(&mut self, client: Option<ClientId>) -> Option<Queued> {
        let mut counts = HashMap::<_, usize>::new();
        for queued in &self.jobs {
            *counts.entry(queued.client).or_default() += 1;
        }
        let own = counts.get(&client).copied().unwrap_or(0);
        let (greedy, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        if most < own + 2 {
            return None;
        }
        let at = self.jobs.iter().rposition(|queued| queued.client == greedy)?;
        self.jobs.remove(at)
    }
}

impl Shared {
    /// Locks the queue. No job runs while the lock is held, so a poisoned queue is consistent.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs jobs until the queue is closed and empty, or until a job was long. Returns whether there may be more
    /// jobs.
    fn work(&self) -> bool {
        let mut queue = self.lock();
        loop {
            if let Some(Queued { client, job, .. }) = queue.next() {
                queue.idle -= 1;
                *queue.running.entry(client).or_default() += 1;
                drop(queue);
                let started = Instant::now();
                job();
                queue = self.lock();
                queue.idle += 1;
                queue.ended(client);
                if started.elapsed() >= LONG {
                    return true;
                }
            } else if queue.closed && queue.jobs.is_empty() {
                return false;
            } else {
                let thread = thread::current();
                let id = thread.id();
                queue.asleep.push(thread);
                drop(queue);
                thread::park();
                queue = self.lock();
                // It may wake up without being woken.
                queue.asleep.retain(|thread| thread.id() != id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    #[test]
    fn another_thread_takes_the_place_of_one_that_ran_for_long() {
        let pool = Pool::new("test", 1, 8, || {}).unwrap();
        let (sender, receiver) = channel();
        for duration in [Duration::ZERO, LONG, Duration::ZERO] {
            let sender = sender.clone();
            let job = move || {
                thread::sleep(duration);
                sender.send(thread::current().id()).unwrap();
            };
            pool.submit(None, false, Box::new(job)).unwrap();
        }
        let [first, second, third] = [(); 3].map(|()| receiver.recv().unwrap());
        assert!(first == second && second != third);
    }

    const FIRST: Option<ClientId> = Some(ClientId(1));
    const SECOND: Option<ClientId> = Some(ClientId(2));
    /// The first of those that are heavy.
    const HEAVY: Option<u128> = Some(100);

    /// Submits a job that runs until the returned sender is dropped, and then sends `name`.
    fn occupy(pool: &Pool, client: Option<ClientId>, name: u32, ended: &Sender<u32>) -> Result<Sender<()>, QueueFull> {
        let (release, blocked) = channel::<()>();
        let ended = ended.clone();
        let job = move || {
            let _ = blocked.recv();
            let _ = ended.send(name);
        };
        pool.submit(client, client.map(|id| id.0) >= HEAVY, Box::new(job))?;
        Ok(release)
    }

    fn received(ended: &Receiver<u32>) -> u32 {
        ended.recv_timeout(std::time::Duration::from_secs(60)).unwrap()
    }

    #[test]
    fn a_client_leaves_threads_to_others() {
        let pool = Pool::new("test", 4, 8, || {}).unwrap();
        let (ended, jobs) = channel();
        let endless: Vec<_> = (0..6).map(|name| occupy(&pool, FIRST, name, &ended).unwrap()).collect();
        assert_eq!(pool.usage(), PoolUsage { threads: 4, busy: 2, queued: 4, refused: 0 });
        for name in 10..13 {
            drop(occupy(&pool, SECOND, name, &ended).unwrap());
            assert_eq!(received(&jobs), name, "it does not wait");
        }
        drop(endless);
        let mut rest: Vec<_> = (0..6).map(|_| received(&jobs)).collect();
        rest.sort_unstable();
        assert_eq!(rest, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn heavy_clients_leave_a_thread_to_others() {
        let pool = Pool::new("test", 4, 8, || {}).unwrap();
        let (ended, jobs) = channel();
        let heavy = |client| occupy(&pool, Some(ClientId(client)), 0, &ended).unwrap();
        let long: Vec<_> = (100..105).map(heavy).collect();
        assert_eq!(pool.usage(), PoolUsage { threads: 4, busy: 3, queued: 2, refused: 0 });
        for name in 1..4 {
            drop(occupy(&pool, FIRST, name, &ended).unwrap());
            assert_eq!(received(&jobs), name, "it does not wait");
        }
        drop(long);
        assert_eq!([(); 5].map(|()| received(&jobs)), [0; 5]);
    }

    #[test]
    fn the_client_with_the_fewest_running_jobs_is_next() {
        let pool = Pool::new("test", 2, 8, || {}).unwrap();
        let (ended, jobs) = channel();
        let [first, second] = [(FIRST, 0), (SECOND, 1)].map(|(client, name)| occupy(&pool, client, name, &ended));
        while pool.shared.lock().idle > 0 {
            thread::yield_now();
        }
        drop([(FIRST, 2), (Some(ClientId(3)), 3)].map(|(client, name)| occupy(&pool, client, name, &ended)));
        drop(second);
        assert_eq!([0; 2].map(|_| received(&jobs)), [1, 3]);
        drop(first);
        assert_eq!([0; 2].map(|_| received(&jobs)), [0, 2]);
    }

    #[test]
    fn a_full_queue_makes_room_for_clients_with_fewer_jobs() {
        let pool = Pool::new("test", 1, 3, || {}).unwrap();
        let (ended, jobs) = channel();
        let mut releases = vec![occupy(&pool, FIRST, 0, &ended).unwrap()];
        while pool.shared.lock().idle > 0 {
            thread::yield_now();
        }
        releases.extend((1..4).map(|name| occupy(&pool, FIRST, name, &ended).unwrap()));
        assert!(occupy(&pool, FIRST, 4, &ended).is_err());
        releases.push(occupy(&pool, SECOND, 5, &ended).unwrap());
        assert!(occupy(&pool, SECOND, 6, &ended).is_err(), "two against one would become one against two");
        assert_eq!(pool.usage().refused, 3);
        drop(releases);
        assert_eq!([0; 4].map(|_| received(&jobs)), [0, 5, 1, 2], "clients take turns");
    }
}
