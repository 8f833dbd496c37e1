use super::*;

fn shares(slots: u32, tenants: &[&str]) -> Shares {
    let tenants = tenants.iter().map(|text| text.parse().unwrap()).collect();
    Shares::of(&Simulate { tenants, slots })
}

#[test]
fn weights_of_three_to_one_are_received_as_they_are_due() {
    let shares = shares(8, &["a:weight=3,tasks=300", "b:tasks=300"]);
    insta::assert_snapshot!(shares.table());
}

#[test]
fn one_task_behind_ten_thousand_waits_for_one_round() {
    let shares = shares(8, &["a:tasks=10000", "b:tasks=1,at=500"]);
    assert_eq!(shares.releases, 10_001);
    assert!(shares.tenants[1].longest_wait <= 1, "{shares:?}");
}

#[test]
fn no_task_waits_while_slots_are_free() {
    let shares = shares(4, &["a:tasks=2", "b:tasks=2,at=1"]);
    assert_eq!((shares.contended, shares.tenants[0].longest_wait, shares.tenants[1].longest_wait), (0, 0, 0));
}

#[test]
fn an_invalid_tenant_is_refused_with_what_is_expected() {
    let refused = |text: &str| text.parse::<Tenant>().unwrap_err();
    assert_eq!(refused("a:wieght=3"), "unknown setting `wieght`; expected weight, tasks, at or every");
    assert_eq!(refused("a:weight=0"), "invalid `weight` `0`; expected a number from 1 to 1000");
    assert_eq!(refused("a:weight"), "expected `weight=N`");
    assert_eq!(refused(":tasks=1"), "expected NAME or NAME:tasks=10,weight=3");
}
