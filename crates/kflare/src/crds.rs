//! `kflare crds`: the CustomResourceDefinitions as YAML.

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// All CRDs, as one stream of documents.
pub fn all() -> Result<String> {
    let documents: Result<Vec<String>> = kflare_api::crds().iter().map(one).collect();
    Ok(documents?.join("---\n"))
}

/// One CRD.
pub fn one(crd: &CustomResourceDefinition) -> Result<String> {
    let mut value = serde_json::to_value(crd)?;
    // What the API server fills in is not part of a manifest.
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    Ok(serde_saphyr::to_string(&value)?)
}
