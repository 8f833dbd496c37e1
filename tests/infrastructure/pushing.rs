//! Topics, subscriptions, and the paths that they push to.

use std::collections::{BTreeMap, BTreeSet};

use super::reading::{Repository, attributes, inside, literals, words};
use super::{Names, compare};

/// The id of each kind of topic, by its name in the code; `QUEUE` stands for a queue.
fn topic_ids(repository: &Repository) -> BTreeMap<String, String> {
    let ids = inside(
        repository.file("shared/model/src/message/topic.rs"),
        "pub fn id_with(&self, prefix: &str) -> String {",
    );
    let lines = ids.lines().filter_map(|line| line.trim().strip_prefix("Self::")?.split_once(" => "));
    let named = lines.filter_map(|(kind, id)| {
        let kind = kind.split('(').next()?.to_owned();
        Some((kind, literals(id).next()?.replace("{queue}", "QUEUE").replace("{prefix}", "ebbflow")))
    });
    named.collect()
}

pub(crate) fn topics(repository: &Repository) -> Vec<String> {
    let coded: Names = topic_ids(repository).into_values().collect();
    let list = inside(repository.file("terraform/pubsub.tf"), "topics = toset(concat(");
    let made: Names = literals(list).filter(|id| id.starts_with("${var.name}-")).map(by_queue).collect();
    let composed = words(repository.file("docker-compose.yml"), "ebbflow-", |letter| {
        letter.is_ascii_lowercase() || letter == '-'
    });
    let ours: Names = topic_ids(repository).into_values().map(|id| id.replace("QUEUE", "light")).collect();
    let mut found = compare("topics", ("shared/model", coded), ("terraform/pubsub.tf", made));
    found.extend(
        ours.iter()
            .filter(|id| !composed.contains(*id))
            .map(|id| format!("topics: docker-compose.yml lacks {id}")),
    );
    if !repository.file("terraform/pubsub.tf").contains("\"${each.value}-dead-letters\"")
        || !repository.file("shared/model/src/message/topic.rs").contains("\"{}-dead-letters\"")
    {
        found.push("dead-letter topics are named otherwise in the code".into());
    }
    found
}

/// A name in terraform as the default installation has it.
fn by_queue(id: &str) -> String {
    id.replace("${queue}", "QUEUE").replace("${var.name}-", "ebbflow-")
}

/// Who may publish where: functions that settle commands, to the topics of what the engine and the runtime publish; and the worker
/// of the queue that callbacks run on, to the topics of users.
pub(crate) fn publishers(repository: &Repository) -> Vec<String> {
    let terraform = repository.file("terraform/pubsub.tf");
    let settles = |function: &String| {
        let manifest = repository.file(&format!("functions/{function}/Cargo.toml"));
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        // The API settles commands, too.
        ["runtime.workspace = true", "api.workspace = true"].iter().any(|line| dependencies.contains(line))
    };
    let settling: Names = repository.functions().into_iter().filter(settles).collect();
    let granted: Names = literals(inside(terraform, "publishers = concat(")).map(str::to_owned).collect();
    let mut found =
        compare("functions that publish", ("functions/", settling.clone()), ("terraform/pubsub.tf", granted));
    if !terraform.contains("if contains(local.publishers, function.function)], local.topics)") {
        found.push("functions that publish: terraform/pubsub.tf grants something else".into());
    }
    if !terraform.contains("var.api == null ? [] : [\"console\"]") {
        found.push("functions that publish: the console does so only if it serves the API".into());
    }
    // The topic of each message, by its name in the code.
    let lines = inside(repository.file("shared/model/src/message.rs"), "pub fn topic(&self) -> Topic {");
    let mut topic_of = BTreeMap::new();
    let mut messages = Vec::new();
    for word in lines.split_inclusive(['|', ',', '\n']) {
        messages.extend(word.split("Self::").nth(1).and_then(|rest| rest.split('(').next()));
        if let Some(topic) = word.split("=> Topic::").nth(1) {
            let topic = topic.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
            topic_of.extend(messages.drain(..).map(|message| (message, topic)));
        }
    }
    let built = |folder: &str| -> BTreeSet<&str> {
        let code = repository.code(folder).flat_map(|(_, text)| text.split("Message::").skip(1));
        let names = code.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name);
        names.filter_map(|name| topic_of.get(name).copied()).collect()
    };
    let ids = topic_ids(repository);
    let all: BTreeSet<&str> = ids.keys().map(String::as_str).collect();
    let settled = built("shared/engine/").union(&built("shared/runtime/")).copied().collect();
    found.extend(compare("topics that settling publishes to", ("the code", settled), ("shared/model", all)));
    for function in repository.functions() {
        let own = built(&format!("functions/{function}/src/"));
        if own.contains("Named") != (function == "execute")
            || (!settling.contains(&function) && !own.is_empty())
        {
            found.push(format!("{function} publishes {own:?}, which terraform/pubsub.tf does not grant"));
        }
    }
    let light = "CALLBACK_QUEUE: &str = \"light\"";
    let notices = terraform.split("\"execute_gives_notice\" {").nth(1).unwrap_or_default();
    let member = notices.lines().find(|line| line.trim_start().starts_with("member "));
    if !repository.file("shared/model/src/message.rs").contains(light)
        || !member.is_some_and(|line| line.contains("function[\"execute-light\"].member"))
    {
        found.push("callbacks run on another queue than the one that may publish to topics of users".into());
    }
    found
}

