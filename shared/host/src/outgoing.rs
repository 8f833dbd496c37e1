//! Where workflows may send requests: tasks, sensors and callbacks call addresses that authors write and that may contain
//! inputs, so they must not reach internal addresses.
//!
//! The rules apply to the address that is connected to: names are resolved here and checked by their addresses, at each
//! connection and after each redirect.

mod address;

use std::net::IpAddr;
use std::str::FromStr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url, redirect};

use address::{Net, is_never_called, is_within, plain};

/// Names of metadata servers, which hand out credentials to internal callers.
const METADATA: [&str; 4] = ["metadata.google.internal", "metadata.goog", "metadata", "instance-data"];

/// Where requests may go. By default to every external address, and to no internal one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outgoing {
    /// `EBB_OUTGOING_ONLY`: if not empty, the only hosts allowed.
    only: Vec<Destination>,
    /// `EBB_OUTGOING_ALLOW`: internal hosts that are allowed.
    allowed: Vec<Destination>,
}

/// A host or range that requests may go to.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Destination {
    Host(String),
    /// The hosts of a domain, without the domain itself.
    Below(String),
    Net(Net),
}

/// Why a request is blocked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// The target is a metadata server or a link-local address.
    #[error("`{0}` is a metadata server or a link-local address, which is never allowed")]
    Never(String),
    /// The target is this machine or a private network.
    #[error(
        "`{host}` is {address}, an internal address: loopback and private addresses are blocked unless the operator of the \
         worker allows it (EBB_OUTGOING_ALLOW={host})"
    )]
    Within {
        /// The host in the request.
        host: String,
        /// The address it resolves to.
        address: IpAddr,
    },
    /// The target is not on the list.
    #[error("`{0}` is not allowed: the operator of the worker lists allowed hosts in EBB_OUTGOING_ONLY")]
    NotNamed(String),
    /// A redirect from HTTPS to HTTP would expose the request.
    #[error("it is redirected from https to http, to `{0}`")]
    Downgraded(String),
    /// A redirect to another host would expose headers meant for the first.
    #[error(
        "it is redirected to `{0}`, and its headers are for the host that it was sent to: ask there by a request of its own"
    )]
    Abroad(String),
}

/// Which redirects a request may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// To any allowed host.
    Abroad,
    /// Within its own host: it carries confidential headers.
    Home,
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(net) = text.parse() {
            return Ok(Self::Net(net));
        }
        let name = text.to_ascii_lowercase();
        let (below, rest) = match name.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, name.as_str()),
        };
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        if rest.is_empty() || !rest.chars().all(fits) {
            return Err(format!(
                "`{text}` is not a host: use a name, *.DOMAIN, an address or a range like 10.0.0.0/8"
            ));
        }
        Ok(if below { Self::Below(format!(".{rest}")) } else { Self::Host(rest.to_owned()) })
    }
}

impl Destination {
    fn covers(&self, host: &str, address: IpAddr) -> bool {
        match self {
            Self::Host(name) => name == host,
            Self::Below(domain) => host.ends_with(domain.as_str()),
            Self::Net(net) => net.contains(address),
        }
    }

    fn is_net_of(&self, address: IpAddr) -> bool {
        matches!(self, Self::Net(net) if net.contains(address))
    }
}

impl Outgoing {
    /// Everywhere but to metadata servers: for development on one's own machine.
    pub fn anywhere() -> Self {
        Self { only: Vec::new(), allowed: vec![Destination::Net(Net::V4), Destination::Net(Net::V6)] }
    }

    /// From two comma-separated lists; or everything that is wrong with them.
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
        let read =
            Self { only: list("EBB_OUTGOING_ONLY", only), allowed: list("EBB_OUTGOING_ALLOW", allowed) };
        if problems.is_empty() { Ok(read) } else { Err(problems) }
    }

    /// Whether a request may go to an address that a host resolves to.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let (host, address) = (bare(host), plain(address));
        if METADATA.contains(&host.as_str()) || is_never_called(address) {
            return Err(Refused::Never(host));
        }
        let covered = |list: &[Destination]| list.iter().any(|entry| entry.covers(&host, address));
        if !self.only.is_empty() && !covered(&self.only) {
            return Err(Refused::NotNamed(host));
        }
        // An allowed name does not make its current internal address acceptable; an allowed address does.
        let wanted = covered(&self.allowed) || self.only.iter().any(|entry| entry.is_net_of(address));
        if is_within(address) && !wanted { Err(Refused::Within { host, address }) } else { Ok(()) }
    }

    /// Whether a request may go there, as far as the URL tells: names are checked once resolved.
    pub fn check_url(&self, url: &Url) -> Result<(), Refused> {
        let Some(host) = url.host_str() else { return Ok(()) };
        let host = bare(host);
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(&host, address),
            Err(_) if METADATA.contains(&host.as_str()) => Err(Refused::Never(host)),
            Err(_) => Ok(()),
        }
    }

    /// A client that obeys these rules, with a limited number of redirects. It uses no proxy, whose connections could not be
    /// checked here.
    pub fn limit(&self, client: ClientBuilder, redirects: usize, reach: Reach) -> ClientBuilder {
        let (policy, usual) = (self.clone(), redirect::Policy::limited(redirects));
        let redirects =
            redirect::Policy::custom(move |attempt| match policy.check_redirect(&attempt, reach) {
                Ok(()) => usual.redirect(attempt),
                Err(refused) => attempt.error(refused),
            });
        client.no_proxy().dns_resolver(Resolver(self.clone())).redirect(redirects)
    }

    fn check_redirect(&self, attempt: &redirect::Attempt<'_>, reach: Reach) -> Result<(), Refused> {
        let (from, to) = (attempt.previous().last(), attempt.url());
        let host = || to.host_str().unwrap_or_default().to_owned();
        if from.is_some_and(|from| from.scheme() == "https") && to.scheme() == "http" {
            return Err(Refused::Downgraded(host()));
        }
        let place = |url: &Url| (url.host_str().map(bare), url.port_or_known_default());
        if reach == Reach::Home && from.is_some_and(|from| place(from) != place(to)) {
            return Err(Refused::Abroad(host()));
        }
        self.check_url(attempt.url())
    }
}

/// Normalizes a name for comparison.
fn bare(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Resolves names to allowed addresses only.
struct Resolver(Outgoing);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found = tokio::net::lookup_host((host, 0)).await?;
            let (mut good, mut refusal) = (Vec::new(), None);
            for address in found {
                match policy.check(host, address.ip()) {
                    Ok(()) => good.push(address),
                    Err(refused) => refusal = Some(refused),
                }
            }
            match refusal {
                Some(refused) if good.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(good.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
