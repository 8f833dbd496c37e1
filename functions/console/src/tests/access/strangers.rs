//! Callers without a token, or with one that nobody should believe.

use super::*;

#[tokio::test]
async fn nobody_who_is_not_known_sees_or_presses_anything() {
    let office = Office::open().await;
    let other = Issuer::generate(ISSUER.url());
    let claims = json!({
        "iss": ISSUER.url(), "sub": "somebody", "aud": "api", "groups": ["admin:*"],
        "exp": SystemClock.now().timestamp() + 3600,
    });
    let expired = ISSUER.sign(&json!({
        "iss": ISSUER.url(), "sub": "somebody", "aud": "api", "groups": ["admin:*"],
        "exp": SystemClock.now().timestamp() - 60,
    }));
    let tokens = [
        None,
        Some("nonsense".to_owned()),
        Some(expired),
        Some(other.sign(&claims)),
        Some(auth::service_token::generate().0),
    ];
    for row in decided() {
        for token in &tokens {
            let path = row.path.replace("RUN", &office.run.to_string());
            let mut request = Request::builder()
                .method(row.method)
                .uri(&path)
                .header("host", "localhost")
                .header("origin", "http://localhost")
                .header("content-type", "application/x-www-form-urlencoded");
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let request = request.body(Body::from(row.form)).unwrap();
            let (parts, body) = router(office.api.clone()).oneshot(request).await.unwrap().into_parts();
            let page = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().into()).unwrap();
            let case = format!("{} {} with {token:?}: {} {page}", row.method, row.template, parts.status);
            let location = parts.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            let sent_to_sign_in = location.is_some_and(|location| location.starts_with("/sign-in"));
            let is_refused = matches!(parts.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            assert!(is_refused || sent_to_sign_in, "{case}");
            assert!(!page.contains(HIDDEN), "{case}");
        }
    }
    let (_, _, run) = office
        .send(Method::GET, &format!("/api/v1/runs/{}", office.run), "", &["admin:acme"], Some("acme"))
        .await;
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["state"], "succeeded", "nothing was pressed");
}
