//! Weakly held listeners.

use crate::backend::{HeadChange, HeadListener};
use parking_lot::RwLock;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;

/// Listeners, called in the order in which they were added. They are held weakly: dropping a listener ends its
/// subscription.
pub(crate) struct Listeners<L: ?Sized>(RwLock<Vec<Weak<L>>>);

impl<L: ?Sized> Default for Listeners<L> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<L: ?Sized> Listeners<L> {
    /// Adds a listener, which is called until it is dropped.
    pub(crate) fn add(&self, listener: Weak<L>) {
        let mut all = self.0.write();
        all.retain(|listener| listener.strong_count() > 0);
        all.push(listener);
    }

    /// Runs `call` for each listener. Listeners may be added in the meantime. A panic of one is logged.
    pub(crate) fn each(&self, call: impl Fn(&L)) {
        let all = self.0.read().clone();
        for listener in all.iter().filter_map(Weak::upgrade) {
            // Otherwise those after it would miss the change, and the thread that made it would leave it unfinished.
            if catch_unwind(AssertUnwindSafe(|| call(&listener))).is_err() {
                tracing::error!("a listener panicked");
            }
        }
    }
}

impl HeadListener for Listeners<dyn HeadListener> {
    fn head_changed(&self, change: &HeadChange) {
        self.each(|listener| listener.head_changed(change));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_panic_of_a_listener_does_not_reach_the_others() {
        let listeners = Listeners::<AtomicUsize>::default();
        let all = [1, 2].map(|number| Arc::new(AtomicUsize::new(number)));
        all.iter().for_each(|listener| listeners.add(Arc::downgrade(listener)));
        listeners.each(|listener| assert_eq!(listener.fetch_add(1, Ordering::Relaxed), 2, "a test"));
        assert_eq!(all.map(|listener| listener.load(Ordering::Relaxed)), [2, 3]);
    }

    #[test]
    fn a_dropped_listener_is_not_called_and_frees_its_place() {
        let listeners = Listeners::<AtomicUsize>::default();
        let (kept, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        listeners.add(Arc::downgrade(&dropped));
        listeners.add(Arc::downgrade(&kept));
        let count = |listener: &AtomicUsize| {
            listener.fetch_add(1, Ordering::Relaxed);
        };
        listeners.each(count);
        assert_eq!((dropped.load(Ordering::Relaxed), kept.load(Ordering::Relaxed)), (1, 1));
        drop(dropped);
        listeners.each(count);
        assert_eq!(kept.load(Ordering::Relaxed), 2);
        for _ in 0..100 {
            listeners.add(Arc::downgrade(&Arc::new(AtomicUsize::new(0))));
        }
        assert!(listeners.0.read().len() <= 2, "the kept listener, and the last one that was dropped");
    }
}
