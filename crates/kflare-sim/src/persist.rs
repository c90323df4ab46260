//! The state file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::simulator::Simulator;
use crate::state::Held;

/// The format; a file of another one is refused.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File<H> {
    format: u32,
    /// The simulator's clock: it goes on from here.
    saved_at: Timestamp,
    held: H,
}

/// The state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It cannot be read.
    #[error("cannot read the state file {}", path.display())]
    Read {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write the state file {}", path.display())]
    Write {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{} is no state file of this simulator", path.display())]
    Content {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: serde_json::Error,
    },
    /// It was written by another version.
    #[error("{} has format {found}, not {FORMAT}", path.display())]
    Format {
        /// Where it is.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

impl Simulator {
    /// Replaces what is held with what the file holds. Tells whether there was one. The clock is moved forward to the time
    /// of the file, if it is behind. New ids follow from that time, so that none of those that were given out after the file
    /// was written comes again.
    pub fn load(&self, path: &Path) -> Result<bool, StateError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => {
                return Err(StateError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let file: File<Held> = serde_json::from_slice(&text).map_err(|source| StateError::Content {
            path: path.to_owned(),
            source,
        })?;
        if file.format != FORMAT {
            return Err(StateError::Format {
                path: path.to_owned(),
                found: file.format,
            });
        }
        self.with(|core| {
            let behind = file.saved_at.duration_since(core.config.clock.now());
            if let Ok(behind) = Duration::try_from(behind) {
                core.config.clock.advance(behind);
            }
            let mut held = file.held;
            held.ids.renew(core.config.clock.now());
            core.world.replace(held);
        });
        Ok(true)
    }

    /// Writes what is held to a file: tokens with their values, no faults, no calls. The file is complete or not there at
    /// all, whenever the process ends.
    pub fn save(&self, path: &Path) -> Result<(), StateError> {
        let text = self.with(|core| {
            let file = File {
                format: FORMAT,
                saved_at: core.config.clock.now(),
                held: core.world.held(),
            };
            serde_json::to_vec(&file)
        });
        let write = || -> io::Result<()> {
            let partial = path.with_extension("partial");
            std::fs::write(&partial, text?)?;
            std::fs::rename(&partial, path)
        };
        write().map_err(|source| StateError::Write {
            path: path.to_owned(),
            source,
        })
    }
}
