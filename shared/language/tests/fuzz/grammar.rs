//! Expressions and templates by their grammar, so that most of them mean something.

use serde_json::{Map, Value, json};

use crate::bombs;
use crate::corpus::CORPUS;
use crate::mutate;
use crate::random::Random;
use crate::words;

const NAMES: &[&str] = &[
    "inputs.n",
    "inputs.long",
    "inputs.many",
    "inputs.day",
    "inputs.files",
    "inputs.nope",
    "inputs.v",
    "outputs.extract",
    "outputs.extract.rows",
    "outputs['get-data']",
    "outputs.deep",
    "run.id",
    "logical_date",
    "task.attempt",
    "item",
    "x",
    "index",
    "secrets.key",
    "inputs",
];
const FILTERS: &[&str] = &[
    "default(1)",
    "d({})",
    "lower",
    "upper",
    "title",
    "capitalize",
    "trim",
    "trim('a')",
    "replace('a', 'bb')",
    "split(',')",
    "split",
    "lines",
    "join(',')",
    "join",
    "string",
    "urlencode",
    "tojson",
    "fromjson",
    "int",
    "float",
    "bool",
    "round",
    "round(3)",
    "abs",
    "sum",
    "min",
    "max",
    "length",
    "first",
    "last",
    "list",
    "sort",
    "sort(reverse=true)",
    "reverse",
    "unique",
    "items",
    "dictsort",
    "groupby('id')",
    "map('upper')",
    "map(attribute='id')",
    "select('odd')",
    "reject('none')",
    "selectattr('id')",
    "selectattr('id', 'gt', 1)",
    "rejectattr('id')",
    "date",
    "date('%s %e %C')",
    "timestamp",
    "add_days(1)",
    "add_hours(-1)",
    "add_minutes(1)",
];
const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "and", "or", "in", "not in",
];
const TESTS: &[&str] = &[
    "defined",
    "undefined",
    "none",
    "boolean",
    "number",
    "integer",
    "float",
    "string",
    "sequence",
    "mapping",
    "iterable",
    "odd",
    "even",
    "startingwith('a')",
    "endingwith('é')",
    "eq(1)",
    "lt('a')",
    "in([1])",
    "true",
    "not defined",
];
const CONSTANTS: &[&str] = &[
    "0",
    "1",
    "-1",
    "7",
    "1.5",
    "1e308",
    "9223372036854775807",
    "170141183460469231731687303715884105727",
    "''",
    "'a'",
    "'é,a'",
    "'2026-01-31'",
    "'[1, {\"a\": 2}]'",
    "true",
    "none",
    "[]",
    "{}",
    "'9999-12-31'",
    "'-262143-01-01'",
    "'+262142-12-31'",
];

pub(crate) fn any_expression(random: &mut Random) -> String {
    match random.below(8) {
        0 => bombs::expression(random),
        1 => mutate::text(random.pick_text(&CORPUS.texts).to_owned(), &CORPUS.texts, words::PIECES, random),
        2 => {
            let written = expression(4, random);
            mutate::text(written, &CORPUS.texts, words::PIECES, random)
        }
        _ => expression(1 + random.below(6), random),
    }
}

pub(crate) fn any_template(random: &mut Random) -> String {
    match random.below(8) {
        0 => bombs::template(random),
        1 => mutate::text(random.pick_text(&CORPUS.texts).to_owned(), &CORPUS.texts, words::PIECES, random),
        2 => {
            let written = template(3, random);
            mutate::text(written, &CORPUS.texts, words::PIECES, random)
        }
        _ => template(1 + random.below(4), random),
    }
}

fn expression(depth: usize, random: &mut Random) -> String {
    if depth == 0 {
        let among = if random.one_in(2) { NAMES } else { CONSTANTS };
        return random.pick(among).to_owned();
    }
    let mut part = || expression(depth - 1, random);
    let (one, two, three) = (part(), part(), part());
    match random.below(11) {
        0 | 1 => format!("{one} {} {two}", random.pick(OPERATORS)),
        2..=4 => format!("{one} | {}", random.pick(FILTERS)),
        5 => format!("{one} is {}", random.pick(TESTS)),
        6 => format!("({one} if {two} else {three})"),
        7 => format!("({one})[{two}]"),
        8 => format!("({one})[{two}:{three}]"),
        9 => format!("{}{one}", random.pick(&["not ", "-", "(", "["])) + random.pick(&["", ")", "]"]),
        _ => random
            .pick(&[
                "[A, B, C]",
                "{'k': A, B: C}",
                "range(A)",
                "(A, B)",
                "range(A, B, C)",
                "A | map('default', B) | list",
            ])
            .replace('A', &one)
            .replace('B', &two)
            .replace('C', &three),
    }
}

fn template(depth: usize, random: &mut Random) -> String {
    let inner = |random: &mut Random| if depth == 0 { "x".to_owned() } else { template(depth - 1, random) };
    let value = expression(random.below(4), random);
    match random.below(7) {
        0 => format!("{{% for x in {value} %}}{}{{{{ loop.index }}}}{{% endfor %}}", inner(random)),
        1 => format!("{{% if {value} %}}{}{{% else %}}{}{{% endif %}}", inner(random), inner(random)),
        2 => format!("{}{}", inner(random), inner(random)),
        3 => format!("https://host/{{{{ {value} }}}}?{}", inner(random)),
        _ => format!("{{{{ {value} }}}}"),
    }
}

/// A random JSON value, nested at most `depth` levels.
pub(crate) fn value(depth: usize, random: &mut Random) -> Value {
    match random.below(if depth == 0 { 6 } else { 8 }) {
        0 => random.pick(&[Value::Null, json!(true), json!(""), json!([]), json!({})].each_ref()).clone(),
        1 => json!(random.next() as i64 >> random.below(64)),
        2 => json!(f64::from_bits(random.next())),
        3 => json!(random.pick(words::YAML)),
        4 => json!(random.pick(&[
            "2026-01-31",
            "2026-01-31T18:00:00Z",
            "us",
            "a b",
            "9999-12-31",
            "{{ inputs.n }}"
        ])),
        5 => json!(random.next()),
        6 => (0..random.below(5)).map(|_| value(depth - 1, random)).collect(),
        _ => {
            let entry = |_| (random.pick(words::KEYS).to_owned(), value(depth - 1, random));
            Value::Object((0..4).map(entry).collect::<Map<_, _>>())
        }
    }
}
