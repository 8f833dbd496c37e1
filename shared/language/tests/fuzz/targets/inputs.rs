//! Inputs of every type, with defaults and without, and whatever a run is given for them.

use ebbflow_language::inputs::bind;
use ebbflow_language::{FileKind, SourceFile, compile};
use serde_json::{Map, Value, json};

use super::SCOPE;
use crate::grammar;
use crate::harness::Target;
use crate::random::Random;

pub(crate) static TARGET: Target =
    Target { name: "inputs_are_bound", share: 7, make, check: |texts, _| check(texts) };

const TYPES: &[&str] = &["string", "integer", "number", "boolean", "date", "datetime", "list", "object"];

/// A workflow's inputs, and what is given.
fn make(random: &mut Random) -> Vec<String> {
    let (mut declared, mut given) = (Map::new(), Map::new());
    for number in 0..random.below(6) {
        let name = format!("i{number}");
        let mut input = json!({"type": random.pick(TYPES)});
        match random.below(4) {
            0 => input["default"] = grammar::value(2, random),
            1 => input["default"] = json!(grammar::any_template(random)),
            2 => input["enum"] = grammar::value(2, random),
            _ => {}
        }
        declared.insert(name.clone(), input);
        if random.one_in(2) {
            given.insert(name, grammar::value(3, random));
        }
    }
    if random.one_in(4) {
        given.insert("i0".repeat(random.size(9_000)), Value::Null);
    }
    vec![Value::Object(declared).to_string(), Value::Object(given).to_string()]
}

fn check(texts: &[String]) {
    let text = format!("name: a\ntasks: [{{name: x, type: noop}}]\ninputs: {}", texts[0]);
    let file = SourceFile { path: "inline".to_owned(), kind: FileKind::Workflow, text };
    let Ok(given) = serde_json::from_str::<Map<String, Value>>(&texts[1]) else { return };
    for definition in compile(&[file]).definitions {
        match bind(&definition.workflow, &given, &SCOPE) {
            Ok(bound) => {
                assert_eq!(bound.len(), definition.workflow.inputs.len());
                assert!(
                    given.iter().all(|(name, value)| bound[name] == *value),
                    "what is given is taken as it is"
                );
                assert_eq!(
                    bind(&definition.workflow, &bound, &SCOPE),
                    Ok(bound),
                    "what was bound binds again"
                );
            }
            Err(problems) => assert!(!problems.is_empty()),
        }
    }
}
