//! Cloudflare's Rules language, as far as the lists matter that an expression names.
//!
//! A list is `$name`. Texts in quotes (`"…"` with backslashes, `r"…"` and `r#"…"#` without) hold no lists, and names with a dot
//! (`$cf.open_proxies`) are lists that Cloudflare keeps.
//! Source: <https://developers.cloudflare.com/ruleset-engine/rules-language/values/>.

use std::collections::BTreeSet;

/// The lists of the account that `expression` names, without the `$`.
pub fn lists(expression: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = expression;
    while let Some(at) = rest.find(['"', '$']) {
        let (before, from) = rest.split_at(at);
        rest = if from.starts_with('"') {
            after_text(before, from)
        } else {
            let name = from.get(1..).unwrap_or_default();
            let end = name.find(|it: char| !is_part(it)).unwrap_or(name.len());
            let (name, behind) = name.split_at(end);
            // A dot at the very end ends a sentence at most.
            if !name.is_empty() && !name.contains('.') {
                found.insert(name.to_owned());
            }
            behind
        };
    }
    found
}

fn is_part(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '_' | '.')
}

/// What comes behind the text that `from` begins with. `before` is what stands in front of its first quote: an `r`, with
/// number signs, makes it raw.
fn after_text<'a>(before: &str, from: &'a str) -> &'a str {
    let marks = before.len() - before.trim_end_matches('#').len();
    let head = before.get(..before.len() - marks).unwrap_or_default();
    let raw = head
        .strip_suffix('r')
        .is_some_and(|head| !head.ends_with(|it: char| is_part(it)));
    let inside = from.get(1..).unwrap_or_default();
    if raw {
        let end = format!("\"{}", "#".repeat(marks));
        return match inside.split_once(end.as_str()) {
            Some((_, behind)) => behind,
            None => "",
        };
    }
    let mut escaped = false;
    for (at, it) in inside.char_indices() {
        match it {
            '"' if !escaped => return inside.get(at + 1..).unwrap_or_default(),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(expression: &str) -> Vec<String> {
        lists(expression).into_iter().collect()
    }

    #[test]
    fn lists_are_found_wherever_they_stand() {
        assert_eq!(names("ip.src in $office"), ["office"]);
        assert_eq!(
            names("(ip.src in $a) or not (ip.src in $B_2) or any(http.request.headers[\"x\"][*] in $a)"),
            ["B_2", "a"]
        );
        assert_eq!(names("$start or ip.src in $end"), ["end", "start"]);
        assert_eq!(names("true"), Vec::<String>::new());
        assert_eq!(names(""), Vec::<String>::new());
    }

    #[test]
    fn texts_hold_no_lists() {
        assert_eq!(
            names(r#"http.host eq "$no" and ip.src in $yes and http.host eq "a\"$no\\" and ip.src in $too"#),
            ["too", "yes"]
        );
        assert_eq!(
            names(r##"http.host matches r"\$no" and http.host matches r#"" $no "#  and ip.src in $yes"##),
            ["yes"]
        );
        // A raw text that ends with a backslash ends nevertheless.
        assert_eq!(
            names(r#"http.request.uri.path matches r"a\" and ip.src in $yes"#),
            ["yes"]
        );
        // A text without an end is all text.
        assert_eq!(names(r#"http.host eq "$no"#), Vec::<String>::new());
        assert_eq!(names("http.host eq r##\"$no\"# $no"), Vec::<String>::new());
        // A field whose name ends with r begins no raw text.
        assert_eq!(names(r#"user"\" $no" $yes"#), ["yes"]);
    }

    #[test]
    fn lists_of_cloudflare_are_not_ours() {
        assert_eq!(
            names("ip.src in $cf.open_proxies or ip.src in $ours or ip.src in $cf.vpn"),
            ["ours"]
        );
        assert_eq!(names("ip.src in $"), Vec::<String>::new());
    }
}
