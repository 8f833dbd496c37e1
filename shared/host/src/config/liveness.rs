//! When workers count as dead.

use chrono::TimeDelta;
use runtime::Liveness;

use super::{Environment, Reader};

/// The settings `EBB_HEARTBEAT_SECONDS` and `EBB_DEAD_SECONDS`, or what is wrong with them.
pub fn liveness(environment: &Environment) -> Result<Liveness, String> {
    let seconds = |name: &str, default: TimeDelta| match environment.get(name) {
        None => Ok(default),
        Some(text) => match text.parse::<u32>() {
            Ok(seconds) => Ok(TimeDelta::seconds(seconds.into())),
            Err(_) => Err(format!("{name} is `{text}`, which is not a number of seconds")),
        },
    };
    let default = Liveness::default();
    let liveness = Liveness {
        heartbeat_interval: seconds("EBB_HEARTBEAT_SECONDS", default.heartbeat_interval)?,
        dead_after: seconds("EBB_DEAD_SECONDS", default.dead_after)?,
    };
    let Liveness { heartbeat_interval, dead_after } = liveness;
    match liveness.is_sound() {
        true => Ok(liveness),
        false => Err(format!(
            "EBB_DEAD_SECONDS is {}, and EBB_HEARTBEAT_SECONDS is {}: the first must be at least three times the second plus 15, \
             so that a live worker is not declared dead",
            dead_after.num_seconds(),
            heartbeat_interval.num_seconds()
        )),
    }
}

impl Reader<'_> {
    pub(super) fn liveness(&mut self) -> Liveness {
        liveness(self.environment).unwrap_or_else(|problem| {
            self.problems.push(problem);
            Liveness::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Liveness, String> {
        liveness(&variables.iter().copied().collect())
    }

    #[test]
    fn both_settings_have_defaults_and_must_fit_each_other() {
        assert_eq!(read(&[]), Ok(Liveness::default()));
        let short = read(&[("EBB_HEARTBEAT_SECONDS", "2"), ("EBB_DEAD_SECONDS", "21")]).unwrap();
        assert_eq!(
            (short.heartbeat_interval, short.dead_after),
            (TimeDelta::seconds(2), TimeDelta::seconds(21))
        );
        assert!(read(&[("EBB_DEAD_SECONDS", "44")]).unwrap_err().contains("EBB_DEAD_SECONDS is 44"));
        assert!(read(&[("EBB_HEARTBEAT_SECONDS", "often")]).unwrap_err().contains("`often`"));
    }
}
