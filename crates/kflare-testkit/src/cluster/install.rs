//! kflare's side of a cluster: CRDs, the generated rights, a ServiceAccount to work as.

use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::crds::{CrdError, apply_crds};
use super::kubectl::{Kubectl, KubectlError};
use crate::control_plane::{Access, ControlPlaneError};

/// Namespace that the controller lives in.
pub const SYSTEM: &str = "kflare-system";
/// Its ServiceAccount there, which has the generated rights and no others.
pub const SERVICE_ACCOUNT: &str = "kflare";

/// A cluster could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// It cannot be reached, or there is no kubectl.
    #[error("the cluster cannot be used")]
    ControlPlane(#[from] ControlPlaneError),
    /// The CRDs.
    #[error(transparent)]
    Crds(#[from] CrdError),
    /// Namespace, ServiceAccount or rights.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
}

/// Makes a cluster ready for kflare: these CRDs, the generated rights, the ServiceAccount. No controller runs yet. Twice is
/// as good as once. Returns the cluster's kubectl.
pub async fn install(access: &Access, crds: Vec<CustomResourceDefinition>) -> Result<Kubectl, InstallError> {
    apply_crds(&access.client().await?, crds).await?;
    let kubectl = Kubectl::of(access).await?;
    let home = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {SYSTEM}}}}}\n---\n\
         {{apiVersion: v1, kind: ServiceAccount, metadata: {{name: {SERVICE_ACCOUNT}, namespace: {SYSTEM}}}}}\n"
    );
    kubectl.feed(&["apply", "--server-side", "-f", "-"], &home).await?;
    let rights = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/rbac");
    let rights = rights.display().to_string();
    kubectl.run(&["apply", "--server-side", "-f", &rights]).await?;
    Ok(kubectl)
}
