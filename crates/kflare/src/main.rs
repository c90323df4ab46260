//! The kflare binary.
//!
//! | module | holds |
//! | --- | --- |
//! | [`cli`] | the commands and their exit status |
//! | [`controller`] | `kflare controller`: the engine, probes and metrics |
//! | [`plan`] | `kflare plan`: what manifests would change |
//! | [`crds`], [`generate`] | `kflare crds`, and what `make generate` writes |
//! | [`sim`] | `kflare sim`: the simulator of the Cloudflare API |
//! | [`logging`], [`shutdown`] | what long-running commands share |
//!
//! Exit status: 0 for success, 1 for a failure or a command line that cannot be understood (one line on stderr says which).
//! `kflare plan` also ends with 2: something would change.

mod cli;
mod controller;
mod crds;
mod generate;
mod logging;
mod plan;
mod shutdown;
mod sim;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::refuse(&error),
    };
    cli.command.run().unwrap_or_else(|error| {
        logging::report(&error);
        ExitCode::FAILURE
    })
}
