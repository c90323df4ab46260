//! The kinds of fault that users of other tools reported, by their number: each has a test that rules it out. A comment
//! directly above the test names the numbers, and docs/field-cases.md lists them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The cases that touch a kind or the controller itself.
#[rustfmt::skip]
const IN_SCOPE: &[u32] = &[
    1, 4, 5, 7, 9, 10, 13, 14, 15, 17, 19, 21, 22, 24, 26, 27, 28, 29, 31, 73,
    // Rulesets.
    35, 36, 38, 39, 42,
    // Workers.
    76, 78, 80, 82, 83, 84, 85, 87,
    // R2, KV, D1.
    88, 89, 90, 92, 93, 95, 96, 98,
    // Lists.
    99, 102, 103, 104,
    // Tunnels.
    44, 46, 49, 50, 54, 57, 58, 62, 63, 67,
    105, 106, 107, 110, 113, 114, 115, 116, 118, 119, 120, 122, 124, 126, 127, 129, 130, 132, 133, 135,
    136, 139, 140, 142, 143, 145, 146, 147, 148, 150, 151, 154, 155, 156, 157, 158, 159, 160, 161, 162,
    163, 164, 165, 166,
];

fn in_scope() -> BTreeSet<u32> {
    IN_SCOPE.iter().copied().collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// All Rust sources below a directory.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The numbers behind `Field case` or `Field cases` in a comment: digits, separated by commas and `and`.
fn numbers(comment: &str) -> Vec<u32> {
    let lower = comment.to_lowercase();
    let mut numbers = Vec::new();
    for (at, marker) in lower.match_indices("field case") {
        let behind = lower[at + marker.len()..].trim_start_matches('s');
        for word in behind.split_whitespace() {
            let digits = word.trim_end_matches(|it: char| !it.is_ascii_digit());
            match digits.parse() {
                Ok(number) => numbers.push(number),
                Err(_) if word == "and" => {}
                Err(_) => break,
            }
            // A number is followed by another only behind a comma or an `and`.
            if word.ends_with(['.', ':', ';']) {
                break;
            }
        }
    }
    numbers
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let behind = line.trim_start().trim_start_matches("async ").strip_prefix("fn ")?;
    behind.split(['(', '<']).next()
}

/// The cases that stand in the comment directly above a test, by the test.
fn tests_of(source: &str) -> Vec<(String, Vec<u32>)> {
    let mut tests = Vec::new();
    let mut comment = String::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("//") {
            comment.push_str(text.trim_start_matches(['/', '!']));
            comment.push('\n');
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else {
            if let (true, Some(name)) = (is_test, function(line)) {
                tests.push((name.to_owned(), numbers(&comment)));
            }
            comment.clear();
            is_test = false;
        }
    }
    tests
}

/// All tests of the repository with the cases above them, as `path::name`.
fn all_tests() -> BTreeMap<String, Vec<u32>> {
    let root = root();
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let mut tests = BTreeMap::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap().display().to_string();
        for (name, cases) in tests_of(&fs::read_to_string(&file).unwrap()) {
            tests.insert(format!("{path}::{name}"), cases);
        }
    }
    tests
}

#[test]
fn every_case_in_scope_stands_above_a_test() {
    let covered: BTreeSet<u32> = all_tests().into_values().flatten().collect();
    let missing: Vec<u32> = in_scope().into_iter().filter(|case| !covered.contains(case)).collect();
    assert_eq!(
        missing,
        [],
        "no test says in a comment directly above it that it is for these"
    );
}

#[test]
fn the_table_names_each_case_once_with_tests_that_are_for_it() {
    let tests = all_tests();
    let table = fs::read_to_string(root().join("docs/field-cases.md")).unwrap();
    let mut listed = Vec::new();
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(2);
    for line in rows {
        let columns: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, fault, names] = columns[..] else {
            panic!("not three columns: {line}")
        };
        let number: u32 = number.parse().unwrap();
        assert!(!fault.is_empty(), "{line}");
        for name in names.split_whitespace().map(|name| name.trim_matches('`')) {
            let cases = tests
                .get(name)
                .unwrap_or_else(|| panic!("no test {name} for case {number}"));
            assert!(
                cases.contains(&number),
                "{name} does not say that it is for case {number}"
            );
        }
        listed.push(number);
    }
    assert_eq!(listed, in_scope().into_iter().collect::<Vec<_>>());
}

#[test]
fn a_number_counts_only_directly_above_a_test() {
    let source = "
        // Field case 7.

        #[test]
        fn far() {}

        /// Field cases 1, 2 and 3. In 4 of 5 runs.
        // Field case 9: and so on, field case 10.
        #[tokio::test(start_paused = true)]
        #[cfg(unix)]
        async fn near() {}

        // Field case 11.
        fn no_test() {}
    ";
    assert_eq!(
        tests_of(source),
        [("far".to_owned(), vec![]), ("near".to_owned(), vec![1, 2, 3, 9, 10])]
    );
}

// Field case 148. Builds of jemalloc are made for one page size and die on kernels with another.
#[test]
fn no_allocator_that_is_built_for_one_page_size_comes_in() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages: Vec<&str> = lock.lines().filter_map(|line| line.strip_prefix("name = \"")).collect();
    assert!(packages.len() > 100, "{} packages", packages.len());
    let found: Vec<&&str> = packages.iter().filter(|name| name.contains("jemalloc")).collect();
    assert_eq!(found, Vec::<&&str>::new());
    let deny = fs::read_to_string(root().join("deny.toml")).unwrap();
    for name in ["jemalloc-sys", "tikv-jemalloc-sys"] {
        assert!(
            deny.contains(&format!("crate = \"{name}\"")),
            "deny.toml lets {name} in"
        );
    }
}
