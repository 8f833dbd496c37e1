//! The environments in which templates run, with their limits.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

use minijinja::{Environment, Error, Output, State, UndefinedBehavior, Value};

use super::{filters, syntax};

/// Steps that one template may take.
pub(super) const FUEL: u64 = 50_000;
const RECURSION: usize = 50;

/// Values are inserted as they are.
pub(super) static PLAIN: LazyLock<Environment<'static>> = LazyLock::new(|| environment(insert));

/// Values are percent-encoded as they are inserted.
pub(super) static URL: LazyLock<Environment<'static>> = LazyLock::new(|| environment(insert_encoded));

fn environment(
    insert: fn(&mut Output<'_>, &mut State<'_, '_>, &Value) -> Result<(), Error>,
) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_syntax(syntax::syntax());
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    environment.set_formatter(insert);
    filters::install(&mut environment);
    environment
}

/// The same environment, for a template with a limit on its steps.
pub(super) fn with_fuel<'e>(
    environment: &'e Environment<'static>,
    fuel: u64,
) -> Cow<'e, Environment<'static>> {
    if fuel == FUEL {
        return Cow::Borrowed(environment);
    }
    let mut limited = environment.clone();
    limited.set_fuel(Some(fuel));
    Cow::Owned(limited)
}

fn insert(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    out.write_str(&filters::string(value)?).map_err(Error::from)
}

fn insert_encoded(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    filters::string(value)?.bytes().try_for_each(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.write_char(byte.into()),
        _ => write!(out, "%{byte:02X}"),
    })?;
    Ok(())
}
