//! TLS to a server whose own certificate, or that of the authority that signed it, is known.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme, StreamOwned};
use std::io::{Read, Write};
use std::sync::Arc;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector, Transport, TransportAdapter,
};
use ureq::{Agent, Error};

/// Returns a client that trusts `certificates`: those of authorities, and those of servers.
pub(crate) fn agent(config: Config, certificates: &[Vec<u8>]) -> Result<Agent, Error> {
    let certificates: Vec<_> = certificates.iter().map(|der| CertificateDer::from(der.clone())).collect();
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(certificates.iter().cloned());
    let provider = Arc::new(ring::default_provider());
    let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), provider.clone())
        .build()
        .map_err(|error| Error::Other(error.into()))?;
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { certificates, by_authority }))
        .with_no_client_auth();
    let connector = ().chain(TcpConnector::default()).chain(TlsConnector(Arc::new(tls)));
    Ok(Agent::with_parts(config, connector, DefaultResolver::default()))
}

/// Accepts the given certificates themselves, regardless of their content, and those that they have signed.
#[derive(Debug)]
struct Verifier {
    certificates: Vec<CertificateDer<'static>>,
    by_authority: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // Most self-signed certificates are marked as those of an authority, and would not be accepted from a server.
        if self.certificates.iter().any(|certificate| certificate == end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.by_authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Encrypts https connections.
#[derive(Debug)]
struct TlsConnector(Arc<ClientConfig>);

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, Encrypted>;

    fn connect(&self, details: &ConnectionDetails<'_>, plain: Option<In>) -> Result<Option<Self::Out>, Error> {
        let Some(plain) = plain else { return Ok(None) };
        if !details.needs_tls() {
            return Ok(Some(Either::A(plain)));
        }
        let host = details.uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| Error::Other(error.into()))?;
        let mut conn = ClientConnection::new(self.0.clone(), name)?;
        let mut sock = TransportAdapter::new(plain.boxed(), details.current_time.clone());
        sock.set_timeout(details.timeout);
        conn.complete_io(&mut sock)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Encrypted { stream: StreamOwned { conn, sock }, buffers })))
    }
}

/// An encrypted connection.
struct Encrypted {
    stream: StreamOwned<ClientConnection, TransportAdapter>,
    buffers: LazyBuffers,
}

impl std::fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encrypted").finish_non_exhaustive()
    }
}

impl Transport for Encrypted {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        Ok(self.stream.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
