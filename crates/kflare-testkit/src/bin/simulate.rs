//! `make simulate`: plays stories made up from seeds and checks that no rule is broken; with `--mutations`, that broken
//! engines break one.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};
use clap::Parser;
use kflare_engine::mutation::{self, Mutation};
use kflare_testkit::story::{Outcome, Rule, Story, play, shrink, story};
use kflare_testkit::trace::TraceDetail;

/// Debug builds of deep futures need more than the usual two.
const STACK_BYTES: usize = 64 << 20;

/// Every so many seeds one is played twice: the traces must be equal, byte for byte.
const CHECK_EVERY: u64 = 25;

#[derive(Parser)]
#[command(about = "Plays seeded stories against the whole controller on a virtual clock")]
struct Options {
    /// How many seeds to play.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// How many to play at a time; unset: one for each core.
    #[arg(long)]
    jobs: Option<usize>,
    /// Plays one story from a file instead.
    #[arg(long)]
    story: Option<PathBuf>,
    /// Writes the trace of the one story, or of the one seed, into this file.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Breaks the engine on purpose, in each way in turn: each must be caught within `--seeds` seeds.
    #[arg(long)]
    mutations: bool,
    /// Breaks the engine in this one way.
    #[arg(long)]
    mutation: Option<String>,
    /// How many plays may be spent on making a failing story shorter.
    #[arg(long, default_value_t = 300)]
    shrink: usize,
    /// Where failing stories are stored.
    #[arg(long, default_value = "target/simulate")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = if options.mutations {
        all_mutations(&options)
    } else {
        run(&options)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Plays a story with the engine broken as asked. A panic of the play itself counts as a defect.
fn act_out(story: &Story, broken: Option<Mutation>, detail: TraceDetail) -> Result<Outcome, String> {
    mutation::set(broken);
    let outcome = catch_unwind(AssertUnwindSafe(|| play(story, detail)));
    mutation::set(None);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()))
            .unwrap_or_default()
    })
}

fn rules_broken(story: &Story, broken: Option<Mutation>) -> Vec<Rule> {
    match act_out(story, broken, TraceDetail::DigestOnly) {
        Ok(outcome) => outcome.violations.iter().map(|it| it.rule).collect(),
        Err(_) => vec![Rule::Defect],
    }
}

/// Calls `work` with every seed, on all cores, until it says stop.
fn for_each_seed(options: &Options, work: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(options.first_seed);
    let end = options.first_seed.saturating_add(options.seeds);
    let jobs = options
        .jobs
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    thread::scope(|scope| {
        for _ in 0..jobs {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            let worker = builder.spawn_scoped(scope, || {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= end || !work(seed) {
                        next.store(end, Ordering::SeqCst);
                        return;
                    }
                }
            });
            drop(worker);
        }
    });
}

/// Runs on a thread with enough stack.
fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)?;
        worker
            .join()
            .map_err(|_| anyhow::anyhow!("the thread of the play panicked"))
    })
}

