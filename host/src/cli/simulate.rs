//! `railhead simulator`.

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::built_in;
use crate::clock::Clock;
use crate::config::Config;
use crate::rails::Declaration;
use crate::simulator::{self, OwnMessage, Simulator};
use crate::start::StartError;

use super::{say, serve};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Simulate {
    /// Address to listen on; `simulator.address` if left out.
    #[arg(long)]
    address: Option<std::net::SocketAddr>,
    /// A host's address, for messages that networks send by themselves.
    #[arg(long, value_name = "URL")]
    notify: Option<String>,
}

impl Simulate {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        serve::log(config);
        let magic = built_in::declarations()
            .iter()
            .filter_map(|text| Declaration::read(text).ok())
            .filter_map(|declaration| declaration.scenarios)
            .flat_map(|scenarios| scenarios.values)
            .collect();
        let (simulator, messages) = Simulator::new(None, Clock::System, magic);
        let listener = TcpListener::bind(self.address.unwrap_or(config.simulator.address)).await?;
        say(format_args!("Simulating banks on http://{}", listener.local_addr()?));
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
        let OwnMessage { rail, path, url: given, body, .. } = message;
        let (to, request) = match (given, &host) {
            // The address holds a token, which no log needs.
            (Some(given), _) => ("the address that was given".to_owned(), client.post(given)),
            (None, Some((url, token))) => {
                let to = format!("{}/notices/live/{rail}{path}", url.trim_end_matches('/'));
                (to.clone(), client.post(to).bearer_auth(token.expose_secret()))
            }
            (None, None) => continue,
        };
        let sent = request.body(body).send().await;
        match sent.map(|answer| answer.status()) {
            Ok(status) if status.is_success() => {}
            Ok(status) => tracing::warn!(%status, to, "a notice was refused"),
            Err(cause) => tracing::warn!(%cause, to, "a notice was not delivered"),
        }
    }
}
