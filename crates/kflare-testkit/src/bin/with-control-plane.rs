//! Starts one control plane for the length of a command.
//!
//! The command sees `KUBECONFIG` and `KFLARE_TEST_CONTROL_PLANE`; all test binaries it starts share the control plane.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use kflare_testkit::control_plane::{ControlPlane, ControlPlaneOptions, Controllers, SHARED_KUBECONFIG_VARIABLE};
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Start a control plane (etcd, kube-apiserver), run a command against it, and tear it down.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run kube-controller-manager as well: garbage collection, namespace deletion, default ServiceAccounts
    #[arg(long)]
    with_controller_manager: bool,
    /// Stay up after the command, or without one, until interrupted
    #[arg(long)]
    keep: bool,
    /// The command and its arguments
    #[arg(last = true)]
    command: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    anyhow::ensure!(
        arguments.keep || !arguments.command.is_empty(),
        "give a command after --, or --keep"
    );
    let controllers = if arguments.with_controller_manager {
        Controllers::ControllerManager
    } else {
        Controllers::None
    };
    let mut interrupted = Interrupts::listen()?;
    let mut control_plane = tokio::select! {
        biased;
        () = interrupted.next() => return Ok(ExitCode::from(130)),
        started = ControlPlane::start(ControlPlaneOptions { controllers, ..Default::default() }) => started?,
    };

    let mut code = ExitCode::SUCCESS;
    if let Some((program, rest)) = arguments.command.split_first() {
        code = run(program, rest, &control_plane, &mut interrupted).await?;
        if code != ExitCode::SUCCESS {
            eprintln!(
                "the control plane's logs are kept in {}",
                control_plane.keep_files()?.display()
            );
        }
    }
    if arguments.keep {
        println!(
            "export KUBECONFIG={}",
            control_plane.access().kubeconfig_path().display()
        );
        println!("export {SHARED_KUBECONFIG_VARIABLE}=$KUBECONFIG");
        println!("{}/kubectl get namespaces", control_plane.binaries().display());
        eprintln!("press Ctrl-C to stop the control plane");
        interrupted.next().await;
    }
    Ok(code)
}

/// Runs the command to its end. When we are interrupted it is asked to end too, and still waited for.
async fn run(
    program: &str,
    arguments: &[String],
    control_plane: &ControlPlane,
    interrupted: &mut Interrupts,
) -> anyhow::Result<ExitCode> {
    let kubeconfig = control_plane.access().kubeconfig_path();
    let mut child = Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env(SHARED_KUBECONFIG_VARIABLE, kubeconfig)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("starting {program}"))?;
    let status = loop {
        tokio::select! {
            biased;
            status = child.wait() => break status.with_context(|| format!("waiting for {program}"))?,
            () = interrupted.next() => if let Some(pid) = child.id() {
                Command::new("kill").args(["-s", "TERM", "--"]).arg(pid.to_string()).status().await?;
            },
        }
    };
    // Killed by a signal: what a shell would say is not worth the arithmetic.
    Ok(ExitCode::from(
        status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
    ))
}

/// The two ways to ask this process to end.
struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}
