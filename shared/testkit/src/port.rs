//! Ports for servers in other processes.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// A port that no other process is given while this value lives. The socket is bound and does not listen: connections are
/// refused, and the process that the port is meant for can listen on it.
#[derive(Debug)]
pub struct Port {
    socket: TcpSocket,
}

impl Port {
    /// Reserves a free port on this machine.
    pub fn reserve() -> Self {
        let socket = TcpSocket::new_v4().expect("there are sockets left");
        socket.set_reuseaddr(true).expect("addresses can be shared");
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("there are ports left");
        Self { socket }
    }

    /// The number of the port.
    pub fn number(&self) -> u16 {
        self.socket.local_addr().expect("it is bound").port()
    }

    /// The address of an HTTP server on this port.
    pub fn url(&self) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.number())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_reserved_port_can_be_listened_on_and_is_given_to_nobody_else() {
        let port = Port::reserve();
        let taken: Vec<Port> = (0..200).map(|_| Port::reserve()).collect();
        assert!(taken.iter().all(|other| other.number() != port.number()));
        for _ in 0..2 {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).unwrap();
        }
    }
}
