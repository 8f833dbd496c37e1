//! Ten times the load for a minute: everything is done in the end, and no tenant waits for more than a round.

use model::RunState;

use crate::faults::{Fault, FaultRates};
use crate::seeds::number;
use crate::world::World;

#[test]
fn ten_times_the_load_for_a_minute_is_done_in_the_end_and_no_tenant_waits_for_more_than_a_round() {
    for seed in 0..number("EBB_SEEDS").unwrap_or(6).min(100) {
        // Once without faults, and once with those of the seed, except for people.
        let faults = FaultRates::of(seed).without(Fault::Steer).without(Fault::Cancel);
        for rates in [FaultRates::none(), faults] {
            let ended = World::new(seed, rates, None).with_overload().play();
            // Fair turns are checked after every step with faults.
            let ended = ended.unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
            let well = |end: &Option<_>| end.as_ref().is_some_and(|(state, _)| *state == RunState::Succeeded);
            assert!(ended.ends.iter().all(well), "seed {seed}: {:?}", ended.ends);
        }
    }
}
