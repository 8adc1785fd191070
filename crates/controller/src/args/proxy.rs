//! The proxy to an API server, chosen as client-go chooses it: that of the kubeconfig, or else that of the environment.

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// What the environment says of proxies.
#[derive(Clone, Debug, Default)]
pub(super) struct ProxyVariables {
    http: String,
    https: String,
    no: String,
}

impl ProxyVariables {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, or the same in lower case.
    pub(super) fn from_environment() -> ProxyVariables {
        let read = |upper: &str| {
            let names = [upper.to_owned(), upper.to_lowercase()];
            names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        };
        let read = |upper| read(upper).unwrap_or_default();
        ProxyVariables { http: read("HTTP_PROXY"), https: read("HTTPS_PROXY"), no: read("NO_PROXY") }
    }

    /// The proxy to this server, if there is one. To a server on this machine there is none
    /// (<https://pkg.go.dev/net/http#ProxyFromEnvironment>).
    pub(super) fn proxy_to(&self, server: &Uri) -> Option<Uri> {
        if is_loopback(server.host()?) {
            return None;
        }
        let matcher =
            Matcher::builder().http(self.http.clone()).https(self.https.clone()).no(self.no.clone()).build();
        matcher.intercept(server)?;
        let named = if server.scheme_str() == Some("http") { &self.http } else { &self.https };
        parse_proxy(named)
    }
}

/// Reads the address of a proxy. Without a scheme it is one of HTTP.
pub(super) fn parse_proxy(named: &str) -> Option<Uri> {
    let with_scheme = if named.contains("://") { named.to_owned() } else { format!("http://{named}") };
    with_scheme.parse().ok()
}

/// Host and port of a proxy, without its credentials.
pub fn proxy_address(proxy: &Uri) -> String {
    let authority = proxy.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_owned()
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_of_the_environment_is_used_as_client_go_uses_it() {
        let of = ProxyVariables {
            http: "http://plain:3128".into(),
            https: "proxy:3128".into(),
            no: "10.0.0.0/8, .svc, intern.example.com".into(),
        };
        for (server, proxy) in [
            ("https://eks.example.com:443", Some("http://proxy:3128/")),
            ("http://eks.example.com:8080", Some("http://plain:3128/")),
            ("https://10.3.2.1:6443", None),
            ("https://11.3.2.1:6443", Some("http://proxy:3128/")),
            ("https://kubernetes.default.svc", None),
            ("https://a.intern.example.com", None),
            // A cluster on this machine, as kind and k3d have it.
            ("https://127.0.0.1:6443", None),
            ("https://localhost:6443", None),
            ("https://[::1]:6443", None),
        ] {
            let chosen = of.proxy_to(&server.parse().unwrap()).map(|proxy| proxy.to_string());
            assert_eq!(chosen.as_deref(), proxy, "{server}");
        }
        let server = "https://eks.example.com".parse().unwrap();
        assert_eq!(ProxyVariables::default().proxy_to(&server), None);
        let everything = ProxyVariables { no: "*".into(), ..of };
        assert_eq!(everything.proxy_to(&server), None);
    }

    #[test]
    fn the_credentials_of_a_proxy_stay_in_its_address() {
        let of = ProxyVariables { https: "http://me:pa%40ss@proxy:3128".into(), ..ProxyVariables::default() };
        let chosen = of.proxy_to(&"https://eks.example.com".parse().unwrap()).unwrap();
        assert_eq!(chosen.authority().unwrap().as_str(), "me:pa%40ss@proxy:3128");
        assert_eq!(proxy_address(&chosen), "proxy:3128");
    }
}
