//! `PUT` of a script: a form of metadata and modules becomes a Worker.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::binding::{self, Bound};
use super::module::Module;
use super::{code, invalid, multipart, script};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::state::{AccountType, Script, Syntax, World};

/// What an upload consists of.
#[derive(Clone, Debug)]
pub(crate) struct Upload {
    pub(crate) metadata: Map<String, Value>,
    pub(crate) modules: Vec<Module>,
}

/// What becomes of an `inherit` binding that the Worker did not have before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inherit {
    /// It is left out (Cloudflare documents).
    Lenient,
    /// The upload is refused.
    Strict,
}

impl Upload {
    /// Reads a form, or the bare text of a service worker.
    fn read(content_type: &str, body: &[u8]) -> Result<Self, Refusal> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if matches!(essence, "application/javascript" | "text/javascript") {
            let mut metadata = Map::new();
            metadata.insert("body_part".to_owned(), "script".into());
            let module = Module {
                name: "script".to_owned(),
                content_type: "application/javascript".to_owned(),
                body: bytes::Bytes::copy_from_slice(body),
            };
            return Ok(Self {
                metadata,
                modules: vec![module],
            });
        }
        // The code is documented for settings; that it is the same here is unproven.
        let parts = multipart::parse(content_type, body)
            .ok_or_else(|| Refusal::new(400, 10_001, "Content-Type must be multipart/form-data"))?;
        let metadata = parts
            .iter()
            .find(|part| part.name == "metadata")
            .and_then(|part| serde_json::from_slice(&part.body).ok())
            .ok_or_else(|| invalid("Invalid or missing metadata"))?;
        let modules = parts.iter().filter(|part| part.name != "metadata");
        Ok(Self {
            metadata,
            modules: modules.map(Module::from_part).collect(),
        })
    }

    /// `main_module` or `body_part`: exactly one of them.
    fn syntax(&self) -> Result<Syntax, Refusal> {
        let text = |key: &str| self.metadata.get(key).and_then(Value::as_str).map(str::to_owned);
        match (text("main_module"), text("body_part")) {
            (Some(main), None) => Ok(Syntax::Modules(main)),
            (None, Some(part)) => Ok(Syntax::ServiceWorker(part)),
            _ => Err(invalid("Exactly one of main_module and body_part is required")),
        }
    }
}

pub(super) fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let content_type = call.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let upload = Upload::read(content_type.unwrap_or_default(), call.body)?;
    let inherit = match call.query.get("bindings_inherit") {
        Some("strict") => Inherit::Strict,
        _ => Inherit::Lenient,
    };
    let (account, name) = (
        call.param("account_id").to_owned(),
        call.param("script_name").to_owned(),
    );
    let script = deploy(call.world, &account, &name, upload, inherit, call.now)?;
    Ok(Reply::object(script::uploaded(&script)))
}

/// Makes a Worker or a new version of one. Whatever the upload does not say is as for a new Worker, except for schedules, the
/// workers.dev switch, Durable Object classes and what `keep_bindings` names.
pub(crate) fn deploy(
    world: &mut World,
    account: &str,
    name: &str,
    upload: Upload,
    inherit: Inherit,
    now: Timestamp,
) -> Result<Arc<Script>, Refusal> {
    if !is_name(name) {
        return Err(Refusal::new(400, 10_016, "The Worker's name is invalid."));
    }
    let before = world.script(account, name).cloned();
    if before.is_none() {
        room(world, account)?;
    }
    let syntax = upload.syntax()?;
    let (migration_tag, classes) = migrate(before.as_deref(), &upload.metadata)?;
    let sent = upload.metadata.get("bindings");
    let bound = Bound {
        world,
        account,
        name,
        classes: &classes,
        modules: &upload.modules,
    };
    let mut bindings = binding::read(&bound, sent, before.as_deref(), inherit)?;
    binding::keep(&mut bindings, upload.metadata.get("keep_bindings"), before.as_deref());
    code::check(&syntax, &upload.modules)?;
    let field = |key: &str| upload.metadata.get(key).filter(|value| !value.is_null()).cloned();
    let list = |key: &str| {
        field(key)
            .and_then(|value| value.as_array().cloned())
            .unwrap_or_default()
    };
    let script = Script {
        account_id: account.to_owned(),
        name: name.to_owned(),
        tag: before
            .as_ref()
            .map_or_else(|| world.new_id(), |script| script.tag.clone()),
        created_on: before.as_ref().map_or(now, |script| script.created_on),
        modified_on: now,
        etag: code::etag(&syntax, &upload.modules),
        version: world.new_id(),
        // Without a date, the oldest there is (Cloudflare documents).
        compatibility_date: field("compatibility_date")
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_else(|| "2021-11-02".to_owned()),
        compatibility_flags: list("compatibility_flags"),
        limits: field("limits"),
        placement: field("placement"),
        observability: field("observability"),
        logpush: field("logpush") == Some(Value::Bool(true)),
        tail_consumers: list("tail_consumers"),
        tags: list("tags"),
        bindings,
        classes,
        migration_tag,
        schedules: before
            .as_ref()
            .map(|script| script.schedules.clone())
            .unwrap_or_default(),
        workers_dev: before.as_ref().is_some_and(|script| script.workers_dev),
        previews: before.as_ref().is_some_and(|script| script.previews),
        syntax,
        modules: upload.modules,
    };
    world.put_script(script, now);
    world.script(account, name).cloned().ok_or_else(super::missing)
}

