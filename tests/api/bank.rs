//! A simulated bank on a port of its own, behind a door that a test can hold shut.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use railhead::clock::Clock;
use railhead::keyring::Keyring;
use railhead::simulator::{self, Network, OwnMessage, Simulator, Transfer};
use railhead::wasm::{CodeCache, Engines};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::test_host::{Answer, client};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The bank. It counts what it executed and outlives every host that sends to it.
pub(crate) struct Bank {
    pub url: String,
    pub door: Door,
    simulator: Simulator,
    messages: Mutex<mpsc::UnboundedReceiver<OwnMessage>>,
    client: reqwest::Client,
}

/// Where a transfer is held up on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Nothing,
    /// The request is under way. It is lost when the door opens: the bank never hears of it.
    Request,
    /// The bank has executed the transfer, and its answer does not arrive.
    Answer,
}

/// The door in front of the bank. Only transfers are held, and only as long as it is shut.
#[derive(Clone)]
pub(crate) struct Door {
    hold: watch::Sender<Hold>,
    held: watch::Sender<u32>,
    answered: watch::Sender<u32>,
}

/// The networks of the built-in rails, loaded once for all tests.
pub(crate) fn networks() -> BTreeMap<String, Network> {
    static NETWORKS: LazyLock<BTreeMap<String, Network>> = LazyLock::new(|| {
        let engines = Engines::start().expect("engines");
        let key = "07".repeat(32);
        let keyring = Arc::new(Keyring::from_hex(&[key]).expect("a key"));
        railhead::start::networks(&engines, &CodeCache::new(None, keyring), None).expect("networks")
    });
    NETWORKS.clone()
}

impl Bank {
    pub(crate) async fn open() -> Self {
        Self::open_at(Clock::System).await
    }

    /// One whose days are those of a clock: some networks take only what is of their day.
    pub(crate) async fn open_at(clock: Clock) -> Self {
        let (simulator, messages) = Simulator::new(None, clock, networks());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let inside = listener.local_addr().expect("an address");
        tokio::spawn({
            let simulator = simulator.clone();
            async move { simulator::serve(&simulator, listener, CancellationToken::new()).await }
        });
        let door = Door {
            hold: watch::Sender::new(Hold::Nothing),
            held: watch::Sender::new(0),
            answered: watch::Sender::new(0),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(door.clone().serve(listener, inside));
        let client = client();
        Self { url, door, simulator, messages: Mutex::new(messages), client }
    }

    /// Everything that it was sent.
    pub(crate) async fn transfers(&self) -> Vec<Transfer> {
        self.simulator.transfers().await.expect("its memory")
    }

    pub(crate) async fn transfer(&self, reference: &str) -> Transfer {
        let transfers = self.transfers().await;
        let found = transfers.into_iter().find(|transfer| transfer.reference == reference);
        found.unwrap_or_else(|| panic!("the bank never heard of {reference}"))
    }

    /// No reference was paid twice.
    pub(crate) async fn prove(&self) {
        for transfer in self.transfers().await {
            assert!(transfer.executed <= 1, "paid twice: {transfer:?}");
        }
    }

    /// Settles, fails or returns a transfer over NIP.
    pub(crate) async fn control(&self, reference: &str, step: &str) -> Answer {
        let url = format!("{}/control/nip/transfers/{reference}/{step}", self.url);
        Answer::of(self.client.post(url).send().await.expect("an answer")).await
    }

    /// The next message that the network wants to send by itself, whenever that is.
    pub(crate) async fn next_message(&self) -> Option<OwnMessage> {
        self.messages.lock().await.recv().await
    }

    /// The next message that the network wants to send by itself.
    pub(crate) async fn message(&self) -> OwnMessage {
        let mut messages = self.messages.lock().await;
        let message = tokio::time::timeout(PATIENCE, messages.recv()).await;
        message.expect("a message in time").expect("a message")
    }
}

impl Door {
    /// Holds transfers up, or lets them through again.
    pub(crate) fn hold(&self, hold: Hold) {
        self.held.send_replace(0);
        self.answered.send_replace(0);
        self.hold.send_replace(hold);
    }

    /// Waits until a transfer is being held up.
    pub(crate) async fn until_held(&self) {
        until(&self.held).await;
    }

    /// Waits until an answer has gone through since the last [`Door::hold`].
    pub(crate) async fn until_answered(&self) {
        until(&self.answered).await;
    }

    async fn serve(self, listener: TcpListener, inside: SocketAddr) {
        while let Ok((host, _)) = listener.accept().await {
            let door = self.clone();
            tokio::spawn(async move {
                let bank = TcpStream::connect(inside).await.expect("the bank");
                let _ = (host.set_nodelay(true), bank.set_nodelay(true));
                let ((from_host, to_host), (from_bank, to_bank)) =
                    (host.into_split(), bank.into_split());
                let is_transfer = Arc::new(AtomicBool::new(false));
                let up = door.clone().carry_requests((from_host, to_bank), &is_transfer);
                let down = door.clone().carry_answers((from_bank, to_host), &is_transfer);
                tokio::join!(up, down);
            });
        }
    }

    async fn carry_requests(
        self,
        (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
        is_transfer: &AtomicBool,
    ) {
        while let Some(bytes) = read(&mut from).await {
            let text = String::from_utf8_lossy(&bytes);
            let is_put = text.starts_with("PUT ");
            if is_put || text.starts_with("POST ") || text.starts_with("GET ") {
                let is_paying = is_put || text.contains("fundtransfersingleitem");
                is_transfer.store(is_paying, Ordering::SeqCst);
            }
            let was_held = self.pass(Hold::Request, is_transfer).await;
            if was_held || to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    }

    async fn carry_answers(
        self,
        (mut from, mut to): (OwnedReadHalf, OwnedWriteHalf),
        is_transfer: &AtomicBool,
    ) {
        while let Some(bytes) = read(&mut from).await {
            self.pass(Hold::Answer, is_transfer).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
            self.answered.send_modify(|count| *count += 1);
        }
    }

    /// Waits for the door to be open; says whether it was not.
    async fn pass(&self, at: Hold, is_transfer: &AtomicBool) -> bool {
        let is_held = is_transfer.load(Ordering::SeqCst) && *self.hold.borrow() == at;
        if is_held {
            self.held.send_modify(|count| *count += 1);
            let _ = self.hold.subscribe().wait_for(|hold| *hold != at).await;
        }
        is_held
    }
}

async fn read(from: &mut OwnedReadHalf) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 16 * 1024];
    let count = from.read(&mut bytes).await.ok().filter(|&count| count > 0)?;
    bytes.truncate(count);
    Some(bytes)
}

async fn until(count: &watch::Sender<u32>) {
    let mut count = count.subscribe();
    let reached = tokio::time::timeout(PATIENCE, count.wait_for(|count| *count > 0)).await;
    reached.expect("in time").expect("a door");
}
