//! Errors of deserializers, in words for people: without the names of Rust types.

use serde_json::error::Category;

/// What the deserializers call things, and what callers call them. The first that a text begins with counts.
const TYPES: [(&str, &str); 29] = [
    ("a UUID", "an id"),
    ("a formatted UUID", "an id"),
    ("struct ", "an object"),
    ("tuple struct ", "a list"),
    ("newtype struct ", "a value"),
    ("unit struct ", "null"),
    ("enum ", "a known name"),
    ("string or map", "a text or an object"),
    ("internally tagged enum ", "an object"),
    ("adjacently tagged enum ", "an object"),
    ("variant identifier", "a known name"),
    ("variant of enum", "a known name"),
    ("field identifier", "a known name"),
    ("a sequence", "a list"),
    ("sequence", "a list"),
    ("an array of", "a list"),
    ("a tuple", "a list"),
    ("tuple", "a list"),
    ("a map", "an object"),
    ("map", "an object"),
    ("unit", "null"),
    ("a string", "a text"),
    ("str", "a text"),
    ("option", "a value"),
    ("usize", "a whole number that is not negative"),
    ("i", "a whole number"),
    ("u", "a whole number that is not negative"),
    ("f", "a number"),
    ("bool", "true or false"),
];

/// Describes a problem in JSON, with its position.
pub fn in_words(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => data(&error.to_string()),
        Category::Syntax | Category::Eof | Category::Io => format!("not valid JSON: {error}"),
    }
}

/// Describes a problem in a JSON body, with its position.
pub fn of_body(error: &serde_json::Error) -> String {
    match error.is_data() {
        true => format!("invalid body: {}", in_words(error)),
        false => format!("the body is {}", in_words(error)),
    }
}

/// What is wrong with a query, where the text is that of the extractor.
pub fn of_query(text: &str) -> String {
    let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(text);
    match text.split_once(": ") {
        Some((name, why)) if !name.contains([' ', '`']) => format!("query parameter `{name}`: {}", data(why)),
        _ => format!("invalid query: {}", data(text)),
    }
}

/// Describes the problem with a value.
fn data(text: &str) -> String {
    if text.contains("UUID parsing failed") {
        return "not an id such as 0198c2f4-8a51-7c3e-9d10-2b6f5e7a4c31".to_owned() + &place(text);
    }
    if text.contains("found in string")
        || text.contains("to fit in target type")
        || text.contains("from empty string")
    {
        return "not a whole number in range".to_owned();
    }
    if text.contains("did not match any variant of") {
        return "the value has none of the accepted forms".to_owned() + &place(text);
    }
    let text = text.replace("unknown variant", "unknown value").replace("invalid type: ", "");
    let text = text.replace("invalid value: ", "").replace("invalid length", "wrong number of items:");
    let Some((found, expected)) = text.split_once(", expected ") else { return text };
    let (expected, place) = match expected.split_once(" at line ") {
        Some((expected, place)) => (expected, format!(" at line {place}")),
        None => (expected, String::new()),
    };
    if found.starts_with("unknown ") {
        return format!("{found}; expected {expected}{place}");
    }
    format!("{} where {} is expected{place}", named(found), named(expected))
}

/// Where in a body something is wrong, as the error says at its end.
fn place(text: &str) -> String {
    text.rfind(" at line ").map(|from| text[from..].to_owned()).unwrap_or_default()
}

fn named(text: &str) -> &str {
    let is_word = |prefix: &str| match prefix.len() {
        1 => text.strip_prefix(prefix).is_some_and(|size| size.chars().all(|digit| digit.is_ascii_digit())),
        _ => text.starts_with(prefix),
    };
    TYPES.iter().find(|(prefix, _)| is_word(prefix)).map_or(text, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only how it cannot be read matters")]
    struct Outer {
        inner: Vec<Inner>,
        run: Option<crate::RunId>,
    }

    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only how it cannot be read matters")]
    struct Inner {
        count: u32,
        kind: Kind,
    }

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Small,
        Large,
    }

    #[test]
    fn a_body_is_refused_without_the_names_of_types() {
        for (text, message) in [
            (r#"{"inner": ["#, "the body is not valid JSON: EOF while parsing a list at line 1"),
            (r#"{"inner": 1}"#, "invalid body: integer `1` where a list is expected at line 1"),
            (r#"{"inner": ["x"]}"#, "invalid body: a text where an object is expected at line 1"),
            (
                r#"{"inner": [{"count": -1}]}"#,
                "invalid body: integer `-1` where a whole number that is not negative is expected at line 1",
            ),
            (
                r#"{"inner": [{"count": 1, "kind": "big"}]}"#,
                "invalid body: unknown value `big`; expected `small` or `large` at line 1",
            ),
            (
                r#"{"inners": []}"#,
                "invalid body: unknown field `inners`; expected `inner` or `run` at line 1",
            ),
            (r#"{"run": 7}"#, "invalid body: integer `7` where an id is expected at line 1"),
            (
                r#"{"run": "x"}"#,
                "invalid body: not an id such as 0198c2f4-8a51-7c3e-9d10-2b6f5e7a4c31 at line 1",
            ),
            ("{}", "invalid body: missing field `inner` at line 1"),
        ] {
            let error = serde_json::from_str::<Outer>(text).expect_err("it is invalid");
            assert!(of_body(&error).starts_with(message), "{text}: {}", of_body(&error));
        }
    }

    #[test]
    fn a_message_is_refused_without_the_names_of_types() {
        let error = crate::Message::decode("dev.ebbflow.timer.armed.v1", serde_json::json!(7)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`dev.ebbflow.timer.armed.v1` does not fit its type: integer `7` where an object is expected"
        );
    }

    #[test]
    fn a_query_is_refused_by_the_name_of_its_parameter() {
        for (text, message) in [
            (
                "Failed to deserialize query string: limit: invalid digit found in string",
                "query parameter `limit`: not a whole number in range",
            ),
            (
                "Failed to deserialize query string: run: UUID parsing failed: invalid length",
                "query parameter `run`: not an id such as 0198c2f4-8a51-7c3e-9d10-2b6f5e7a4c31",
            ),
            (
                "Failed to deserialize query string: missing field `task`",
                "invalid query: missing field `task`",
            ),
        ] {
            assert_eq!(of_query(text), message);
        }
    }
}
