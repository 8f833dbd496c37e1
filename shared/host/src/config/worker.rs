//! The permissions and the containment of attempts: the settings of `ebb worker`, which execute shares.

use super::{ContainmentConfig, Environment, Problems, Reader};
use crate::EgressPolicy;

/// The settings of an `ebb worker`, from its environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerConfig {
    /// The hosts that tasks may call.
    pub egress: EgressPolicy,
    /// How the programs of tasks are contained.
    pub containment: ContainmentConfig,
}

impl WorkerConfig {
    /// Reads the settings of a worker. All problems are reported together.
    pub fn from_env(environment: &Environment) -> Result<Self, Problems> {
        let mut reader = Reader { environment, problems: Vec::new() };
        let config = Self { egress: reader.egress(), containment: reader.containment() };
        if reader.problems.is_empty() { Ok(config) } else { Err(Problems(reader.problems)) }
    }
}

impl Reader<'_> {
    pub(super) fn containment(&mut self) -> ContainmentConfig {
        ContainmentConfig::from_env(self.environment).unwrap_or_else(|problem| {
            self.problems.push(problem);
            ContainmentConfig::default()
        })
    }

    pub(super) fn egress(&mut self) -> EgressPolicy {
        let (only, allowed) = (self.optional("EBB_EGRESS_ONLY"), self.optional("EBB_EGRESS_ALLOW"));
        EgressPolicy::read(only.as_deref(), allowed.as_deref()).unwrap_or_else(|problems| {
            self.problems.extend(problems);
            EgressPolicy::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_of_a_worker_are_reported_together() {
        let read = |variables: &[(&str, &str)]| WorkerConfig::from_env(&variables.iter().copied().collect());
        assert_eq!(read(&[]).unwrap().containment, ContainmentConfig::default());
        let problems = read(&[("EBB_CONTAINMENT", "maybe"), ("EBB_EGRESS_ALLOW", "10.0.0.0/99")]);
        let problems = problems.unwrap_err().to_string();
        assert!(problems.contains("EBB_CONTAINMENT") && problems.contains("10.0.0.0/99"), "{problems}");
    }
}
