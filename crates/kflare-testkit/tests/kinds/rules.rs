//! Rules of every kind, one test for all of them: made, left alone, put right, changed, deleted, kept, taken over. In every phase
//! there is a rule of somebody else's, which must come out as it went in.

use kflare_api::names;
use kflare_sim::Plan;
use kflare_testkit::memory_api::ObjectId;
use serde_json::{Value, json};

use crate::{
    rules_stage::{Sample, samples, without_versions},
    stage::{HOUR, MINUTE, Stage, adopting, annotated, play_in_zone},
};

/// A zone with a rule of somebody else's in every phase, and one of every kind of ours.
fn play_with_rules<F: Future<Output = ()>>(scenario: impl FnOnce(Stage, Vec<Sample>, Vec<ObjectId>) -> F) {
    play_in_zone(Plan::Enterprise, |stage| async move {
        let samples = samples();
        for sample in &samples {
            stage.foreign_rule(sample.phase, &sample.foreign);
        }
        let ids: Vec<ObjectId> = samples.iter().map(|it| stage.create(it.manifest())).collect();
        stage.ready(&ids).await;
        scenario(stage, samples, ids).await;
    });
}

/// The first rule of every phase is theirs, and as they made it.
#[track_caller]
fn assert_theirs_untouched(stage: &Stage, samples: &[Sample]) {
    for sample in samples {
        let rules = stage.rules(sample.phase);
        let theirs = &rules[0];
        assert_eq!(theirs["version"], "1", "{theirs}");
        assert_eq!(theirs["ref"], theirs["id"], "{theirs}");
        assert_eq!(theirs["expression"], sample.foreign["expression"]);
    }
}

// Field cases 35 and 39.
#[test]
fn each_is_made_once_beside_those_of_others_and_nothing_is_written_afterwards() {
    play_with_rules(async |stage, samples, ids| {
        for (sample, id) in samples.iter().zip(&ids) {
            let rules = stage.rules(sample.phase);
            assert_eq!(rules.len(), 2, "{id}: {rules:#?}");
            let ours = &rules[1];
            let reference = ours["ref"].as_str().unwrap();
            assert!(reference.starts_with("kflare_") && reference.len() == 39, "{reference}");
            let entry_point = stage
                .cloudflare
                .entry_point(crate::stage::DOMAIN, sample.phase)
                .unwrap();
            let metadata = json!({
                "rulesetID": entry_point["id"], "ruleID": ours["id"], "ref": reference, "version": "1",
            });
            assert_eq!(stage.status(id)["cloudflareMetadata"], metadata);
            assert_eq!(stage.metadata(id)["labels"][names::RULE_ID], ours["id"]);
        }
        let mark = stage.mark();
        stage.rest(3 * HOUR).await;
        stage.reconcile(&ids, "again").await;
        let since = stage.since(&mark);
        since.assert_no_cloudflare_write();
        assert_theirs_untouched(&stage, &samples);
    });
}

#[test]
fn what_somebody_else_changes_is_put_right_and_named() {
    play_with_rules(async |stage, samples, ids| {
        let before: Vec<Value> = samples
            .iter()
            .zip(&ids)
            .map(|(sample, id)| without_versions(stage.rule_of(sample.phase, id)))
            .collect();
        for (sample, id) in samples.iter().zip(&ids) {
            stage.foreign_rule_patch(sample.phase, &stage.rule_id(id).unwrap(), &sample.drift);
        }
        let right =
            |stage: &Stage, nth: usize| without_versions(stage.rule_of(samples[nth].phase, &ids[nth])) == before[nth];
        for (nth, id) in ids.iter().enumerate() {
            assert!(!right(&stage, nth), "{id}: the drift is none");
        }
        for (nth, id) in ids.iter().enumerate() {
            stage.until("put right", |stage| right(stage, nth)).await;
            stage
                .until("told", |stage| stage.times_told(id, "DriftCorrected") == 1)
                .await;
        }
        let words = ["enabled: false -> true", "expression: "];
        assert!(
            stage.told(&ids[0], "DriftCorrected", &words),
            "{:?}",
            stage.user.events(&ids[0])
        );
        assert_theirs_untouched(&stage, &samples);
    });
}

#[test]
fn a_changed_spec_is_one_write_and_the_rule_keeps_its_id() {
    play_with_rules(async |stage, samples, ids| {
        for (sample, id) in samples.iter().zip(&ids) {
            let (edit, pointer, value) = &sample.edit;
            let rule_id = stage.rule_id(id);
            let mark = stage.mark();
            stage.user.edit_spec(id, edit);
            stage.ready(std::slice::from_ref(id)).await;
            assert_eq!(stage.rule_id(id), rule_id);
            assert_eq!(stage.rule_of(sample.phase, id).pointer(pointer), Some(value), "{id}");
            let since = stage.since(&mark);
            assert_eq!(
                since.cloudflare_writes().len(),
                1,
                "{id}: {:#?}",
                since.cloudflare_writes()
            );
        }
        assert_theirs_untouched(&stage, &samples);
    });
}