/// Lower case, digits, `-` and `_`; 63 characters at most.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&name.len()) && name.bytes().all(fits)
}

/// 100 Workers on the free plan of Workers, 500 on the paid one (Cloudflare documents). The code is unproven.
fn room(world: &World, account: &str) -> Result<(), Refusal> {
    let limit = match world.held().accounts.get(account).map(|account| account.kind) {
        Some(AccountType::Enterprise) => 500,
        _ => 100,
    };
    if world.scripts(account, None).len() < limit {
        return Ok(());
    }
    Err(Refusal::new(
        403,
        10_037,
        format!("You have reached the limit of {limit} Workers on your account."),
    ))
}

/// Takes a class away that has to be there. Wrangler's issues quote the text.
fn take(classes: &mut BTreeSet<String>, what: &str, class: &str) -> Result<(), Refusal> {
    if classes.remove(class) {
        return Ok(());
    }
    let text = format!("Cannot apply --{what} migration to class '{class}' that does not exist.");
    Err(Refusal::new(400, 10_074, text))
}

/// The migration tag and the classes of Durable Objects after the upload. Transfers are not modelled.
fn migrate(
    before: Option<&Script>,
    metadata: &Map<String, Value>,
) -> Result<(Option<String>, BTreeSet<String>), Refusal> {
    let mut tag = before.and_then(|script| script.migration_tag.clone());
    let mut classes = before.map(|script| script.classes.clone()).unwrap_or_default();
    let Some(Value::Object(migrations)) = metadata.get("migrations") else {
        return Ok((tag, classes));
    };
    let expected = migrations.get("old_tag").and_then(Value::as_str);
    if expected.is_some_and(|expected| Some(expected) != tag.as_deref()) {
        let text = format!(
            "Migration tag precondition failed; current tag is '{}' when expected tag is '{}'.",
            tag.unwrap_or_default(),
            expected.unwrap_or_default()
        );
        return Err(Refusal::new(412, 10_079, text));
    }
    let alone = [Value::Object(migrations.clone())];
    let steps = match migrations.get("steps") {
        Some(Value::Array(steps)) => steps.as_slice(),
        _ => alone.as_slice(),
    };
    for step in steps {
        for (key, value) in step.as_object().into_iter().flatten() {
            match key.as_str() {
                "new_classes" | "new_sqlite_classes" => {
                    for class in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
                        if !classes.insert(class.to_owned()) {
                            let text = format!(
                                "Cannot apply --new-class migration to class '{class}' that is already depended on by existing \
                                 Durable Objects."
                            );
                            return Err(Refusal::new(400, 10_074, text));
                        }
                    }
                }
                "deleted_classes" => {
                    for class in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
                        take(&mut classes, "delete-class", class)?;
                    }
                }
                "renamed_classes" => {
                    for renamed in value.as_array().into_iter().flatten() {
                        let name = |field: &str| renamed[field].as_str().unwrap_or_default();
                        take(&mut classes, "rename-class", name("from"))?;
                        classes.insert(name("to").to_owned());
                    }
                }
                "old_tag" | "new_tag" | "tag" => {}
                other => {
                    let text = format!("kflare-sim does not model migrations with {other}");
                    return Err(Refusal::new(501, 10_501, text));
                }
            }
        }
    }
    if let Some(new) = migrations.get("new_tag").and_then(Value::as_str) {
        tag = Some(new.to_owned());
    }
    Ok((tag, classes))
}