/// Subscriptions are the same in one process and in the cloud.
pub(crate) fn subscriptions(repository: &Repository) -> Vec<String> {
    let ids = topic_ids(repository);
    let apart = repository.file("cli/src/dev/separate_processes.rs");
    let mut coded: BTreeSet<(String, String)> = apart
        .split("subscribe(Topic::")
        .skip(1)
        .filter_map(|call| {
            Some((
                literals(call.lines().next()?).next()?.to_owned(),
                ids.get(call.split(',').next()?)?.clone(),
            ))
        })
        .collect();
    if apart.contains("&format!(\"execute-{queue}\"), \"execute\")") {
        coded.insert(("execute-QUEUE".into(), ids["Work"].clone()));
    }
    // `ebb dev` makes the same subscriptions in one process.
    let together =
        repository.file("cli/src/dev/functions.rs").to_owned() + repository.file("cli/src/dev/queues.rs");
    let mut found: Vec<String> = coded
        .iter()
        .filter(|(name, _)| !together.contains(&format!("\"{}\"", name.replace("QUEUE", "{queue}"))))
        .map(|(name, _)| format!("subscriptions: {name} is not made in one process"))
        .collect();
    let only =
        literals(repository.file("cli/src/dev/functions.rs").split("RUN_FINISHED: &str = ").nth(1).unwrap());
    let only = only.take(1).collect::<String>();
    for file in ["terraform/pubsub.tf", "docker-compose.yml"] {
        if !repository.file(file).contains(&format!("\\\"ce-type\\\" = \\\"{only}\\\"")) {
            found.push(format!(
                "subscriptions: {file} does not filter for `{only}`, which alone is for trigger"
            ));
        }
    }
    let list = inside(repository.file("terraform/pubsub.tf"), "subscriptions = merge(");
    let fixed = list
        .lines()
        .filter_map(|line| line.trim().split_once("= \""))
        .filter(|(name, _)| !name.contains('{'));
    let mut made: BTreeSet<(String, String)> =
        fixed.map(|(name, topic)| (name.trim().to_owned(), by_queue(topic.trim_end_matches('"')))).collect();
    if let Some(line) = list.lines().find(|line| line.contains("for queue in")) {
        let mut pair = literals(line).map(by_queue);
        made.insert((pair.next().unwrap(), pair.next().unwrap()));
    }
    found.extend(compare("subscriptions", ("ebb dev", coded), ("terraform/pubsub.tf", made)));
    found
}

/// Functions that accept calls are called, at the path that they serve.
pub(crate) fn routes(repository: &Repository) -> Vec<String> {
    let with = |path: &str| -> Names {
        let route = format!(".route(\"{path}\", post(");
        let has = |name: &String| {
            repository.code(&format!("functions/{name}/src/")).any(|(_, text)| text.contains(&route))
        };
        repository.functions().into_iter().filter(has).collect()
    };
    let pubsub = repository.file("terraform/pubsub.tf");
    let pushed: Names = attributes(inside(pubsub, "subscriptions = merge("))
        .into_iter()
        .chain(pubsub.contains("\"execute-${queue}\" => \"").then(|| "execute".to_owned()))
        .collect();
    let called = |text: &str, path: &str| -> Names {
        let end = format!("\"].uri}}{path}\"");
        let names = text
            .split(&end)
            .filter_map(|before| before.rsplit_once("function[\""))
            .map(|(_, name)| name.to_owned());
        names.filter(|name| !name.contains('"')).collect()
    };
    let mut found =
        compare("who takes pushes", ("functions/", with("/push")), ("terraform/pubsub.tf", pushed));
    let letters =
        (("functions/", with("/dead-letters")), ("terraform/pubsub.tf", called(pubsub, "/dead-letters")));
    found.extend(compare("who keeps dead letters", letters.0, letters.1));
    let scheduler = repository.file("terraform/scheduler.tf");
    found.extend(compare(
        "who is woken",
        ("functions/", with("/sweep")),
        ("terraform/scheduler.tf", called(scheduler, "/sweep")),
    ));
    found
}
