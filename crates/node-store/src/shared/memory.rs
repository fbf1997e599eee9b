//! Objects in memory.

use super::objects::{Creation, Objects, ObjectsError, PAGE, parts};
use crate::files::Object;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The [`Objects`] port in memory, for tests.
#[derive(Debug, Default)]
pub struct MemoryObjects {
    objects: Mutex<BTreeMap<String, Arc<[u8]>>>,
}

impl MemoryObjects {
    fn content(&self, name: &str) -> Option<Arc<[u8]>> {
        self.objects.lock().get(name).cloned()
    }
}

impl Objects for MemoryObjects {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        let mut objects = self.objects.lock();
        if objects.contains_key(name) {
            return Ok(Creation::Exists);
        }
        objects.insert(name.to_owned(), bytes.into());
        Ok(Creation::Created)
    }

    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        let failed = |error| ObjectsError::io("upload", name, error);
        let size = content.size().map_err(failed)?;
        let mut bytes = vec![0; size as usize];
        content.read_at(0, &mut bytes).map_err(failed)?;
        self.objects.lock().entry(name.to_owned()).or_insert_with(|| bytes.into());
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        Ok(self.content(name).map(|bytes| bytes.to_vec()))
    }

    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        self.content(name).map(|bytes| parts(name, &bytes, ranges)).transpose()
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        Ok(self.content(name).map(|bytes| bytes.len() as u64))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        let prefix = format!("{folder}/");
        let objects = self.objects.lock();
        let from = after.map_or(prefix.as_str(), |after| after.max(&prefix));
        let names = objects.range(from.to_owned()..).map(|(name, _)| name);
        let names = names.filter(|name| Some(name.as_str()) != after).take_while(|name| name.starts_with(&prefix));
        Ok(names.take(PAGE).cloned().collect())
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        // The content may be freed here, after the lock is released.
        let removed = self.objects.lock().remove(name);
        drop(removed);
        Ok(())
    }
}
