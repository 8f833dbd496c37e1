//! The egress policy: which hosts tasks, sensors and callbacks may call. Workflow authors write their URLs, which may
//! contain inputs, so they must not reach internal addresses.
//!
//! The policy applies to the address of each connection: names are resolved here, and checked at each connection and after
//! each redirect.

mod address;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url, redirect};

use address::{Net, is_always_blocked, is_internal, reached};

/// Names of metadata servers, which give credentials to internal callers.
const METADATA_HOSTS: [&str; 4] = ["metadata.google.internal", "metadata.goog", "metadata", "instance-data"];

/// Which hosts requests may go to: by default every external address, and no internal one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EgressPolicy {
    /// `EBB_EGRESS_ONLY`: if not empty, the only hosts allowed.
    only: Vec<Destination>,
    /// `EBB_EGRESS_ALLOW`: internal hosts that are allowed.
    allowed: Vec<Destination>,
}

/// A host or range that requests may go to.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Destination {
    Host(String),
    /// All hosts below a domain, without the domain itself.
    Subdomains(String),
    Net(Net),
    /// A unix socket, or all sockets below a folder.
    Socket(PathBuf),
}

/// Why a request is blocked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Blocked {
    /// The target is a metadata server or a link-local address.
    #[error("`{0}` is a metadata server or a link-local address, which is never allowed")]
    Metadata(String),
    /// The target is this machine or a private network.
    #[error(
        "`{host}` is {address}, an internal address: loopback and private addresses are blocked unless the operator of the \
         worker allows it (EBB_EGRESS_ALLOW={host})"
    )]
    Internal {
        /// The host in the request.
        host: String,
        /// The address it resolves to.
        address: IpAddr,
    },
    /// The target is a unix socket of this machine.
    #[error(
        "`{0}` is a socket of this machine: name a host, unless the operator of the worker allows the socket \
         (EBB_EGRESS_ALLOW={0})"
    )]
    Socket(String),
    /// The target is not on the allow list.
    #[error("`{0}` is not allowed: the operator of the worker lists allowed hosts in EBB_EGRESS_ONLY")]
    NotListed(String),
    /// A redirect from HTTPS to HTTP would expose the request.
    #[error("it was redirected from https to http, to `{0}`")]
    Downgrade(String),
    /// A redirect to another host would expose headers meant for the first.
    #[error(
        "it was redirected to `{0}`, but its headers are for the original host: send a separate request there"
    )]
    OtherHost(String),
}

/// Which redirects a request may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Redirects {
    /// Redirects to any allowed host.
    AnyHost,
    /// Redirects within the original host, for requests with confidential headers.
    SameHost,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(net) = text.parse() {
            return Ok(Self::Net(net));
        }
        if text.starts_with('/') {
            return Ok(Self::Socket(PathBuf::from(text)));
        }
        let name = text.to_ascii_lowercase();
        let (subdomains, rest) = match name.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, name.as_str()),
        };
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        if rest.is_empty() || !rest.chars().all(fits) {
            return Err(format!(
                "`{text}` is not a host: use a name, *.DOMAIN, an address, a range like 10.0.0.0/8 or the path of a socket"
            ));
        }
        Ok(if subdomains { Self::Subdomains(format!(".{rest}")) } else { Self::Host(rest.to_owned()) })
    }
}

impl Destination {
    fn covers(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Self::Host(name) => name == host,
            Self::Subdomains(domain) => host.ends_with(domain.as_str()),
            Self::Net(net) => net.contains(address),
            Self::Socket(_) => false,
        }
    }

    fn is_network_of(&self, address: IpAddr) -> bool {
        matches!(self, Self::Net(net) if net.contains(address))
    }
}

impl EgressPolicy {
    /// Allows every host but metadata servers, for development on the user's own machine.
    pub fn allow_internal() -> Self {
        Self { only: Vec::new(), allowed: vec![Destination::Net(Net::V4), Destination::Net(Net::V6)] }
    }

    /// Parses two comma-separated lists. Returns all errors at once.
    pub fn read(only: Option<&str>, allowed: Option<&str>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut list = |name: &str, text: Option<&str>| {
            let entries =
                text.unwrap_or_default().split(',').map(str::trim).filter(|entry| !entry.is_empty());
            let mut found = Vec::new();
            for entry in entries {
                match entry.parse() {
                    Ok(destination) => found.push(destination),
                    Err(problem) => problems.push(format!("{name}: {problem}")),
                }
            }
            found
        };
        let read = Self { only: list("EBB_EGRESS_ONLY", only), allowed: list("EBB_EGRESS_ALLOW", allowed) };
        if problems.is_empty() { Ok(read) } else { Err(problems) }
    }

