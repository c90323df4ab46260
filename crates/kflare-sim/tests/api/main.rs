//! The simulator through its router, in process, on a paused clock.

#[cfg(test)]
mod access;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod control;
#[cfg(test)]
mod description;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod records;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tunnels;
#[cfg(test)]
mod zones;
