//! The named objects of an account: KV namespaces, R2 buckets, D1 databases, queues.

mod d1;
mod kv;
mod queue;
mod r2;

use kflare_api::names;
use kflare_sim::{Dropped, Fault, ForeignCall};
use kflare_testkit::{
    memory_api::ObjectId,
    simulation::{ACCOUNT_ID, NAMESPACE, User},
};
use serde_json::{Value, json};

use crate::stage::{MINUTE, Stage, play};

/// Runs a scenario with an account and a controller, all at rest.
fn play_in_account<F: Future<Output = ()>>(scenario: impl FnOnce(Stage) -> F) {
    play(17, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.start();
        stage.ready(&[User::account_id()]).await;
        stage.rest(MINUTE).await;
        scenario(stage).await;
    });
}

/// A manifest of a kind in the account of the tests.
fn manifest(kind: &str, name: &str, spec: &Value) -> Value {
    let mut whole = json!({ "accountRef": { "name": "main" } });
    json_patch::merge(&mut whole, spec);
    json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": whole,
    })
}

/// The path of something in the account.
fn path(rest: &str) -> String {
    format!("/accounts/{ACCOUNT_ID}{rest}")
}

/// What somebody else does in the account; what comes of it.
#[track_caller]
fn foreign(stage: &Stage, call: ForeignCall) -> Value {
    stage.cloudflare.foreign_call(&call).unwrap()
}

/// The answer to a call is lost, its effect is not.
fn lost() -> Fault {
    Fault::DropAfter {
        dropped: Some(Dropped::Reset),
    }
}

/// Deletes a resource and waits until it is gone.
async fn delete(stage: &Stage, id: &ObjectId) {
    stage.user.delete(id);
    stage.gone(std::slice::from_ref(id)).await;
}
