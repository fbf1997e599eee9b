//! Pages for people: an overview of the chain at `/`, and the interactive documentation of the interface at `/docs/`.
//!
//! Their URLs are relative, so they work under any base path and behind any proxy. They load nothing from other
//! servers and run only scripts that are files of this server; their content security policy enforces this.

use crate::exchange::Exchange;
use crate::problem::HttpError;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::Bytes;
use std::io::{Cursor, Read};
use std::sync::LazyLock;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// Headers of every page and file.
const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
];

/// The content security policy of the page at `/`.
const STRICT: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// The content security policy of the page at `/docs/`: Swagger UI sets styles on its elements and has icons as data
/// URLs.
const FOR_SWAGGER: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of this crate: name, media type and content.
type Asset = (&'static str, &'static str, &'static [u8]);

macro_rules! assets {
    ($($name:literal: $media_type:expr),* $(,)?) => {
        [$(($name, $media_type, include_bytes!(concat!("../../assets/", $name)))),*]
    };
}

/// The files under `/assets/`.
const ASSETS: [Asset; 10] = assets![
    "chain.js": JAVASCRIPT,
    "charts.js": JAVASCRIPT,
    "client.js": JAVASCRIPT,
    "docs.css": CSS,
    "docs.js": JAVASCRIPT,
    "format.js": JAVASCRIPT,
    "home.css": CSS,
    "home.js": JAVASCRIPT,
    "icon.svg": "image/svg+xml",
    "rows.js": JAVASCRIPT,
];

/// The files of Swagger UI that its page loads, under `/docs/`.
const SWAGGER_FILES: [(&str, &str); 2] = [("swagger-ui.css", CSS), ("swagger-ui-bundle.js", JAVASCRIPT)];

pub(super) async fn home(exchange: Exchange) -> HttpResponse {
    let page = Bytes::from_static(include_bytes!("../../assets/home.html"));
    file(exchange.with_header(CONTENT_SECURITY_POLICY, STRICT), HTML, page).await
}

pub(super) async fn docs(exchange: Exchange) -> HttpResponse {
    let page = Bytes::from_static(include_bytes!("../../assets/docs.html"));
    file(exchange.with_header(CONTENT_SECURITY_POLICY, FOR_SWAGGER), HTML, page).await
}

/// Redirects to the same URL with a trailing slash. The redirect is relative, because a proxy may have changed the
/// path.
pub(super) async fn add_slash(exchange: Exchange) -> HttpResponse {
    let folder = exchange.request().path().rsplit('/').next().map(|last| format!("{last}/"));
    match folder.and_then(|folder| HeaderValue::try_from(folder).ok()) {
        Some(folder) => {
            with_headers(exchange).with_header(LOCATION, folder).respond_empty(StatusCode::PERMANENT_REDIRECT)
        }
        None => exchange.fail(&HttpError::UnknownRoute),
    }
}

pub(super) async fn asset(exchange: Exchange) -> HttpResponse {
    let name = exchange.parameters(|parameters| Ok(parameters.path("File").to_owned()));
    let named = |name: String| ASSETS.into_iter().find(|(known, ..)| *known == name);
    match name.and_then(|name| named(name).ok_or(HttpError::UnknownRoute)) {
        Ok((_, media_type, bytes)) => file(exchange, media_type, Bytes::from_static(bytes)).await,
        Err(error) => exchange.fail(&error),
    }
}

pub(super) async fn swagger_file(exchange: Exchange) -> HttpResponse {
    let name = exchange.parameters(|parameters| Ok(parameters.path("File").to_owned()));
    match name.and_then(|name| read_swagger_file(&name).ok_or(HttpError::UnknownRoute)) {
        Ok((media_type, bytes)) => file(exchange, media_type, bytes).await,
        Err(error) => exchange.fail(&error),
    }
}

/// Returns a file of Swagger UI with its media type, or `None` if the page needs no file of this name.
fn read_swagger_file(name: &str) -> Option<(&'static str, Bytes)> {
    static UNPACKED: LazyLock<Vec<(&str, &str, Bytes)>> = LazyLock::new(|| {
        let files = SWAGGER_FILES.into_iter();
        files.filter_map(|(name, media_type)| Some((name, media_type, unpack(name)?))).collect()
    });
    let file = UNPACKED.iter().find(|(known, ..)| *known == name);
    file.map(|(_, media_type, bytes)| (*media_type, bytes.clone()))
}

/// Returns a file of the archive of Swagger UI.
fn unpack(name: &str) -> Option<Bytes> {
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED)).ok()?;
    let path = archive.file_names().flatten().find(|path| path.ends_with(&format!("/dist/{name}")))?.into_owned();
    let mut bytes = Vec::new();
    archive.by_name(&path).ok()?.read_to_end(&mut bytes).ok()?;
    Some(bytes.into())
}

async fn file(exchange: Exchange, media_type: &'static str, bytes: Bytes) -> HttpResponse {
    with_headers(exchange).respond_document(media_type, bytes).await
}

/// Sets the headers of every page and file.
pub(super) fn with_headers(exchange: Exchange) -> Exchange {
    HEADERS.into_iter().fold(exchange, |exchange, (name, value)| exchange.with_header(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swagger_ui_has_the_files_of_its_page() {
        for (name, media_type) in SWAGGER_FILES {
            let (given, bytes) = read_swagger_file(name).unwrap();
            assert_eq!(given, media_type, "{name}");
            assert!(bytes.len() > 100_000, "{name}");
            let page = include_str!("../../assets/docs.html");
            assert!(page.contains(&format!("\"{name}\"")), "{name}");
        }
        for name in ["", "index.html", "swagger-initializer.js", "../assets/home.js"] {
            assert!(read_swagger_file(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_page_is_small() {
        let of_docs = |name: &str| name.starts_with("docs.");
        let assets = ASSETS.iter().filter(|(name, ..)| !of_docs(name)).map(|(.., bytes)| bytes.len());
        let bytes = include_bytes!("../../assets/home.html").len() + assets.sum::<usize>();
        assert!(bytes <= 32 * 1024, "{bytes} bytes");
    }

    #[test]
    fn pages_refer_to_no_other_server() {
        let pages = [&include_bytes!("../../assets/home.html")[..], include_bytes!("../../assets/docs.html")];
        // The name of an XML namespace looks like an address.
        let namespace = "http://www.w3.org/2000/svg";
        for bytes in pages.into_iter().chain(ASSETS.map(|(.., bytes)| bytes)) {
            let text = std::str::from_utf8(bytes).unwrap().replace(namespace, "");
            assert!(!text.contains("://") && !text.contains("\"//") && !text.contains("=\"/"), "{text}");
        }
    }
}
