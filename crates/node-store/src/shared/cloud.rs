//! Objects in a bucket of S3, Google Cloud Storage or Azure, or of a service with the interface of one of these.

use super::objects::{Creation, Fault, Objects, ObjectsError, PAGE, short};
use super::retry::{Cancel, LOOK};
use crate::files::Object;
use futures_util::StreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore, ObjectStoreExt, ObjectStoreScheme, PutMode, PutOptions, PutPayload, RetryConfig,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Minimum size in bytes of the parts of an upload, and their maximum number.
const PART: u64 = 8 << 20;
const PARTS: u64 = 9_000;

/// Number of parts that are uploaded at the same time.
const PARALLEL: usize = 4;

/// Number of threads that wait for the network.
const THREADS: usize = 2;

/// The [`Objects`] port on an object store.
#[derive(Debug)]
pub struct CloudObjects {
    store: Arc<dyn ObjectStore>,
    /// The same store. Repeats parts of uploads that failed; all other operations are repeated by
    /// [`Retrying`](super::Retrying).
    uploads: Arc<dyn ObjectStore>,
    prefix: Path,
    /// Taken when this value is dropped.
    runtime: Option<Runtime>,
    /// What ends operations that wait for a response.
    cancel: Mutex<Arc<Cancel>>,
}

impl CloudObjects {
    /// Opens `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`. Endpoint and credentials are those
    /// of the usual environment variables of these services, such as `AWS_ENDPOINT_URL`. Makes no request.
    ///
    /// # Errors
    /// If the URL or the configuration is invalid.
    pub fn open(url: &str) -> Result<Self, ObjectsError> {
        let invalid =
            |error: Box<dyn std::error::Error + Send + Sync>| ObjectsError::new(Fault::Permanent, "open", url, error);
        let parsed = url.parse().map_err(|error: url::ParseError| invalid(error.into()))?;
        let (scheme, prefix) = ObjectStoreScheme::parse(&parsed).map_err(|error| invalid(error.into()))?;
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Fails if another thread was faster.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let once = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let build = |retry| connect(&scheme, url, retry).map_err(|error| invalid(error.into()));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store-network")
            .enable_all()
            .build()
            .map_err(|error| ObjectsError::io("open", url, error))?;
        Ok(Self {
            store: build(once)?,
            uploads: build(RetryConfig::default())?,
            prefix,
            runtime: Some(runtime),
            cancel: Mutex::default(),
        })
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// Runs `future` on the runtime and waits for it. Unlike [`Runtime::block_on`], this is possible on threads of
    /// another runtime.
    fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Result<T, Ended> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let task = self.runtime.as_ref().ok_or(Ended::Cancelled)?.spawn(async move {
            // Nobody receives it if the operation was cancelled.
            let _ = sender.send(future.await);
        });
        let cancel = Arc::clone(&self.cancel.lock());
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Disconnected) => return Err(Ended::Panicked),
                Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                    task.abort();
                    return Err(Ended::Cancelled);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Like [`wait`](Self::wait). Returns `None` if the object does not exist.
    fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        name: &str,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<Option<T>, ObjectsError> {
        match self.wait(future) {
            Ok(Ok(done)) => Ok(Some(done)),
            Ok(Err(Error::NotFound { .. })) => Ok(None),
            Ok(Err(error)) => Err(failure(action, name, error)),
            Err(Ended::Panicked) => Err(ObjectsError::new(Fault::Permanent, action, name, "the request panicked")),
            Err(Ended::Cancelled) => {
                Err(ObjectsError::new(Fault::Cancelled, action, name, "the operation was cancelled"))
            }
        }
    }

    fn upload_parts(&self, name: &str, content: &dyn Object, size: u64) -> Result<(), ObjectsError> {
        let (store, path) = (Arc::clone(&self.uploads), self.path(name));
        let no_bucket = || missing("upload", name);
        let begin = async move { store.put_multipart_opts(&path, Default::default()).await };
        let mut upload = self.run("upload", name, begin)?.ok_or_else(no_bucket)?;
        let length = PART.max(size.div_ceil(PARTS));
        let mut send = || {
            let Some(runtime) = &self.runtime else { return Ok(()) };
            let mut running = VecDeque::new();
            let mut offset = 0;
            while offset < size || !running.is_empty() {
                if offset < size && running.len() < PARALLEL {
                    let mut bytes = vec![0; length.min(size - offset) as usize];
                    content.read_at(offset, &mut bytes).map_err(|error| ObjectsError::io("upload", name, error))?;
                    offset += bytes.len() as u64;
                    running.push_back(runtime.spawn(upload.put_part(PutPayload::from(bytes))));
                } else if let Some(part) = running.pop_front() {
                    let sent = self.run("upload", name, async move { part.await.map_err(Error::from)? })?;
                    sent.ok_or_else(no_bucket)?;
                }
            }
            Ok(())
        };
        let sent = send();
        let end = match &sent {
            Ok(()) => self.run("upload", name, async move { upload.complete().await.map(drop) }),
            // The service removes the parts later if they cannot be removed now.
            Err(_) => self.run("upload", name, async move { upload.abort().await }),
        };
        sent?;
        end?.ok_or_else(no_bucket)
    }
}

