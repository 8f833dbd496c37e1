//! Fan-in: the outputs of the children of fan-outs, aggregated.

use std::collections::BTreeMap;

use engine::{Directive, RunSlice};
use model::{Aggregation, Failure, Fan, FanIn, TaskIndex, TaskKey, TaskState};
use serde_json::{Value, json};
use store::Transaction;

use crate::template_scope::too_large;
use crate::{Error, Result};

/// The largest output of a fan-in, in bytes of JSON: that of any task.
pub(crate) const OUTPUT_LIMIT: usize = 1024 * 1024;

/// Aggregates the outputs of the children of the fan-outs that a fan-in depends on, in the order in which it names them.
pub(crate) async fn gather(
    unit: &mut dyn Transaction,
    slice: &RunSlice<'_>,
    task: TaskIndex,
) -> Result<Directive> {
    let Some(plan) = &slice.spec(task).fan_in else {
        return Ok(Directive::Broken(Failure::permanent("a fan_in without an aggregation cannot begin")));
    };
    let mut delivered = Vec::new();
    for fan in fans(unit, slice, task).await? {
        match of_fan(unit, slice, &fan, plan.field.as_deref()).await {
            Err(Error::Store(store::Error::TooLarge)) => {
                return Ok(Directive::Broken(too_large("the outputs of the children are")));
            }
            of_fan => delivered.extend(of_fan?),
        }
    }
    Ok(aggregate(plan, delivered).map_or_else(Directive::Broken, Directive::Output))
}

/// How far the fan-outs have come that a fan-in depends on, in the order in which it names them.
async fn fans(unit: &mut dyn Transaction, slice: &RunSlice<'_>, task: TaskIndex) -> Result<Vec<Fan>> {
    let graph = slice.graph();
    let named = slice.spec(task).depends_on.iter().filter_map(|name| graph.index_of(name));
    let parents: Vec<TaskIndex> = named.filter(|parent| graph.spec(*parent).fan_out.is_some()).collect();
    let keys: Vec<TaskKey> =
        parents.iter().filter(|parent| !slice.knows(**parent)).map(|parent| slice.key(*parent)).collect();
    let stored: BTreeMap<TaskIndex, Option<Fan>> =
        unit.tasks(&keys).await?.into_iter().map(|(_, task)| (task.index, task.fan)).collect();
    let fan = |parent: &TaskIndex| match slice.task(*parent) {
        Some(row) => row.fan,
        None => stored.get(parent).copied().flatten(),
    };
    Ok(parents.iter().filter_map(fan).collect())
}

async fn of_fan(
    unit: &mut dyn Transaction,
    slice: &RunSlice<'_>,
    fan: &Fan,
    field: Option<&str>,
) -> Result<Vec<Value>> {
    let mut delivered = unit.delivered(slice.run().id, fan.first, fan.total, field).await?;
    // What ended in this slice, the store cannot know yet.
    let fresh: BTreeMap<TaskIndex, &Value> =
        slice.fresh_outputs().iter().map(|(task, output)| (*task, output)).collect();
    let ended = |child: &TaskIndex| slice.task(*child).is_some_and(|row| row.state == TaskState::Succeeded);
    for child in fan.children().filter(ended) {
        let output = fresh.get(&child).copied().cloned();
        delivered.entry(child).or_insert(output.unwrap_or(Value::Null));
    }
    Ok(delivered.into_values().collect())
}

fn aggregate(plan: &FanIn, delivered: Vec<Value>) -> std::result::Result<Value, Failure> {
    let results =
        delivered.into_iter().map(|output| pick(plan, output)).collect::<std::result::Result<Vec<_>, _>>()?;
    let output = match plan.aggregation {
        Aggregation::Collect => json!({"count": results.len(), "results": results}),
        Aggregation::Concat => {
            let flat: Vec<Value> = results.into_iter().flat_map(flatten).collect();
            json!({"count": flat.len(), "results": flat})
        }
        Aggregation::Sum => json!({"count": results.len(), "total": sum(&results)?}),
        Aggregation::First => results.into_iter().next().unwrap_or(Value::Null),
        Aggregation::Last => results.into_iter().next_back().unwrap_or(Value::Null),
    };
    let size = output.to_string().len();
    if size > OUTPUT_LIMIT {
        return Err(Failure::permanent(format!(
            "the outputs of the children are {size} bytes of JSON together, more than {OUTPUT_LIMIT} (1 MiB): name \
             the `field` that matters, or store it elsewhere and pass references"
        )));
    }
    Ok(output)
}

