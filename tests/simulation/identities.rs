//! What the simulated store passes on about tokens and grants: nobody in a simulated world has any.

use async_trait::async_trait;
use model::Instant;
use store::{GrantRecord, Identities, IdentityFilter, Result, TokenRecord};
use uuid::Uuid;

use crate::store::SimulatedStore;

macro_rules! pass_on {
    ($(fn $name:ident($($given:ident: $gift:ty),*) -> $got:ty;)*) => {
        #[async_trait]
        impl Identities for SimulatedStore {
            $(async fn $name(&self, $($given: $gift),*) -> Result<$got> {
                self.inner.$name($($given),*).await
            })*
        }
    };
}

pass_on! {
    fn add_token(token: &TokenRecord) -> ();
    fn token_by_hash(hash: &[u8; 32]) -> Option<TokenRecord>;
    fn tokens(filter: &IdentityFilter) -> Vec<TokenRecord>;
    fn revoke_token(filter: &IdentityFilter, id: Uuid, by: &str, at: Instant) -> Option<TokenRecord>;
    fn add_grant(grant: &GrantRecord) -> GrantRecord;
    fn grants_of(who: &[String]) -> Vec<GrantRecord>;
    fn grants(filter: &IdentityFilter) -> Vec<GrantRecord>;
    fn remove_grant(filter: &IdentityFilter, id: Uuid) -> Option<GrantRecord>;
    fn end_session(hash: &[u8; 32], until: Instant, now: Instant) -> ();
    fn session_ended(hash: &[u8; 32]) -> bool;
}
