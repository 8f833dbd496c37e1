//! A tenant as it is written on the command line.

use std::str::FromStr;

/// The maximum number of tasks of a tenant.
const MAX_TASKS: u32 = 1_000_000;

/// A tenant and its tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tenant {
    pub(super) name: String,
    /// Its slots in each round.
    pub(super) weight: u32,
    pub(super) tasks: u32,
    /// The release at which its first task arrives.
    pub(super) at: u32,
    /// The number of releases between two of its tasks.
    pub(super) every: u32,
}

impl FromStr for Tenant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        if name.is_empty() {
            return Err("expected NAME or NAME:tasks=10,weight=3".into());
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
        let (key, number) = setting.split_once('=').ok_or_else(|| format!("expected `{setting}=N`"))?;
        let (place, range) = match key {
            "weight" => (&mut self.weight, 1..=1_000),
            "tasks" => (&mut self.tasks, 1..=MAX_TASKS),
            "at" => (&mut self.at, 0..=MAX_TASKS),
            "every" => (&mut self.every, 0..=MAX_TASKS),
            _ => return Err(format!("unknown setting `{key}`; expected weight, tasks, at or every")),
        };
        let (least, most) = (*range.start(), *range.end());
        *place =
            number.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
                format!("invalid `{key}` `{number}`; expected a number from {least} to {most}")
            })?;
        Ok(())
    }
}
