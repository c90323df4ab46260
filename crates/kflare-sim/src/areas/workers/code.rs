//! The code of a Worker: what an upload may hold, and how it is given back.

use std::sync::OnceLock;

use regex_lite::Regex;
use sha2::{Digest, Sha256};

use super::module::Module;
use super::{invalid, multipart, named};
use crate::envelope::{Refusal, Reply};
use crate::ids::hex;
use crate::route::Call;
use crate::state::{Script, Syntax};

/// Event handlers that a Worker can have.
const HANDLERS: [&str; 7] = ["fetch", "scheduled", "queue", "email", "tail", "trace", "alarm"];

/// `GET` of the script itself: the text of a service worker, a form with the parts of modules.
pub(super) fn download(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let script = named(call)?;
    match (&script.syntax, &script.modules[..]) {
        (Syntax::ServiceWorker(_), [only]) => Ok(Reply::bytes("application/javascript".to_owned(), only.body.clone())),
        _ => Ok(form(&script)),
    }
}

/// `GET .../content/v2`: always a form.
pub(super) fn content(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    Ok(form(&*named(call)?))
}

fn form(script: &Script) -> Reply {
    let parts: Vec<_> = script.modules.iter().map(Module::to_part).collect();
    // The hash of what stands between the boundaries is in none of them.
    let (content_type, body) = multipart::write(&script.etag, &parts);
    Reply::bytes(content_type, body)
}

/// The hash of the code. What Cloudflare's consists of is not known; it changes with the code.
pub(super) fn etag(syntax: &Syntax, modules: &[Module]) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{syntax:?}"));
    for module in modules {
        hash.update(format!(
            "\0{}\0{}\0{}\0",
            module.name,
            module.content_type,
            module.body.len()
        ));
        hash.update(&module.body);
    }
    hex(&hash.finalize())
}

/// The code starts up as far as its text tells: its entry is there, imports between its modules lead somewhere, and it handles
/// an event. Nothing is run here.
pub(super) fn check(syntax: &Syntax, modules: &[Module]) -> Result<(), Refusal> {
    if let Some(unknown) = modules.iter().find(|module| !module.has_known_type()) {
        return Err(invalid(format!(
            "Uncaught Error: the part \"{}\" has a content type that is not supported: {}",
            unknown.name, unknown.content_type
        )));
    }
    match syntax {
        Syntax::Modules(main) => {
            let entry = modules
                .iter()
                .find(|module| module.name == *main)
                .ok_or_else(|| invalid(format!("Uncaught Error: No such module \"{main}\".")))?;
            if !entry.is_entry() {
                return Err(invalid(format!(
                    "Uncaught SyntaxError: Unexpected token 'export' at {main}"
                )));
            }
            for module in modules.iter().filter(|module| module.is_es_module()) {
                for import in imports(module.text().unwrap_or_default()) {
                    let folder = module.name.rsplit_once('/').map_or("", |(folder, _)| folder);
                    let target = format!("{folder}/{}", import.trim_start_matches("./"));
                    let target = target.trim_start_matches('/');
                    if !modules.iter().any(|module| module.name == target) {
                        return Err(invalid(format!(
                            "Uncaught Error: No such module \"{target}\".\n  imported from \"{}\"",
                            module.name
                        )));
                    }
                }
            }
        }
        Syntax::ServiceWorker(part) => {
            let entry = modules
                .iter()
                .find(|module| module.name == *part)
                .ok_or_else(|| invalid(format!("No such part \"{part}\".")))?;
            if entry.is_es_module() || entry.text().is_some_and(|text| statement(text, "export")) {
                return Err(invalid("Uncaught SyntaxError: Unexpected token 'export'"));
            }
        }
    }
    if handlers(syntax, modules).is_empty() && !defines_classes(syntax, modules) {
        return Err(Refusal::new(
            400,
            10_068,
            "The uploaded script has no registered event handlers.",
        ));
    }
    Ok(())
}

/// The events that the entry handles, read from its text.
pub(super) fn handlers(syntax: &Syntax, modules: &[Module]) -> Vec<&'static str> {
    let text = entry_text(syntax, modules);
    let handles = |name: &&str| match syntax {
        Syntax::Modules(_) => {
            let spellings = [
                format!("{name}("),
                format!("{name} ("),
                format!("{name}:"),
                format!("on_{name}("),
                format!("{name},"),
                format!("{name} }}"),
            ];
            spellings.iter().any(|spelling| text.contains(spelling))
        }
        Syntax::ServiceWorker(_) => ["'", "\"", "`"]
            .iter()
            .any(|quote| text.contains(&format!("addEventListener({quote}{name}{quote}"))),
    };
    HANDLERS.into_iter().filter(handles).collect()
}

fn entry_text<'a>(syntax: &Syntax, modules: &'a [Module]) -> &'a str {
    let (Syntax::Modules(entry) | Syntax::ServiceWorker(entry)) = syntax;
    modules
        .iter()
        .find(|module| module.name == *entry)
        .and_then(Module::text)
        .unwrap_or_default()
}

/// A Worker of Durable Objects or entry points only needs no handler.
fn defines_classes(syntax: &Syntax, modules: &[Module]) -> bool {
    matches!(syntax, Syntax::Modules(_)) && entry_text(syntax, modules).contains("export class ")
}

/// Whether a line begins with a word.
fn statement(text: &str, word: &str) -> bool {
    text.lines().any(|line| {
        line.trim_start()
            .strip_prefix(word)
            .is_some_and(|rest| rest.starts_with([' ', '{']))
    })
}

/// The modules of the same Worker that a text imports.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    static IMPORT: OnceLock<Option<Regex>> = OnceLock::new();
    let import = IMPORT.get_or_init(|| Regex::new(r#"(?m)^\s*(?:import|export)\b[^'"\n]*['"](\./[^'"\n]+)['"]"#).ok());
    import
        .iter()
        .flat_map(move |import| import.captures_iter(text))
        .filter_map(|found| found.get(1))
        .map(|found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, content_type: &str, text: &str) -> Module {
        Module {
            name: name.to_owned(),
            content_type: content_type.to_owned(),
            body: text.to_owned().into(),
        }
    }

    #[test]
    fn imports_between_modules_are_found() {
        let text = "import a from './a.wasm';\n import {b} from \"./lib/b.js\"\nimport 'cloudflare:workers'\nexport * from './c.js'";
        assert_eq!(imports(text).collect::<Vec<_>>(), ["./a.wasm", "./lib/b.js", "./c.js"]);
    }

    #[test]
    fn handlers_are_read_from_the_entry() {
        let esm = "application/javascript+module";
        let text = "export default { async fetch(request, env) {}, scheduled: run }";
        let main = Syntax::Modules("m.js".to_owned());
        assert_eq!(handlers(&main, &[module("m.js", esm, text)]), ["fetch", "scheduled"]);
        let other = [module("m.js", esm, "export const x = 1"), module("n.js", esm, text)];
        assert_eq!(check(&main, &other).map_err(|it| it.root_code()), Err(10_068));
        let script = Syntax::ServiceWorker("script".to_owned());
        let listener = [module(
            "script",
            "application/javascript",
            "addEventListener('fetch', e => {})",
        )];
        assert_eq!(handlers(&script, &listener), ["fetch"]);
        assert_eq!(check(&script, &listener), Ok(()));
    }
}
