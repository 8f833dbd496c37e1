//! A tenant as written on the command line.

use std::str::FromStr;

const MAX_TASKS: u32 = 1_000_000;

#[derive(Clone, Debug)]
pub(super) struct Tenant {
    pub(super) name: String,
    /// Its slots in each round.
    pub(super) weight: u32,
    pub(super) tasks: u32,
    /// The number of releases before its first task comes.
    pub(super) at: u32,
    /// The number of releases between two of its tasks.
    pub(super) every: u32,
}

impl FromStr for Tenant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        if name.is_empty() {
            return Err("a tenant needs a name: write NAME or NAME:tasks=10,weight=3".into());
        }
        let mut tenant = Self { name: name.into(), weight: 1, tasks: 1, at: 0, every: 0 };
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            tenant.set(setting)?;
        }
        Ok(tenant)
    }
}

impl Tenant {
    fn set(&mut self, setting: &str) -> Result<(), String> {
        let (key, text) = setting.split_once('=').ok_or_else(|| format!("write `{setting}=N`"))?;
        let (field, range) = match key {
            "weight" => (&mut self.weight, 1..=1_000),
            "tasks" => (&mut self.tasks, 1..=MAX_TASKS),
            "at" => (&mut self.at, 0..=MAX_TASKS),
            "every" => (&mut self.every, 0..=MAX_TASKS),
            _ => return Err(format!("unknown setting `{key}`; expected one of weight, tasks, at, every")),
        };
        let number = text.parse().ok().filter(|number| range.contains(number));
        *field = number.ok_or_else(|| {
            format!("`{key}` is `{text}`: write a number from {} to {}", range.start(), range.end())
        })?;
        Ok(())
    }
}
