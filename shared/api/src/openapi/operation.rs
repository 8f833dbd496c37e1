//! The parameters and responses of a handler, read off its signature.
//!
//! The arguments of a handler describe what they take from a request ([`Asks`]), and its result describes the response
//! ([`Answers`]). So the document cannot differ from the code.

use std::future::Future;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use host::{Problem, RequestDeadline};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::definitions::{Definitions, Files};
use crate::etag::Tagged;
use crate::live::Stay;
use crate::request::{Json, Path, Query, Text};
use crate::{Api, Caller};

/// The schemas of requests and responses. The same type may be read more freely than it is written.
pub(crate) struct Schemas {
    asked: SchemaGenerator,
    answered: SchemaGenerator,
    /// For parameters, which are no objects of their own.
    inline: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.definitions_path = "/components/schemas".into();
        });
        let inline = settings.clone().with(|settings| settings.inline_subschemas = true);
        Self {
            asked: settings.clone().for_deserialize().into_generator(),
            answered: settings.for_serialize().into_generator(),
            inline: inline.for_deserialize().into_generator(),
        }
    }
}

impl Schemas {
    pub(crate) fn answered<T: JsonSchema>(&mut self) -> Value {
        self.answered.subschema_for::<T>().to_value()
    }

    fn asked<T: JsonSchema>(&mut self) -> Value {
        self.asked.subschema_for::<T>().to_value()
    }

    fn inline<T: JsonSchema>(&mut self) -> Value {
        self.inline.subschema_for::<T>().to_value()
    }

    /// All that was named so far.
    pub(crate) fn into_named(mut self) -> Map<String, Value> {
        let mut named = self.answered.take_definitions(true);
        for (name, schema) in self.asked.take_definitions(true) {
            named.entry(name).or_insert(schema);
        }
        named
    }
}

/// One operation of the document, as far as the signature describes it.
#[derive(Default)]
pub(crate) struct Operation {
    /// Names and schemas of what the path names, in its order.
    pub(crate) path: Vec<Value>,
    pub(crate) query: Vec<Value>,
    pub(crate) body: Option<Value>,
    pub(crate) needs_token: bool,
    /// Statuses of success, and what is answered with them.
    pub(crate) answers: Vec<(u16, Value)>,
}

/// Something that a handler takes from a request.
pub(crate) trait Asks {
    fn ask(operation: &mut Operation, schemas: &mut Schemas);
}

macro_rules! asks_nothing {
    ($($type:ty),*) => {$(
        impl Asks for $type {
            fn ask(_: &mut Operation, _: &mut Schemas) {}
        }
    )*};
}

asks_nothing!(State<Api>, HeaderMap, Stay, RequestDeadline);

impl Asks for Caller {
    fn ask(operation: &mut Operation, _: &mut Schemas) {
        operation.needs_token = true;
    }
}

impl<T: Parts> Asks for Path<T> {
    fn ask(operation: &mut Operation, _: &mut Schemas) {
        T::add(&mut operation.path);
    }
}

/// The resources that a path names, in order.
pub(crate) trait Parts {
    fn add(parts: &mut Vec<Value>);
}

macro_rules! parts {
    ($($type:ty => $schema:tt)*) => {$(
        impl Parts for $type {
            fn add(parts: &mut Vec<Value>) {
                parts.push(json!($schema));
            }
        }
    )*};
}

parts! {
    i32 => {"type": "integer", "minimum": 0, "maximum": (i32::MAX)}
    i64 => {"type": "integer", "minimum": 0, "maximum": (i64::MAX)}
    u32 => {"type": "integer", "minimum": 0, "maximum": (i32::MAX)}
    String => {"type": "string", "minLength": 1}
    model::RunId => {"type": "string", "format": "uuid"}
    model::BackfillId => {"type": "string", "format": "uuid"}
    model::WorkerId => {"type": "string", "format": "uuid"}
    uuid::Uuid => {"type": "string", "format": "uuid"}
}

impl<A: Parts, B: Parts> Parts for (A, B) {
    fn add(parts: &mut Vec<Value>) {
        A::add(parts);
        B::add(parts);
    }
}

impl<A: Parts, B: Parts, C: Parts> Parts for (A, B, C) {
    fn add(parts: &mut Vec<Value>) {
        <(A, B)>::add(parts);
        C::add(parts);
    }
}

impl<T: JsonSchema> Asks for Query<T> {
    fn ask(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = schemas.inline::<T>();
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
        };
        for (name, of_it) in schema["properties"].as_object().into_iter().flatten() {
            let mut of_it = without_null(of_it.clone());
            let description = of_it.as_object_mut().and_then(|of_it| of_it.remove("description"));
            let required = required(name);
            operation.query.push(json!({
                "name": name, "in": "query", "required": required, "description": description, "schema": of_it,
            }));
        }
    }
}

