//! What the JSON Schema of a custom type may hold.
//!
//! The author of a type is not trusted with the server's time and stack: a schema that refers to itself would never end,
//! and definitions that refer to each other twice over grow without bound. So references lead to `$defs` only, form no
//! cycle, and the schema is small with all of them written out. Patterns are few, and matched in linear time. Only known
//! keywords are accepted: every schema within the schema is then seen here, and a misspelt keyword, which a validator
//! would ignore, is found.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::suggest::Budget;

/// The maximum number of schemas in a schema, with every reference written out.
const MAX_SCHEMAS: usize = 2_000;

/// The maximum number of patterns in a schema; each is compiled once, however many references lead to it.
const MAX_PATTERNS: usize = 100;

/// The maximum number of references that lead from one to the next.
const MAX_REFERENCES: usize = 30;

/// The maximum number of problems that are looked for.
const MAX_PROBLEMS: usize = 100;

/// The only dialect, which the root of a schema may name.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Keywords without a schema in them.
const PLAIN: [&str; 32] = [
    "$comment",
    "$ref",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];
/// Keywords with one schema in them.
const SINGLE: [&str; 11] = [
    "items",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords with a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords with schemas by name.
const MAPS: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];

/// What is wrong with a schema, and where in it.
pub(super) struct Problem {
    pub(super) pointer: String,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// Everything that makes a schema unusable, beside what a validator finds.
pub(super) fn problems(schema: &Value) -> Vec<Problem> {
    let mut survey = Survey::new(schema);
    let Measure { schemas, references } = survey.measure(schema, String::new());
    if references > MAX_REFERENCES {
        survey.too_deep(String::new());
    }
    if schemas > MAX_SCHEMAS {
        let message = format!("the schema has more than {MAX_SCHEMAS} parts, with every `$ref` written out");
        survey.report(String::new(), message, Some("describe less of it"));
    }
    if survey.patterns > MAX_PATTERNS {
        let message = format!("the schema has more than {MAX_PATTERNS} patterns");
        survey.report(String::new(), message, Some("put one that is used often under `$defs`"));
    }
    survey.found
}

/// The number of schemas in a schema, with every reference written out.
pub(super) fn size(schema: &Value) -> usize {
    Survey::new(schema).measure(schema, String::new()).schemas
}

/// How large a schema is with every reference written out.
#[derive(Clone, Copy)]
struct Measure {
    schemas: usize,
    /// How many references lead from one to the next.
    references: usize,
}

impl Measure {
    const ONE: Self = Self { schemas: 1, references: 0 };

    fn with(self, part: Self) -> Self {
        Self {
            schemas: self.schemas.saturating_add(part.schemas),
            references: self.references.max(part.references),
        }
    }
}

struct Survey<'s> {
    root: &'s Value,
    /// The size of each definition; none while it is measured.
    measured: BTreeMap<&'s str, Option<Measure>>,
    /// How many definitions are being measured.
    open: usize,
    /// How many patterns are written in the schema.
    patterns: usize,
    found: Vec<Problem>,
    budget: Budget,
}

impl<'s> Survey<'s> {
    fn new(root: &'s Value) -> Self {
        let (measured, open, patterns, found, budget) = Default::default();
        Self { root, measured, open, patterns, found, budget }
    }

