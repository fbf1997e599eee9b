//! A publisher whose every step is the test's.

use crate::files::Object;
use crate::shared::{Chain, Claim, Content, Objects, RunName, SharedRun, Writer, ending};
use crate::store::Store;
use crate::store::manifest::Listed;
use crate::wal::Entry;
use node_core::clock::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Publishes a store.
pub(super) struct Publisher {
    objects: Arc<dyn Objects>,
    writer: Writer,
    /// The runs that were uploaded, by their ids.
    names: BTreeMap<u64, RunName>,
}

#[derive(Debug)]
struct Bytes(Vec<u8>);

impl Object for Bytes {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let offset = offset as usize;
        buffer.copy_from_slice(self.0.get(offset..offset + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Publisher {
    /// Becomes the writer of a store, fencing earlier ones.
    pub(super) fn begin(objects: &Arc<dyn Objects>) -> Self {
        Self::begin_at(objects, Arc::new(SystemClock))
    }

    /// Like [`Self::begin`], with another clock.
    pub(super) fn begin_at(objects: &Arc<dyn Objects>, clock: Arc<dyn Clock>) -> Self {
        let claim = Claim::acquire(Arc::clone(objects), clock).unwrap();
        let writer = claim.into_writer().unwrap();
        let listed =
            writer.manifest().into_iter().flat_map(|manifest| manifest.content.runs()).map(|run| (run.id, run));
        let names = listed.collect();
        Self { objects: Arc::clone(objects), writer, names }
    }

    /// Makes the next manifest list the same runs with other names, but the same ids.
    pub(super) fn upload_again(&mut self) {
        self.names.clear();
    }

    /// Publishes the durable entries of the log, or, if the store no longer has them, its runs.
    pub(super) fn commit(&mut self, store: &Store) {
        store.sync().unwrap();
        let entries: Result<Vec<Entry>, _> = store.shared.log.entries_after(self.writer.last()).collect();
        match entries {
            Ok(entries) if entries.first().is_none_or(|first| first.sequence <= self.writer.last().next()) => {
                self.writer.commit(&entries).map(drop).unwrap();
            }
            _ => {
                self.publish_runs(store);
                self.commit(store);
            }
        }
    }

    /// Uploads the runs, and announces them.
    pub(super) fn publish_runs(&mut self, store: &Store) {
        let Some((manifest, tables)) = store.shared.archive.listed() else { return };
        for part in tables.parts() {
            let (id, run) = (part.run.id().0, &part.run);
            if let std::collections::btree_map::Entry::Vacant(entry) = self.names.entry(id) {
                let mut bytes = vec![0; run.size() as usize];
                run.read_at(0, &mut bytes).unwrap();
                let name = *entry.insert(RunName { epoch: self.writer.epoch(), id });
                self.objects.upload(&name.object(), &Bytes(bytes)).unwrap();
            }
        }
        let shared = |listed: &Listed| {
            let name = self.names[&listed.id.0];
            let bytes = self.objects.get(&name.object()).unwrap().unwrap();
            SharedRun { name, size: listed.size, limit: listed.limit, ending: ending(&Bytes(bytes), name.id).unwrap() }
        };
        let content = Content {
            chain: Some(Chain {
                genesis: manifest.meta.genesis,
                head: manifest.meta.head,
                earliest: manifest.meta.earliest,
                genesis_file: manifest.genesis_file.clone().map(Arc::from),
            }),
            logged: manifest.meta.logged,
            numbered: manifest.numbered.iter().map(shared).collect(),
            keyed: manifest.keyed.iter().map(shared).collect(),
            pending: Vec::new(),
        };
        let uploaded = self.writer.draft(content).unwrap().upload(&*self.objects).unwrap();
        self.writer.announce(uploaded).unwrap();
    }

    /// Deletes everything that the newest manifest does not need.
    pub(super) fn collect(&mut self) {
        let collection = self.writer.collection(Duration::ZERO);
        collection.run(&*self.objects).unwrap();
        self.writer.collected(&collection);
    }
}
