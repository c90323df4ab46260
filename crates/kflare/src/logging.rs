//! Logs: what is written and how. Everything goes to stderr.

mod filter;
mod json;

use std::{
    error::Error,
    io::{self, IsTerminal},
    panic::PanicHookInfo,
};

use clap::ValueEnum;
use tracing_subscriber::{
    Layer, Registry,
    fmt::{self, format::JsonFields},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

pub use filter::LogFilter;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line
    Json,
    /// For people
    Console,
}

/// Starts logging for the whole process, panics included. Once a process.
pub fn init(filter: &LogFilter, format: LogFormat) -> anyhow::Result<()> {
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Json => fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(json::JsonLines)
            .with_writer(io::stderr)
            .boxed(),
        LogFormat::Console => fmt::layer()
            .with_ansi(io::stderr().is_terminal())
            .with_writer(io::stderr)
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(filter.targets()))
        .try_init()?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Reports the failure of a command: one line on stderr, through the log if there is one.
pub fn report(error: &anyhow::Error) {
    let text = with_causes(error.as_ref());
    if tracing::dispatcher::has_been_set() {
        tracing::error!("{text}");
    } else {
        eprintln!("kflare: {text}");
    }
}

/// An error and its causes, without those that it has told already, in one line.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        if !text.contains(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = error.source();
    }
    text.replace(['\r', '\n'], " ")
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(location, panic = message, "a defect in kflare");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layered {
        text: &'static str,
        source: Option<Box<Layered>>,
    }

    fn layered(texts: &[&'static str]) -> Option<Box<Layered>> {
        let (text, causes) = texts.split_first()?;
        Some(Box::new(Layered {
            text,
            source: layered(causes),
        }))
    }

    #[test]
    fn causes_are_told_once_and_in_one_line() {
        let error = layered(&[
            "cannot start",
            "cannot read x: no such file",
            "no such file",
            "errno 2\nENOENT",
        ])
        .unwrap();
        assert_eq!(
            with_causes(&*error),
            "cannot start: cannot read x: no such file: errno 2 ENOENT"
        );
    }
}
