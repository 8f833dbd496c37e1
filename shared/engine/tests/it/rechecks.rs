//! When a run is rechecked for lost messages.

use chrono::TimeDelta;
use ebbflow_engine::Command;

use crate::rows::Rows;

const CLAIM_TIMEOUT: TimeDelta = TimeDelta::seconds(30);

/// Sweeps tick once a minute, so a recheck happens at most this long after it is due.
const TICK: TimeDelta = TimeDelta::seconds(60);

#[test]
fn a_lost_work_message_is_sent_again_within_two_minutes_whenever_the_first_recheck_comes() {
    for seconds in 0..=45 {
        let mut rows = Rows::of(testkit::workflow("a"));
        let dispatched_at = rows.now;
        rows.now = dispatched_at + TimeDelta::seconds(seconds);
        while rows.dispatches("a") < 2 {
            rows.decide(&Command::Recheck { claim_timeout: CLAIM_TIMEOUT, served: None });
            rows.now = rows.now.max(rows.recheck.unwrap() + TICK);
        }
        let sent_at = rows.events.last().unwrap().at;
        assert!(sent_at - dispatched_at <= TimeDelta::minutes(2), "{seconds}: sent again at {sent_at}");
    }
}