fn run(options: &Options) -> Result<()> {
    let broken = match &options.mutation {
        Some(name) => Some(
            serde_json::from_value(serde_json::json!(name)).with_context(|| format!("no mutation is called {name}"))?,
        ),
        None => None,
    };
    if let Some(path) = &options.story {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let story: Story = serde_json::from_str(&text).with_context(|| format!("{} is no story", path.display()))?;
        return one(options, &story, broken);
    }
    if options.seeds == 1 {
        return one(options, &story(options.first_seed), broken);
    }
    let failed: Mutex<Vec<(u64, String)>> = Mutex::default();
    let (played, calls) = (AtomicU64::new(0), AtomicU64::new(0));
    for_each_seed(options, |seed| {
        let tale = story(seed);
        let told = act_out(&tale, broken, TraceDetail::DigestOnly);
        let problem = match &told {
            Err(panic) => Some(format!("the play panicked: {panic}")),
            Ok(outcome) => {
                calls.fetch_add(outcome.calls, Ordering::Relaxed);
                let first = outcome.violations.first().map(ToString::to_string);
                first.or_else(|| {
                    let twice = seed % CHECK_EVERY == 0;
                    let again = twice.then(|| act_out(&tale, broken, TraceDetail::DigestOnly));
                    let differs =
                        again.is_some_and(|again| again.map(|it| it.digest).ok().as_ref() != Some(&outcome.digest));
                    differs.then(|| "the same seed gave two traces".to_owned())
                })
            }
        };
        if let Some(problem) = problem {
            let short: String = problem.chars().take(300).collect();
            eprintln!("seed {seed}: {short}");
            failed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((seed, problem));
        }
        let done = played.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(100) {
            eprintln!("{done} seeds played");
        }
        true
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort();
    println!(
        "{} seeds played, {} failed, {} calls to Cloudflare",
        played.into_inner(),
        failed.len(),
        calls.into_inner()
    );
    let Some((seed, _)) = failed.first() else { return Ok(()) };
    one(options, &story(*seed), broken)?;
    bail!("seed {seed} failed once and not again")
}

/// Plays one story; if it breaks a rule, finds a shorter one that breaks the same.
fn one(options: &Options, tale: &Story, broken: Option<Mutation>) -> Result<()> {
    on_a_deep_stack(|| tell(options, tale, broken))?
}

fn tell(options: &Options, tale: &Story, broken: Option<Mutation>) -> Result<()> {
    let outcome =
        act_out(tale, broken, TraceDetail::Lines).map_err(|panic| anyhow::anyhow!("the play panicked: {panic}"))?;
    if let Some(path) = &options.trace {
        std::fs::write(path, outcome.trace.join("\n")).with_context(|| format!("writing {}", path.display()))?;
    }
    println!("seed {}: trace {}, {} calls", tale.seed, outcome.digest, outcome.calls);
    let Some(first) = outcome.violations.first() else {
        println!("no rule broken");
        return Ok(());
    };
    for violation in outcome.violations.iter().take(10) {
        println!("{violation}");
    }
    println!("\nmaking the story shorter ...");
    let short = shrink(tale, first.rule, options.shrink, |story| rules_broken(story, broken));
    println!("{short}");
    if let Ok(outcome) = act_out(&short, broken, TraceDetail::DigestOnly) {
        for violation in outcome.violations.iter().filter(|it| it.rule == first.rule).take(3) {
            println!("{violation}");
        }
    }
    std::fs::create_dir_all(&options.out).with_context(|| format!("making {}", options.out.display()))?;
    let path = options.out.join(format!("seed-{}.json", tale.seed));
    std::fs::write(&path, serde_json::to_string_pretty(&short)?)
        .with_context(|| format!("writing {}", path.display()))?;
    println!("play it again: make simulate STORY={}", path.display());
    bail!("seed {} breaks the rule {:?}", tale.seed, first.rule)
}

/// Stories that were found once and are kept, for faults that few seeds meet: what a seed tells changes with every new kind.
const KEPT: [(Mutation, &str); 1] = [(
    Mutation::LookalikeTakenForOwn,
    include_str!("../../tests/stories/a_lookalike_of_an_interrupted_create.json"),
)];

/// What a kept story of that broken engine breaks; it breaks nothing when the engine is whole.
fn caught_by_kept_story(broken: Mutation) -> Result<Option<String>> {
    let Some((_, kept)) = KEPT.iter().find(|(mutation, _)| *mutation == broken) else {
        return Ok(None);
    };
    let tale: Story = serde_json::from_str(kept).context("reading a kept story")?;
    let whole = act_out(&tale, None, TraceDetail::DigestOnly).map_err(anyhow::Error::msg)?;
    if let Some(violation) = whole.violations.first() {
        bail!("the kept story of {broken:?} breaks a rule without it: {violation}");
    }
    Ok(match act_out(&tale, Some(broken), TraceDetail::DigestOnly) {
        Ok(outcome) => outcome.violations.first().map(ToString::to_string),
        Err(panic) => Some(panic),
    })
}

/// Every broken engine must break a rule.
fn all_mutations(options: &Options) -> Result<()> {
    let mut missed = Vec::new();
    for broken in Mutation::ALL {
        if let Some(how) = caught_by_kept_story(broken)? {
            let how: String = how.chars().take(160).collect();
            println!("{broken:?}: caught by its story: {how}");
            continue;
        }
        let found: Mutex<BTreeMap<u64, String>> = Mutex::default();
        for_each_seed(options, |seed| {
            let tale = story(seed);
            let caught = match act_out(&tale, Some(broken), TraceDetail::DigestOnly) {
                Ok(outcome) => outcome.violations.first().map(ToString::to_string),
                Err(panic) => Some(panic),
            };
            if let Some(how) = caught {
                found.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, how);
                return false;
            }
            true
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((seed, how)) = found.first_key_value() {
            let how: String = how.chars().take(160).collect();
            println!("{broken:?}: caught by seed {seed}: {how}");
        } else {
            println!("{broken:?}: NOT CAUGHT by {} seeds", options.seeds);
            missed.push(broken);
        }
    }
    if missed.is_empty() {
        println!("all {} broken engines caught", Mutation::ALL.len());
        return Ok(());
    }
    bail!("these broken engines were not caught: {missed:?}")
}
