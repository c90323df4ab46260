//! Reading manifests: files, directories, standard input; several documents a file, lists, other API groups.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use kflare_api::names;
use kube::api::DynamicObject;
use serde_json::Value;

/// A manifest and where it stands.
pub struct Document {
    /// For messages.
    pub origin: String,
    /// The manifest.
    pub object: DynamicObject,
}

/// Reads all manifests of our API group. Others are skipped: a directory often holds more than ours.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input")?;
            parse("standard input", &text, &mut documents)?;
            continue;
        }
        for file in files(path)? {
            let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            parse(&file.display().to_string(), &text, &mut documents)?;
        }
    }
    Ok(documents)
}

fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| path.display().to_string())? {
        let file = entry?.path();
        let extension = file.extension().and_then(|it| it.to_str());
        if file.is_file() && matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn parse(origin: &str, text: &str, documents: &mut Vec<Document>) -> Result<()> {
    let values: Vec<Value> =
        serde_saphyr::from_multiple(text).with_context(|| format!("{origin} is not valid YAML"))?;
    for (number, value) in values.into_iter().enumerate() {
        take(&format!("{origin}, document {}", number + 1), value, documents)?;
    }
    Ok(())
}

fn take(origin: &str, value: Value, documents: &mut Vec<Document>) -> Result<()> {
    if value.is_null() {
        return Ok(());
    }
    let Some(api_version) = value.get("apiVersion").and_then(Value::as_str) else {
        bail!("{origin} has no apiVersion: it is not a Kubernetes manifest");
    };
    let list_of = value
        .get("kind")
        .and_then(Value::as_str)
        .and_then(|kind| kind.strip_suffix("List"));
    if let (Some(kind), Some(Value::Array(items))) = (list_of, value.get("items")) {
        for item in items {
            let mut item = item.clone();
            // In a list of one kind the items need not say what they are.
            if let Some(fields) = item.as_object_mut().filter(|_| !kind.is_empty()) {
                fields.entry("apiVersion").or_insert_with(|| api_version.into());
                fields.entry("kind").or_insert_with(|| kind.into());
            }
            take(origin, item, documents)?;
        }
        return Ok(());
    }
    match api_version.split_once('/') {
        Some((names::GROUP, names::VERSION)) => {}
        Some((names::GROUP, other)) => bail!(
            "{origin}: version {other} is not known; this kflare knows {}",
            names::VERSION
        ),
        _ => return Ok(()),
    }
    let object = serde_json::from_value(value).with_context(|| origin.to_owned())?;
    documents.push(Document {
        origin: origin.to_owned(),
        object,
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Document>> {
        let mut documents = Vec::new();
        parse("test", text, &mut documents)?;
        Ok(documents)
    }

    #[test]
    fn several_documents_lists_and_others_groups() {
        let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: kflare.dev/v1alpha1\nkind: Zone\nmetadata: {name: z}\nspec: {}\n---\n---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: kflare.dev/v1alpha1\n  kind: DNSRecord\n  metadata: {name: r}\n";
        let names: Vec<_> = parsed(text)
            .unwrap()
            .into_iter()
            .filter_map(|it| it.object.metadata.name)
            .collect();
        assert_eq!(names, ["z", "r"]);
    }

    #[test]
    fn items_of_a_typed_list_need_not_say_what_they_are() {
        let text = "apiVersion: kflare.dev/v1alpha1\nkind: KVNamespaceList\nitems:\n- metadata: {name: a}\n";
        let found = parsed(text).unwrap();
        assert_eq!(found[0].object.types.as_ref().unwrap().kind, "KVNamespace");
    }

    #[test]
    fn what_is_no_manifest_is_named() {
        let error = |text| format!("{:#}", parsed(text).err().unwrap());
        assert!(error("kind: Zone").contains("no apiVersion"));
        assert!(error("a: [").contains("not valid YAML"));
        assert!(error("apiVersion: kflare.dev/v9\nkind: Zone").contains("v9 is not known"));
    }
}
