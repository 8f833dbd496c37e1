//! The values that a template can name.

use chrono::SecondsFormat;
use model::{Instant, Interval};
use serde_json::{Map, Value, json};

/// The names of a template and their values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scope {
    /// `inputs.NAME`: the inputs of the run.
    pub inputs: Map<String, Value>,
    /// `outputs.TASK` and `outputs['TASK']`: those of tasks upstream.
    pub outputs: Map<String, Value>,
    /// `run.…`, and `logical_date` by itself.
    pub run: Option<RunFacts>,
    /// `task.…`: facts about the task.
    pub task: Option<TaskFacts>,
    /// `item` and `index`: what a child of a fan-out stands for.
    pub item: Option<Item>,
    /// `event.…`: what a callback or trigger reacts to.
    pub event: Option<Value>,
    /// `answer.…`: what a sensor's condition is about.
    pub answer: Option<Value>,
    /// `secrets.NAME`. Templates see them; the document that is written to files and shown never does.
    pub secrets: Map<String, Value>,
}

/// What a child of a fan-out stands for.
#[derive(Clone, PartialEq, Debug)]
pub struct Item {
    /// `item`: the element of the list.
    pub value: Value,
    /// `index`: its index in the list, from 0.
    pub index: u32,
}

/// The facts about its run that a template can use.
#[derive(Clone, PartialEq, Debug)]
pub struct RunFacts {
    /// `run.id`, a UUID in hexadecimal.
    pub id: String,
    /// `run.logical_date`, the instant that the run is about.
    pub logical_date: Instant,
    /// `run.trigger`: what started it.
    pub trigger: String,
    /// `run.data_interval_start` and `run.data_interval_end`: the time that the run is about. Without one, both are the
    /// logical date.
    pub interval: Option<Interval>,
}

/// The facts about its task that a template can use.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskFacts {
    /// `task.name`, as the workflow defines it.
    pub name: String,
    /// `task.attempt`, counted from 1.
    pub attempt: u32,
}

impl Scope {
    /// Every name that a task's templates may know.
    pub(super) const NAMES: [&'static str; 8] =
        ["inputs", "outputs", "run", "task", "logical_date", "item", "index", "secrets"];

    /// The scope as one JSON value, without secrets: templates work on it, people may see it.
    pub fn to_json(&self) -> Value {
        self.clone().into_json()
    }

    /// The same, of a scope that is needed no longer.
    pub fn into_json(self) -> Value {
        let mut names = Map::new();
        names.insert("inputs".to_owned(), Value::Object(self.inputs));
        names.insert("outputs".to_owned(), Value::Object(self.outputs));
        if let Some(run) = &self.run {
            let written = |instant: Instant| instant.to_rfc3339_opts(SecondsFormat::AutoSi, true);
            let date = written(run.logical_date);
            let interval =
                run.interval.unwrap_or(Interval { start: run.logical_date, end: run.logical_date });
            names.insert(
                "run".to_owned(),
                json!({
                    "id": run.id, "logical_date": date, "trigger": run.trigger,
                    "data_interval_start": written(interval.start), "data_interval_end": written(interval.end),
                }),
            );
            names.insert("logical_date".to_owned(), date.into());
        }
        if let Some(task) = &self.task {
            names.insert("task".to_owned(), json!({"name": task.name, "attempt": task.attempt}));
        }
        if let Some(item) = self.item {
            names.insert("item".to_owned(), item.value);
            names.insert("index".to_owned(), item.index.into());
        }
        if let Some(event) = self.event {
            names.insert("event".to_owned(), event);
        }
        if let Some(answer) = self.answer {
            names.insert("answer".to_owned(), answer);
        }
        Value::Object(names)
    }
}
