//! Label and field selectors.

use kube::core::Status;
use serde_json::Value;

use super::refusal;

/// The selectors of a request; an object must fit all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selectors(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    subject: Subject,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Label(String),
    /// A JSON pointer.
    Field(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    /// Also true when the label is missing.
    NotIn(Vec<String>),
}

impl Selectors {
    /// Parses `labelSelector` and `fieldSelector`. Fields are `metadata.name` and `metadata.namespace`, which is what
    /// every kind supports.
    pub(super) fn parse(labels: Option<&str>, fields: Option<&str>) -> Result<Self, Box<Status>> {
        let mut requirements = Vec::new();
        for term in split_outside_parentheses(labels.unwrap_or_default()) {
            requirements.push(label_requirement(term)?);
        }
        for term in fields.unwrap_or_default().split(',').filter(|term| !term.is_empty()) {
            requirements.push(field_requirement(term)?);
        }
        Ok(Self(requirements))
    }

    pub(super) fn match_object(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let found = match &requirement.subject {
                Subject::Label(key) => object.get("metadata").and_then(|meta| meta.get("labels")?.get(key)),
                Subject::Field(pointer) => object.pointer(pointer),
            };
            let found = found.and_then(Value::as_str);
            match &requirement.test {
                Test::Exists => found.is_some(),
                Test::Missing => found.is_none(),
                Test::In(values) => found.is_some_and(|found| values.iter().any(|value| value == found)),
                Test::NotIn(values) => found.is_none_or(|found| values.iter().all(|value| value != found)),
            }
        })
    }
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => (),
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|term| !term.is_empty())
}

fn label_requirement(term: &str) -> Result<Requirement, Box<Status>> {
    let label = |key: &str, test| {
        Ok(Requirement {
            subject: Subject::Label(key.trim().to_owned()),
            test,
        })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((key, value)) = term.split_once("!=") {
        return label(key, Test::NotIn(one(value)));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return label(key, Test::In(one(value)));
    }
    if let Some(key) = term.strip_prefix('!') {
        return label(key, Test::Missing);
    }
    let Some((head, list)) = term.split_once('(') else {
        if term.contains(char::is_whitespace) {
            return Err(unable_to_parse(term));
        }
        return label(term, Test::Exists);
    };
    let values = list.strip_suffix(')').ok_or_else(|| unable_to_parse(term))?;
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    match head.split_whitespace().collect::<Vec<_>>().as_slice() {
        [key, "in"] => label(key, Test::In(values)),
        [key, "notin"] => label(key, Test::NotIn(values)),
        _ => Err(unable_to_parse(term)),
    }
}

fn field_requirement(term: &str) -> Result<Requirement, Box<Status>> {
    let value = |value: &str| vec![value.to_owned()];
    let (field, test) = if let Some((field, wanted)) = term.split_once("!=") {
        (field, Test::NotIn(value(wanted)))
    } else if let Some((field, wanted)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (field, Test::In(value(wanted)))
    } else {
        return Err(unable_to_parse(term));
    };
    let pointer = match field {
        "metadata.name" => "/metadata/name",
        "metadata.namespace" => "/metadata/namespace",
        _ => return Err(refusal::bad_request(format!("field label not supported: {field}"))),
    };
    Ok(Requirement {
        subject: Subject::Field(pointer),
        test,
    })
}

fn unable_to_parse(term: &str) -> Box<Status> {
    refusal::bad_request(format!("unable to parse requirement: {term}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_fields_select() {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "labels": {"app": "web", "tier": "1"}}});
        let fits = |labels, fields| Selectors::parse(labels, fields).unwrap().match_object(&object);
        assert!(fits(None, None));
        for yes in [
            "app=web",
            "app==web",
            "app",
            "!gone",
            "app!=db",
            "gone!=x",
            "app in (db, web),tier=1",
            "tier notin (2,3)",
        ] {
            assert!(fits(Some(yes), None), "{yes}");
        }
        for no in [
            "app=db",
            "gone",
            "!app",
            "app!=web",
            "app in (db)",
            "app=web,tier=2",
            "app notin (web)",
        ] {
            assert!(!fits(Some(no), None), "{no}");
        }
        assert!(fits(None, Some("metadata.name=a,metadata.namespace!=m")));
        assert!(!fits(None, Some("metadata.name=b")));
    }

    #[test]
    fn nonsense_is_refused() {
        for labels in ["a b", "a in (b", "a within (b)"] {
            assert_eq!(Selectors::parse(Some(labels), None).unwrap_err().code, 400, "{labels}");
        }
        let unsupported = Selectors::parse(None, Some("spec.x=1")).unwrap_err();
        assert_eq!(unsupported.message, "field label not supported: spec.x");
    }
}
