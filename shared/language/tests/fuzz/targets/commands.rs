//! Command lines: their text is the same whatever the values are.

use ebbflow_language::template::{Scope, secrets_of};
use ebbflow_language::types::TaskType;
use model::TaskKind;
use serde_json::{Value, json};

use super::SCOPE;
use crate::corpus::CORPUS;
use crate::harness::Target;
use crate::random::Random;
use crate::{bombs, grammar, mutate, words};

pub(crate) static TARGET: Target = Target {
    name: "no_value_becomes_part_of_a_command",
    share: 10,
    make,
    check: |texts, _| check(&texts[0]),
};

/// What no text has by itself.
const VALUE: &str = "\u{1f512};'\"`$(x)\n";
const OTHER: &str = "\u{1f511}";

fn make(random: &mut Random) -> Vec<String> {
    vec![match random.below(4) {
        0 => bombs::command(random),
        1 => grammar::any_template(random),
        _ => {
            let text = random.pick_text(&CORPUS.texts).to_owned();
            mutate::text(text, &CORPUS.texts, words::PIECES, random)
        }
    }]
}

fn check(text: &str) {
    let config = json!({"command": text, "code": text, "args": ["{{ inputs.v }}"]});
    let (one, other) = (command(&config, VALUE), command(&config, OTHER));
    if let Some(command) = &one {
        assert!(!command.contains('\u{1f512}'), "{command}");
    }
    if let (Some(one), Some(other)) = (one, other) {
        assert_eq!(one, other, "the text does not depend on the value");
    }
    drop(secrets_of(&config));
}

fn command(config: &Value, value: &str) -> Option<String> {
    let mut scope =
        Scope { secrets: [("key".to_owned(), json!(value))].into_iter().collect(), ..SCOPE.clone() };
    scope.inputs.insert("v".to_owned(), json!(value));
    drop(TaskType::of(&TaskKind::Bash).render(config, &scope));
    let rendered = TaskType::of(&TaskKind::Python).render(config, &scope).ok()?;
    assert_eq!(rendered["code"], config["code"], "code stays as it is");
    rendered["command"].as_str().map(str::to_owned)
}
