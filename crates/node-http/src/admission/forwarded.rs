//! Headers in which proxies describe the requests that they forward (RFC 7239, and the older `X-Forwarded-*`).

use crate::url::{BasePath, is_authority};
use actix_web::http::header::HeaderMap;
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A network whose hosts are proxies of this server: an address, or an address and the length of its prefix, such as
/// `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyNetwork {
    address: IpAddr,
    /// Number of leading bits that a host's address shares with `address`.
    prefix: u32,
}

impl ProxyNetwork {
    /// Returns whether the network contains `address`.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let common_bits = match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        common_bits >= self.prefix
    }
}

impl FromStr for ProxyNetwork {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address = address.parse::<IpAddr>().map_err(|_| InvalidNetwork)?.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(bits), |prefix| prefix.parse().map_err(|_| InvalidNetwork))?;
        if prefix > bits { Err(InvalidNetwork) } else { Ok(Self { address, prefix }) }
    }
}

impl fmt::Display for ProxyNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// The text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an IP address, or one with the length of a prefix, such as 10.0.0.0/8")]
pub struct InvalidNetwork;

/// Headers in which trusted proxies describe the client. Only one family is believed, because proxies pass on headers
/// that they do not set, as the client sent them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ProxyHeaders {
    /// `X-Forwarded-For`, or `X-Real-IP` without it, `X-Forwarded-Proto` and `X-Forwarded-Host`
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239)
    Forwarded,
}

/// Represents all clients whose address a proxy hides or does not write as an address.
const UNKNOWN_CLIENT: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Returns whether `name`, in lower case, is a header that proxies add. Rules instead of a list of all such headers,
/// because each product has its own, and one that is missed makes a client of the proxy look like a program on this
/// machine.
pub(crate) fn is_from_proxy(name: &str) -> bool {
    const NAMES: [&str; 4] = ["cdn-loop", "cf-ray", "via", "x-varnish"];
    const STARTS: [&str; 7] = ["amz-cf-", "appengine-", "arr-", "azure-", "envoy-", "original-", "proxy"];
    const ENDS: [&str; 5] = ["-ip", "-ipv6", "client-addr", "clientip", "remote-addr"];
    const CONTAINED: &[u8] = b"forwarded";
    NAMES.contains(&name)
        || name.strip_prefix("x-").is_some_and(|name| STARTS.iter().any(|start| name.starts_with(start)))
        || ENDS.iter().any(|end| name.ends_with(end))
        // Runs for each header of each request; `str::contains` would first prepare a search.
        || name.as_bytes().windows(CONTAINED.len()).any(|part| part == CONTAINED)
}

/// The properties of a request according to the proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// The address of the client; `None` if the proxy does not mention a client.
    pub(crate) client: Option<IpAddr>,
    /// The scheme with which the client connected, `http` or `https`.
    pub(crate) scheme: Option<&'static str>,
    /// The host that the client requested.
    pub(crate) host: Option<String>,
    /// The path prefix that the proxies removed.
    pub(crate) prefix: BasePath,
}

impl Forwarded {
    /// Reads the `headers` of one family from a request that came from a proxy in one of the networks `trusted`.
    ///
    /// Each proxy appends the address of its peer. Therefore the client is the last address that is not a trusted
    /// proxy's; entries before it could be forged. Scheme, host and prefix are those that the first trusted proxy
    /// saw.
    pub(crate) fn read(headers: &HeaderMap, family: ProxyHeaders, trusted: &[ProxyNetwork]) -> Self {
        match family {
            ProxyHeaders::Forwarded => Self::standard(headers, trusted),
            ProxyHeaders::XForwarded => Self::customary(headers, trusted),
        }
    }

