//! YAML text to a tree with positions, within limits.
//!
//! The rules are those of YAML 1.2: `yes`, `on` and `017` are texts. A duplicate key is refused.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Error, Location, Options, Spanned};

use crate::allowance;
use crate::diagnostic::Finding;
use crate::node::{Data, Key, Node, Path, Position};

/// The maximum size of a file, in bytes.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
const MAX_DEPTH: usize = 48;
const MAX_NODES: usize = 400_000;
/// How many events aliases may replay, and how many merges there may be; each merge also compares keys.
const MAX_REPLAYED: usize = 30_000;
const MAX_MERGES: usize = 2_000;

/// Reads one document. What can be read in spite of a problem is read, so that more problems are found.
pub(crate) fn parse(file: usize, text: &str) -> (Option<Node>, Vec<Finding>) {
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes, more than the {MAX_BYTES} allowed", text.len());
        let hint = Some("split the workflow, or keep data elsewhere".to_owned());
        return (None, vec![Finding { at: start_of(file), message, hint }]);
    }
    match read(text, DuplicateKeyPolicy::Error) {
        Ok(root) => (Some(located(root, file)), Vec::new()),
        Err(error) => {
            let twice = matches!(error.without_snippet(), Error::DuplicateMappingKey { .. });
            let rest = twice.then(|| read(text, DuplicateKeyPolicy::FirstWins).ok()).flatten();
            (rest.map(|root| located(root, file)), vec![finding(file, text, &error)])
        }
    }
}

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Node, Error> {
    let mut root = serde_saphyr::from_str_with_options(text, options(duplicate_keys))?;
    keep_leading_zeros(&mut root, text);
    Ok(root)
}

/// The parser takes `017` for the number 17.0; it is a text, such as a postal code.
fn keep_leading_zeros(node: &mut Node, text: &str) {
    match &mut node.data {
        Data::Number(_) => {
            let rest = text.get(node.at.offset..).unwrap_or_default();
            let end = rest.find(|c: char| c.is_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
            let digits = rest[..end].trim_start_matches(['+', '-']);
            if digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit() {
                node.data = Data::Text(rest[..end].to_owned());
            }
        }
        Data::List(items) => items.iter_mut().for_each(|item| keep_leading_zeros(item, text)),
        Data::Map(entries) => entries.iter_mut().for_each(|(_, value)| keep_leading_zeros(value, text)),
        _ => {}
    }
}

fn options(duplicate_keys: DuplicateKeyPolicy) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
            max_documents: 1,
            max_merge_keys: MAX_MERGES,
            max_total_scalar_bytes: MAX_BYTES + allowance::MAX_WORKFLOW,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
        duplicate_keys: duplicate_keys,
        emit_comments: false,
        legacy_octal_numbers: false,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn located(mut root: Node, file: usize) -> Node {
    root.locate(file, Path::default());
    root
}

fn start_of(file: usize) -> Position {
    Position { file, line: 1, column: 1, ..Position::default() }
}

fn finding(file: usize, text: &str, error: &Error) -> Finding {
    let at =
        error.location().map_or_else(|| start_of(file), |location| Position { file, ..position(&location) });
    let mut cause = error.without_snippet();
    while let Error::AliasError { error, .. } = cause {
        cause = error;
    }
    match cause {
        Error::DuplicateMappingKey { key, .. } => {
            let message =
                format!("the key `{}` appears twice in this mapping", key.as_deref().unwrap_or("?"));
            Finding { at, message, hint: Some("remove one of the two".to_owned()) }
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            let message = format!("this is nested more than {MAX_DEPTH} levels deep, which is not allowed");
            Finding { at, message, hint: Some("keep such data elsewhere, or write it as a text".to_owned()) }
        }
        Error::Budget {
            breach:
                BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } | BudgetBreach::ScalarBytes { .. },
            ..
        } => {
            let message = "the file holds more values than are allowed, aliases included".to_owned();
            Finding { at, message, hint: Some("split the workflow, or keep data elsewhere".to_owned()) }
        }
        other => {
            let shown = other.to_string();
            let message = shown.split(" at line ").next().unwrap_or(&shown);
            let hint =
                unquoted(text, &at).map(|mark| format!("put text that begins with `{mark}` in quotes"));
            Finding { at, message: format!("this is not valid YAML: {message}"), hint }
        }
    }
}

/// The mark that a text begins with which means something else in YAML, as in `cron: */5 * * * *`.
fn unquoted(text: &str, at: &Position) -> Option<char> {
    let line = text.lines().nth((at.line as usize).checked_sub(1)?)?;
    line.chars().nth((at.column as usize).checked_sub(1)?).filter(|mark| "*@`%".contains(*mark))
}

