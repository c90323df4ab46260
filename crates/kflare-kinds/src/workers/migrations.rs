//! Steps by which a Worker comes to its classes of Durable Objects. Cloudflare remembers the tag of the last one.

use kflare_api::worker_migration::WorkerMigration;
use serde_json::{Value, json};

use super::present;

/// Field of the body: the tag of the last step.
pub(super) const TAG: &str = "migration_tag";

/// What an upload has to say of them, where `current` is the tag that Cloudflare remembers. None: nothing is left to do.
///
/// Of a tag that is none of the steps nobody can say what is left. Then the last step is named as the one that was before: Cloudflare
/// refuses the upload (412, 10079) and says which tag it has.
pub(super) fn pending(steps: &[WorkerMigration], current: Option<&str>) -> Option<Value> {
    let last = &steps.last()?.tag;
    let done = match current {
        None => 0,
        Some(tag) => match steps.iter().position(|step| step.tag == tag) {
            Some(at) => at + 1,
            None => return Some(json!({ "old_tag": last, "new_tag": last, "steps": [] })),
        },
    };
    let left: Vec<Value> = steps[done..].iter().map(step).collect();
    if left.is_empty() {
        return None;
    }
    Some(present(json!({ "old_tag": current, "new_tag": last, "steps": left })).into())
}

fn step(step: &WorkerMigration) -> Value {
    let some = |names: &[String]| (!names.is_empty()).then(|| names.to_vec());
    let renamed: Vec<Value> = step
        .renamed_classes
        .iter()
        .map(|class| json!({ "from": class.from, "to": class.to }))
        .collect();
    present(json!({
        "new_sqlite_classes": some(&step.new_sqlite_classes),
        "new_classes": some(&step.new_classes),
        "renamed_classes": (!renamed.is_empty()).then_some(renamed),
        "deleted_classes": some(&step.deleted_classes),
    }))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<WorkerMigration> {
        serde_json::from_value(json!([
            { "tag": "v1", "newSqliteClasses": ["Room"] },
            { "tag": "v2", "renamedClasses": [{ "from": "Room", "to": "Hall" }], "deletedClasses": ["Old"] },
        ]))
        .unwrap()
    }

    // Field case 80.
    #[test]
    fn only_what_comes_after_the_tag_is_sent() {
        let second = json!({ "renamed_classes": [{ "from": "Room", "to": "Hall" }], "deleted_classes": ["Old"] });
        let all = json!({ "new_tag": "v2", "steps": [{ "new_sqlite_classes": ["Room"] }, second] });
        assert_eq!(pending(&steps(), None), Some(all));
        let left = json!({ "old_tag": "v1", "new_tag": "v2", "steps": [second] });
        assert_eq!(pending(&steps(), Some("v1")), Some(left));
        assert_eq!(pending(&steps(), Some("v2")), None);
        assert_eq!(pending(&[], Some("v2")), None);
        let refused = json!({ "old_tag": "v2", "new_tag": "v2", "steps": [] });
        assert_eq!(pending(&steps(), Some("v7")), Some(refused));
    }
}
