//! The code of a Worker and the values of its secrets: what no read tells, and what a ConfigMap or Secret may hold.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kflare_api::{
    worker_migration::WorkerMigration,
    worker_module::{WorkerModule, WorkerModuleType},
    worker_script::{WorkerFormat, WorkerScriptSpec},
};
use kflare_cloudflare::endpoints::workers::Module;
use kflare_engine::{Desired, Input, Inputs, SpecError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Field of the body. It is write-only and secret.
pub(super) const CONTENT: &str = "content";

/// Name of the only part of a Worker that is one script.
const SINGLE_MODULE: &str = "index.js";
/// The same for a service worker, as Cloudflare's own tool has it.
const SINGLE_SCRIPT: &str = "script";

/// Everything about a Worker that is compared by its hash. The code itself is attached, by module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) format: WorkerFormat,
    /// Name of the module that is run.
    pub(super) entry: String,
    modules: Vec<ModulePrint>,
    /// Texts of secrets by the name of their binding.
    pub(super) secrets: BTreeMap<String, String>,
    /// Steps that an upload may have to carry out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) migrations: Vec<WorkerMigration>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ModulePrint {
    name: String,
    content_type: String,
    sha256: String,
}

/// Where the bytes of a module are.
enum Source<'a> {
    Here(&'a str),
    There(Input),
}

/// What the spec reads: code out of ConfigMaps, secrets out of Secrets.
pub(super) fn inputs(spec: &WorkerScriptSpec) -> Vec<Input> {
    let code = sources(spec).into_iter().filter_map(|(_, _, source)| match source {
        Source::Here(_) => None,
        Source::There(input) => Some(input),
    });
    code.chain(secrets(spec).map(|(_, input)| input)).collect()
}

/// The secrets that the spec binds: name of the binding, and where its text is.
fn secrets(spec: &WorkerScriptSpec) -> impl Iterator<Item = (&str, Input)> {
    spec.bindings.iter().flatten().filter_map(|binding| {
        let secret = binding.secret_key_ref.as_ref()?;
        Some((binding.name.as_str(), Input::secret(&secret.name, &secret.key)))
    })
}

/// Name, content type and source of each module, in the order of the spec.
fn sources(spec: &WorkerScriptSpec) -> Vec<(&str, &'static str, Source<'_>)> {
    let there = |at: &kflare_api::worker_module::ConfigMapKeyRef| Source::There(Input::config_map(&at.name, &at.key));
    if let Some(modules) = &spec.modules {
        let source = |module: &'_ WorkerModule| module.config_map_ref.as_ref().map(there);
        return modules
            .iter()
            .map(|module| {
                let here = Source::Here(module.content.as_deref().unwrap_or_default());
                let source = source(module).unwrap_or(here);
                (module.name.as_str(), content_type(module.module_type), source)
            })
            .collect();
    }
    let (name, content_type) = match spec.format {
        WorkerFormat::Module => (SINGLE_MODULE, content_type(WorkerModuleType::EsModule)),
        WorkerFormat::ServiceWorker => (SINGLE_SCRIPT, content_type(WorkerModuleType::CommonJs)),
    };
    let source = match (&spec.script, &spec.script_config_map_ref) {
        (None, Some(at)) => there(at),
        (script, _) => Source::Here(script.as_deref().unwrap_or_default()),
    };
    vec![(name, content_type, source)]
}

/// The types that Cloudflare documents for the parts of an upload.
fn content_type(module: WorkerModuleType) -> &'static str {
    match module {
        WorkerModuleType::EsModule => "application/javascript+module",
        WorkerModuleType::CommonJs => "application/javascript",
        WorkerModuleType::Wasm => "application/wasm",
        WorkerModuleType::Text => "text/plain",
        WorkerModuleType::Data => "application/octet-stream",
        WorkerModuleType::Json => "application/json",
        WorkerModuleType::Python => "text/x-python",
        WorkerModuleType::SourceMap => "application/source-map",
    }
}

/// Puts code and secrets into what is wanted. Every input of the spec is in `inputs`.
pub(super) fn fill(spec: &WorkerScriptSpec, desired: &mut Desired, inputs: &Inputs) -> Result<(), SpecError> {
    let value = |input: &Input| {
        let unread = || SpecError::new("", format!("{} {} was not read", input.kind.name(), input.name));
        inputs.get(input).ok_or_else(unread)
    };
    let sources = sources(spec);
    let entry = match (&spec.main_module, sources.first()) {
        (Some(main), _) => main.clone(),
        (None, first) => first.map(|(name, ..)| (*name).to_owned()).unwrap_or_default(),
    };
    let mut modules = Vec::with_capacity(sources.len());
    for (name, content_type, source) in sources {
        let bytes = match &source {
            Source::Here(text) => text.as_bytes(),
            Source::There(input) => value(input)?,
        };
        modules.push(ModulePrint {
            name: name.to_owned(),
            content_type: content_type.to_owned(),
            sha256: hex(&Sha256::digest(bytes)),
        });
        desired.attachments.insert(name.to_owned(), bytes.to_vec());
    }
    let mut texts = BTreeMap::new();
    for (name, input) in secrets(spec) {
        let text = std::str::from_utf8(value(&input)?).map_err(|_| {
            let message = format!("Secret {} holds no text under key {}", input.name, input.key);
            SpecError::new(format!("spec.bindings[{name}].secretKeyRef"), message)
        })?;
        texts.insert(name.to_owned(), text.to_owned());
    }
    let content = Content {
        format: spec.format,
        entry,
        modules,
        secrets: texts,
        migrations: spec.migrations.clone().unwrap_or_default(),
    };
    let text = serde_json::to_string(&content).map_err(|error| SpecError::new("spec", error.to_string()))?;
    desired.body.insert(CONTENT.to_owned(), Value::String(text));
    Ok(())
}

impl Content {
    /// What [`fill`] has put into `desired`. None: it was not filled.
    pub(super) fn of(desired: &Desired) -> Option<Self> {
        serde_json::from_str(desired.body.get(CONTENT)?.as_str()?).ok()
    }

    /// The modules as they are uploaded.
    pub(super) fn modules(&self, desired: &Desired) -> Vec<Module> {
        let attached = |name: &str| desired.attachments.get(name).cloned().unwrap_or_default();
        self.modules
            .iter()
            .map(|module| Module {
                name: module.name.clone(),
                content_type: module.content_type.clone(),
                content: attached(&module.name).into(),
            })
            .collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