fn position(location: &Location) -> Position {
    Position {
        line: location.line() as u32,
        column: location.column() as u32,
        offset: location.span().byte_offset().unwrap_or_default() as usize,
        ..Position::default()
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Data>::deserialize(deserializer)?;
        // Through an alias, a value is shown where it is used; its text stands where it was defined.
        let offset = position(&spanned.defined).offset;
        Ok(Self { data: spanned.value, at: Position { offset, ..position(&spanned.referenced) } })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self { name: spanned.value, at: position(&spanned.referenced) })
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Data, E> {
        Ok(Data::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Data, E> {
        Ok(Data::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Data, E> {
        Ok(Data::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Data, E> {
        Number::from_f64(number).map(Data::Number).ok_or_else(|| E::custom("a number must be finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Data, E> {
        Ok(Data::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        match entries.len() > MAX_NODES {
            true => Err(A::Error::custom("the mapping has too many keys")),
            false => Ok(Data::Map(entries)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn value(text: &str) -> Value {
        let (node, findings) = parse(0, text);
        assert!(findings.is_empty(), "{findings:?}");
        node.unwrap().to_json()
    }

    fn refusal(text: &str) -> String {
        let (_, findings) = parse(0, text);
        let finding = findings.first().expect("it must be refused");
        format!("{}:{}: {}", finding.at.line, finding.at.column, finding.message)
    }

    #[test]
    fn words_that_yaml_1_1_takes_for_booleans_are_texts() {
        let text = "[yes, no, on, off, y, n, Yes, ON]";
        assert_eq!(value(text), json!(["yes", "no", "on", "off", "y", "n", "Yes", "ON"]));
        assert_eq!(value("[true, false, null, ~]"), json!([true, false, null, null]));
    }

    #[test]
    fn numbers_that_yaml_1_1_reads_in_other_bases_are_texts() {
        assert_eq!(value("[017, -017, 1:30, 08]"), json!(["017", "-017", "1:30", "08"]));
        assert_eq!(value("a: &zip 01234\nb: *zip\n"), json!({"a": "01234", "b": "01234"}));
        assert_eq!(value("[17, -17, 1.5, 0o17, 0x1f]"), json!([17, -17, 1.5, 15, 31]));
    }

    #[test]
    fn dates_and_quoted_numbers_are_texts() {
        assert_eq!(value("[2026-01-31, \"5\", '5', !!str 5]"), json!(["2026-01-31", "5", "5", "5"]));
    }

    #[test]
    fn nodes_know_their_line_column_and_path() {
        let (node, _) = parse(0, "tasks:\n  - name: a\n    depends_on: [b, 'c']\n");
        let Data::Map(root) = node.unwrap().data else { panic!("a mapping") };
        let Data::List(tasks) = &root[0].1.data else { panic!("a list") };
        let Data::Map(task) = &tasks[0].data else { panic!("a mapping") };
        let Data::List(needs) = &task[1].1.data else { panic!("a list") };
        let shown = |at: &Position| format!("{}:{} {}", at.line, at.column, at.path);
        assert_eq!(shown(&task[1].0.at), "3:5 tasks[0].depends_on");
        assert_eq!(shown(&needs[1].at), "3:21 tasks[0].depends_on[1]");
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_and_the_rest_is_read() {
        assert_eq!(refusal("a: 1\nb: 2\na: 3\n"), "3:1: the key `a` appears twice in this mapping");
        assert_eq!(parse(0, "a: 1\na: 2\n").0.unwrap().to_json(), json!({"a": 1}));
    }

    #[test]
    fn floods_of_aliases_and_depth_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let inner = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", [inner.as_str(); 10].join(", "));
        }
        assert!(refusal(&bomb).contains("not valid YAML"), "{}", refusal(&bomb));
        let mut merges = "a0: &a0 {k: v}\n".to_owned();
        for level in 1..30 {
            merges += &format!("a{level}: &a{level} {{<<: [*a{0}, *a{0}]}}\n", level - 1);
        }
        assert!(refusal(&merges).contains("not valid YAML"), "{}", refusal(&merges));
        assert!(refusal(&"[".repeat(5_000)).contains("not valid YAML"));
        assert!(refusal(&"x".repeat(MAX_BYTES + 1)).contains("bytes"));
    }

    #[test]
    fn tags_infinities_and_second_documents_are_refused() {
        for text in ["!!python/object:os.system x", "a: .inf", "a: 1\n---\nb: 2\n", "a: *nowhere"] {
            assert!(refusal(text).contains("not valid YAML"), "{text}");
        }
    }

    #[test]
    fn aliases_and_merges_are_expanded() {
        let text = "base: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\n";
        assert_eq!(value(text), json!({"base": {"a": 1, "b": 2}, "more": {"a": 1, "b": 3}}));
    }
}
