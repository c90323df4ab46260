//! Running `kflare` as a process, and asking it over HTTP.

#![allow(clippy::unwrap_used)] // test support: a surprise ends the test

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    time::Duration,
};

use serde_json::Value;

/// A process that goes when the test goes.
pub struct Process {
    child: Child,
    lines: BufReader<ChildStderr>,
}

impl Process {
    /// Starts `kflare` with nothing of the test's own environment that could lead it to a cluster.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kflare"))
            .args(arguments)
            .env_clear()
            .env("HOME", "/nonexistent")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines }
    }

    /// Reads the log up to the JSON line with this message.
    pub fn line(&mut self, message: &str) -> Value {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).unwrap() > 0,
                "the log ended without {message:?}:\n{seen}"
            );
            match serde_json::from_str::<Value>(&line) {
                Ok(value) if value["message"] == message => return value,
                _ => seen.push_str(&line),
            }
        }
    }

    /// The address in the line with this message.
    pub fn address_of(&mut self, message: &str) -> String {
        self.line(message)["address"].as_str().unwrap().to_owned()
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end.
    pub fn status(&mut self) -> ExitStatus {
        // So that it is not held up by a full pipe.
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap()
    }

    /// Waits for the end; gives the exit code and all lines.
    pub fn end(mut self) -> (Option<i32>, Vec<String>) {
        let mut text = String::new();
        self.lines.read_to_string(&mut text).unwrap();
        (
            self.child.wait().unwrap().code(),
            text.lines().map(str::to_owned).collect(),
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// One GET over plain HTTP/1.1.
pub fn get(address: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n"
    )
    .unwrap();
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all(b"\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer {
        status,
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}
