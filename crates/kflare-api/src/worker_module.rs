//! The parts of a Worker's code.

use kube::{KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::tidy;

/// The longest code that a spec holds, in characters: etcd takes no object above 1.5 MB. Longer code goes into ConfigMaps.
pub const MAX_CODE: u32 = 524_288;

/// One module of a Worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(validation = one_content())]
pub struct WorkerModule {
    /// Name that other modules import it by, such as `lib/math.js`.
    #[schemars(length(min = 1, max = 255), regex(pattern = r"^[A-Za-z0-9_./@+-]+$"))]
    pub name: String,
    /// What the module is.
    #[serde(rename = "type")]
    pub module_type: WorkerModuleType,
    /// The module itself, where it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_CODE))]
    pub content: Option<String>,
    /// The module itself, as a key of a ConfigMap in the same namespace: of `data`, or of `binaryData` for WebAssembly and other
    /// bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapKeyRef>,
}

/// What a module is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WorkerModuleType {
    /// JavaScript with `import` and `export`.
    #[default]
    EsModule,
    /// JavaScript with `require` and `module.exports`.
    CommonJs,
    /// WebAssembly.
    Wasm,
    /// Text, imported as a string.
    Text,
    /// Bytes, imported as an `ArrayBuffer`.
    Data,
    /// JSON, imported as a value.
    Json,
    /// Python.
    Python,
    /// A source map: for stack traces, never imported.
    SourceMap,
}

/// Names a key of a ConfigMap in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapKeyRef {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

fn one_content() -> Rule {
    Rule::new("has(self.content) != has(self.configMapRef)")
        .message("set exactly one of content and configMapRef in each of spec.modules")
}
