//! A line to PostgreSQL that can go silent, be cut, or lose whoever was at its other end.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The line. Silent, it carries nothing and closes nothing.
pub(crate) struct QuietLine {
    silence: watch::Sender<Silence>,
    cuts: watch::Sender<u32>,
}

#[derive(Clone, Copy, Default)]
struct Silence {
    of_all: bool,
    /// How often the server was gone: what was connected before is silent for good.
    gone: u32,
}

impl QuietLine {
    /// A line to the server of this address, and the address at its other end.
    pub(crate) async fn open(url: &str) -> (Self, String) {
        let inside = url.strip_prefix("postgres://postgres@").expect("a server");
        let (server, name) = inside.split_once('/').expect("a database");
        let server: SocketAddr = server.parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let outside = listener.local_addr().expect("an address");
        let line = Self { silence: watch::Sender::default(), cuts: watch::Sender::new(0) };
        let (silence, cuts) = (line.silence.clone(), line.cuts.clone());
        tokio::spawn(async move {
            while let Ok((host, _)) = listener.accept().await {
                let Ok(inside) = TcpStream::connect(server).await else { continue };
                let (up, down) = (host.into_split(), inside.into_split());
                tokio::spawn(carry(up.0, down.1, (silence.subscribe(), cuts.subscribe())));
                tokio::spawn(carry(down.0, up.1, (silence.subscribe(), cuts.subscribe())));
            }
        });
        (line, format!("postgres://postgres@{outside}/{name}"))
    }

    /// Goes silent.
    pub(crate) fn fall_silent(&self) {
        self.silence.send_modify(|silence| silence.of_all = true);
    }

    /// Carries again.
    pub(crate) fn speak(&self) {
        self.silence.send_modify(|silence| silence.of_all = false);
    }

    /// The server is gone without a word, and another one has taken its place.
    pub(crate) fn lose_the_server(&self) {
        self.silence.send_modify(|silence| silence.gone += 1);
    }

    /// Closes every connection.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    (mut silence, mut cuts): (watch::Receiver<Silence>, watch::Receiver<u32>),
) {
    let mut bytes = vec![0; 64 * 1024];
    let gone = silence.borrow().gone;
    loop {
        let count = tokio::select! {
            read = from.read(&mut bytes) => match read {
                Ok(count @ 1..) => count,
                _ => return,
            },
            _ = cuts.changed() => return,
        };
        let carries = async {
            silence.wait_for(|now| !now.of_all && now.gone == gone).await.is_ok()
                && to.write_all(&bytes[..count]).await.is_ok()
        };
        let is_carried = tokio::select! {
            is_carried = carries => is_carried,
            _ = cuts.changed() => false,
        };
        if !is_carried {
            return;
        }
    }
}
