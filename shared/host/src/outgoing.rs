//! Where requests of workflows may go: tasks, sensors and callbacks call addresses that authors write and that inputs
//! may be part of, so they must not lead to what only this network can reach.
//!
//! What counts is the address that is connected to: names are looked up here and judged by what they stand for, at
//! each connection, and after each redirect.

mod address;

use std::net::IpAddr;
use std::str::FromStr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{ClientBuilder, Url, redirect};

use address::{Net, is_never_called, is_within, plain};

/// Names of servers that give credentials away to whoever asks from within.
const METADATA: [&str; 4] = ["metadata.google.internal", "metadata.goog", "metadata", "instance-data"];

/// Where requests may go. By default everywhere outside, and nowhere within.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outgoing {
    /// `EBB_OUTGOING_ONLY`: nowhere else, where any are named.
    only: Vec<Destination>,
    /// `EBB_OUTGOING_ALLOW`: here although it is within.
    allowed: Vec<Destination>,
}

/// Somewhere that requests may go.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Destination {
    Host(String),
    /// The hosts of a domain, without the domain itself.
    Below(String),
    Net(Net),
}

/// Why a request may not go somewhere.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// It leads to a metadata server, or to this link.
    #[error("`{0}` is a metadata server or an address of this link: nobody may call it")]
    Never(String),
    /// It leads to this machine, or into a private network.
    #[error(
        "`{host}` is {address}, which is within: nothing calls loopback and private addresses unless whoever runs the \
         worker allows it (EBB_OUTGOING_ALLOW={host})"
    )]
    Within {
        /// The host, as it was asked for.
        host: String,
        /// What it stands for.
        address: IpAddr,
    },
    /// It is none of those that are named.
    #[error(
        "`{0}` is none of those that may be called: whoever runs the worker names them in EBB_OUTGOING_ONLY"
    )]
    NotNamed(String),
    /// What was sent by HTTPS would be sent on for anyone to read.
    #[error("it is redirected from https to http, to `{0}`")]
    Downgraded(String),
    /// Headers that were made for one host would be shown to another.
    #[error(
        "it is redirected to `{0}`, and its headers are for the host that it was sent to: ask there by a request of its own"
    )]
    Abroad(String),
}

/// How far a request may be sent on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// To any host that may be called.
    Abroad,
    /// To other addresses of its own host: what it carries is nobody else's business.
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
                "`{text}` is no host: write a name, *.DOMAIN, an address or a range like 10.0.0.0/8"
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
    /// Everywhere but to metadata servers: for whoever works on a machine of their own.
    pub fn anywhere() -> Self {
        Self { only: Vec::new(), allowed: vec![Destination::Net(Net::V4), Destination::Net(Net::V6)] }
    }

    /// As two lists say, whose entries are separated by commas; or everything that is wrong with them.
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

    /// Whether a request may go to an address that a host stands for.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let (host, address) = (bare(host), plain(address));
        if METADATA.contains(&host.as_str()) || is_never_called(address) {
            return Err(Refused::Never(host));
        }
        let covered = |list: &[Destination]| list.iter().any(|entry| entry.covers(&host, address));
        if !self.only.is_empty() && !covered(&self.only) {
            return Err(Refused::NotNamed(host));
        }
        // That a name is wanted does not make what it stands for today any better; that an address is, does.
        let wanted = covered(&self.allowed) || self.only.iter().any(|entry| entry.is_net_of(address));
        if is_within(address) && !wanted { Err(Refused::Within { host, address }) } else { Ok(()) }
    }

    /// Whether a request may go there, as far as the address itself says: names are judged once they are looked up.
    pub fn check_url(&self, url: &Url) -> Result<(), Refused> {
        let Some(host) = url.host_str() else { return Ok(()) };
        let host = bare(host);
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check(&host, address),
            Err(_) if METADATA.contains(&host.as_str()) => Err(Refused::Never(host)),
            Err(_) => Ok(()),
        }
    }

    /// A client that goes nowhere else, and is sent on so often at most. It asks no proxy: who is asked by one is
    /// for the proxy to know.
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

/// A name as it is compared.
fn bare(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Looks names up, and answers only the addresses that may be called.
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
