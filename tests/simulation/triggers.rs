//! What the simulated store passes on about triggers.

use async_trait::async_trait;
use model::{CloudEvent, Instant, RunId, RunState, TenantId, TriggerKey};
use store::{
    Result, Sighting, TriggerEvent, TriggerFilter, TriggerPause, TriggerRecord, TriggerStore, TriggerUnit,
};

use crate::fault_points::now;
use crate::faults::Point;
use crate::store::{SimulatedStore, SimulatedUnit, away};

macro_rules! pass_on {
    (
        within { $(fn $name:ident($($given:ident: $gift:ty),*) -> $got:ty;)* }
        reads { $(fn $read:ident($($asked:ident: $ask:ty),*) -> $told:ty;)* }
        writes { $(fn $write:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* }
    ) => {
        #[async_trait]
        impl TriggerUnit for SimulatedUnit {
            $(async fn $name(&mut self, $($given: $gift),*) -> Result<$got> {
                self.within(Point::UnitRead, |unit| now(unit.$name($($given),*)))
            })*
        }

        #[async_trait]
        impl TriggerStore for SimulatedStore {
            $(async fn $read(&self, $($asked: $ask),*) -> Result<$told> {
                self.points.stop(Point::Read).await.map_err(away)?;
                self.inner.$read($($asked),*).await
            })*

            $(async fn $write(&self, $($argument: $type),*) -> Result<$answer> {
                self.points.stop(Point::Write).await.map_err(away)?;
                let answer = self.inner.$write($($argument),*).await?;
                self.points.stop(Point::AfterWrite).await.map_err(away)?;
                Ok(answer)
            })*
        }
    };
}

pass_on! {
    within {
        fn note_event(key: &TriggerKey, event: &TriggerEvent) -> bool;
        fn hold_event(key: &TriggerKey, event: &CloudEvent, due_at: Instant) -> bool;
        fn take_held(key: &TriggerKey, at: Instant) -> Option<CloudEvent>;
        fn sight(key: &TriggerKey, revision: i64, sighting: &Sighting) -> bool;
    }
    reads {
        fn tenant_named(name: &str) -> Option<TenantId>;
        fn trigger(key: &TriggerKey) -> Option<TriggerRecord>;
        fn triggers(tenant: TenantId, filter: &TriggerFilter) -> Vec<TriggerRecord>;
        fn triggers_on(tenant: TenantId, kind: &str, key: &str) -> Vec<TriggerRecord>;
        fn due_triggers(at: Instant, limit: u32) -> Vec<TriggerRecord>;
        fn trigger_events(key: &TriggerKey, limit: u32) -> Vec<TriggerEvent>;
        fn runs_triggered(key: &TriggerKey, since: Instant) -> u32;
        fn run_on(tenant: TenantId, workflow: &str, date: Instant) -> Option<(RunId, RunState)>;
    }
    writes {
        fn put_off(key: &TriggerKey, due_at: Instant, until: Instant) -> bool;
        fn pause_trigger(key: &TriggerKey, pause: Option<&TriggerPause>, at: Instant) -> bool;
    }
}
