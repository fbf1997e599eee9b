//! The server with TLS.

use crate::server::{Server, run_to_end};
use crate::tls::Identity;
use std::fs;
use std::io::{Read, Write};

#[test]
fn serves_only_tls() {
    let identity = Identity::new();
    let server = Server::start(identity.options());
    assert!(server.url().starts_with("https://"), "{}", server.url());

    let mut stream = identity.connect(server.connect(), b"http/1.1");
    stream.write_all(b"GET /chainId/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert!(text.contains("{\"$schema\":\"https://localhost/schemas/Output_chainId.json\""), "{text}");

    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let refused = identity.connect(server.connect(), b"h2").write_all(b"PRI * HTTP/2.0\r\n\r\n").unwrap_err();
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");

    let mut plain = server.connect();
    plain.write_all(b"GET /chainId/ HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut response = String::new();
    plain.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 400") && response.contains("requires TLS"), "{response}");
    assert_eq!(server.end("TERM").code(), Some(0));
}

/// The certificate that the server shows.
fn shown(server: &Server, identity: &Identity) -> Option<Vec<u8>> {
    let mut stream = identity.connect(server.connect(), b"http/1.1");
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    Some(stream.conn.peer_certificates()?[0].to_vec())
}

#[test]
fn hangups_reload_the_certificate() {
    let (identity, next) = (Identity::new(), Identity::new());
    let server = Server::start(identity.options());
    let first = shown(&server, &identity).unwrap();
    assert_eq!(shown(&server, &next), None, "another certificate");

    // A file that cannot be used changes nothing.
    fs::write(identity.file("cert.pem"), "nothing").unwrap();
    server.signal("HUP");
    assert_eq!(server.logged("SIGHUP: a file was not reloaded"), 1, "{}", server.log());
    assert_eq!(shown(&server, &identity), Some(first));

    for name in ["cert.pem", "key.pem"] {
        fs::copy(next.file(name), identity.file(name)).unwrap();
    }
    server.signal("HUP");
    assert_eq!(server.logged("SIGHUP: reloaded"), 1, "{}", server.log());
    assert!(shown(&server, &next).is_some());
    assert_eq!(server.end("TERM").code(), Some(0));
}

#[test]
fn invalid_certificates_fail_the_start() {
    let (identity, other) = (Identity::new(), Identity::new());
    let nothing = identity.file("nothing.pem");
    fs::write(&nothing, "nothing").unwrap();
    let missing = identity.file("missing.pem");
    let (certificate, key) = (identity.file("cert.pem"), identity.file("key.pem"));
    let cases = [
        (&certificate, &other.file("key.pem"), "cannot be used"),
        (&nothing, &key, "contains no certificate"),
        (&certificate, &nothing, "the key is not PEM"),
        (&missing, &key, "missing.pem"),
    ];
    for (certificate, key, complaint) in cases {
        let output = run_to_end([&"--tls-cert".into(), certificate, &"--tls-key".into(), key]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && stderr.contains(complaint), "{complaint}: {stderr}");
    }
}

#[test]
fn the_log_warns_of_certificates_that_are_not_valid_now() {
    let (expired, future) = (Identity::valid_in(2001..2002), Identity::valid_in(2900..2901));
    let server = Server::start(expired.options());
    assert_eq!(server.logged("the certificate (--tls-cert) expired"), 1, "{}", server.log());
    for name in ["cert.pem", "key.pem"] {
        fs::copy(future.file(name), expired.file(name)).unwrap();
    }
    server.signal("HUP");
    assert_eq!(server.logged("the certificate (--tls-cert) is not valid yet"), 1, "{}", server.log());
    let valid = Server::start(Identity::new().options());
    assert!(!valid.log().contains("(--tls-cert)"), "{}", valid.log());
}
