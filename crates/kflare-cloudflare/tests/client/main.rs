//! The client against scripted transports, on tokio's paused clock, and the real transport against real sockets.

#[cfg(test)]
mod account_objects;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod paging;
#[cfg(test)]
mod script;
#[cfg(test)]
mod sockets;
#[cfg(test)]
mod workers;
