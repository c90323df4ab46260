//! Takes the figures of `make bench`, part by part. Each is one line on standard output: `bench <name> <value> <unit>`.
//!
//! Ends with 1 when a figure is above a bound that it must keep, or cannot be taken.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use kflare_testkit::bench::figure::{self, Bound, Figure};
use kflare_testkit::bench::{counted, processes};

/// Take the figures of kflare
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Calls, writes and virtual seconds of the simulated controller
    Counted,
    /// 20,000 records at once, simulated
    Flood,
    /// Memory, processor time and real seconds of a controller process
    Processes {
        /// The kflare program, built for release
        program: PathBuf,
    },
    /// What a controller process takes as the cluster grows, as rows of a table
    Sizing {
        /// The kflare program, built for release
        program: PathBuf,
    },
}

/// Prints figures and remembers whether all were within their bounds.
#[derive(Default)]
struct Printed {
    too_much: bool,
}

impl Printed {
    fn figure(&mut self, figure: Figure) {
        println!("{figure}");
        if let Bound::AtMost(bound) = figure.definition.bound
            && figure.is_too_much()
        {
            self.too_much = true;
            eprintln!(
                "bench: {} is above its bound of {bound} {}",
                figure.definition.name, figure.definition.unit
            );
        }
    }

    fn all(&mut self, figures: Vec<Figure>) {
        for figure in figures {
            self.figure(figure);
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let mut printed = Printed::default();
    match Arguments::parse().part {
        Part::Counted => {
            printed.all(counted::thousand_records()?);
            printed.all(counted::five_thousand_records()?);
            printed.all(counted::two_thousand_mixed()?);
            printed.all(counted::hundred_waf_rules()?);
            printed.all(counted::takeover()?);
            printed.all(counted::fairness()?);
        }
        Part::Flood => {
            let mut before = None;
            let flood = counted::flood(200, || before = Some(processes::own_memory_mib()))?;
            if let Some(before) = before {
                printed.figure(figure::FLOOD_MEMORY_BEFORE.measured(before?));
            }
            printed.figure(figure::FLOOD_MEMORY.measured(processes::own_peak_mib()?));
            printed.all(flood.figures());
            anyhow::ensure!(
                flood.poison == "RecordConflict",
                "the poison record says {:?}",
                flood.poison
            );
        }
        Part::Processes { program } => {
            let program = found(&program)?;
            runtime()?.block_on(processes::measure(&program, &mut |figure| printed.figure(figure)))?;
        }
        Part::Sizing { program } => {
            let program = found(&program)?;
            runtime()?.block_on(processes::sizing::measure(&program, &mut |size| println!("{size}")))?;
        }
    }
    Ok(if printed.too_much {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn found(program: &Path) -> anyhow::Result<PathBuf> {
    let found = program.canonicalize();
    found.with_context(|| format!("no program {}", program.display()))
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
