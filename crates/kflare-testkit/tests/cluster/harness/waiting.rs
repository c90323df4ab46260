//! Waiting for what has to come about, and making sure of what must not.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams};

use super::tenant::{Kind, Ready, SECRET, Tenant};

impl Tenant<'_> {
    /// Waits for what `probe` looks for. Panics with a report when it does not come about.
    pub async fn until<T, E: Display>(&self, what: &str, probe: impl AsyncFnMut() -> Result<Option<T>, E>) -> T {
        match self.namespace.wait_for(what, probe).await {
            Ok(found) => found,
            Err(error) => {
                self.reported.store(true, Ordering::Relaxed);
                panic!("{error}\n{}", self.told_calls());
            }
        }
    }

    /// Waits until something holds at Cloudflare.
    pub async fn until_remote(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let probe = async || Ok::<_, String>(holds().then_some(()));
        self.until(what, probe).await;
    }

    /// Waits until an object satisfies `holds`.
    pub async fn until_object(
        &self,
        kind: Kind,
        name: &str,
        what: &str,
        holds: impl Fn(&DynamicObject) -> bool,
    ) -> DynamicObject {
        let api = self.api(kind);
        let probe = async || api.get(name).await.map(|object| holds(&object).then_some(object));
        self.until(&format!("{kind:?} {name}: {what}"), probe).await
    }

    /// Waits until an object is Ready for its spec as it stands.
    pub async fn until_ready(&self, kind: Kind, name: &str) -> DynamicObject {
        let ready = |object: &DynamicObject| {
            Ready::current(object).is_some_and(|it| it.status == "True" && it.reason != "Paused")
        };
        self.until_object(kind, name, "Ready", ready).await
    }

    /// Waits until an object gives this reason for its spec as it stands.
    pub async fn until_reason(&self, kind: Kind, name: &str, reason: &str) -> Ready {
        let gives = |object: &DynamicObject| Ready::current(object).is_some_and(|it| it.reason == reason);
        let object = self.until_object(kind, name, reason, gives).await;
        Ready::current(&object).unwrap()
    }

    /// Waits until an object is gone.
    pub async fn until_gone(&self, kind: Kind, name: &str) {
        let api = self.api(kind);
        let probe = async || api.get_opt(name).await.map(|it| it.is_none().then_some(()));
        self.until(&format!("{kind:?} {name} gone"), probe).await;
    }

    /// Waits until the token Secret is gone.
    pub async fn until_secret_gone(&self) {
        let api = self.secrets();
        let probe = async || api.get_opt(SECRET).await.map(|it| it.is_none().then_some(()));
        self.until("the token Secret gone", probe).await;
    }

    /// Waits for an Event about an object. Returns its message.
    pub async fn until_event(&self, kind: Kind, name: &str, reason: &str) -> String {
        let api: Api<Event> = match kind {
            Kind::Account => Api::namespaced(self.client().clone(), "default"),
            _ => self.namespace.api(),
        };
        let fields = format!("involvedObject.name={name},reason={reason}");
        let wanted = ListParams::default().fields(&fields);
        let kind = kind.resource().kind;
        let probe = async || {
            let events = api.list(&wanted).await?.items;
            let mut events = events.into_iter();
            let found = events.find(|it| it.involved_object.kind.as_deref() == Some(&kind));
            Ok::<_, kube::Error>(found.map(|it| it.message.unwrap_or_default()))
        };
        self.until(&format!("an Event {reason} about {kind} {name}"), probe)
            .await
    }

    /// Makes sure that kflare has had the time to do what it should not do: another record of the zone is created and
    /// becomes Ready, which takes everything that the wrong deed would take, later.
    pub async fn fence(&self, name: &str) {
        self.create_a(name, &[]).await;
        self.until_ready(Kind::Record, name).await;
    }
}
