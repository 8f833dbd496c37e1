//! Expressions and templates in a scope with values of every kind.

use ebbflow_language::expression::evaluate;
use ebbflow_language::template::{is_plain, render, secrets_of};
use ebbflow_language::types::TaskType;
use model::TaskKind;
use serde_json::json;

use super::{MAX_RENDERED, SCOPE};
use crate::grammar;
use crate::harness::Target;

pub(crate) static EXPRESSIONS: Target = Target {
    name: "expressions_are_evaluated",
    share: 18,
    make: |random| vec![grammar::any_expression(random)],
    check: |texts, _| expression(&texts[0]),
};

pub(crate) static TEMPLATES: Target = Target {
    name: "templates_are_rendered",
    share: 18,
    make: |random| vec![grammar::any_template(random)],
    check: |texts, _| template(&texts[0]),
};

fn expression(source: &str) {
    let evaluated = evaluate(source, &SCOPE);
    assert_eq!(evaluate(source, &SCOPE), evaluated, "the same scope gives the same answer");
    if let Ok(evaluated) = evaluated {
        assert!(evaluated.value.to_string().len() <= MAX_RENDERED);
        assert!(evaluated.seen.values().all(|value| value.to_string().chars().count() <= 1_300));
        assert!(!format!("{evaluated:?}").contains("hush"), "secrets are not seen");
    }
}

fn template(source: &str) {
    let config = json!({"url": source});
    let rendered = render(&config, &SCOPE);
    match &rendered {
        Ok(value) if is_plain(&config) => assert_eq!(*value, config),
        Ok(value) => assert!(value["url"].to_string().len() <= 8 * MAX_RENDERED),
        Err(error) => assert!(!error.to_string().contains("hush"), "{error}"),
    }
    drop(TaskType::of(&TaskKind::Http).render(&config, &SCOPE));
    drop(secrets_of(&config));
}
