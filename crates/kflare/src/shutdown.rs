//! Being asked to stop.

use std::io;

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

/// SIGTERM and SIGINT.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on the signals no longer end the process by themselves. Needs a tokio runtime with I/O.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Passes the first signal on to `first`, and the second one to `second`: usually [`end_at_once`].
    pub async fn watch(mut self, first: oneshot::Sender<()>, second: impl FnOnce()) {
        let signal = self.next().await;
        tracing::info!(signal, "stopping; a second signal ends the process at once");
        // Whoever waited for it may have ended already.
        let _ = first.send(());
        let signal = self.next().await;
        tracing::warn!(signal, "ended without finishing what was under way");
        second();
    }
}

/// Ends the process with status 1.
pub fn end_at_once() {
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn send(signal: &str) {
        let kill = format!("kill -{signal} {}", std::process::id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    #[tokio::test]
    async fn the_first_signal_asks_and_the_second_does_not() {
        let (first, mut asked) = oneshot::channel();
        let (second, ended) = oneshot::channel();
        let signals = Signals::install().unwrap();
        tokio::spawn(signals.watch(first, || second.send(()).unwrap()));
        tokio::task::yield_now().await;
        assert!(asked.try_recv().is_err());
        send("TERM");
        asked.await.unwrap();
        send("INT");
        ended.await.unwrap();
    }
}