/// Why a request has no result.
enum Ended {
    Cancelled,
    Panicked,
}

impl Drop for CloudObjects {
    fn drop(&mut self) {
        // Dropping a runtime waits, which is forbidden on the threads of another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn connect(scheme: &ObjectStoreScheme, url: &str, retry: RetryConfig) -> Result<Arc<dyn ObjectStore>, Error> {
    Ok(match scheme {
        ObjectStoreScheme::AmazonS3 => Arc::new(AmazonS3Builder::from_env().with_url(url).with_retry(retry).build()?),
        ObjectStoreScheme::GoogleCloudStorage => {
            Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry).build()?)
        }
        ObjectStoreScheme::MicrosoftAzure => {
            Arc::new(MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry).build()?)
        }
        _ => {
            return Err(Error::NotSupported {
                source: "it is none of s3://…, gs://…, az://… and file:///FOLDER".into(),
            });
        }
    })
}

fn failure(action: &'static str, name: &str, error: Error) -> ObjectsError {
    let fault = match &error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Fault::Permission,
        Error::Generic { source, .. } if is_refusal(&source.to_string()) => Fault::Permanent,
        // Errors of the network, and responses that ask to slow down.
        Error::Generic { .. } | Error::JoinError { .. } => Fault::Transient,
        _ => Fault::Permanent,
    };
    ObjectsError::new(fault, action, name, error)
}

/// Returns whether an error, whose type is private, is a response that would be the same the next time: a redirect to another
/// region, or a status 4xx other than those for requests that came too often, took too long or were simultaneous.
fn is_refusal(error: &str) -> bool {
    let passes = ["RequestTimeout", "SlowDown", "OperationAborted"];
    let status = error.split_once("non-2xx status code: ").and_then(|(_, status)| status.get(..3)?.parse::<u16>().ok());
    error.contains("Received redirect without LOCATION")
        || status.is_some_and(|status| (400..500).contains(&status) && ![408, 409, 425, 429].contains(&status))
            && !passes.iter().any(|code| error.contains(code))
}

/// Returns the error for a bucket that does not exist.
fn missing(action: &'static str, name: &str) -> ObjectsError {
    ObjectsError::new(Fault::Permanent, action, name, "the bucket does not exist")
}

