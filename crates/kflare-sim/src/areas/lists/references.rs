//! Which rules use a list.

use crate::areas::rulesets::references::rules_that_name;
use crate::state::{List, World};

/// How many rules use a list: `num_referencing_filters`. A list that is used cannot be deleted.
pub(super) fn count(world: &World, list: &List) -> usize {
    let others = world.other_expressions(&list.account_id);
    let others = others.filter(|expression| mentions(expression, &list.name)).count();
    others + rules_that_name(world, &list.account_id, &list.name)
}

/// Whether an expression names the list `$name`.
fn mentions(expression: &str, name: &str) -> bool {
    let is_part_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
    let mut in_text = false;
    let mut bytes = expression.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if in_text => drop(bytes.next()),
            b'"' => in_text = !in_text,
            b'$' if !in_text => {
                let rest = &expression[at + 1..];
                let end = rest.bytes().position(|byte| !is_part_of_name(byte));
                if &rest[..end.unwrap_or(rest.len())] == name {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::mentions;

    #[test]
    fn names_in_expressions() {
        for expression in [
            "ip.src in $office",
            "(ip.src in $office)",
            "not ip.src in $office and http.host eq \"a\"",
            r#"http.host eq "a \"b\" $c" or ip.src in $office"#,
        ] {
            assert!(mentions(expression, "office"), "{expression}");
        }
        for expression in [
            "ip.src in $office2",
            "ip.src in $cf.office",
            r#"http.host eq "$office""#,
            r#"http.host eq "a\"$office""#,
            "office",
            "",
        ] {
            assert!(!mentions(expression, "office"), "{expression}");
        }
    }
}
