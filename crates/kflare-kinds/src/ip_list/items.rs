//! The items of a list: what the spec asks for, how they are compared, and what has to be written.

use std::collections::BTreeMap;

use kflare_api::ip_list::IPListItem;
use kflare_cloudflare::endpoints::lists::{Item, NewItem};
use kflare_engine::{SpecError, digest::fingerprint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::network::Network;

/// How many changes one operation makes. Cloudflare lets some 1,000 wait to be carried out.
pub(super) const CHUNK: usize = 1_000;

/// What all lists of most accounts may hold together. When the change would pass it for a moment, what goes is removed first.
const QUOTA: usize = 10_000;

/// Up to so many items are shown one by one where they differ; more are shown as their number and fingerprint.
const SHOWN: usize = 20;

/// Items: the comment, empty for none, by the address in canonical form.
pub(super) type Items = BTreeMap<String, String>;

/// The items of a spec. One address in two spellings is one item, if the comments are the same.
pub(super) fn of_spec(items: &[IPListItem]) -> Result<Items, SpecError> {
    let mut wanted = Items::new();
    for (index, item) in items.iter().enumerate() {
        let field = || format!("spec.items[{index}].ip");
        let network: Network = item
            .ip
            .parse()
            .map_err(|error| SpecError::new(field(), format!("{:?} is {error}", item.ip)))?;
        let takes = if network.is_ipv4() {
            network.bits() >= 2
        } else {
            network.is_address() || (4..=64).contains(&network.bits())
        };
        if !takes {
            let message = format!(
                "{network} is too large or too small: Cloudflare takes IPv4 networks from /2 to /32 and IPv6 networks from /4 to /64"
            );
            return Err(SpecError::new(field(), message));
        }
        let comment = item.comment.clone().unwrap_or_default();
        if let Some(other) = wanted.insert(network.to_string(), comment.clone())
            && other != comment
        {
            let message = format!("{network} is in the list twice, with different comments: take one of the two out");
            return Err(SpecError::new(field(), message));
        }
    }
    Ok(wanted)
}

/// An address as Cloudflare gives it, in canonical form.
pub(super) fn canonical(ip: &str) -> String {
    ip.parse::<Network>()
        .map_or_else(|_| ip.to_owned(), |network| network.to_string())
}

/// What stands for items in a body: equal for equal items, and small.
pub(super) fn content(items: &Items) -> Value {
    if items.len() > SHOWN {
        let fingerprint = fingerprint(&json!(items));
        return json!(format!("{} items, fingerprint {fingerprint}", items.len()));
    }
    let shown = items.iter().map(|(ip, comment)| match comment.as_str() {
        "" => ip.clone(),
        comment => format!("{ip} ({comment})"),
    });
    shown.collect()
}

/// One write of items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// Adds items, or changes comments.
    Add(Vec<(String, String)>),
    /// Removes items, by id.
    Remove(Vec<String>),
}

/// What has to be written to make `have` what is wanted: only what differs, in chunks. What comes new is there before what goes
/// is gone, unless the list would be too large meanwhile.
pub(super) fn steps(wanted: &Items, have: &[Item]) -> Vec<Step> {
    let mut kept = 0;
    let mut removed = Vec::new();
    let mut present = BTreeMap::new();
    for item in have {
        let ip = canonical(&item.ip);
        if wanted.contains_key(&ip) && !present.contains_key(&ip) {
            present.insert(ip, item.comment.as_str());
            kept += 1;
        } else {
            removed.push(item.id.clone());
        }
    }
    let added: Vec<(String, String)> = wanted
        .iter()
        .filter(|(ip, comment)| present.get(*ip) != Some(&comment.as_str()))
        .map(|(ip, comment)| (ip.clone(), comment.clone()))
        .collect();
    let new = wanted.len() - kept;
    let add = added.chunks(CHUNK).map(|chunk| Step::Add(chunk.to_vec()));
    let remove = removed.chunks(CHUNK).map(|chunk| Step::Remove(chunk.to_vec()));
    if have.len() + new > QUOTA {
        remove.chain(add).collect()
    } else {
        add.chain(remove).collect()
    }
}

