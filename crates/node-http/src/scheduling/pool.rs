//! A fixed number of threads with a bounded queue. Clients share both fairly.

use node_core::context::{ClientId, is_fair_share};
use node_core::waiting::{Place, set_place};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::rc::Rc;
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

/// Maximum number of jobs of a pool that wait aside. Others keep their threads while they wait.
const MAX_ASIDE: usize = 64;

/// Threads that run jobs. Dropping the pool ends them once the queue is empty. A job that [waits
/// aside](node_core::waiting::aside) does not count: another thread takes its place until it goes on.
///
/// The next job is the oldest one of the clients with the fewest running jobs, but not of the same client twice in a
/// row. A client may occupy as many threads as it leaves idle for others, and at least one. Heavy clients together leave
/// one thread to others, so that these do not wait until a long job ends. If the queue is full, a
/// new job takes the place of a job of the client that has the most in the queue, unless that is the same client.
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    /// The name of its threads.
    name: String,
    /// What each thread calls first.
    prepare: fn(),
    queue: Mutex<Queue>,
    /// Maximum number of jobs that may wait while all threads are busy.
    capacity: usize,
}

struct Queue {
    jobs: VecDeque<Queued>,
    /// The number of running jobs of each client that has any.
    running: Counts,
    /// The number of jobs of each client that wait aside.
    aside: Counts,
    /// The client of the job that was started last.
    latest: Option<ClientId>,
    /// Maximum number of running jobs.
    threads: usize,
    /// Number of threads that exist.
    alive: usize,
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
        let queue = Queue {
            jobs: VecDeque::new(),
            running: Counts::default(),
            aside: Counts::default(),
            latest: None,
            threads,
            alive: threads,
            reserved: usize::from(threads >= MIN_RESERVING),
            asleep: Vec::new(),
            refused: 0,
            closed: false,
        };
        let shared = Shared { name: name.to_owned(), prepare, queue: Mutex::new(queue), capacity };
        let pool = Self { shared: Arc::new(shared) };
        (0..threads).try_for_each(|_| Shared::start(&pool.shared))?;
        Ok(pool)
    }

    pub(crate) fn usage(&self) -> PoolUsage {
        let queue = self.shared.lock();
        // Queued jobs that an idle thread is about to take count as running.
        let taken = queue.runnable();
        let busy = queue.running.all + taken;
        PoolUsage { threads: queue.threads, busy, queued: queue.jobs.len() - taken, refused: queue.refused }
    }

    /// Queues a job of `client`, which is heavy if it had long jobs recently.
    ///
    /// # Errors
    /// [`QueueFull`] if the client may not have another thread, the queue is full, and no other client has enough
    /// queued jobs to be displaced. A job that loses its place to another one is dropped.
    pub(crate) fn submit(&self, client: Option<ClientId>, is_heavy: bool, job: Job) -> Result<(), QueueFull> {
        let mut queue = self.shared.lock();
        let mut displaced = None;
        if queue.jobs.len() >= queue.idle() + self.shared.capacity {
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

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        queue.asleep.drain(..).for_each(|thread| thread.unpark());
    }
}

/// The number of jobs of each client that has any.
#[derive(Clone, Default)]
struct Counts {
    of: HashMap<Option<ClientId>, usize>,
    all: usize,
}

impl Counts {
    fn of(&self, client: Option<ClientId>) -> usize {
        self.of.get(&client).copied().unwrap_or(0)
    }

    fn add(&mut self, client: Option<ClientId>) {
        self.all += 1;
        *self.of.entry(client).or_default() += 1;
    }

    fn remove(&mut self, client: Option<ClientId>) {
        if let Some(jobs) = self.of.get_mut(&client) {
            self.all -= 1;
            *jobs -= 1;
            if *jobs == 0 {
                self.of.remove(&client);
            }
        }
    }
}

impl Queue {
    /// Number of jobs that may begin. A job that goes on after it waited aside may briefly be one too many.
    fn idle(&self) -> usize {
        self.threads.saturating_sub(self.running.all)
    }

    /// Returns whether there are more threads than jobs need.
    fn has_spare_thread(&self) -> bool {
        self.alive > self.threads + self.aside.all
    }

    /// Takes the next job, or returns `None` if no client with a queued job may have another thread.
    fn next(&mut self) -> Option<Queued> {
        let candidates = self.jobs.iter().enumerate().filter(|(_, queued)| self.may_run(queued));
        let (at, _) =
            candidates.min_by_key(|(_, queued)| (self.running.of(queued.client), queued.client == self.latest))?;
        let next = self.jobs.remove(at)?;
        self.latest = next.client;
        Some(next)
    }

    /// Returns whether the client of a job may have another thread, if one is idle.
    fn may_run(&self, queued: &Queued) -> bool {
        self.closed && self.idle() > 0 || self.is_fair(queued, self.idle(), self.running.of(queued.client))
    }

    /// Returns whether a client with this number of running jobs may have another one of `idle` threads.
    fn is_fair(&self, Queued { client, is_heavy, .. }: &Queued, idle: usize, running: usize) -> bool {
        let reserved = if *is_heavy { self.reserved } else { 0 };
        idle > reserved && (client.is_none() || is_fair_share(running + 1, idle - 1))
    }

    /// Returns whether another job of this client may wait aside.
    fn may_leave(&self, client: Option<ClientId>) -> bool {
        let left = MAX_ASIDE - self.aside.all;
        left > 0 && (client.is_none() || is_fair_share(self.aside.of(client) + 1, left - 1))
    }

