//! Which template extends which: every chain has an end, and not too far away.

use super::extends::Extends;
use super::{Blueprint, Blueprints};
use crate::diagnostic::Report;

/// The maximum depth of templates that extend one another.
const MAX_DEPTH: usize = 10;

/// Why a chain of templates cannot be followed.
enum Trouble<'a> {
    Unknown(&'a str),
    Broken(&'a str),
    /// Each extends the next, and the last one is the first.
    Cycle(Vec<&'a str>),
    TooDeep,
}

impl<'n> Blueprints<'n> {
    /// Whether a workflow can extend what it names; why not is reported.
    pub(super) fn can_extend(&self, extends: &Extends<'_>, report: &mut Report<'_>) -> bool {
        let followed = self.follow(extends.template.text);
        followed.map_err(|trouble| self.report(trouble, extends, report)).is_ok()
    }

    /// Whether every template that this one builds on is there; why not is reported at its `extends`.
    pub(super) fn has_lineage(&self, blueprint: &Blueprint<'n>, report: &mut Report<'_>) -> bool {
        let own = blueprint.name.text;
        let (Some(extends), Err(trouble)) = (&blueprint.base, self.follow(own)) else { return true };
        let trouble = match trouble {
            Trouble::Cycle(chain) if !chain.contains(&own) => Trouble::Broken(extends.template.text),
            // One report is enough for all that are part of it.
            Trouble::Cycle(chain) if chain.iter().any(|other| *other < own) => return false,
            trouble => trouble,
        };
        self.report(trouble, extends, report);
        false
    }

    fn follow<'a>(&'a self, start: &'a str) -> Result<(), Trouble<'a>> {
        let mut chain: Vec<&str> = Vec::new();
        let mut next = Some(start);
        while let Some(name) = next {
            if let Some(first) = chain.iter().position(|earlier| *earlier == name) {
                chain.push(name);
                return Err(Trouble::Cycle(chain.split_off(first)));
            }
            if chain.len() == MAX_DEPTH {
                return Err(Trouble::TooDeep);
            }
            let blueprint = self.all.get(name).ok_or(Trouble::Unknown(name))?;
            let blueprint = blueprint.as_ref().ok_or(Trouble::Broken(name))?;
            chain.push(name);
            next = blueprint.base.as_ref().map(|extends| extends.template.text);
        }
        Ok(())
    }

    fn report(&self, trouble: Trouble<'_>, extends: &Extends<'_>, report: &mut Report<'_>) {
        let direct = extends.template;
        let (message, hint) = match trouble {
            Trouble::Unknown(name) if name == direct.text => {
                let near = report.budget.nearest(name, self.all.keys().copied());
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let hint = hint.unwrap_or_else(|| format!("define it in templates/{name}.yaml"));
                (format!("there is no workflow template `{name}`"), hint)
            }
            Trouble::Cycle(chain) => {
                let chain = chain.join(" → ");
                let hint = "remove `extends` from one of them".to_owned();
                (format!("workflow templates extend one another in a cycle: {chain}"), hint)
            }
            Trouble::TooDeep => {
                let message =
                    format!("workflow templates extend one another more than {MAX_DEPTH} levels deep");
                (message, "leave some of them out".to_owned())
            }
            Trouble::Unknown(_) => unusable(direct.text),
            Trouble::Broken(name) => unusable(name),
        };
        report.add(direct.at, message, Some(hint));
    }
}

fn unusable(name: &str) -> (String, String) {
    let hint = "fix the problems in its own file first".to_owned();
    (format!("the workflow template `{name}` cannot be used"), hint)
}
