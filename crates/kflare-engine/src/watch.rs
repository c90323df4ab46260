//! The watches: one a kind (and namespace), Secrets and Namespaces as metadata only. Each is a stream of [`Fed`] that never
//! ends; failures are reported, waited out with jittered back-off, and resumed.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream, stream::BoxStream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    Api, Client,
    api::{DynamicObject, PartialObjectMeta},
    runtime::watcher::{self, Event, watcher},
};

use crate::{
    clock::Chance,
    cluster::api_resource,
    kind::{KindDescriptor, ResourceScope},
    queue::backoff,
};

/// Back-off of a watch that fails.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(800), Duration::from_secs(30));

/// Seconds after which a quiet watch is opened anew: below the four minutes after which many load balancers silently drop
/// idle connections.
pub const WATCH_TIMEOUT: u32 = 230;

/// Which watch something came from: an index into the feeds that were started.
pub(crate) type FeedId = usize;

/// What a watch says.
pub(crate) enum Fed {
    /// About a resource of ours.
    Resource(Event<DynamicObject>),
    /// About a Secret.
    Secret(Event<PartialObjectMeta<Secret>>),
    /// About a ConfigMap.
    ConfigMap(Event<PartialObjectMeta<ConfigMap>>),
    /// About a Namespace.
    Namespace(Event<PartialObjectMeta<Namespace>>),
    /// The watch failed, and goes on by itself.
    Failed(Trouble),
}

/// Why a watch failed.
pub(crate) struct Trouble {
    /// The API server does not know the resource (its CRD is not installed).
    pub absent: bool,
    /// We may not watch it.
    pub forbidden: bool,
    /// The error, on one line.
    pub message: String,
}

/// What a feed watches.
#[derive(Clone, Debug)]
pub(crate) enum Watched {
    /// A kind of ours, in one namespace or in all.
    Kind { kind: Arc<str>, namespace: Option<String> },
    /// Secrets, in one namespace or in all.
    Secrets { namespace: Option<String> },
    /// ConfigMaps of all namespaces.
    ConfigMaps,
    /// Namespaces.
    Namespaces,
}

impl Watched {
    /// For logs and metrics.
    pub fn label(&self) -> String {
        let within = |namespace: &Option<String>| namespace.as_ref().map(|it| format!(" in {it}")).unwrap_or_default();
        match self {
            Self::Kind { kind, namespace } => format!("{kind}{}", within(namespace)),
            Self::Secrets { namespace } => format!("Secret{}", within(namespace)),
            Self::ConfigMaps => "ConfigMap".to_owned(),
            Self::Namespaces => "Namespace".to_owned(),
        }
    }
}

fn config() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_TIMEOUT)
}

/// Starts a watch on a kind.
pub(crate) fn resources(
    client: &Client,
    descriptor: &KindDescriptor,
    namespace: Option<&str>,
    chance: &Chance,
) -> BoxStream<'static, Fed> {
    let resource = api_resource(&descriptor.kind, &descriptor.plural);
    let api: Api<DynamicObject> = match (descriptor.resource_scope, namespace) {
        (ResourceScope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
        _ => Api::all_with(client.clone(), &resource),
    };
    steady(move || watcher(api.clone(), config()).boxed(), Fed::Resource, chance)
}

/// Starts a watch on the metadata of Secrets.
pub(crate) fn secrets(client: &Client, namespace: Option<&str>, chance: &Chance) -> BoxStream<'static, Fed> {
    let api: Api<PartialObjectMeta<Secret>> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    // Small pages: other people's Secrets pass through, and none of them stays.
    steady(
        move || watcher(api.clone(), config().page_size(100)).boxed(),
        Fed::Secret,
        chance,
    )
}

/// Starts a watch on the metadata of ConfigMaps.
pub(crate) fn config_maps(client: &Client, chance: &Chance) -> BoxStream<'static, Fed> {
    let api: Api<PartialObjectMeta<ConfigMap>> = Api::all(client.clone());
    steady(
        move || watcher(api.clone(), config().page_size(100)).boxed(),
        Fed::ConfigMap,
        chance,
    )
}

/// Starts a watch on the metadata of Namespaces.
pub(crate) fn namespaces(client: &Client, chance: &Chance) -> BoxStream<'static, Fed> {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(client.clone());
    steady(move || watcher(api.clone(), config()).boxed(), Fed::Namespace, chance)
}

type Inner<K> = BoxStream<'static, Result<Event<K>, watcher::Error>>;

struct Steady<K, F> {
    open: F,
    inner: Inner<K>,
    failures: u32,
    /// The last thing that came was a failure.
    pause: bool,
    chance: Chance,
}

fn steady<K, F>(open: F, wrap: fn(Event<K>) -> Fed, chance: &Chance) -> BoxStream<'static, Fed>
where
    K: Send + 'static,
    F: Fn() -> Inner<K> + Send + 'static,
{
    let state = Steady {
        inner: open(),
        open,
        failures: 0,
        pause: false,
        chance: chance.clone(),
    };
    stream::unfold(state, move |mut state| async move {
        if std::mem::take(&mut state.pause) {
            let delay = state.chance.jitter(backoff(state.failures, BACKOFF), 0.25);
            tokio::time::sleep(delay).await;
        }
        let fed = match state.inner.next().await {
            Some(Ok(event)) => {
                // The start of a list is not yet a success: what comes next may be its refusal.
                if !matches!(event, Event::Init) {
                    state.failures = 0;
                }
                wrap(event)
            }
            Some(Err(error)) => {
                state.failures = state.failures.saturating_add(1);
                state.pause = true;
                // kube retries a refused start from the same resourceVersion for ever; only a new list helps.
                if is_gone(&error) {
                    state.inner = (state.open)();
                }
                Fed::Failed(trouble(&error))
            }
            None => {
                state.failures = state.failures.saturating_add(1);
                state.pause = true;
                state.inner = (state.open)();
                Fed::Failed(Trouble {
                    absent: false,
                    forbidden: false,
                    message: "the watch ended".to_owned(),
                })
            }
        };
        Some((fed, state))
    })
    .boxed()
}

fn code(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

fn is_gone(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(_)) && code(error) == Some(410)
}

fn trouble(error: &watcher::Error) -> Trouble {
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = inner.source();
    }
    Trouble {
        absent: code(error) == Some(404),
        forbidden: code(error) == Some(403),
        message,
    }
}

/// All feeds as one stream, each item with the feed it came from.
pub(crate) fn merge(feeds: Vec<BoxStream<'static, Fed>>) -> impl Stream<Item = (FeedId, Fed)> + Send {
    stream::select_all(
        feeds
            .into_iter()
            .enumerate()
            .map(|(id, feed)| feed.map(move |fed| (id, fed)).boxed()),
    )
}
