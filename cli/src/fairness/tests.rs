use super::*;

fn shares(places: u32, tenants: &[&str]) -> Shares {
    let tenants = tenants.iter().map(|text| text.parse().unwrap()).collect();
    Shares::of(&Simulate { tenants, places })
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
fn nobody_waits_while_places_are_free() {
    let shares = shares(4, &["a:tasks=2", "b:tasks=2,at=1"]);
    assert_eq!((shares.contended, shares.tenants[0].longest_wait, shares.tenants[1].longest_wait), (0, 0, 0));
}

#[test]
fn a_tenant_that_is_written_wrongly_is_told_what_is_right() {
    let said = |text: &str| text.parse::<Tenant>().unwrap_err();
    assert_eq!(said("a:wieght=3"), "`wieght` is none of weight, tasks, at and every");
    assert_eq!(said("a:weight=0"), "`weight` is `0`: write a number from 1 to 1000");
    assert_eq!(said("a:weight"), "write `weight=N`");
    assert_eq!(said(":tasks=1"), "a tenant has a name: write NAME or NAME:tasks=10,weight=3");
}
