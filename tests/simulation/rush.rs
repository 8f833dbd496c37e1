//! Ten times the load for a minute: everything is done in the end, and nobody waits for more than a round.

use model::RunState;

use crate::seeds::number;
use crate::weather::{Fault, Weather};
use crate::world::World;

#[test]
fn ten_times_the_load_for_a_minute_is_done_in_the_end_and_no_tenant_waits_for_more_than_a_round() {
    for seed in 0..number("EBB_SEEDS").unwrap_or(6).min(100) {
        // Once in calm, and in whatever the seed brings but people, who are not asked.
        let storm = Weather::of(seed).without(Fault::Steer).without(Fault::Cancel);
        for weather in [Weather::calm(), storm] {
            let ended = World::new(seed, weather, None).with_rush().play();
            // That each has its turn is looked at after every step of the storm.
            let ended = ended.unwrap_or_else(|trouble| panic!("seed {seed}: {trouble}"));
            let well = |end: &Option<_>| end.as_ref().is_some_and(|(state, _)| *state == RunState::Succeeded);
            assert!(ended.ends.iter().all(well), "seed {seed}: {:?}", ended.ends);
        }
    }
}
