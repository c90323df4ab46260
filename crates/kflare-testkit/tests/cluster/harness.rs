//! What the tests stand on: a site (cluster and cloud), replicas of the controller, tenants who use them.

mod cloud;
pub mod promises;
pub mod replica;
pub mod site;
pub mod tenant;
mod waiting;

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt as _;
use kube::Client;

pub use self::replica::{Replica, ReplicaOptions};
pub use self::site::Site;
pub use self::tenant::{Kind, Ready, Tenant};

/// Plays a story of a new tenant on the shared site.
pub async fn scenario(prefix: &str, story: impl AsyncFnOnce(&Tenant)) {
    let site = site::shared().await;
    let client = site.access.client().await.unwrap();
    play(site, &client, prefix, story).await;
}

/// Plays a story of a new tenant and checks, at its end, what always holds. When it fails, says what there is.
pub async fn play(site: &Site, client: &Client, prefix: &str, story: impl AsyncFnOnce(&Tenant)) {
    let tenant = Tenant::move_in(site, client, prefix).await;
    let played = AssertUnwindSafe(async {
        story(&tenant).await;
        promises::check(&tenant).await;
    });
    if let Err(panic) = played.catch_unwind().await {
        eprintln!("{}", tenant.report().await);
        resume_unwind(panic);
    }
}
