//! The filters, tests and functions of templates: an allowed list, each within a budget.
//!
//! `format`, `indent`, `batch` and their like are not on it: with a large number as argument they make a
//! value of any size at once. `replace` and `join` are our own, and look at the size first.

use std::io::{self, Write};

use minijinja::value::{Rest, Serde, ValueKind, ValueOrKwargs};
use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters as builtin, functions, tests as builtin_tests,
};

use super::dates;

/// Bytes and list items that the filters of one template may handle in all.
const BUDGET: usize = 8 * 1024 * 1024;
/// What a call counts beside what it handles.
const CALL: usize = 32;
/// The size that a value other than a text or list counts as: comparing two takes at least as long as this many bytes.
pub(super) const ITEM: usize = 8;
/// No value made by a filter, and no rendered config, is larger.
pub(super) const MAX_BYTES: usize = 1024 * 1024;

/// Filters whose result is a number, whatever goes in.
pub(super) const GIVES_NUMBER: [&str; 7] = ["int", "float", "round", "abs", "length", "count", "timestamp"];

/// Filters and tests that compare what is in their values, however deep.
const COMPARES: [&str; 14] =
    ["sort", "unique", "min", "max", "groupby", "dictsort", "sum", "eq", "ne", "lt", "le", "gt", "ge", "in"];

type Table = Vec<(&'static str, Value)>;

macro_rules! table {
    ($($name:literal => $function:expr),* $(,)?) => { vec![$(($name, Value::from_function($function))),*] };
}

fn filters() -> Table {
    table! {
        "default" => builtin::default, "d" => builtin::default,
        "lower" => builtin::lower, "upper" => builtin::upper, "title" => builtin::title,
        "capitalize" => builtin::capitalize, "trim" => builtin::trim, "replace" => replace,
        "split" => builtin::split, "lines" => builtin::lines, "join" => join, "string" => string,
        "urlencode" => builtin::urlencode, "tojson" => tojson, "fromjson" => fromjson,
        "int" => builtin::int, "float" => builtin::float, "bool" => builtin::bool,
        "round" => builtin::round, "abs" => builtin::abs, "sum" => builtin::sum,
        "min" => builtin::min, "max" => builtin::max,
        "length" => builtin::length, "count" => builtin::length,
        "first" => builtin::first, "last" => builtin::last, "list" => builtin::list,
        "sort" => builtin::sort, "reverse" => builtin::reverse, "unique" => builtin::unique,
        "items" => builtin::items, "dictsort" => builtin::dictsort, "groupby" => builtin::groupby,
        "map" => builtin::map, "select" => builtin::select, "reject" => builtin::reject,
        "selectattr" => builtin::selectattr, "rejectattr" => builtin::rejectattr,
        "date" => dates::date, "strftime" => dates::date, "timestamp" => dates::timestamp,
        "add_days" => dates::add_days, "add_hours" => dates::add_hours, "add_minutes" => dates::add_minutes,
    }
}

fn test_table() -> Table {
    table! {
        "defined" => builtin_tests::is_defined, "undefined" => builtin_tests::is_undefined,
        "none" => builtin_tests::is_none, "boolean" => builtin_tests::is_boolean,
        "number" => builtin_tests::is_number, "integer" => builtin_tests::is_integer,
        "float" => builtin_tests::is_float, "string" => builtin_tests::is_string,
        "sequence" => builtin_tests::is_sequence, "mapping" => builtin_tests::is_mapping,
        "iterable" => builtin_tests::is_iterable, "odd" => builtin_tests::is_odd, "even" => builtin_tests::is_even,
        "startingwith" => builtin_tests::is_startingwith, "endingwith" => builtin_tests::is_endingwith,
        "eq" => builtin_tests::is_eq, "ne" => builtin_tests::is_ne, "lt" => builtin_tests::is_lt,
        "le" => builtin_tests::is_le, "gt" => builtin_tests::is_gt, "ge" => builtin_tests::is_ge,
        "in" => builtin_tests::is_in, "true" => builtin_tests::is_true, "false" => builtin_tests::is_false,
    }
}

/// The filters that exist.
pub(super) fn names() -> Vec<&'static str> {
    filters().into_iter().map(|(name, _)| name).collect()
}

/// The tests that exist.
pub(super) fn tests() -> Vec<&'static str> {
    test_table().into_iter().map(|(name, _)| name).collect()
}

