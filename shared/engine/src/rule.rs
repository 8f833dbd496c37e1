//! Trigger rules: what the ends of a task's parents mean for it.

use model::TriggerRule;
use model::task::Tally;

/// The verdict of a trigger rule about a task, from the states of its parents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is too early to decide.
    Wait,
    /// It may begin at once.
    Go,
    /// It does not have to run.
    Skip,
    /// It can no longer run.
    UpstreamFailed,
}

/// Judges a task with `total` parents of which `tally` have ended, as early as the rule can be decided.
pub fn judge(rule: TriggerRule, total: u32, tally: Tally) -> Verdict {
    use TriggerRule as R;
    use Verdict::{Go, Skip, UpstreamFailed, Wait};
    let waiting = tally.done < total;
    match rule {
        _ if total == 0 => Go,
        R::Always => Go,
        R::OneSuccess if tally.succeeded > 0 => Go,
        R::OneFailed if tally.failed > 0 => Go,
        R::AllSuccess | R::NoneFailed | R::NoneFailedMinOneSuccess if tally.failed > 0 => UpstreamFailed,
        R::AllFailed if tally.done > tally.failed => Skip,
        R::NoneSkipped if tally.skipped > 0 => Skip,
        _ if waiting => Wait,
        R::AllSuccess | R::NoneFailedMinOneSuccess if tally.succeeded == 0 => Skip,
        R::AnyOf if tally.succeeded > 0 => Go,
        R::AnyOf if tally.failed > 0 => UpstreamFailed,
        R::AnyOf => Skip,
        R::OneSuccess if tally.failed > 0 => UpstreamFailed,
        R::OneSuccess | R::OneFailed => Skip,
        R::AllSuccess
        | R::AllFailed
        | R::AllDone
        | R::NoneFailed
        | R::NoneFailedMinOneSuccess
        | R::NoneSkipped => Go,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `parents`: one letter each: `s`ucceeded, `f`ailed, s`k`ipped, `.` not yet.
    fn check(rule: TriggerRule, parents: &str, expected: Verdict) {
        let count = |letter| parents.matches(letter).count() as u32;
        let (succeeded, failed, skipped) = (count('s'), count('f'), count('k'));
        let tally = Tally { done: succeeded + failed + skipped, succeeded, failed, skipped };
        assert_eq!(judge(rule, parents.len() as u32, tally), expected, "{rule:?} over `{parents}`");
    }

    #[test]
    fn each_rule_decides_as_users_of_such_systems_expect() {
        use TriggerRule as R;
        use Verdict::{Go, Skip, UpstreamFailed as Fail, Wait};
        for (rule, cases) in [
            (R::AllSuccess, [("", Go), ("s.", Wait), ("f.", Fail), ("sk", Go), ("kk", Skip), ("ss", Go)]),
            (R::AllFailed, [("", Go), ("f.", Wait), ("s.", Skip), ("ff", Go), ("fk", Skip), ("..", Wait)]),
            (R::AllDone, [("", Go), ("f.", Wait), ("s.", Wait), ("fk", Go), ("ff", Go), ("sk", Go)]),
            (R::OneSuccess, [("", Go), ("s.", Go), ("f.", Wait), ("fs", Go), ("fk", Fail), ("kk", Skip)]),
            (R::OneFailed, [("", Go), ("s.", Wait), ("f.", Go), ("ss", Skip), ("sk", Skip), ("sf", Go)]),
            (R::NoneFailed, [("", Go), ("s.", Wait), ("f.", Fail), ("sk", Go), ("kk", Go), ("sf", Fail)]),
            (
                R::NoneFailedMinOneSuccess,
                [("", Go), ("s.", Wait), ("f.", Fail), ("sk", Go), ("kk", Skip), ("ss", Go)],
            ),
            (R::NoneSkipped, [("", Go), ("s.", Wait), ("k.", Skip), ("sf", Go), ("ff", Go), ("sk", Skip)]),
            (R::AnyOf, [("", Go), ("s.", Wait), ("f.", Wait), ("sf", Go), ("fk", Fail), ("kk", Skip)]),
            (R::Always, [("", Go), ("..", Go), ("f.", Go), ("s.", Go), ("kk", Go), ("sf", Go)]),
        ] {
            cases.into_iter().for_each(|(parents, expected)| check(rule, parents, expected));
        }
    }
}