/// The part of a child's output that counts.
fn pick(plan: &FanIn, output: Value) -> std::result::Result<Value, Failure> {
    let Some(field) = &plan.field else { return Ok(output) };
    let missing =
        || Failure::permanent(format!("a child's output has no field `{field}`: {}", short(&output)));
    output.get(field).cloned().ok_or_else(missing)
}

fn flatten(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => vec![other],
    }
}

/// The sum of numbers: whole as long as all of them are.
fn sum(values: &[Value]) -> std::result::Result<Value, Failure> {
    let wrong = |value: &Value| {
        let hint = if value.is_object() { ": name the `field` to add up" } else { "" };
        Failure::permanent(format!(
            "only numbers can be added up, and a child delivered {}{hint}",
            short(value)
        ))
    };
    if let Some(whole) = values.iter().map(Value::as_i64).collect::<Option<Vec<_>>>()
        && let Some(total) = whole.into_iter().try_fold(0i64, i64::checked_add)
    {
        return Ok(total.into());
    }
    let mut total = 0.0;
    for value in values {
        total += value.as_f64().ok_or_else(|| wrong(value))?;
    }
    Ok(json!(total))
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 80 { text.chars().take(80).chain(['…']).collect() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(aggregation: Aggregation, field: Option<&str>, outputs: Value, expected: Value) {
        let plan = FanIn { aggregation, field: field.map(str::to_owned) };
        let delivered = outputs.as_array().unwrap().clone();
        assert_eq!(aggregate(&plan, delivered).unwrap(), expected, "{plan:?} of {outputs}");
    }

    #[test]
    fn outputs_are_put_together_as_asked() {
        use Aggregation::{Collect, Concat, First, Last, Sum};
        check(Collect, None, json!([1, null, "a"]), json!({"count": 3, "results": [1, null, "a"]}));
        check(Collect, None, json!([]), json!({"count": 0, "results": []}));
        check(Concat, None, json!([[1, 2], [], 3, null]), json!({"count": 3, "results": [1, 2, 3]}));
        check(Sum, None, json!([1, 2, 3]), json!({"count": 3, "total": 6}));
        check(Sum, None, json!([1, 0.5]), json!({"count": 2, "total": 1.5}));
        check(Sum, Some("rows"), json!([{"rows": 2}, {"rows": 3}]), json!({"count": 2, "total": 5}));
        check(Sum, None, json!([]), json!({"count": 0, "total": 0}));
        check(First, None, json!([7, 8]), json!(7));
        check(Last, None, json!([7, 8]), json!(8));
        check(First, None, json!([]), Value::Null);
    }

    #[test]
    fn outputs_that_cannot_be_combined_are_refused() {
        let plan = |aggregation, field: Option<&str>| FanIn { aggregation, field: field.map(str::to_owned) };
        for (plan, output, said) in [
            (plan(Aggregation::Sum, None), json!({"rows": 1}), "name the `field` to add up"),
            (plan(Aggregation::Sum, None), json!("a"), "only numbers can be added up"),
            (plan(Aggregation::Collect, Some("rows")), json!({"row": 1}), "has no field `rows`"),
            (plan(Aggregation::Collect, None), json!("x".repeat(OUTPUT_LIMIT)), "(1 MiB)"),
        ] {
            let failure = aggregate(&plan, vec![output]).unwrap_err();
            assert!(failure.message.contains(said), "{}", failure.message);
        }
    }
}
