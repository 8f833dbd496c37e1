//! Settings that are URLs. Values may contain passwords, so problems never quote them.

use reqwest::Url;

use super::Reader;

const EXAMPLE: &str = "postgres://user@host/database";

impl Reader<'_> {
    /// `DATABASE_URL`, checked as far as possible without a connection.
    pub(super) fn database_url(&mut self) -> String {
        let url = self.needed("DATABASE_URL", EXAMPLE);
        if !url.is_empty()
            && let Err(reason) = check_database(&url)
        {
            self.problems.push(format!(
                "DATABASE_URL is not the URL of a Postgres database: {reason} (for example \
                 DATABASE_URL={EXAMPLE}; special characters in a password are percent-encoded)"
            ));
        }
        url
    }

    /// The address of a server that speaks HTTP.
    pub(super) fn http_url(&mut self, name: &str) -> Option<String> {
        let url = self.optional(name)?;
        let reason = match Url::parse(&url) {
            Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => return Some(url),
            Ok(parsed) => format!("it begins with `{}:`", parsed.scheme()),
            Err(error) => error.to_string(),
        };
        self.problems.push(format!("{name} is not an http or https URL: {reason}"));
        None
    }
}

fn check_database(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    if !matches!(parsed.scheme(), "postgres" | "postgresql") {
        return Err(format!("it begins with `{}:` instead of `postgres:`", parsed.scheme()));
    }
    let has_host =
        parsed.has_host() || parsed.query_pairs().any(|(name, _)| name == "host" || name == "hostaddr");
    if !has_host {
        return Err("it names no host".to_owned());
    }
    if parsed.path().trim_start_matches('/').is_empty()
        && !parsed.query_pairs().any(|(name, _)| name == "dbname")
    {
        return Err("it names no database".to_owned());
    }
    store::Postgres::check_url(url)
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;

    /// The problems with an otherwise valid configuration.
    fn problems(name: &str, value: &str) -> String {
        let mut variables =
            vec![("DATABASE_URL", "postgres://x/y"), ("EBB_PROJECT", "p"), ("EBB_PUSH_AUTH", "none")];
        variables.retain(|(known, _)| *known != name);
        variables.push((name, value));
        read(&variables).map_or_else(|problems| problems.to_string(), |_| String::new())
    }

    #[test]
    fn a_malformed_database_url_is_reported_without_its_password() {
        for (url, reason) in [
            ("nonsense", "relative URL without a base"),
            ("host/database", "relative URL without a base"),
            ("mysql://ebb:hunter2@host/db", "begins with `mysql:`"),
            ("postgres:", "names no host"),
            ("postgres:///db", "names no host"),
            ("postgres://ebb:hunter2@host", "names no database"),
            ("postgres://ebb:hunter2@host:port/db", "invalid port number"),
            ("postgres://ebb:hunter2@host:99999/db", "invalid port number"),
            ("postgres://ebb:hunter2#1@host/db", "invalid port number"),
            ("postgres://ebb:hunter2@host/db?sslmode=never", "unknown value"),
            ("postgres://ebb@host/db?port=no", "invalid digit"),
        ] {
            let problems = problems("DATABASE_URL", url);
            assert!(
                problems.contains("DATABASE_URL is not") && problems.contains(reason),
                "{url}: {problems}"
            );
            assert!(!problems.contains("hunter2"), "{problems}");
        }
    }

    #[test]
    fn every_way_to_name_a_database_is_accepted() {
        for url in [
            "postgres://ebb:p%40ss@host:5432/db",
            "postgresql://host/db?sslmode=disable",
            "postgres://ebb@%2Fcloudsql%2Fp%3Ar%3Ai/db",
            "postgres://ebb@localhost/db?host=/cloudsql/p:r:i",
            "postgres:///db?host=/var/run/postgresql",
            "postgres://ebb@[::1]/db",
        ] {
            assert_eq!(problems("DATABASE_URL", url), "", "{url}");
        }
    }

    #[test]
    fn a_malformed_address_of_a_server_is_reported() {
        for name in ["EBB_CONSOLE_URL", "EBB_OTLP_ENDPOINT", "EBB_STORAGE_ENDPOINT"] {
            for url in ["collector:4318", "ftp://collector", "http//collector"] {
                let problems = problems(name, url);
                assert!(problems.contains(&format!("{name} is not an http or https URL")), "{problems}");
            }
            assert_eq!(problems(name, "http://collector:4318"), "");
        }
    }
}
