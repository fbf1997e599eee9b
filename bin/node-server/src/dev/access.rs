//! Who may use a development chain for what, as the banner shows it.

use node_http::{AllowedOrigin, HttpConfig, Origin, PublicUrl, RateLimit};
use std::fmt;

/// The rights of clients and pages. Displayed as the lines of the banner about them.
pub(super) struct Access(Vec<(&'static str, String)>);

impl Access {
    pub(super) fn new(http: &HttpConfig) -> Self {
        let (listen, access) = (&http.listen, &http.access);
        let public_host = listen.public_url.as_ref().filter(|url| !url.is_loopback()).map(PublicUrl::host);
        let is_public = !listen.host.is_loopback() || public_host.is_some();
        // With --control-listen, pages may have control there.
        let is_off = access.no_control || access.control_listen.is_none() && !access.remote_control && is_public;
        let mut lines = vec![("control", Self::control(http, public_host))];
        let pages: Vec<_> = access.cors_origins.iter().filter(|allowed| allowed.origin != Origin::None).collect();
        let pages = match &*pages {
            [] => "none of other origins (--cors-origins)".to_owned(),
            pages => {
                let right = |allowed: &&AllowedOrigin| {
                    let controls = allowed.controls && !is_off;
                    AllowedOrigin { controls, ..(*allowed).clone() }.to_string()
                };
                let pages: Vec<_> = pages.iter().map(right).collect();
                format!("{} (--cors-origins)", pages.join(", "))
            }
        };
        lines.push(("web pages", pages));
        if is_public {
            if access.allowed_hosts.is_empty() {
                let names = "requests for a host name other than localhost are refused (--allowed-hosts)";
                lines.push(("host names", names.to_owned()));
            }
            if access.rate_limit == RateLimit::Auto {
                lines.push(("rate limit", "1000 requests per second for each other machine (--rate-limit)".to_owned()));
            }
        }
        Self(lines)
    }

    /// Who may control the chain, or why nobody may.
    fn control(http: &HttpConfig, public_host: Option<&str>) -> String {
        let (listen, access) = (&http.listen, &http.access);
        let off = |reason: String| {
            format!(
                "off, because {reason}: requests cannot mine, set time or state, take snapshots, impersonate, or send \
                 from the accounts above without a signature; --force-control allows it for everyone, --control-listen \
                 on a separate address"
            )
        };
        if access.no_control {
            return "off for everyone (--no-control)".to_owned();
        }
        if let Some(address) = access.control_listen {
            return format!("for everyone who can reach {address} (--control-listen), and off here");
        }
        if access.remote_control {
            return "for everyone who can reach the server (--force-control)".to_owned();
        }
        if !listen.host.is_loopback() {
            return off(format!("other machines can reach {}", listen.host));
        }
        match public_host {
            Some(host) => off(format!("--public-url has the host {host}")),
            None => "for programs on this machine".to_owned(),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, text)| writeln!(f, "{name:<16} {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_is_switched_off() {
        let text = |change: &dyn Fn(&mut HttpConfig)| {
            let mut http = HttpConfig::default();
            http.access.cors_origins = vec![Origin::Loopback.into(), Origin::Extensions.into()];
            change(&mut http);
            Access::new(&http).to_string()
        };
        assert_eq!(
            text(&|_| {}),
            "control          for programs on this machine\n\
             web pages        loopback=control, extensions=read (--cors-origins)\n"
        );
        let public = text(&|http| http.listen.host = [0, 0, 0, 0].into());
        for expected in [
            "control          off, because other machines can reach 0.0.0.0",
            "snapshots",
            "--force-control",
            "--control-listen",
            "--allowed-hosts",
            "--rate-limit",
            "loopback=read, ",
        ] {
            assert!(public.contains(expected), "no {expected:?} in {public}");
        }
        let proxied = text(&|http| http.listen.public_url = Some("https://node.example".parse().unwrap()));
        assert!(proxied.contains("off, because --public-url has the host node.example"), "{proxied}");
        let local = text(&|http| http.listen.public_url = Some("http://localhost:1".parse().unwrap()));
        assert!(local.contains("for programs on this machine"), "{local}");
        let off = text(&|http| http.access.no_control = true);
        assert!(off.contains("off for everyone") && off.contains("loopback=read, "), "{off}");
        let forced = text(&|http| {
            (http.listen.host, http.access.remote_control) = ([0, 0, 0, 0].into(), true);
            http.access.cors_origins = vec![Origin::None.into()];
        });
        assert!(forced.contains("everyone who can reach the server") && forced.contains("none of other origins"));
        let separate = text(&|http| http.access.control_listen = Some(([127, 0, 0, 1], 1).into()));
        assert!(separate.contains("can reach 127.0.0.1:1 (--control-listen)"), "{separate}");
    }
}
