use super::*;

fn shares_of(slots: u32, tenants: &[&str]) -> Shares {
    let tenants = tenants.iter().map(|text| text.parse().unwrap()).collect();
    shares(&Simulate { tenants, slots }).unwrap()
}

#[test]
fn weights_of_three_to_one_are_received_as_entitled() {
    let shares = shares_of(8, &["a:weight=3,tasks=300", "b:tasks=300"]);
    insta::assert_snapshot!(shares.table());
}

#[test]
fn one_task_behind_ten_thousand_waits_for_one_round() {
    let shares = shares_of(8, &["a:tasks=10000", "b:tasks=1,at=500"]);
    assert_eq!(shares.releases, 10_001);
    assert!(shares.tenants[1].longest_wait <= 1, "{shares:?}");
}

#[test]
fn no_task_waits_while_slots_are_free() {
    let shares = shares_of(4, &["a:tasks=2", "b:tasks=2,at=1"]);
    assert_eq!((shares.contended, shares.tenants[0].longest_wait, shares.tenants[1].longest_wait), (0, 0, 0));
}

#[test]
fn tenants_have_different_names() {
    let tenants = vec!["a".parse().unwrap(), "a:tasks=2".parse().unwrap()];
    let error = shares(&Simulate { tenants, slots: 1 }).unwrap_err();
    assert_eq!(error.to_string(), "two tenants have the same name");
}

#[test]
fn an_invalid_tenant_is_explained() {
    let error = |text: &str| text.parse::<Tenant>().unwrap_err();
    assert_eq!(error("a:wieght=3"), "unknown setting `wieght`; expected one of weight, tasks, at, every");
    assert_eq!(error("a:weight=0"), "`weight` is `0`: write a number from 1 to 1000");
    assert_eq!(error("a:weight"), "write `weight=N`");
    assert_eq!(error(":tasks=1"), "a tenant needs a name: write NAME or NAME:tasks=10,weight=3");
}