    /// Reads `Forwarded`.
    fn standard(headers: &HeaderMap, trusted: &[ProxyNetwork]) -> Self {
        let mut forwarded = Self::default();
        let lines = lines(headers, "forwarded");
        for element in lines.iter().flat_map(|line| split(line, ',')).rev().filter(|element| !element.trim().is_empty())
        {
            let mut address = UNKNOWN_CLIENT;
            for (name, value) in split(element, ';').into_iter().filter_map(|pair| pair.split_once('=')) {
                let value = unquoted(value.trim());
                match &*name.trim().to_ascii_lowercase() {
                    "for" => address = node_address(&value),
                    "proto" => forwarded.scheme = scheme(&value).or(forwarded.scheme),
                    "host" => forwarded.host = authority(&value).or(forwarded.host.take()),
                    _ => {}
                }
            }
            forwarded.client = Some(address);
            if !is_proxy(address, trusted) {
                break;
            }
        }
        Self { prefix: prefix(headers), ..forwarded }
    }

    /// Reads `X-Forwarded-For` and the related headers, or `X-Real-IP`.
    fn customary(headers: &HeaderMap, trusted: &[ProxyNetwork]) -> Self {
        // A proxy that sets the one header may pass on the other one as the client sent it.
        let header = if headers.contains_key("x-forwarded-for") { "x-forwarded-for" } else { "x-real-ip" };
        let mut client = None;
        let mut depth = 0;
        for hop in list(headers, header).iter().rev() {
            let address = node_address(hop);
            client = Some(address);
            if !is_proxy(address, trusted) {
                break;
            }
            depth += 1;
        }
        // A proxy that appends to one header may replace another, which then has fewer entries.
        let at = |name| {
            let values = list(headers, name);
            values.iter().rev().nth(depth).or(values.first()).cloned()
        };
        Self {
            client,
            scheme: at("x-forwarded-proto").as_deref().and_then(scheme),
            host: at("x-forwarded-host").as_deref().and_then(authority),
            prefix: prefix(headers),
        }
    }
}

fn is_proxy(address: IpAddr, trusted: &[ProxyNetwork]) -> bool {
    address != UNKNOWN_CLIENT && trusted.iter().any(|network| network.contains(address))
}

/// Returns the lines of a header. Bytes that are not text are replaced and not left out, because a proxy may have
/// appended to what its client sent.
fn lines<'a>(headers: &'a HeaderMap, name: &str) -> Vec<Cow<'a, str>> {
    headers.get_all(name).map(|value| String::from_utf8_lossy(value.as_bytes())).collect()
}

/// Returns the elements of a list-valued header, from all its lines.
fn list(headers: &HeaderMap, name: &str) -> Vec<String> {
    let lines = lines(headers, name);
    let elements = lines.iter().flat_map(|line| line.split(',')).map(str::trim);
    elements.filter(|element| !element.is_empty()).map(str::to_owned).collect()
}

/// Splits `text` at each `separator` that is outside of quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(|character| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        escaped = quoted && character == '\\';
        quoted ^= character == '"';
        character == separator && !quoted
    })
    .collect()
}

fn unquoted(value: &str) -> String {
    match value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace('\\', ""),
        None => value.to_owned(),
    }
}

/// Returns the address in `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`; that of
/// unknown clients for anything else.
fn node_address(node: &str) -> IpAddr {
    let host = match node.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None if node.matches(':').count() == 1 => node.split(':').next(),
        None => Some(node),
    };
    host.and_then(|host| host.parse().ok()).unwrap_or(UNKNOWN_CLIENT)
}

fn scheme(text: &str) -> Option<&'static str> {
    ["http", "https"].into_iter().find(|known| text.eq_ignore_ascii_case(known))
}

fn authority(text: &str) -> Option<String> {
    is_authority(text).then(|| text.to_owned())
}

