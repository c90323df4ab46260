//! The command line: the commands, and how refusals are worded.

use std::process::ExitCode;

use clap::{
    Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{
    controller::{self, flags::ControllerFlags},
    crds,
    generate::{self, GenerateArgs},
    plan::{self, PlanArgs},
    sim::{self, SimFlags},
};

/// Exit status of a command line that cannot be understood.
const USAGE: u8 = 1;

/// Manages Cloudflare accounts from Kubernetes resources.
#[derive(Debug, Parser)]
#[command(name = "kflare", version, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands. One variant each; the flags are with the command.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one, and it is made once
pub enum Command {
    /// Run the operator
    Controller(ControllerFlags),
    /// Show what manifests would change at Cloudflare, without a cluster and without a write
    Plan(PlanArgs),
    /// Print the CustomResourceDefinitions
    Crds,
    /// Run a simulator of the Cloudflare API
    Sim(SimFlags),
    /// Write the files of this repository that follow from the code
    #[command(hide = true)]
    Generate(GenerateArgs),
}

impl Command {
    /// Carries the command out.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Controller(flags) => controller::run(&flags),
            Self::Plan(args) => plan::run(&args),
            Self::Crds => {
                print!("{}", crds::all()?);
                Ok(ExitCode::SUCCESS)
            }
            Self::Sim(flags) => sim::run(flags),
            Self::Generate(args) => generate::run(&args).map(|()| ExitCode::SUCCESS),
        }
    }
}

/// Answers a command line that asks for help, or is refused: one line on stderr, status 1 (2 has a meaning for `kflare plan`).
pub fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A closed pipe is no reason to complain.
            let _ = error.print();
            // No command at all is a refusal too.
            if error.exit_code() == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(USAGE)
            }
        }
        _ => {
            eprintln!("{}", one_line(error, |variable| std::env::var(variable).ok()));
            ExitCode::from(USAGE)
        }
    }
}

/// A refusal in one line. If the value came from the environment (`variable` looks one up), the line says so.
pub fn one_line(error: &clap::Error, variable: impl Fn(&str) -> Option<String>) -> String {
    let text = error.to_string();
    let parts: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let mut line = format!("kflare: {}", parts.join(" "));
    if let (Some(ContextValue::String(argument)), Some(ContextValue::String(value))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    {
        let flag = argument.split([' ', '=', '[']).next().unwrap_or_default();
        let name = format!(
            "KFLARE_{}",
            flag.trim_start_matches('-').to_uppercase().replace('-', "_")
        );
        if variable(&name).as_ref() == Some(value) {
            line.push_str(" (the value of the environment variable ");
            line.push_str(&name);
            line.push(')');
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn refusals_are_one_line() {
        for args in [
            &["kflare", "controler"][..],
            &["kflare", "controller", "--concurency", "4"],
            &["kflare", "controller", "--concurrency", "none"],
            &["kflare", "controller", "extra"],
            &["kflare", "sim", "--listen", "here"],
        ] {
            let line = one_line(&Cli::try_parse_from(args).unwrap_err(), |_| None);
            assert!(
                line.starts_with("kflare: error: ") && !line.contains('\n') && !line.contains("Usage"),
                "{line}"
            );
        }
    }

    #[test]
    fn a_value_from_the_environment_is_named_as_such() {
        let error = Cli::try_parse_from(["kflare", "controller", "--api-budget", "80"]).unwrap_err();
        let from_environment = one_line(&error, |name| (name == "KFLARE_API_BUDGET").then(|| "80".to_owned()));
        assert!(
            from_environment.ends_with("(the value of the environment variable KFLARE_API_BUDGET)"),
            "{from_environment}"
        );
        let from_flag = one_line(&error, |_| Some("80%".to_owned()));
        assert!(!from_flag.contains("environment"), "{from_flag}");
    }
}