/// Puts them into an environment, each behind the budget.
pub(super) fn install(environment: &mut Environment<'static>) {
    for (name, function) in filters() {
        environment.add_filter(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            charge(state, name, &args)?;
            let made = function.call(state, &args)?;
            if made.kind() == ValueKind::String {
                charge(state, name, std::slice::from_ref(&made))?;
            }
            Ok(made)
        });
    }
    for (name, function) in test_table() {
        environment.add_test(name, move |state: &mut State<'_, '_>, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            charge(state, name, &args)?;
            function.call(state, &args).map(|answer| answer.is_true())
        });
    }
    environment.add_function("range", functions::range);
}

/// Counts what a filter is about to handle, or made.
fn charge(state: &mut State<'_, '_>, name: &str, args: &[Value]) -> Result<(), Error> {
    let spent = state.get_temp("spent").and_then(|spent| spent.as_usize()).unwrap_or_default();
    let size = |total, arg| add_size(total, arg, COMPARES.contains(&name));
    let total = args.iter().fold(spent + CALL, size);
    state.set_temp("spent", Value::from(total));
    if total > BUDGET { Err(too_much()) } else { Ok(()) }
}

/// Counts a value on top of a total, as far as the budget goes: its length, or also what is in it. A list of unknown
/// length was split from a text that was counted.
fn add_size(total: usize, value: &Value, deep: bool) -> usize {
    let length = match value.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable | ValueKind::String => {
            value.len().unwrap_or(BUDGET)
        }
        _ => ITEM,
    };
    let total = total.saturating_add(length);
    let holds = matches!(value.kind(), ValueKind::Map | ValueKind::Seq | ValueKind::Iterable);
    if !deep || !holds || total > BUDGET {
        return total;
    }
    let items = value.try_iter().into_iter().flatten().map(|item| match value.kind() {
        ValueKind::Map => value.get_item(&item).unwrap_or_default(),
        _ => item,
    });
    items.fold(total, |total, item| if total > BUDGET { total } else { add_size(total, &item, deep) })
}

fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, "it makes values that are too large")
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let found = text.matches(from).count();
    match found.saturating_mul(to.len()).saturating_add(text.len()) > MAX_BYTES {
        true => Err(too_much()),
        false => Ok(text.replace(from, to)),
    }
}

fn join(items: &Value, between: Option<&str>) -> Result<String, Error> {
    let mut joined = Bounded::new(MAX_BYTES);
    for (index, item) in items.try_iter()?.enumerate() {
        let between = if index > 0 { between.unwrap_or_default() } else { "" };
        write!(joined, "{between}{}", string(&item)?).map_err(|_| too_much())?;
    }
    joined.into_text().ok_or_else(too_much)
}

/// A text as it is, anything else as JSON: how values are written wherever they become text.
pub(super) fn string(value: &Value) -> Result<String, Error> {
    value.as_str().map_or_else(|| tojson(value), |text| Ok(text.to_owned()))
}

fn tojson(value: &Value) -> Result<String, Error> {
    String::from_utf8(json(value, MAX_BYTES)?).map_err(|error| invalid(error.to_string()))
}

/// Compact JSON, limited in bytes, with nothing undefined in it.
pub(super) fn json(value: &Value, limit: usize) -> Result<Vec<u8>, Error> {
    let mut written = Bounded::new(limit);
    serde_json::to_writer(&mut written, value).map_err(|error| match error.is_io() {
        true => ErrorKind::WriteFailure.into(),
        false => invalid(format!("this cannot be written as JSON: {error}")),
    })?;
    // Looked for last: by now it is known that the value is not too large to look through.
    if holds_undefined(value) { Err(ErrorKind::UndefinedError.into()) } else { Ok(written.bytes) }
}

fn holds_undefined(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined => true,
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter().is_ok_and(|mut items| items.any(|item| holds_undefined(&item)))
        }
        ValueKind::Map => value.try_iter().is_ok_and(|mut keys| {
            keys.any(|key| value.get_item(&key).is_ok_and(|item| holds_undefined(&item)))
        }),
        _ => false,
    }
}

fn fromjson(text: &str) -> Result<Value, Error> {
    let parsed: serde_json::Value =
        serde_json::from_str(text).map_err(|error| invalid(format!("this is not JSON: {error}")))?;
    Ok(Value::from(Serde(parsed)))
}

/// A buffer that refuses what is beyond its limit.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Bounded {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub(super) fn into_text(self) -> Option<String> {
        String::from_utf8(self.bytes).ok()
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