#[test]
fn a_deleted_resource_takes_its_rule_and_nothing_else() {
    play_with_rules(async |stage, samples, ids| {
        for id in &ids {
            stage.user.delete(id);
        }
        stage.gone(&ids).await;
        for sample in &samples {
            assert_eq!(stage.rules(sample.phase).len(), 1, "{}", sample.name);
        }
        assert_theirs_untouched(&stage, &samples);
    });
}

#[test]
fn a_rule_that_is_kept_is_found_again_by_its_mark_and_taken_only_when_asked() {
    play_with_rules(async |stage, samples, ids| {
        let rule_ids: Vec<_> = ids.iter().map(|id| stage.rule_id(id).unwrap()).collect();
        for id in &ids {
            stage.user.annotate(id, names::DELETION_POLICY, Some("retain"));
        }
        stage.rest(MINUTE).await;
        for id in &ids {
            stage.user.delete(id);
        }
        stage.gone(&ids).await;
        let mark = stage.mark();
        for sample in &samples {
            assert_eq!(stage.rules(sample.phase).len(), 2, "{}", sample.name);
            stage.create(sample.manifest());
        }
        for (sample, id) in samples.iter().zip(&ids) {
            let reason = match sample.kind {
                "ManagedRuleset" => "RulesetConflict",
                _ => "AlreadyExists",
            };
            stage.says(id, "False", reason).await;
        }
        stage.since(&mark).assert_no_cloudflare_write();
        for id in &ids {
            stage
                .user
                .annotate(id, names::ADOPTION_POLICY, Some("adopt-if-matching"));
        }
        stage.ready(&ids).await;
        for (id, rule_id) in ids.iter().zip(&rule_ids) {
            assert_eq!(stage.rule_id(id).as_ref(), Some(rule_id));
            assert_eq!(stage.metadata(id)["annotations"][names::ADOPTED], "true");
        }
        stage.since(&mark).assert_no_cloudflare_write();
        // What was adopted stays.
        for id in &ids {
            stage.user.delete(id);
        }
        stage.gone(&ids).await;
        stage.since(&mark).assert_no_cloudflare_write();
        assert_theirs_untouched(&stage, &samples);
    });
}

#[test]
fn a_rule_deleted_by_hand_is_made_again() {
    play_with_rules(async |stage, samples, ids| {
        for (sample, id) in samples.iter().zip(&ids) {
            let rule_id = stage.rule_id(id).unwrap();
            stage
                .cloudflare
                .foreign_delete_rule(crate::stage::DOMAIN, sample.phase, &rule_id)
                .unwrap();
        }
        for (sample, id) in samples.iter().zip(&ids) {
            stage
                .until("made again", |stage| {
                    stage.rules(sample.phase).len() == 2 && stage.user.is_ready(id)
                })
                .await;
            assert!(
                stage
                    .rules(sample.phase)
                    .iter()
                    .any(|it| it["id"] == stage.rule_id(id).unwrap().as_str())
            );
        }
        assert_theirs_untouched(&stage, &samples);
    });
}

/// Rules of others are never adopted, whatever the policy, even when they do the same.
#[test]
fn rules_of_others_are_never_taken() {
    play_in_zone(Plan::Enterprise, |stage| async move {
        let samples = samples();
        let mut ids = Vec::new();
        for sample in samples.iter().filter(|it| it.kind != "ManagedRuleset") {
            // Made by kflare, then handed over to somebody: the same rule without its mark.
            let id = stage.create(sample.manifest());
            stage.ready(std::slice::from_ref(&id)).await;
            let mut body = without_versions(stage.rule_of(sample.phase, &id));
            for field in ["id", "ref"] {
                body.as_object_mut().unwrap().remove(field);
            }
            stage.user.delete(&id);
            stage.gone(std::slice::from_ref(&id)).await;
            let theirs = stage.foreign_rule(sample.phase, &body);
            let id = stage.create(adopting(sample.manifest(), "adopt-or-create"));
            ids.push((sample, id, theirs));
        }
        for (sample, id, theirs) in &ids {
            stage.ready(std::slice::from_ref(id)).await;
            assert_ne!(stage.rule_id(id).as_ref(), Some(theirs), "{}", sample.name);
            assert_eq!(stage.rules(sample.phase).len(), 2, "{}", sample.name);
        }
    });
}

#[test]
fn an_observed_rule_is_looked_at_and_not_made() {
    play_in_zone(Plan::Enterprise, |stage| async move {
        let mark = stage.mark();
        let samples = samples();
        let observed = samples
            .iter()
            .map(|it| annotated(it.manifest(), names::MODE, "observe"));
        let ids: Vec<ObjectId> = observed.map(|it| stage.create(it)).collect();
        for id in &ids {
            stage.says(id, "False", "Observing").await;
            assert_eq!(stage.status(id)["plan"][0], "create", "{id}");
        }
        stage.since(&mark).assert_no_cloudflare_write();
    });
}
