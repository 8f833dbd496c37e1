//! Deploys: a task of hours runs on a worker outside while every process of the functions is replaced.

use chrono::TimeDelta;
use model::TaskState;

use crate::faults::FaultRates;
use crate::world::World;

const TAKES: TimeDelta = TimeDelta::hours(2);

#[test]
fn a_leased_task_of_two_hours_runs_through_two_deploys() {
    for seed in 0..10 {
        let mut world = World::new(seed, FaultRates::none(), None).with_leased_task(TAKES);
        let mut deploys = [40, 80].map(TimeDelta::minutes).into_iter().peekable();
        while !world.is_over() {
            if deploys.next_if(|at| world.age() >= *at).is_some() {
                let task = world.first_task().unwrap();
                assert_eq!((task.state, task.attempt), (TaskState::Running, 1), "seed {seed}");
                world.deploy();
            }
            world.play_step().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
            assert!(!world.takes_too_long(), "seed {seed}: {}", world.describe());
        }
        assert!(deploys.next().is_none(), "both deploys happened");
        let task = world.first_task().unwrap();
        assert_eq!((task.state, task.attempt), (TaskState::Succeeded, 1), "seed {seed}");
        assert!(world.age() >= TAKES, "seed {seed}");
    }
}