impl Objects for CloudObjects {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Creation, ObjectsError> {
        let (store, path, payload) = (Arc::clone(&self.store), self.path(name), PutPayload::from(bytes.to_vec()));
        let put = async move {
            match store.put_opts(&path, payload, PutOptions::from(PutMode::Create)).await {
                Ok(_) => Ok(Creation::Created),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Creation::Exists),
                Err(error) => Err(error),
            }
        };
        self.run("create", name, put)?.ok_or_else(|| missing("create", name))
    }

    fn upload(&self, name: &str, content: &dyn Object) -> Result<(), ObjectsError> {
        let failed = |error| ObjectsError::io("upload", name, error);
        let size = content.size().map_err(failed)?;
        if self.size(name)? == Some(size) {
            return Ok(());
        }
        if size > PART {
            return self.upload_parts(name, content, size);
        }
        let mut bytes = vec![0; size as usize];
        content.read_at(0, &mut bytes).map_err(failed)?;
        let (store, path) = (Arc::clone(&self.uploads), self.path(name));
        let put = async move { store.put_opts(&path, PutPayload::from(bytes), PutOptions::default()).await };
        self.run("upload", name, put)?.map(drop).ok_or_else(|| missing("upload", name))
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>, ObjectsError> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let get = async move { store.get_opts(&path, GetOptions::default()).await?.bytes().await };
        Ok(self.run("read", name, get)?.map(Into::into))
    }

    fn get_many(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>, ObjectsError> {
        let Some(first) = names.first() else { return Ok(Vec::new()) };
        let mut requests = JoinSet::new();
        let Some(runtime) = &self.runtime else { return Ok(Vec::new()) };
        for (index, name) in names.iter().enumerate() {
            let (store, path) = (Arc::clone(&self.store), self.path(name));
            let get = async move {
                match store.get_opts(&path, GetOptions::default()).await {
                    Ok(found) => Ok((index, Some(Vec::from(found.bytes().await?)))),
                    Err(Error::NotFound { .. }) => Ok((index, None)),
                    Err(error) => Err(error),
                }
            };
            requests.spawn_on(get, runtime.handle());
        }
        let count = names.len();
        let all = async move {
            let mut found = vec![None; count];
            while let Some(done) = requests.join_next().await {
                let (index, content) = done.map_err(Error::from)??;
                found[index] = content;
            }
            Ok(found)
        };
        self.run("read", first, all)?.ok_or_else(|| missing("read", first))
    }

    fn read(&self, name: &str, ranges: &[Range<u64>]) -> Result<Option<Vec<Vec<u8>>>, ObjectsError> {
        let (store, path, wanted) = (Arc::clone(&self.store), self.path(name), ranges.to_vec());
        let get = async move { store.get_ranges(&path, &wanted).await };
        let Some(parts) = self.run("read", name, get)? else { return Ok(None) };
        let is_whole = |(part, range): (&_, &Range<u64>)| -> bool {
            let part: &[u8] = part;
            part.len() as u64 == range.end - range.start
        };
        if parts.len() != ranges.len() || !parts.iter().map(|part| &**part).zip(ranges).all(is_whole) {
            return Err(short(name));
        }
        Ok(Some(parts.into_iter().map(Into::into).collect()))
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        let head = async move { store.head(&path).await };
        Ok(self.run("read", name, head)?.map(|found| found.size))
    }

    fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<String>, ObjectsError> {
        let (store, path, after) = (Arc::clone(&self.store), self.path(folder), after.map(|after| self.path(after)));
        let list = async move {
            let mut found = match &after {
                Some(after) => store.list_with_offset(Some(&path), after),
                None => store.list(Some(&path)),
            };
            let mut names = Vec::new();
            while let Some(object) = found.next().await {
                names.extend(object?.location.filename().map(str::to_owned));
                if names.len() == PAGE {
                    break;
                }
            }
            Ok(names)
        };
        let names = self.run("list", folder, list)?.ok_or_else(|| missing("list", folder))?;
        // The rest of an unsorted listing could have lower names.
        if !names.is_sorted() {
            return Err(ObjectsError::new(Fault::Permanent, "list", folder, "the service does not sort names"));
        }
        Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect())
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        let (store, path) = (Arc::clone(&self.store), self.path(name));
        self.run("delete", name, async move { store.delete(&path).await }).map(drop)
    }

    fn end_with(&self, cancel: &Arc<Cancel>) {
        *self.cancel.lock() = Arc::clone(cancel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::tests::media::{check, check_races};
    use crate::shared::tests::protocol::check_failover;

    /// `scripts/s3.py` starts the service and sets the environment variables.
    #[test]
    #[ignore = "needs an empty bucket at the URL in SHARED_STORE"]
    fn a_bucket_keeps_the_contract() {
        let url = std::env::var("SHARED_STORE").unwrap();
        let open = |prefix: &str| CloudObjects::open(&format!("{url}/{prefix}")).unwrap();
        check(&open("contract"));
        check_races(&open("races"));
        check_failover(Arc::new(open("failover/of a store")));
    }

    #[test]
    fn what_a_service_refuses_is_not_repeated() {
        let status = |status: &str| {
            format!("Error performing PUT http://a/b in 1ms - Server returned non-2xx status code: {status}")
        };
        let refused = ["400 Bad Request: <Code>InvalidRequest</Code>", "404 Not Found: ", "405 Method Not Allowed: "];
        let passing = [
            "400 Bad Request: <Code>RequestTimeout</Code>",
            "409 Conflict: ",
            "429 Too Many Requests: ",
            "503 Slow Down: ",
        ];
        assert!(refused.iter().all(|text| is_refusal(&status(text))));
        assert!(!passing.iter().any(|text| is_refusal(&status(text))));
        assert!(!is_refusal("Error performing GET http://a/b in 1ms - HTTP error: connection refused"));
    }

    #[test]
    fn other_urls_are_refused() {
        for url in ["http://127.0.0.1/a", "ftp://a/b", "memory:///", "no url", ""] {
            assert_eq!(CloudObjects::open(url).unwrap_err().fault, Fault::Permanent, "{url}");
        }
    }
}
