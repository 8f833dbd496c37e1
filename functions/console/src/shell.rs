//! What is around every page: who reads it, in which light, and what was done just now.

use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use chrono::DateTime;
use model::Instant;
use percent_encoding::percent_decode_str;

use crate::ask::part;
use crate::show::{self, Markup};

/// The outcome of a form, which the next page shows.
pub(crate) const NOTICE: &str = "ebb_notice";

const THEME: &str = "ebb_theme";

/// What is around a page.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    /// `light` or `dark`; empty for what the system prefers.
    pub(crate) theme: &'static str,
    /// Which part of the console this is.
    pub(crate) section: &'static str,
    /// The name of the visitor; empty if unknown.
    pub(crate) who: String,
    /// The outcome of the last action: whether it succeeded, and a message.
    pub(crate) notice: Option<(bool, String)>,
    /// This page's own address.
    pub(crate) here: String,
    /// When the page was made.
    pub(crate) now: Instant,
    /// The token that proves that a form belongs to this session, if there is one.
    pub(crate) csrf: Option<String>,
}

impl Shell {
    /// Around a page of which nothing is known.
    pub(crate) fn bare() -> Self {
        let (theme, section, here) = ("", "", "/".to_owned());
        let (who, now) = (String::new(), DateTime::UNIX_EPOCH);
        Self { theme, section, who, notice: None, here, now, csrf: None }
    }

    pub(crate) fn new(parts: &Parts, who: String, now: Instant) -> Self {
        let path = parts.uri.path();
        let section = match path.split('/').nth(1).unwrap_or_default() {
            "" => "home",
            "runs" => "runs",
            "workflows" => "workflows",
            "operations" => "operations",
            _ => "",
        };
        let theme = match cookie(parts, THEME).as_deref() {
            Some("dark") => "dark",
            Some("light") => "light",
            _ => "",
        };
        let notice = cookie(parts, NOTICE).and_then(|notice| {
            let (kind, text) = notice.split_once(':')?;
            Some((kind == "done", text.to_owned()))
        });
        let here = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        Self { theme, section, who, notice, here, now, csrf: None }
    }

    /// The beginning of a form that has something done. Every form of every page begins here, and what it sends is
    /// taken by [`Sent`](crate::sent::Sent).
    pub(crate) fn post(&self, action: impl AsRef<str>) -> Markup {
        self.post_from(action.as_ref(), &self.here)
    }

    /// The same with another page to lead back to.
    pub(crate) fn post_from(&self, action: &str, back: &str) -> Markup {
        let (action, back) = (show::escaped(action), show::escaped(back));
        let proof = self
            .csrf
            .as_deref()
            .map(|csrf| format!("<input type=\"hidden\" name=\"csrf\" value=\"{}\">", show::escaped(csrf)));
        let proof = proof.unwrap_or_default();
        Markup(format!(
            "<form method=\"post\" action=\"{action}\" class=\"act\">{proof}<input type=\"hidden\" name=\"back\" value=\"{back}\">"
        ))
    }

    /// An instant: relative for people, exact in the tooltip and for programs.
    pub(crate) fn when(&self, at: &Instant) -> Markup {
        let (iso, exact, words) = (show::iso(at), show::time(at), show::distance(*at, self.now));
        Markup(format!("<time datetime=\"{iso}\" title=\"{exact}\">{words}</time>"))
    }

    /// How long something has taken so far, or took.
    pub(crate) fn took(&self, from: &Option<Instant>, to: &Option<Instant>) -> String {
        from.map(|from| show::span(to.unwrap_or(self.now) - from)).unwrap_or_default()
    }

    /// The theme that the switch leads to.
    pub(crate) fn next_theme(&self) -> &'static str {
        match self.theme {
            "" => "dark",
            "dark" => "light",
            _ => "auto",
        }
    }
}

/// The value of a cookie of the request.
pub(crate) fn cookie(parts: &Parts, name: &str) -> Option<String> {
    let sent = parts.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = sent.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == name)?;
    percent_decode_str(value).decode_utf8().ok().map(|value| value.into_owned())
}

/// Redirects to a page of this console, which shows the outcome.
pub(crate) fn back(to: &str, went_well: bool, notice: &str) -> Response {
    // A header is short; the page has the rest.
    let short: String = notice.chars().take(400).collect();
    let kind = if went_well { "done" } else { "failed" };
    let cookie =
        format!("{NOTICE}={}; Path=/; Max-Age=30; HttpOnly; SameSite=Lax", part(&format!("{kind}:{short}")));
    ([(header::SET_COOKIE, cookie)], Redirect::to(local(to))).into_response()
}

/// Lets the visitor choose the light.
pub(crate) fn with_theme(theme: &str, to: &str) -> Response {
    let cookie = match theme {
        "dark" | "light" => format!("{THEME}={theme}; Path=/; Max-Age=31536000; SameSite=Lax"),
        _ => format!("{THEME}=; Path=/; Max-Age=0; SameSite=Lax"),
    };
    ([(header::SET_COOKIE, cookie)], Redirect::to(local(to))).into_response()
}

/// The address, if it is a page of this console: forms may redirect nowhere else.
fn local(to: &str) -> &str {
    let ours = to.starts_with('/') && !to[1..].starts_with(['/', '\\']) && to.is_ascii();
    let plain = ours && !to.bytes().any(|byte| byte.is_ascii_control());
    if plain { to } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_back_to_pages_of_ours_only() {
        for strange in ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\nb"] {
            assert_eq!(local(strange), "/", "{strange}");
        }
        assert_eq!(local("/runs?state=failed"), "/runs?state=failed");
    }
}