/// Returns the path prefix that the proxies removed. An invalid prefix is ignored.
fn prefix(headers: &HeaderMap) -> BasePath {
    let value = list(headers, "x-forwarded-prefix").into_iter().next();
    value.and_then(|prefix| prefix.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::{HeaderName, HeaderValue};

    #[test]
    fn recognizes_headers_of_proxies() {
        for name in [
            "CDN-Loop",
            "CF-Connecting-IP",
            "CF-Connecting-IPv6",
            "CF-Ray",
            "DO-Connecting-IP",
            "Fastly-Client-IP",
            "Fly-Client-IP",
            "Fly-Forwarded-Port",
            "Forwarded",
            "Forwarded-For",
            "Remote-Addr",
            "True-Client-IP",
            "Via",
            "X-Amz-Cf-Id",
            "X-AppEngine-User-IP",
            "X-ARR-LOG-ID",
            "X-Azure-ClientIP",
            "X-Azure-SocketIP",
            "X-Client-IP",
            "X-Cluster-Client-IP",
            "X-Envoy-External-Address",
            "X-Forwarded",
            "X-Forwarded-For",
            "X-NF-Client-Connection-IP",
            "X-Original-Forwarded-For",
            "X-Original-Host",
            "X-Originating-IP",
            "X-ProxyUser-Ip",
            "X-Real-IP",
            "X-Remote-Addr",
            "X-Varnish",
            "X-Vercel-Forwarded-For",
            "X_Forwarded_For",
        ] {
            assert!(is_from_proxy(&name.to_ascii_lowercase()), "{name}");
        }
        // What browsers, libraries and tools send by themselves.
        for name in [
            "Accept",
            "Accept-Encoding",
            "Authorization",
            "Cache-Control",
            "Connection",
            "Content-Length",
            "Content-Type",
            "DNT",
            "Host",
            "If-None-Match",
            "Last-Event-ID",
            "Origin",
            "Prefer",
            "Proxy-Connection",
            "Sec-Fetch-Site",
            "Sec-WebSocket-Key",
            "TE",
            "traceparent",
            "Upgrade",
            "Upgrade-Insecure-Requests",
            "User-Agent",
            "X-API-Key",
            "X-Request-Id",
            "X-Requested-With",
        ] {
            assert!(!is_from_proxy(&name.to_ascii_lowercase()), "{name}");
        }
    }

    #[test]
    fn what_a_client_sends_does_not_hide_what_a_proxy_appends() {
        for sent in [&b"\xff"[..], b"\"", b"\x80, \xfe", b"1.2.3.4"] {
            let mut headers = HeaderMap::new();
            let line = [sent, b", 203.0.113.5"].concat();
            headers.append(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_bytes(&line).unwrap());
            headers.append(HeaderName::from_static("x-real-ip"), HeaderValue::from_static("198.51.100.1"));
            let client = Forwarded::read(&headers, ProxyHeaders::XForwarded, &[]).client;
            assert_eq!(client, Some("203.0.113.5".parse().unwrap()), "{sent:x?}");
            headers.insert(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_bytes(sent).unwrap());
            let client = Forwarded::read(&headers, ProxyHeaders::XForwarded, &[]).client;
            assert_ne!(client, Some("198.51.100.1".parse().unwrap()), "{sent:x?}");
        }
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn networks(texts: &[&str]) -> Vec<ProxyNetwork> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn networks_contain_the_addresses_with_their_prefix() {
        let cases = [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("0.0.0.0/0", "203.0.113.1", true),
            ("0.0.0.0/0", "::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
        ];
        for (network, address, expected) in cases {
            let network: ProxyNetwork = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{network} {address}");
        }
        for text in ["", "1", "proxy.example", "10.0.0.0/33", "10.0.0.0/x", "::/129", "10.0.0.0/"] {
            assert_eq!(text.parse::<ProxyNetwork>(), Err(InvalidNetwork), "{text}");
        }
    }

    /// Header lines, and the address of the client.
    type Case = (&'static [(&'static str, &'static str)], Option<&'static str>);

    fn check(family: ProxyHeaders, cases: &[Case]) {
        for (lines, expected) in cases {
            let got = Forwarded::read(&headers(lines), family, &networks(&["10.0.0.0/8", "::/0"]));
            assert_eq!(got.client, expected.map(|address| address.parse().unwrap()), "{lines:?}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_proxy() {
        check(
            ProxyHeaders::XForwarded,
            &[
                (&[("x-forwarded-for", "203.0.113.5")], Some("203.0.113.5")),
                (&[("x-forwarded-for", "198.51.100.1, 203.0.113.5")], Some("203.0.113.5")),
                (&[("x-forwarded-for", "198.51.100.1, 203.0.113.5, 10.0.0.9")], Some("203.0.113.5")),
                (&[("x-forwarded-for", "203.0.113.5"), ("x-forwarded-for", "10.0.0.9")], Some("203.0.113.5")),
                (&[("x-forwarded-for", "10.0.0.8, 10.0.0.9")], Some("10.0.0.8")),
                (&[("x-forwarded-for", "203.0.113.5:1234")], Some("203.0.113.5")),
                (&[("x-forwarded-for", "198.51.100.1, unknown")], Some("::")),
                (&[("x-forwarded-for", "198.51.100.1, [::")], Some("::")),
                (&[("x-real-ip", "203.0.113.5")], Some("203.0.113.5")),
                (&[("forwarded", "for=203.0.113.5"), ("x-forwarded-for", "198.51.100.1")], Some("198.51.100.1")),
                (&[("forwarded", "for=203.0.113.5")], None),
                (&[], None),
            ],
        );
        check(
            ProxyHeaders::Forwarded,
            &[
                (&[("forwarded", "for=203.0.113.5;proto=https")], Some("203.0.113.5")),
                (&[("forwarded", "for=198.51.100.1, FOR=\"[203.0.113.6]:80\", for=10.0.0.9")], Some("203.0.113.6")),
                (&[("forwarded", "for=\"_hidden, for=1.2.3.4\"")], Some("::")),
                (&[("forwarded", "for=\"[::")], Some("::")),
                (&[("forwarded", "proto=https")], Some("::")),
                (&[("forwarded", "for=203.0.113.5"), ("x-forwarded-for", "198.51.100.1")], Some("203.0.113.5")),
                (&[("x-forwarded-for", "198.51.100.1"), ("x-real-ip", "198.51.100.1")], None),
            ],
        );
    }

    #[test]
    fn reads_scheme_host_and_prefix_as_the_client_saw_them() {
        use ProxyHeaders::{Forwarded as Standard, XForwarded};
        let read = |family, lines: &[(&'static str, &'static str)]| {
            let read = Forwarded::read(&headers(lines), family, &networks(&["10.0.0.0/8"]));
            let Forwarded { scheme, host, prefix, .. } = read;
            (scheme, host.unwrap_or_default(), prefix.as_str().to_owned())
        };
        let expected = (Some("https"), "node.example:444".to_owned(), "/v1".to_owned());
        let customary = [
            ("x-forwarded-for", "203.0.113.5, 10.0.0.9"),
            ("x-forwarded-proto", "https, http"),
            ("x-forwarded-host", "node.example:444, inner"),
            ("x-forwarded-prefix", "/v1/"),
        ];
        assert_eq!(read(XForwarded, &customary), expected);
        let standard = [(
            "forwarded",
            "for=203.0.113.5;proto=https;host=\"node.example:444\", for=10.0.0.9;proto=http;host=inner",
        )];
        assert_eq!(read(Standard, &[standard[0], customary[3]]), expected);
        assert_eq!(read(XForwarded, &standard), (None, String::new(), String::new()));
        assert_eq!(read(XForwarded, &customary[..3]).2, "");
        let forged =
            [("x-forwarded-proto", "javascript"), ("x-forwarded-host", "a\"b"), ("x-forwarded-prefix", "/<script>")];
        assert_eq!(read(XForwarded, &forged), (None, String::new(), String::new()));
    }
}
