//! `kflare plan`: what would change at Cloudflare for manifests, without a cluster and without a write.

pub mod manifests;
mod output;
mod schema;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use kflare_cloudflare::{BaseUrl, Metrics, Pool, PoolOptions, TransportOptions, reqwest_transport};
use kflare_engine::{
    Plan, Reason,
    credentials::FixedCredentials,
    offline::{Manifests, Planned, PlannedOutcome},
    policy::{DefaultDeletion, DriftCheck},
    resolve::Defaults,
};
use secrecy::SecretString;

use crate::controller::values::Namespace;

/// Flags of `kflare plan`.
#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Manifests: files, directories (all their .yaml, .yml and .json files, sorted) or - for standard input. Resources of
    /// other API groups are skipped. Manifests with status (kubectl get -o yaml, or kubectl apply --dry-run=server -o yaml) are
    /// planned as the controller would. Their fields are held against the schemas; rules between fields are the API server's.
    #[arg(short = 'f', long = "filename", required = true, num_args = 1..)]
    filename: Vec<PathBuf>,

    /// The namespace of manifests that name none; `default` without it. It matters: rules bear a mark that is made of it.
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    namespace: Option<Namespace>,

    /// File that holds the API token. Without it the token is read from CF_API_TOKEN: never from a flag, which would show in
    /// the list of processes.
    #[arg(long, env = "KFLARE_TOKEN_FILE")]
    token_file: Option<PathBuf>,

    /// Base URL of the Cloudflare API.
    #[arg(long, env = "KFLARE_CLOUDFLARE_URL")]
    cloudflare_url: Option<BaseUrl>,

    /// How to print the plan.
    #[arg(short = 'o', long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs: an array with one object a resource.
    Json,
}

/// Plans and prints, on a runtime of its own.
pub fn run(args: &PlanArgs) -> Result<ExitCode> {
    crate::controller::install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(plan(args))
}

/// Plans and prints. The status is 0 when nothing would change, 2 when something would, 1 when something cannot be carried
/// out as it stands or could not be found out.
async fn plan(args: &PlanArgs) -> Result<ExitCode> {
    let kinds = kflare_kinds::kinds();
    let mut manifests = Manifests::new(kinds.clone());
    let found = manifests::read(&args.filename)?;
    let schemas = schema::Schemas::new()?;
    let mut unfit = BTreeMap::new();
    let mut loaded = 0;
    for document in found {
        let manifests::Document { origin, mut object } = document;
        let given = args.namespace.as_ref().map(|it| it.0.clone());
        object.metadata.namespace = object.metadata.namespace.or(given);
        let faults = schemas.faults(&object);
        let key = manifests.add(object).with_context(|| origin)?;
        if !faults.is_empty() {
            unfit.insert(key, faults.join("; "));
        }
        loaded += 1;
    }
    anyhow::ensure!(
        loaded > 0,
        "no resource of {} in the files given",
        kflare_api::names::GROUP
    );
    let client = pool(args.cloudflare_url.clone())?
        .client("plan", token(args.token_file.as_deref())?)
        .read_only();
    let defaults = Defaults {
        deletion: DefaultDeletion::Delete,
        drift_check: DriftCheck::Off,
    };
    let mut planned = manifests.plan(&FixedCredentials::new(client), defaults).await;
    for resource in &mut planned {
        if let Some(faults) = unfit.remove(&resource.resource) {
            resource.outcome = PlannedOutcome::Plan(Plan::Blocked {
                reason: Reason::INVALID_SPEC,
                message: format!("the API server takes no such spec: {faults}"),
                changes: Vec::new(),
            });
        }
    }
    match args.output {
        Format::Table => print!("{}", output::table(&planned)),
        Format::Json => println!("{}", serde_json::to_string_pretty(&planned)?),
    }
    Ok(status(&planned))
}

fn status(planned: &[Planned]) -> ExitCode {
    let stuck = |it: &Planned| match &it.outcome {
        PlannedOutcome::Error(_) => true,
        PlannedOutcome::Plan(plan) => matches!(plan, Plan::Blocked { .. } | Plan::Wait { .. }),
    };
    let changes = |it: &Planned| matches!(&it.outcome, PlannedOutcome::Plan(plan) if plan.writes());
    if planned.iter().any(stuck) {
        ExitCode::from(1)
    } else if planned.iter().any(changes) {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

fn pool(url: Option<BaseUrl>) -> Result<Pool> {
    let transport = reqwest_transport(&TransportOptions::default()).context("the HTTP client cannot be set up")?;
    let mut options = PoolOptions::default();
    if let Some(url) = url {
        options.base_url = url;
    }
    options.clock = Arc::new(kflare_cloudflare::SystemWallClock);
    Ok(Pool::new(transport, options, Metrics::unregistered()))
}

fn token(file: Option<&std::path::Path>) -> Result<SecretString> {
    let text = match file {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("--token-file {}", path.display()))?,
        None => std::env::var(kflare_api::names::DEFAULT_TOKEN_KEY)
            .context("no API token: set CF_API_TOKEN, or name a file that holds it with --token-file")?,
    };
    let text = text.trim();
    anyhow::ensure!(!text.is_empty(), "the API token is empty");
    Ok(SecretString::from(text.to_owned()))
}
