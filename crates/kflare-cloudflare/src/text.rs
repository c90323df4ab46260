//! Making text that came from outside safe to show: one line, bounded, without markup.

/// Collapses every run of white space and control characters to one space and cuts at `max` characters.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    let mut length = 0;
    for word in text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
    {
        if length > 0 {
            out.push(' ');
            length += 1;
        }
        for c in word.chars() {
            out.push(c);
            length += 1;
        }
        if length > max {
            break;
        }
    }
    if length > max {
        out = out.chars().take(max.saturating_sub(1)).collect();
        out.push('…');
    }
    out
}

/// The first words of a body that is not JSON, without its markup, styles and scripts.
pub(crate) fn first_words(body: &[u8], max: usize) -> String {
    /// Enough of any error page; the rest is not looked at.
    const LOOKED_AT: usize = 16 * 1024;
    let text = String::from_utf8_lossy(&body[..body.len().min(LOOKED_AT)]);
    one_line(&strip_markup(&text), max)
}

fn strip_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        out.push(' ');
        let tag = &rest[start..];
        rest = match closing_of(tag) {
            Some(closing) => find_ignoring_case(tag, closing).map_or("", |end| &tag[end..]),
            None => tag,
        };
        rest = rest.find('>').map_or("", |end| &rest[end + 1..]);
    }
    out.push_str(rest);
    out
}

/// For an element whose content is not text: the tag that ends it.
fn closing_of(tag: &str) -> Option<&'static str> {
    [("<script", "</script"), ("<style", "</style"), ("<!--", "-->")]
        .into_iter()
        .find(|(open, _)| {
            tag.get(..open.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(open))
        })
        .map(|(_, closing)| closing)
}

fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    text.as_bytes()
        .windows(wanted.len())
        .position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
}

/// Replaces what stands between double quotes: decoders quote the value they stumbled over, which may be a secret.
pub(crate) fn without_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('"');
    out.push_str(parts.next().unwrap_or_default());
    let rest: Vec<&str> = parts.collect();
    if let Some(after) = rest.last() {
        out.push_str("\"…\"");
        // Everything from the first to the last quote goes: a quoted value may itself hold (escaped) quotes.
        if rest.len() > 1 {
            out.push_str(after);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_collapses_and_cuts() {
        assert_eq!(one_line("  a\n\tb\r\n c\u{7}d ", 100), "a b c d");
        assert_eq!(one_line("abcdef", 6), "abcdef");
        assert_eq!(one_line("abcdefg", 6), "abcde…");
        assert_eq!(one_line("é".repeat(10).as_str(), 4).chars().count(), 4);
        assert_eq!(one_line("", 4), "");
    }

    #[test]
    fn markup_styles_and_scripts_are_dropped() {
        let page = b"<!DOCTYPE html><html><head><title>example.com | 502: Bad gateway</title><STYLE>a{b:c}</style>\
            <script>if (a < b) { evil() }</script></head><!-- note <b> --><body><h1>Bad\ngateway</h1></body>";
        assert_eq!(first_words(page, 200), "example.com | 502: Bad gateway Bad gateway");
        assert_eq!(first_words(b"error code: 1015", 200), "error code: 1015");
        assert_eq!(first_words(b"cut <scr", 200), "cut");
        assert_eq!(first_words(b"<script>never closed", 200), "");
        assert_eq!(first_words(&[0xff, 0xfe, b'a'], 200), "\u{fffd}\u{fffd}a");
    }

    #[test]
    fn quoted_values_are_hidden() {
        assert_eq!(
            without_quoted(r#"invalid type: string "hush \"x\" y", expected u64"#),
            r#"invalid type: string "…", expected u64"#
        );
        assert_eq!(without_quoted("missing field `id`"), "missing field `id`");
        assert_eq!(without_quoted("odd \" quote"), "odd \"…\"");
    }
}
