//! `railhead simulator`.

use std::time::Duration;

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::Config;
use crate::simulator::{self, OwnMessage, Simulator};
use crate::start::{self, StartError};

use super::{document, say, serve};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Simulate {
    /// Address to listen on; `simulator.address` if left out.
    #[arg(long)]
    address: Option<std::net::SocketAddr>,
    /// A host's address, for messages that networks send by themselves.
    #[arg(long, value_name = "URL", value_parser = crate::cli::account::http_url)]
    notify: Option<String>,
}

impl Simulate {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        serve::log(config);
        let (engines, cache) = document::engines()?;
        let networks = start::networks(&engines, &cache, config.modules.dir.as_deref())?;
        let (simulator, messages) = Simulator::new(None, Clock::System, networks);
        let listener = TcpListener::bind(self.address.unwrap_or(config.simulator.address)).await?;
        say(format_args!(
            "Simulating networks on http://{}, each below its rail's name",
            listener.local_addr()?
        ));
        let host = match self.notify.or_else(|| config.simulator.notify_url.clone()) {
            Some(url) => {
                let token = config.simulator.token.clone();
                Some((url, token.ok_or("set simulator.token, the same here and for the host")?))
            }
            None => None,
        };
        tokio::spawn(notify(host, messages));
        let stopping = CancellationToken::new();
        let told_to_stop = serve::told_to_stop()?;
        tokio::spawn({
            let stopping = stopping.clone();
            async move {
                told_to_stop.await;
                stopping.cancel();
            }
        });
        Ok(simulator::serve(&simulator, listener, stopping).await?)
    }
}

/// Carries messages to a host, as a network would: to the address that it was given, or else to
/// the one that it was told of.
async fn notify(
    host: Option<(String, SecretString)>,
    mut messages: tokio::sync::mpsc::UnboundedReceiver<OwnMessage>,
) {
    let client = reqwest::Client::new();
    while let Some(message) = messages.recv().await {
        let OwnMessage { rail, method, path, url: given, headers, body, .. } = message;
        let (to, mut request) = match (given, &host) {
            // The address holds a token, which no log needs.
            (Some(given), _) => {
                ("the address that was given".to_owned(), client.request(method, given))
            }
            (None, Some((url, token))) => {
                let to = format!("{}/notices/live/{rail}{path}", url.trim_end_matches('/'));
                (to.clone(), client.request(method, to).bearer_auth(token.expose_secret()))
            }
            (None, None) => continue,
        };
        for (name, value) in headers {
            request = request.header(name, value);
        }
        tokio::spawn(tell(request.body(body), to));
    }
}

/// How often a message is told to a host that is away, or does not take it for now.
const TRIES: u32 = 8;

async fn tell(request: reqwest::RequestBuilder, to: String) {
    for tries in 0..TRIES {
        let Some(again) = request.try_clone() else { return };
        match again.send().await.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => return,
            Ok(status) if status.is_client_error() => {
                tracing::warn!(%status, to, "a notice was refused");
                return;
            }
            Ok(status) => tracing::warn!(%status, to, "a notice was not taken"),
            Err(cause) => tracing::warn!(%cause, to, "a notice was not delivered"),
        }
        tokio::time::sleep(Duration::from_millis(250 << tries)).await;
    }
}
