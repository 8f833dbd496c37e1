//! Claims about tenants.

use model::{Limit, TenantId};
use store::TenantFilter;

use crate::Subject;
use crate::example::at;

async fn names(store: &Subject, filter: TenantFilter) -> Vec<String> {
    store.tenants(&filter).await.unwrap().into_iter().map(|tenant| tenant.name).collect()
}

pub(crate) async fn tenants_are_listed_in_the_order_in_which_they_came_into_being(store: Subject) {
    for (second, name) in ["zeta", "alpha", "zeta", "mid"].into_iter().enumerate() {
        store.tenant(name, at(second as i64)).await.unwrap();
    }
    let all = TenantFilter { limit: 9, ..TenantFilter::default() };
    assert_eq!(names(&store, all.clone()).await, ["default", "zeta", "alpha", "mid"]);
    let page = TenantFilter { after: Some(TenantId::DEFAULT), limit: 2, ..TenantFilter::default() };
    assert_eq!(names(&store, page).await, ["zeta", "alpha"]);
    let wanted = ["mid", "default", "nobody", "no\0body"].map(String::from).to_vec();
    assert_eq!(names(&store, TenantFilter { names: Some(wanted), ..all }).await, ["default", "mid"]);
    let zeta = TenantFilter { names: Some(vec!["zeta".into()]), limit: 1, ..TenantFilter::default() };
    let zeta = store.tenants(&zeta).await.unwrap().remove(0);
    assert_eq!((zeta.created_at, zeta.weight, zeta.slots), (at(0), 1, None));
}

pub(crate) async fn a_tenant_shows_its_weight_and_what_of_its_bound_is_used(store: Subject) {
    let acme = store.tenant("acme", at(0)).await.unwrap();
    store.set_weight(acme, 7).await.unwrap();
    store.set_slots(&Limit::Tenant(acme), Some(4)).await.unwrap();
    let all = TenantFilter { limit: 9, ..TenantFilter::default() };
    let shown: Vec<_> = store.tenants(&all).await.unwrap();
    let shown: Vec<_> = shown.iter().map(|it| (it.id, it.weight, it.slots, it.used, it.waiting)).collect();
    assert_eq!(shown, [(TenantId::DEFAULT, 1, None, 0, 0), (acme, 7, Some(4), 0, 0)]);
}