    /// Whether a request may go to an address that a host resolves to.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), Blocked> {
        let host = normalized(host);
        if METADATA_HOSTS.contains(&host.as_str()) || reached(address).any(is_always_blocked) {
            return Err(Blocked::Metadata(host));
        }
        reached(address).try_for_each(|address| self.check_reached(&host, address))
    }

    /// The same for one address that packets may reach.
    fn check_reached(&self, host: &str, address: IpAddr) -> Result<(), Blocked> {
        let covered = |list: &[Destination]| list.iter().any(|entry| entry.covers(host, address));
        if !self.only.is_empty() && !covered(&self.only) {
            return Err(Blocked::NotListed(host.to_owned()));
        }
        // A name in `only` does not allow an internal address that it resolves to; a network in `only` does.
        let allowed = covered(&self.allowed) || self.only.iter().any(|entry| entry.is_network_of(address));
        if is_internal(address) && !allowed {
            return Err(Blocked::Internal { host: host.to_owned(), address });
        }
        Ok(())
    }

    /// Whether a connection may go to a unix socket, which only the operator can allow: the worker's own database may be
    /// behind one.
    pub fn check_socket(&self, socket: &Path) -> Result<(), Blocked> {
        let is_plain = socket.components().all(|part| part != std::path::Component::ParentDir);
        let covers =
            |entry: &Destination| matches!(entry, Destination::Socket(path) if socket.starts_with(path));
        let allowed = is_plain && self.only.iter().chain(&self.allowed).any(covers);
        if allowed { Ok(()) } else { Err(Blocked::Socket(socket.display().to_string())) }
    }

    /// The allowed addresses that a host resolves to. Fails if none of them is allowed.
    pub async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let (mut allowed, mut blocked) = (Vec::new(), None);
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        for address in tokio::net::lookup_host((literal, port)).await? {
            match self.check(host, address.ip()) {
                Ok(()) => allowed.push(address),
                Err(reason) => blocked = Some(reason),
            }
        }
        match blocked {
            Some(reason) if allowed.is_empty() => {
                Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, reason))
            }
            _ => Ok(allowed),
        }
    }

    /// Whether a request may go to a URL, as far as that is known before its name is resolved.
    pub fn check_url(&self, url: &Url) -> Result<(), Blocked> {
        let Some(host) = url.host_str() else { return Ok(()) };
        let host = normalized(host);
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(&host, address),
            Err(_) if METADATA_HOSTS.contains(&host.as_str()) => Err(Blocked::Metadata(host)),
            Err(_) => Ok(()),
        }
    }

    /// Applies the policy to a client. The client uses no proxy, whose connections could not be checked here.
    pub fn apply(&self, client: ClientBuilder, max_redirects: usize, redirects: Redirects) -> ClientBuilder {
        let (policy, limited) = (self.clone(), redirect::Policy::limited(max_redirects));
        let redirects =
            redirect::Policy::custom(move |attempt| match policy.check_redirect(&attempt, redirects) {
                Ok(()) => limited.redirect(attempt),
                Err(blocked) => attempt.error(blocked),
            });
        client.no_proxy().dns_resolver(Resolver(self.clone())).redirect(redirects)
    }

    fn check_redirect(&self, attempt: &redirect::Attempt<'_>, redirects: Redirects) -> Result<(), Blocked> {
        let (from, to) = (attempt.previous().last(), attempt.url());
        let host = || to.host_str().unwrap_or_default().to_owned();
        if from.is_some_and(|from| from.scheme() == "https") && to.scheme() == "http" {
            return Err(Blocked::Downgrade(host()));
        }
        let origin = |url: &Url| (url.host_str().map(normalized), url.port_or_known_default());
        if redirects == Redirects::SameHost && from.is_some_and(|from| origin(from) != origin(to)) {
            return Err(Blocked::OtherHost(host()));
        }
        self.check_url(attempt.url())
    }
}

/// A host name in the form that is compared: lower case, without a trailing dot.
fn normalized(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Resolves names to allowed addresses only.
struct Resolver(EgressPolicy);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let allowed = policy.resolve(name.as_str(), 0).await;
            // The reason is the error itself, so that callers find it in the chain.
            let allowed = allowed.map_err(|error| match error.downcast::<Blocked>() {
                Ok(blocked) => blocked.into(),
                Err(error) => Box::<dyn std::error::Error + Send + Sync>::from(error),
            })?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
