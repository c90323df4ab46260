//! Single values of `data` fields in their one canonical spelling.

use serde_json::{Number, Value};

/// A whole number from 0 to `max`, given as a number, a float without a fraction, or text.
pub(super) fn whole(value: &Value, max: u32) -> Option<Value> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => decimal_text(text)?,
        _ => return None,
    };
    let valid = number.fract() == 0.0 && (0.0..=f64::from(max)).contains(&number);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and in range, as just checked"
    )]
    valid.then(|| Value::from(number as u32))
}

/// A decimal number from `min` to `max`, rounded to thousandths: no field of Cloudflare's is finer.
pub(super) fn decimal(value: &Value, min: f64, max: f64) -> Option<Value> {
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => decimal_text(text)?,
        _ => return None,
    };
    if !(min..=max).contains(&number) {
        return None;
    }
    let rounded = (number * 1000.0).round() / 1000.0;
    if rounded.fract() == 0.0 {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "whole, and every range ends far below 2^53"
        )]
        return Some(Value::from(rounded as i64));
    }
    Number::from_f64(rounded).map(Value::Number)
}

/// Digits with at most a sign and a fraction. `f64` would also read `inf` and exponents.
fn decimal_text(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    let plain = text.bytes().all(|it| it.is_ascii_digit() || b"+-.".contains(&it));
    if plain { text.parse().ok() } else { None }
}

/// Hexadecimal digits in lower case, without the spaces that zone files allow.
pub(super) fn hex(text: &str) -> Option<String> {
    let digits = without_spaces(text).to_ascii_lowercase();
    let valid = !digits.is_empty() && digits.len().is_multiple_of(2) && digits.bytes().all(|it| it.is_ascii_hexdigit());
    valid.then_some(digits)
}

/// Base64 without the spaces and line breaks that zone files and tools put in.
pub(super) fn base64(text: &str) -> Option<String> {
    let text = without_spaces(text);
    let body = text.trim_end_matches('=');
    let valid = !body.is_empty()
        && text.len() - body.len() <= 2
        && body
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'+' || it == b'/');
    valid.then_some(text)
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|it| !it.is_ascii_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // Field case 10: CAA flags as 0, 0.0 or "0".
    #[test]
    fn a_whole_number_is_the_same_in_every_json_type() {
        for value in [
            json!(5),
            json!(5.0),
            json!("5"),
            json!(" 5 "),
            json!("5.0"),
            json!("005"),
        ] {
            assert_eq!(whole(&value, 255), Some(json!(5)), "{value}");
        }
        for value in [
            json!(5.5),
            json!(-1),
            json!(256),
            json!("inf"),
            json!("1e2"),
            json!(""),
            json!(true),
            json!(null),
        ] {
            assert_eq!(whole(&value, 255), None, "{value}");
        }
        assert_eq!(whole(&json!(0), 255), Some(json!(0)));
        assert_eq!(whole(&json!("-0"), 255), Some(json!(0)));
    }

    #[test]
    fn decimals_have_one_spelling() {
        for value in [json!(46), json!(46.0), json!("46.000"), json!(46.0004)] {
            assert_eq!(decimal(&value, 0.0, 59.999), Some(json!(46)), "{value}");
        }
        assert_eq!(decimal(&json!("12.5"), 0.0, 59.999), Some(json!(12.5)));
        assert_eq!(decimal(&json!(-99_999.95), -100_000.0, 1.0), Some(json!(-99_999.95)));
        assert_eq!(decimal(&json!(60), 0.0, 59.999), None);
        assert_eq!(decimal(&json!("100m"), 0.0, 1000.0), None);
    }

    #[test]
    fn digests_and_keys_lose_spaces_only() {
        assert_eq!(hex("AB cd\n01").as_deref(), Some("abcd01"));
        assert_eq!(hex("abc"), None);
        assert_eq!(hex("zz"), None);
        assert_eq!(hex(""), None);
        assert_eq!(base64("AbC+\n/w==").as_deref(), Some("AbC+/w=="));
        assert_eq!(base64("a=b"), None);
        assert_eq!(base64("===="), None);
    }
}