    fn measure(&mut self, schema: &'s Value, at: String) -> Measure {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(_) => return Measure::ONE,
            _ => {
                let message = "a JSON Schema is a mapping, `true` or `false`".to_owned();
                self.report(at, message, Some("such as `{type: string}`"));
                return Measure::ONE;
            }
        };
        for (keyword, value) in fields {
            let is_dialect = keyword == "$schema" && at.is_empty() && value == DIALECT;
            if !is_dialect && !is_known(keyword) {
                let message = format!("`{keyword}` is not a keyword that a task type's schema can have");
                let hint = match self.budget.nearest(keyword, keywords()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if keyword.starts_with('$') => "`$ref` to a schema under `$defs`".to_owned(),
                    None => "begin the names of your own keywords with `x-`".to_owned(),
                };
                self.report(format!("{at}/{keyword}"), message, Some(&hint));
            }
        }
        // Whatever a reference leads to is also reached without it.
        if self.open == 0 {
            self.patterns += patterns(fields);
        }
        let mut whole = Measure::ONE;
        for (pointer, inner) in parts(fields, &at) {
            whole = whole.with(self.measure(inner, pointer));
        }
        match fields.get("$ref") {
            Some(target) => whole.with(self.target(target, format!("{at}/$ref"))),
            None => whole,
        }
    }

    /// The size of the definition that a reference leads to.
    fn target(&mut self, target: &'s Value, at: String) -> Measure {
        let name = target.as_str().and_then(|target| target.strip_prefix("#/$defs/"));
        let Some(name) = name.filter(|name| !name.contains(['/', '~', '%'])) else {
            let message = format!("`$ref` cannot refer to {target}");
            self.report(at, message, Some("write `#/$defs/NAME`, and put the schema under `$defs`"));
            return Measure::ONE;
        };
        match self.measured.get(name) {
            Some(Some(measure)) => return *measure,
            Some(None) => {
                let message = format!("the schema `{name}` refers to itself");
                self.report(at, message, Some("describe a fixed depth"));
                return Measure::ONE;
            }
            None if self.open > MAX_REFERENCES => {
                self.too_deep(at);
                return Measure::ONE;
            }
            None => {}
        }
        let definitions = self.root.get("$defs").and_then(Value::as_object);
        let Some(definition) = definitions.and_then(|definitions| definitions.get(name)) else {
            let names = definitions.into_iter().flat_map(Map::keys).map(String::as_str);
            let hint = self.budget.hint(name, names.collect::<Vec<_>>());
            self.report(at, format!("there is no `{name}` under `$defs`"), hint.as_deref());
            return Measure::ONE;
        };
        self.measured.insert(name, None);
        self.open += 1;
        let inner = self.measure(definition, format!("/$defs/{name}"));
        self.open -= 1;
        let measure = Measure { references: inner.references + 1, ..inner };
        self.measured.insert(name, Some(measure));
        measure
    }

    fn too_deep(&mut self, at: String) {
        let message = format!("more than {MAX_REFERENCES} references lead from one to the next");
        self.report(at, message, Some("put schemas in the place of references"));
    }

    fn report(&mut self, pointer: String, message: String, hint: Option<&str>) {
        let is_known = |known: &Problem| known.pointer == pointer && known.message == message;
        if self.found.len() < MAX_PROBLEMS && !self.found.iter().any(is_known) {
            self.found.push(Problem { pointer, message, hint: hint.map(str::to_owned) });
        }
    }
}

fn keywords() -> impl Iterator<Item = &'static str> {
    PLAIN.into_iter().chain(SINGLE).chain(LISTS).chain(MAPS)
}

fn is_known(keyword: &str) -> bool {
    keyword.starts_with("x-") || keywords().any(|known| known == keyword)
}

/// The number of patterns in a schema; each is compiled once.
pub(super) fn all_patterns(schema: &Value) -> usize {
    let mut survey = Survey::new(schema);
    survey.measure(schema, String::new());
    survey.patterns
}

/// The number of patterns directly in a schema.
fn patterns(fields: &Map<String, Value>) -> usize {
    let of_names = fields.get("patternProperties").and_then(Value::as_object).map_or(0, Map::len);
    usize::from(fields.contains_key("pattern")) + of_names
}

/// The schemas directly in a schema, with their places.
fn parts<'s>(fields: &'s Map<String, Value>, at: &str) -> Vec<(String, &'s Value)> {
    let mut found = Vec::new();
    for (keyword, value) in fields {
        let at = format!("{at}/{keyword}");
        match (keyword.as_str(), value) {
            (keyword, value) if SINGLE.contains(&keyword) => found.push((at, value)),
            (keyword, Value::Array(items)) if LISTS.contains(&keyword) => {
                found.extend(items.iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)));
            }
            (keyword, Value::Object(entries)) if MAPS.contains(&keyword) => {
                let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
                found.extend(entries.iter().map(|(name, inner)| (format!("{at}/{}", escape(name)), inner)));
            }
            _ => {}
        }
    }
    found
}

/// The schema of settings: they are a mapping, and one that the schema does not name is a mistake, unless the schema
/// says what else there may be.
pub(super) fn of_settings(mut schema: Value) -> Value {
    let opens = [
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "$ref",
        "allOf",
        "if",
        "dependentSchemas",
    ];
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| "object".into());
        let branches = ["anyOf", "oneOf"].into_iter().filter_map(|keyword| fields.get(keyword)?.as_array());
        let has_branches = branches.flatten().any(|branch| branch.get("properties").is_some());
        if !has_branches && !opens.into_iter().any(|keyword| fields.contains_key(keyword)) {
            fields.insert("additionalProperties".to_owned(), false.into());
        }
    }
    schema
}
