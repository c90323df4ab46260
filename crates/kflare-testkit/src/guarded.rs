//! A child process that cannot outlive this one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Milliseconds; more where the machine is very busy.
const FREEZES_WITHIN: Duration = Duration::from_secs(10);

/// Runs `"$@"` with its output in `$log`, reports its process id, and kills it as soon as our standard input ends.
/// The kernel closes that pipe however the parent ends, so this needs no cooperation from it. A stopped process is
/// killed as well. The wrapper ends with the child, whichever way that went.
const SUPERVISE: &str = r#"
exec 3<&0
log=$1
shift
"$@" 3<&- </dev/null >>"$log" 2>&1 &
child=$!
( read -r _ <&3; kill -KILL "$child" ) >/dev/null 2>&1 &
watchdog=$!
echo "$child"
exec >/dev/null 3<&-
wait "$child"
status=$?
kill "$watchdog" 2>/dev/null
exit "$status"
"#;

/// Removes the folder `$1` when our standard input ends, unless a line comes first. What is still being killed may
/// write a file meanwhile, hence the repetition (at most ten seconds).
const REMOVE_AFTERWARDS: &str = r#"
read -r _ && exit 0
tries=0
while rm -rf "$1" 2>/dev/null; sleep 0.1; [ -e "$1" ] && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); done
"#;

/// Whether every thread of a process is stopped, by the state in `/proc/<pid>/task/<tid>/stat`.
fn is_still(pid: u32) -> io::Result<bool> {
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that has ended meanwhile does nothing any more.
        let Ok(stat) = fs::read_to_string(thread?.path().join("stat")) else {
            continue;
        };
        // The name before the state is in parentheses, and may hold some.
        let state = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.trim_start().chars().next());
        if state != Some('T') {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A process that is killed when this value is dropped, and when this process ends in any way whatsoever.
#[derive(Debug)]
pub struct Guarded {
    name: &'static str,
    pid: u32,
    log: PathBuf,
    wrapper: Child,
    lifeline: Option<ChildStdin>,
}

impl Guarded {
    /// Starts `program`; what it prints is appended to `log`. `name` is for messages.
    pub fn spawn(name: &'static str, program: &Path, arguments: &[String], log: PathBuf) -> io::Result<Self> {
        let mut wrapper = Command::new("sh")
            .args(["-c", SUPERVISE, "sh"])
            .arg(&log)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A Ctrl-C in the terminal is for us; the children go when we do.
            .process_group(0)
            .spawn()?;
        let lifeline = wrapper.stdin.take();
        let mut line = String::new();
        if let Some(output) = wrapper.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let pid = line
            .trim()
            .parse()
            .map_err(|_| io::Error::other(format!("no process id from the wrapper of {name}: {line:?}")))?;
        Ok(Self {
            name,
            pid,
            log,
            wrapper,
            lifeline,
        })
    }

    /// What it is called in messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The process id of the program itself, not of the shell it runs under.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How the process ended, if it has. One that a signal ended shows 128 and the signal as its code.
    pub fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.wrapper.try_wait()
    }

    /// Stops every thread of the process, until `CONT`, and waits until they stand still: `kill` comes back before that, and what
    /// still runs may answer a request.
    pub fn freeze(&self) -> io::Result<()> {
        self.signal("STOP")?;
        let deadline = Instant::now() + FREEZES_WITHIN;
        while !is_still(self.pid)? {
            if Instant::now() > deadline {
                return Err(io::Error::other(format!(
                    "{} did not stand still within {FREEZES_WITHIN:?}",
                    self.name
                )));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Sends a signal by name, such as `CONT`.
    pub fn signal(&self, signal: &str) -> io::Result<()> {
        let status = Command::new("kill")
            .args(["-s", signal, "--"])
            .arg(self.pid.to_string())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "kill -s {signal} of {} failed: {status}",
                self.name
            )))
        }
    }

    /// Kills the process and waits until it is gone (milliseconds).
    pub fn kill(&mut self) {
        self.lifeline.take();
        // Fails only when it was waited for already, and then there is nothing left to do.
        let _ = self.wrapper.wait();
    }

    /// The last `bytes` of the log.
    pub fn log_tail(&self, bytes: u64) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(&self.log)?;
            let start = file.metadata()?.len().saturating_sub(bytes);
            file.seek(SeekFrom::Start(start))?;
            let mut tail = Vec::new();
            file.read_to_end(&mut tail)?;
            Ok(String::from_utf8_lossy(&tail).into_owned())
        };
        read().unwrap_or_else(|error| format!("({} cannot be read: {error})", self.log.display()))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A temporary folder which goes when this value is dropped or this process ends, unless it is kept.
#[derive(Debug)]
pub(crate) struct WorkFolder {
    path: PathBuf,
    remover: Child,
    lifeline: Option<ChildStdin>,
}

impl WorkFolder {
    pub(crate) fn create() -> io::Result<Self> {
        let path = tempfile::Builder::new()
            .prefix("kflare-control-plane-")
            .tempdir()?
            .keep();
        let mut remover = Command::new("sh")
            .args(["-c", REMOVE_AFTERWARDS, "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let lifeline = remover.stdin.take();
        Ok(Self {
            path,
            remover,
            lifeline,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the folder where it is, for a person to look at.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        if let Some(mut lifeline) = self.lifeline.take() {
            io::Write::write_all(&mut lifeline, b"keep\n")?;
        }
        Ok(())
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        self.lifeline.take();
        let _ = self.remover.wait();
    }
}
