//! Lists that expressions name.

use super::expression::Expression;
use super::managed::MANAGED_LISTS;
use crate::state::World;

/// Whether an expression in a zone of this account can name the list `$name`: one of Cloudflare's, or one of the account.
pub(super) fn is_known(world: &World, account_id: &str, name: &str) -> bool {
    let lists = world.lists(account_id, None);
    MANAGED_LISTS.contains(&name) || lists.iter().any(|list| list.name == name)
}

/// How many rules of the zones of an account name the list `$name`: Cloudflare counts them as `num_referencing_filters`.
pub(crate) fn rules_that_name(world: &World, account_id: &str, name: &str) -> usize {
    let zones = world.held().zones.values();
    zones
        .filter(|zone| zone.account_id == account_id)
        .flat_map(|zone| world.rulesets(&zone.id, None))
        .map(|ruleset| {
            let names_it =
                |text: &&str| Expression::parse(text).is_ok_and(|found| found.lists.iter().any(|list| list == name));
            let rules = ruleset.rules.iter();
            rules
                .filter(|rule| rule.fields.expressions().iter().any(names_it))
                .count()
        })
        .sum()
}
