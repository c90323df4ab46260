//! Installing CustomResourceDefinitions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use tokio::time::{Instant, sleep};

const FIELD_MANAGER: &str = "kflare-testkit";
const ESTABLISHED_WITHIN: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

/// Why CRDs could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// A file or folder cannot be read.
    #[error("reading {path}", path = path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file holds something else than CRDs.
    #[error("{path} does not hold CustomResourceDefinitions", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// The API server refused one.
    #[error("applying the CustomResourceDefinition {name}")]
    Apply {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// One was accepted but is not served.
    #[error("the CustomResourceDefinition {name} is not served after {ESTABLISHED_WITHIN:?}: {last}")]
    NotEstablished {
        /// Its name.
        name: String,
        /// Its conditions, or the last error.
        last: String,
    },
}

/// Reads every `.yaml` and `.yml` file of a folder, in the order of their names. A file may hold several documents.
pub fn read_crds(folder: &Path) -> Result<Vec<CustomResourceDefinition>, CrdError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| CrdError::Read { path, source }
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable(folder))? {
        paths.push(entry.map_err(unreadable(folder))?.path());
    }
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
    });
    paths.sort();
    let mut crds = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        let documents: Vec<CustomResourceDefinition> =
            serde_saphyr::from_multiple(&text).map_err(|source| CrdError::Parse {
                path,
                source: Box::new(source),
            })?;
        crds.extend(documents);
    }
    Ok(crds)
}

/// Applies CRDs (server-side, so twice is as good as once) and waits until every one is established and served.
///
/// Tests that share a control plane share its CRDs.
pub async fn apply_crds(
    client: &Client,
    crds: impl IntoIterator<Item = CustomResourceDefinition>,
) -> Result<(), CrdError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut applied = Vec::new();
    for crd in crds {
        let name = crd.name_any();
        api.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&crd))
            .await
            .map_err(|source| CrdError::Apply { name, source })?;
        applied.push(crd);
    }
    let deadline = Instant::now() + ESTABLISHED_WITHIN;
    for crd in applied {
        let name = crd.name_any();
        loop {
            let last = match unserved(client, &api, &crd).await {
                Ok(None) => break,
                Ok(Some(reason)) => reason,
                Err(error) => error.to_string(),
            };
            if Instant::now() >= deadline {
                return Err(CrdError::NotEstablished { name, last });
            }
            sleep(POLL).await;
        }
    }
    Ok(())
}

/// Why a CRD is not served yet, or `None` when it is.
async fn unserved(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    crd: &CustomResourceDefinition,
) -> Result<Option<String>, kube::Error> {
    let conditions = api
        .get_status(&crd.name_any())
        .await?
        .status
        .unwrap_or_default()
        .conditions
        .unwrap_or_default();
    if !conditions
        .iter()
        .any(|condition| condition.type_ == "Established" && condition.status == "True")
    {
        let told = conditions.iter().map(|condition| {
            let message = condition.message.as_deref().unwrap_or_default();
            format!("{}={} {message}", condition.type_, condition.status)
        });
        return Ok(Some(told.collect::<Vec<_>>().join("; ")));
    }
    // The handler follows the condition with a short delay.
    for version in crd.spec.versions.iter().filter(|version| version.served) {
        let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &crd.spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural);
        let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        objects.list(&ListParams::default().limit(1)).await?;
    }
    Ok(None)
}
