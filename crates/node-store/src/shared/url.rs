//! URLs of stores.

#[cfg(feature = "object-store")]
use super::cloud::CloudObjects;
use super::folder::FolderObjects;
use super::objects::{Fault, Objects, ObjectsError};
use std::path::PathBuf;
use std::sync::Arc;

/// Opens the medium of a store: `file:///folder`, or, with the feature `object-store`, `s3://bucket/prefix`,
/// `gs://bucket/prefix` or `az://container/prefix`. Creates nothing, and makes no request.
///
/// # Errors
/// If the URL is not one of these, or the configuration of the service is invalid.
pub fn open(url: &str) -> Result<Arc<dyn Objects>, ObjectsError> {
    if let Some(path) = folder(url)? {
        return Ok(Arc::new(FolderObjects::new(path)));
    }
    #[cfg(feature = "object-store")]
    let opened = CloudObjects::open(url).map(|objects| Arc::new(objects) as _);
    #[cfg(not(feature = "object-store"))]
    let opened = Err(invalid(url, "this program was built without object storage and supports only file:///folder"));
    opened
}

/// Returns the folder of a store that is in one, and `None` for any other store.
///
/// # Errors
/// If this is not the URL of a store.
pub fn folder(url: &str) -> Result<Option<PathBuf>, ObjectsError> {
    let parts = url.split_once("://");
    let (scheme, place) =
        parts.ok_or_else(|| invalid(url, "it is none of s3://…, gs://…, az://… and file:///FOLDER"))?;
    if place.contains(['?', '#']) {
        return Err(invalid(url, "it must not have a query or a fragment; in a name, write ? as %3F and # as %23"));
    }
    if !scheme.eq_ignore_ascii_case("file") {
        return Ok(None);
    }
    // RFC 8089 permits the name of this machine.
    let path = place.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(place);
    let path = decode(path).filter(|path| path.starts_with('/'));
    path.map(|path| Some(path.into())).ok_or_else(|| invalid(url, "the path must be absolute, as in file:///folder"))
}

fn invalid(url: &str, reason: &str) -> ObjectsError {
    ObjectsError::new(Fault::Permanent, "open", url, reason.to_owned())
}

/// Decodes `%20` and the like.
fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_a_folder_may_have_encoded_characters() {
        let temporary = tempfile::tempdir().unwrap();
        let objects = open(&format!("file://{}/my%20store", temporary.path().display())).unwrap();
        objects.create("log/1", b"").unwrap();
        assert!(temporary.path().join("my store/log/1").exists());
        for url in ["file://folder", "file:///a%2", "file:///a%zz", "file:///a%ff", "/folder", "", "file:///a?x=1"] {
            assert_eq!(open(url).map(drop).unwrap_err().fault, Fault::Permanent, "{url}");
        }
        let reason = |url| open(url).map(drop).unwrap_err().source.to_string();
        assert!(reason("x").contains("none of s3://"));
        assert!(reason("s3://a/b?x=1").contains("query"));
    }

    #[test]
    fn a_url_of_a_folder_may_have_capitals_and_this_machine() {
        for url in ["file:///a/b", "FILE:///a/b", "file://localhost/a/b"] {
            assert_eq!(folder(url).unwrap(), Some(PathBuf::from("/a/b")), "{url}");
        }
        assert_eq!(folder("s3://a/b").unwrap(), None);
        folder("file://localhostile/a").unwrap_err();
    }
}