/// A parameter is there or it is not; it is never null.
fn without_null(mut schema: Value) -> Value {
    if let Some(types) = schema["type"].as_array() {
        let real: Vec<&Value> = types.iter().filter(|name| *name != "null").collect();
        if let [only] = real.as_slice() {
            schema["type"] = (*only).clone();
        }
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let real: Vec<&Value> = choices.iter().filter(|choice| choice["type"] != "null").collect();
        if let [only] = real.as_slice() {
            let (description, mut only) = (schema.get("description").cloned(), (*only).clone());
            if let (Some(description), Some(only)) = (description, only.as_object_mut()) {
                only.insert("description".into(), description);
            }
            return only;
        }
    }
    schema
}

impl<T: JsonSchema> Asks for Json<T> {
    fn ask(operation: &mut Operation, schemas: &mut Schemas) {
        let required = schemas.inline::<T>().get("required").is_some();
        let schema = schemas.asked::<T>();
        let content = json!({"application/json": {"schema": schema}});
        operation.body = Some(json!({"required": required, "content": content}));
    }
}

impl Asks for Text {
    fn ask(operation: &mut Operation, _: &mut Schemas) {
        let anything = json!({"schema": {"description": "Any JSON; null where there is no body."}});
        operation.body = Some(json!({"required": false, "content": {"application/json": anything}}));
    }
}

impl Asks for Definitions {
    fn ask(operation: &mut Operation, schemas: &mut Schemas) {
        let files = schemas.asked::<Files>();
        let one =
            json!({"type": "object", "description": "A workflow, as `/schemas/workflow.json` describes it."});
        let text = json!({"type": "string", "description": "A workflow in YAML."});
        operation.body = Some(json!({"required": true, "content": {
            "application/json": {"schema": {"anyOf": [files, one]}},
            "application/yaml": {"schema": text},
        }}));
    }
}

/// The successful response of a handler.
pub(crate) trait Answers {
    fn answer(operation: &mut Operation, schemas: &mut Schemas);
}

impl<T: JsonSchema> Answers for axum::Json<T> {
    fn answer(operation: &mut Operation, schemas: &mut Schemas) {
        operation.answers.push((200, content("application/json", schemas.answered::<T>())));
    }
}

impl<T: Answers> Answers for Result<T, Problem> {
    fn answer(operation: &mut Operation, schemas: &mut Schemas) {
        T::answer(operation, schemas);
    }
}

/// A new resource is returned with 201, an existing one with 200.
impl<T: JsonSchema> Answers for (axum::http::StatusCode, axum::Json<T>) {
    fn answer(operation: &mut Operation, schemas: &mut Schemas) {
        let answer = content("application/json", schemas.answered::<T>());
        operation.answers.extend([(200, answer.clone()), (201, answer)]);
    }
}

impl<T: JsonSchema> Answers for (axum::http::StatusCode, HeaderMap, axum::Json<T>) {
    fn answer(operation: &mut Operation, schemas: &mut Schemas) {
        <(axum::http::StatusCode, axum::Json<T>)>::answer(operation, schemas);
    }
}

/// A client that has the definition already gets 304.
impl<T: JsonSchema> Answers for Tagged<T> {
    fn answer(operation: &mut Operation, schemas: &mut Schemas) {
        axum::Json::<T>::answer(operation, schemas);
        operation.answers.push((304, Value::Null));
    }
}

/// A response other than JSON; the table of endpoints has its content type.
impl Answers for Response {
    fn answer(_: &mut Operation, _: &mut Schemas) {}
}

/// A response with a content type.
pub(crate) fn content(kind: &str, schema: Value) -> Value {
    json!({ kind: {"schema": schema} })
}

/// A handler whose signature can be read.
pub(crate) trait Described<Arguments> {
    fn describe(schemas: &mut Schemas) -> Operation;
}

macro_rules! described {
    ($($argument:ident),*) => {
        impl<F, Fut, Answer, $($argument),*> Described<($($argument,)*)> for F
        where
            F: FnOnce($($argument),*) -> Fut,
            Fut: Future<Output = Answer>,
            Answer: Answers,
            $($argument: Asks),*
        {
            fn describe(schemas: &mut Schemas) -> Operation {
                let mut operation = Operation::default();
                $($argument::ask(&mut operation, schemas);)*
                Answer::answer(&mut operation, schemas);
                operation
            }
        }
    };
}

described!();
described!(A);
described!(A, B);
described!(A, B, C);
described!(A, B, C, D);
described!(A, B, C, D, E);
described!(A, B, C, D, E, G);
