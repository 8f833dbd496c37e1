//! Parameters of queries. Unknown ones are refused by name, so that a typo is not a silent default.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Problem;

/// Refuses parameters that an endpoint does not know, and parameters that are given twice.
pub async fn check_query(State(known): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    match unknown_parameter(request.uri(), &known) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// As [`check_query`], where no parameter is known.
pub async fn check_no_query(request: Request, next: Next) -> Response {
    match unknown_parameter(request.uri(), &[]) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Refuses a query with a parameter that is not known, or that is given twice.
pub fn unknown_parameter(uri: &Uri, known: &[String]) -> Result<(), Problem> {
    let sent = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let sent = sent.map_err(|_| Problem::bad_request("the query is not of the form name=value&…"))?.0;
    let mut seen = BTreeSet::new();
    for (name, _) in &sent {
        if !known.contains(name) {
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            let expected = match known {
                [] => "this endpoint takes none".to_owned(),
                known => format!("expected one of {}", known.join(", ")),
            };
            let message = format!("unknown query parameter `{name}`{hint}; {expected}");
            return Err(Problem::bad_request(message));
        }
        if !seen.insert(name) {
            return Err(Problem::bad_request(format!("query parameter `{name}` is given twice")));
        }
    }
    Ok(())
}

/// The nearest of the existing names, as the end of a message about an unknown one.
pub fn did_you_mean<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near = runtime::nearest(word, names);
    near.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::middleware::from_fn;
    use axum::routing::post;
    use tower::ServiceExt;

    use super::*;

    #[test]
    fn a_near_miss_is_pointed_out_and_a_far_one_is_not() {
        assert_eq!(did_you_mean("helo", ["diamond", "hello"]), " (did you mean `hello`?)");
        assert_eq!(did_you_mean("backup", ["diamond", "hello"]), "");
    }

    #[test]
    fn a_name_that_nobody_would_write_is_compared_with_none() {
        let long = "x".repeat(300);
        assert_eq!(did_you_mean(&long, [format!("{long}y").as_str()]), "");
    }
    #[tokio::test]
    async fn a_query_is_refused_where_none_is_known() {
        let router = Router::new().route("/sweep", post(|| async { "swept" })).layer(from_fn(check_no_query));
        for (uri, status) in [("/sweep", StatusCode::OK), ("/sweep?dry=1", StatusCode::BAD_REQUEST)] {
            let request = Request::post(uri).body(Body::empty()).unwrap();
            assert_eq!(router.clone().oneshot(request).await.unwrap().status(), status, "{uri}");
        }
        let refused = unknown_parameter(&"/runs?stat=failed".parse().unwrap(), &["state".to_owned()]);
        let message = refused.unwrap_err().message().to_owned();
        assert_eq!(message, "unknown query parameter `stat` (did you mean `state`?); expected one of state");
    }
}
