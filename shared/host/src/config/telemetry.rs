//! Where metrics and spans go.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use model::Topic;

use super::{Environment, Reader};

/// The collector that receives metrics and spans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtlpConfig {
    /// `EBB_OTLP_ENDPOINT`: the address of the collector.
    pub endpoint: String,
    /// `EBB_OTLP_HEADERS`: headers of every request, `name=value` separated by commas. Their values are secret.
    pub headers: HeaderMap,
    /// `EBB_OTLP_AUTH`: how to authenticate besides these headers.
    pub auth: OtlpAuth,
    /// `EBB_TOPIC_PREFIX`: the name of the installation, by which its metrics differ from those of others in the same project.
    pub installation: String,
    /// `EBB_PROJECT`: the project that metrics and spans belong to.
    pub project: Option<String>,
    /// `EBB_REGION`: where this process runs, which Google's endpoint requires of metrics.
    pub region: Option<String>,
}

/// How to authenticate to a collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OtlpAuth {
    /// Only by the headers, if there are any.
    #[default]
    None,
    /// `google`: with an access token of this function's account.
    Google,
}

impl OtlpConfig {
    /// Reads the settings; none without an endpoint.
    pub fn from_env(environment: &Environment) -> Result<Option<Self>, super::Problems> {
        let mut reader = Reader { environment, problems: Vec::new() };
        let config = reader.otlp();
        if reader.problems.is_empty() { Ok(config) } else { Err(super::Problems(reader.problems)) }
    }
}

impl Reader<'_> {
    pub(super) fn otlp(&mut self) -> Option<OtlpConfig> {
        let auth = match self.optional("EBB_OTLP_AUTH").as_deref() {
            None => OtlpAuth::None,
            Some("google") => OtlpAuth::Google,
            Some(other) => {
                self.problems.push(format!("EBB_OTLP_AUTH is `{other}`; it must be google, or not set"));
                OtlpAuth::None
            }
        };
        let headers = self.otlp_headers();
        let (project, region) = (self.optional("EBB_PROJECT"), self.optional("EBB_REGION"));
        if auth == OtlpAuth::Google && region.is_none() {
            let problem = "EBB_OTLP_AUTH=google needs EBB_REGION, such as us-central1: Google rejects metrics without it";
            self.problems.push(problem.into());
        }
        let installation = self.topic_prefix();
        let endpoint = self.http_url("EBB_OTLP_ENDPOINT")?;
        Some(OtlpConfig { endpoint, headers, auth, installation, project, region })
    }

    /// The prefix of the names of everything that belongs to this installation.
    pub(super) fn topic_prefix(&self) -> String {
        self.optional("EBB_TOPIC_PREFIX").unwrap_or_else(|| Topic::DEFAULT_PREFIX.to_owned())
    }

    fn otlp_headers(&mut self) -> HeaderMap {
        let text = self.optional("EBB_OTLP_HEADERS").unwrap_or_default();
        let mut headers = HeaderMap::new();
        for (place, entry) in
            text.split(',').map(str::trim).enumerate().filter(|(_, entry)| !entry.is_empty())
        {
            let header = entry.split_once('=').and_then(|(name, value)| {
                let mut value = HeaderValue::from_str(value.trim()).ok()?;
                value.set_sensitive(true);
                Some((HeaderName::try_from(name.trim()).ok()?, value))
            });
            match header {
                Some((name, value)) => drop(headers.insert(name, value)),
                // The entry may be a secret.
                None => self.problems.push(format!(
                    "EBB_OTLP_HEADERS: entry {} is not of the form NAME=VALUE with the name of a header",
                    place + 1
                )),
            }
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<OtlpConfig>, String> {
        OtlpConfig::from_env(&variables.iter().copied().collect()).map_err(|problems| problems.to_string())
    }

    #[test]
    fn headers_are_read_and_bad_ones_are_reported_without_their_values() {
        assert_eq!(read(&[("EBB_OTLP_HEADERS", "a=b")]), Ok(None), "there is no collector");
        let endpoint = ("EBB_OTLP_ENDPOINT", "http://collector");
        let config =
            read(&[endpoint, ("EBB_OTLP_HEADERS", "x-api-key=s3cret=, x-team = a")]).unwrap().unwrap();
        assert!(config.headers["x-api-key"] == "s3cret=" && config.headers["x-team"] == "a");
        assert!(!format!("{config:?}").contains("s3cret"));
        let bad = [endpoint, ("EBB_OTLP_HEADERS", "a=b,s3cret"), ("EBB_OTLP_AUTH", "aws")];
        let problems = read(&bad).unwrap_err();
        assert!(problems.contains("entry 2") && problems.contains("`aws`"), "{problems}");
        assert!(!problems.contains("s3cret"), "{problems}");
    }

    #[test]
    fn metrics_for_google_need_a_region() {
        let google = [("EBB_OTLP_ENDPOINT", "https://collector"), ("EBB_OTLP_AUTH", "google")];
        assert!(read(&google).unwrap_err().contains("EBB_REGION"));
        let config = read(&[google[0], google[1], ("EBB_REGION", "us-central1")]).unwrap().unwrap();
        assert_eq!(config.region.as_deref(), Some("us-central1"));
        assert_eq!(config.installation, "ebbflow");
        let other = [google[0], ("EBB_TOPIC_PREFIX", "ebbflow-test")];
        assert_eq!(read(&other).unwrap().unwrap().installation, "ebbflow-test");
    }
}
