//! A certificate for tests, and clients that trust it.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::net::TcpStream;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Files with a certificate for localhost and its key.
pub struct Identity {
    folder: TempDir,
    roots: RootCertStore,
}

impl Identity {
    /// Makes a new one.
    ///
    /// # Panics
    /// If the files cannot be written.
    pub fn new() -> Self {
        Self::valid_in(2000..3000)
    }

    /// Makes one that is valid in these years.
    ///
    /// # Panics
    /// If the files cannot be written.
    pub fn valid_in(years: Range<i32>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_before = date_time_ymd(years.start, 1, 1);
        params.not_after = date_time_ymd(years.end, 1, 1);
        let signing_key = KeyPair::generate().expect("a key");
        let cert = params.self_signed(&signing_key).expect("a certificate");
        fs::write(folder.path().join("cert.pem"), cert.pem()).expect("it can be written");
        fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).expect("it can be written");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("it is valid");
        Self { folder, roots }
    }

    /// A file in the folder of the certificate, `cert.pem`, and its key, `key.pem`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The options of a server with this certificate.
    pub fn options(&self) -> [String; 4] {
        let file = |name| self.file(name).display().to_string();
        ["--tls-cert".to_owned(), file("cert.pem"), "--tls-key".to_owned(), file("key.pem")]
    }

    /// Encrypts `stream`. The handshake happens with the first read or write.
    ///
    /// # Panics
    /// If the configuration is invalid.
    pub fn connect(&self, stream: TcpStream, protocol: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
        let name = "localhost".try_into().expect("a name");
        StreamOwned::new(ClientConnection::new(self.config(protocol), name).expect("it is valid"), stream)
    }

    fn config(&self, protocol: &[u8]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("they are supported")
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::new()
    }
}
