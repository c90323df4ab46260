//! Taking addresses, before anything else happens: a start that cannot serve fails at once.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
};

use socket2::{Domain, Socket, Type};

use super::values::Listen;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// The address cannot be taken.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} (choose another address with {flag})")]
pub struct BindError {
    address: SocketAddr,
    flag: &'static str,
    source: io::Error,
}

/// Listens where `flag` says. `[::]` takes IPv4 as well, whatever the machine's default is, and falls back to `0.0.0.0`
/// where there is no IPv6.
pub fn bind(listen: Listen, flag: &'static str) -> Result<Option<TcpListener>, BindError> {
    let Listen::At(address) = listen else { return Ok(None) };
    let bound = if address.ip() == Ipv6Addr::UNSPECIFIED {
        listen_on(address).or_else(|error| {
            if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied) {
                return Err(error);
            }
            listen_on(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
        })
    } else {
        listen_on(address)
    };
    bound.map(Some).map_err(|source| BindError { address, flag, source })
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn every_address_includes_ipv4() {
        let listener = bind(":0".parse().unwrap(), "--health-addr").unwrap().unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(bind(Listen::Off, "--health-addr").unwrap().is_none());
    }

    #[test]
    fn a_taken_address_is_named_with_its_flag() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = bind(Listen::At(address), "--metrics-addr").unwrap_err();
        let text = format!("{:#}", anyhow::Error::from(error));
        assert!(
            text.contains(&address.to_string()) && text.contains("--metrics-addr") && text.contains("in use"),
            "{text}"
        );
    }
}