/// Items as they are sent.
pub(super) fn new_items(items: &[(String, String)]) -> Vec<NewItem> {
    items
        .iter()
        .map(|(ip, comment)| NewItem {
            ip: ip.clone(),
            comment: comment.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(items: &[(&str, &str)]) -> Vec<IPListItem> {
        items
            .iter()
            .map(|(ip, comment)| IPListItem {
                ip: (*ip).to_owned(),
                comment: Some((*comment).to_owned()).filter(|text| !text.is_empty()),
            })
            .collect()
    }

    fn item(ip: &str, comment: &str) -> Item {
        Item {
            id: format!("id-{ip}"),
            ip: ip.to_owned(),
            comment: comment.to_owned(),
        }
    }

    #[test]
    fn spellings_of_one_address_are_one_item() {
        let one = of_spec(&spec(&[("192.0.2.7/24", "a"), ("2001:DB8::", "")])).unwrap();
        let other = of_spec(&spec(&[
            ("2001:db8::/128", ""),
            ("192.0.2.0/24", "a"),
            ("192.0.2.255/24", "a"),
        ]))
        .unwrap();
        assert_eq!(one, other);
        assert_eq!(content(&one), json!(["192.0.2.0/24 (a)", "2001:db8::"]));
        let error = of_spec(&spec(&[("192.0.2.1", "a"), ("192.0.2.1/32", "b")])).unwrap_err();
        assert_eq!(error.field, "spec.items[1].ip");
        for wrong in ["example.com", "0.0.0.0/1", "2001:db8::/65", "2000::/3"] {
            assert!(of_spec(&spec(&[(wrong, "")])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn many_items_are_a_number_and_a_fingerprint() {
        let many = |comment: &str| -> Items { (0..21).map(|n| (format!("192.0.2.{n}"), comment.to_owned())).collect() };
        let text = content(&many("a"));
        assert!(text.as_str().unwrap().starts_with("21 items, fingerprint "), "{text}");
        assert_ne!(text, content(&many("b")));
    }

    #[test]
    fn only_what_differs_is_written() {
        let wanted = of_spec(&spec(&[("192.0.2.1", "same"), ("192.0.2.2", "new"), ("192.0.2.3", "")])).unwrap();
        let have = [
            item("192.0.2.1", "same"),
            item("192.0.2.2", "old"),
            item("192.0.2.4", ""),
        ];
        assert_eq!(
            steps(&wanted, &have),
            [
                Step::Add(vec![
                    ("192.0.2.2".to_owned(), "new".to_owned()),
                    ("192.0.2.3".to_owned(), String::new())
                ]),
                Step::Remove(vec!["id-192.0.2.4".to_owned()]),
            ]
        );
        assert_eq!(
            steps(
                &wanted,
                &[
                    item("192.0.2.1", "same"),
                    item("192.0.2.2", "new"),
                    item("192.0.2.3", "")
                ]
            ),
            []
        );
    }

    #[test]
    fn a_list_that_would_be_too_large_meanwhile_is_emptied_first() {
        let address = |n: usize| format!("10.{}.{}.{}", n / 65_536, n / 256 % 256, n % 256);
        let wanted: Items = (0..10_000).map(|n| (address(n), String::new())).collect();
        let have: Vec<Item> = (10_000..10_001).map(|n| item(&address(n), "")).collect();
        let steps = steps(&wanted, &have);
        assert_eq!(steps.len(), 11);
        assert_eq!(steps[0], Step::Remove(vec![have[0].id.clone()]));
    }

    proptest! {
        /// Carrying the steps out gives what is wanted, whatever was there.
        #[test]
        fn the_steps_lead_to_what_is_wanted(
            wanted in proptest::collection::btree_map(0..40_u8, "[ab]?", 0..30),
            have in proptest::collection::btree_map(0..40_u8, "[ab]?", 0..30),
        ) {
            let ip = |n: u8| format!("192.0.2.{n}");
            let wanted: Items = wanted.into_iter().map(|(n, comment)| (ip(n), comment)).collect();
            let have: Vec<Item> = have.into_iter().map(|(n, comment)| item(&ip(n), &comment)).collect();
            let mut state: Items = have.iter().map(|item| (item.ip.clone(), item.comment.clone())).collect();
            for step in steps(&wanted, &have) {
                match step {
                    Step::Add(items) => state.extend(items),
                    Step::Remove(ids) => state.retain(|ip, _| !ids.contains(&format!("id-{ip}"))),
                }
            }
            prop_assert_eq!(state, wanted);
        }
    }
}