    /// Returns the number of queued jobs that idle threads will take immediately.
    fn runnable(&self) -> usize {
        let (mut idle, mut running) = (self.idle(), self.running.clone());
        for queued in &self.jobs {
            if self.is_fair(queued, idle, running.of(queued.client)) {
                running.add(queued.client);
                idle -= 1;
            }
        }
        self.idle() - idle
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

    /// Starts a thread.
    fn start(shared: &Arc<Self>) -> io::Result<()> {
        let shared = Arc::clone(shared);
        let thread = thread::Builder::new().name(shared.name.clone());
        let run = move || {
            (shared.prepare)();
            let worker = Rc::new(Worker { shared: Arc::clone(&shared), client: Cell::default() });
            set_place(worker.clone());
            while worker.run() && Self::start(&shared).is_err() {}
        };
        thread.spawn(run).map(drop)
    }
}

/// A thread of a pool.
struct Worker {
    shared: Arc<Shared>,
    /// The client of the job that it runs.
    client: Cell<Option<ClientId>>,
}

impl Worker {
    /// Runs jobs until the queue is closed and empty, until there are more threads than jobs need, or until a job was long.
    /// Returns whether another thread should take the place of this one.
    fn run(&self) -> bool {
        let mut queue = self.shared.lock();
        loop {
            if queue.has_spare_thread() {
                queue.alive -= 1;
                // This thread may have been woken for a job.
                let woken = if queue.jobs.is_empty() { None } else { queue.asleep.pop() };
                drop(queue);
                woken.iter().for_each(Thread::unpark);
                return false;
            }
            if let Some(Queued { client, job, .. }) = queue.next() {
                queue.running.add(client);
                drop(queue);
                self.client.set(client);
                let started = Instant::now();
                job();
                queue = self.shared.lock();
                queue.running.remove(client);
                if started.elapsed() >= LONG && !queue.has_spare_thread() {
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
                queue = self.shared.lock();
                // It may wake up without being woken.
                queue.asleep.retain(|thread| thread.id() != id);
            }
        }
    }
}

impl Place for Worker {
    fn leave(&self) -> bool {
        let client = self.client.get();
        let mut queue = self.shared.lock();
        let needs_thread = queue.alive == queue.threads + queue.aside.all;
        if !queue.may_leave(client) || needs_thread && Shared::start(&self.shared).is_err() {
            return false;
        }
        queue.alive += usize::from(needs_thread);
        queue.running.remove(client);
        queue.aside.add(client);
        let woken = queue.asleep.pop();
        drop(queue);
        woken.iter().for_each(Thread::unpark);
        true
    }

    fn enter(&self) {
        let client = self.client.get();
        let mut queue = self.shared.lock();
        queue.aside.remove(client);
        queue.running.add(client);
        let woken = queue.has_spare_thread().then(|| queue.asleep.pop()).flatten();
        drop(queue);
        woken.iter().for_each(Thread::unpark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_core::waiting::aside;
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

    /// Submits a job that waits aside until the returned sender is dropped, and then sends `name`.
    fn wait_aside(pool: &Pool, client: Option<ClientId>, name: u32, ended: &Sender<u32>) -> Sender<()> {
        let (release, blocked) = channel::<()>();
        let ended = ended.clone();
        let job = move || {
            let _ = aside(|| blocked.recv());
            let _ = ended.send(name);
        };
        pool.submit(client, false, Box::new(job)).unwrap();
        release
    }

    fn wait_until(pool: &Pool, reached: impl Fn(&Queue) -> bool) {
        while !reached(&pool.shared.lock()) {
            thread::yield_now();
        }
    }

    #[test]
    fn jobs_that_wait_aside_give_up_their_threads() {
        let pool = Pool::new("test", 1, 99, || {}).unwrap();
        let (ended, jobs) = channel();
        for _ in 0..2 {
            let aside: Vec<_> = (0..20).map(|name| wait_aside(&pool, FIRST, name, &ended)).collect();
            wait_until(&pool, |queue| queue.aside.all == 20 && queue.asleep.len() == 1);
            assert_eq!(pool.usage(), PoolUsage { threads: 1, busy: 0, queued: 0, refused: 0 });
            drop(occupy(&pool, FIRST, 99, &ended).unwrap());
            assert_eq!(received(&jobs), 99, "it does not wait");
            drop(aside);
            let mut rest: Vec<_> = (0..20).map(|_| received(&jobs)).collect();
            rest.sort_unstable();
            assert_eq!(rest, (0..20).collect::<Vec<_>>());
            wait_until(&pool, |queue| queue.alive == 1 && queue.running.all == 0);
        }
    }

    #[test]
    fn a_client_leaves_half_of_the_places_aside_to_others() {
        let pool = Pool::new("test", 1, 999, || {}).unwrap();
        let (ended, jobs) = channel();
        let first: Vec<_> = (0..MAX_ASIDE as u32).map(|name| wait_aside(&pool, FIRST, name, &ended)).collect();
        wait_until(&pool, |queue| queue.aside.all == MAX_ASIDE / 2 && queue.running.all == 1);
        drop(first);
        assert_eq!(jobs.iter().take(MAX_ASIDE).count(), MAX_ASIDE);
        wait_until(&pool, |queue| queue.alive == 1);
    }

    #[test]
    fn the_client_with_the_fewest_running_jobs_is_next() {
        let pool = Pool::new("test", 2, 8, || {}).unwrap();
        let (ended, jobs) = channel();
        let [first, second] = [(FIRST, 0), (SECOND, 1)].map(|(client, name)| occupy(&pool, client, name, &ended));
        while pool.shared.lock().idle() > 0 {
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
        while pool.shared.lock().idle() > 0 {
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
