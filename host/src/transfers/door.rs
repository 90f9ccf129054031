//! The ways in for networks: who speaks, and that what he says is stored before he is answered.
//!
//! The host checks who speaks: by a token, in a header or in the address that the network was
//! given, by the signature of the message, or by several of these. A paused route takes nothing, but
//! from a network that says a thing once: others say it again when the route is resumed.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use secrecy::ExposeSecret as _;
use subtle::ConstantTimeEq as _;

use crate::clock::Moment;
use crate::config::limits;
use crate::env::Env;
use crate::error::{ErrorCode, Problem};
use crate::rails::ReadyRoute;
use crate::rails::notices::{NoticeAuth, NoticeTerms};
use crate::wasm::rail::{Message, Reply};

use super::Transfers;
use super::inbox::{Arrival, Read};
use super::order::Feature;

/// A message as it arrived.
pub struct Arrived<'a> {
    /// Through which door.
    pub by: Door<'a>,
    /// From where.
    pub from: IpAddr,
    /// The message, still without its body.
    pub message: Message,
}

/// What the network is answered.
pub struct Answer {
    /// A status from 200 to 299.
    pub status: StatusCode,
    /// The content type.
    pub content_type: String,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// What a rail replies, if it takes the message: nothing else may leave.
    fn of(route: &ReadyRoute, reply: Reply) -> Result<Self, Problem> {
        let headers = route.reply_headers(&reply).map_err(Problem::internal)?;
        let status = StatusCode::from_u16(reply.status).ok().filter(StatusCode::is_success);
        let status = status.ok_or_else(|| {
            Problem::internal(format!("a reply to a message with status {}", reply.status))
        })?;
        Ok(Self { status, content_type: reply.content_type, headers, body: reply.body })
    }
}

/// A way in for networks.
#[derive(Clone, Copy, Debug)]
pub enum Door<'a> {
    /// That of a rail, whose networks show each who they are.
    Rail {
        /// Test or live.
        env: Env,
        /// The rail's name.
        rail: &'a str,
        /// The bearer token, if there was one.
        bearer: Option<&'a str>,
    },
    /// That of one route, whose network was given an address with a token in it.
    Route {
        /// The route's id.
        id: &'a str,
        /// The token.
        token: &'a str,
        /// The bearer token, if there was one.
        bearer: Option<&'a str>,
    },
}

impl Transfers {
    /// Takes a message in; answers what the network is to be told.
    ///
    /// # Errors
    /// `not_found` for a rail or path that takes none, `unauthorized` without the right token,
    /// `invalid_body` for a message that the rail does not take, `service_unavailable` where
    /// the network should say it again, as it should to a route that is paused. What is answered
    /// otherwise is stored.
    pub async fn receive<F: Feature>(
        &self,
        feature: &F,
        arrived: Arrived<'_>,
        body: impl Future<Output = Result<Vec<u8>, Problem>>,
    ) -> Result<Answer, Problem> {
        let Arrived { by, from, mut message } = arrived;
        // Nobody is listened to before it is known who speaks; but whoever signs what he says.
        let routes = match self.is_signed((by, from), &message).await? {
            true => {
                message.body = self.unverified.read((by.name(), from), body).await?;
                self.authenticate((by, from), &message).await?
            }
            false => {
                let routes = self.authenticate((by, from), &message).await?;
                message.body = body.await?;
                routes
            }
        };
        let terms = routes[0].rail.declaration.notice(&message.method, &message.path);
        if terms.is_some_and(|terms| terms.auth.signature.is_some()) {
            // Nobody signed it.
            message.query.clear();
        }
        let item = self.store(&routes, Arrival::of(&message)).await?;
        let read = match self.read(&routes[0], &item).await {
            Ok(read) => read,
            Err(problem) => {
                self.not_read(item, &problem).await?;
                return Err(problem);
            }
        };
        let (reply, notices, heard) = match read {
            Read::Says(Some(reply), notices, heard) => (reply, notices, heard),
            Read::Says(None, ..) => return Err(Problem::internal("a message without a reply")),
            Read::Nothing(why) => {
                self.not_understood(item, &why).await?;
                return Err(Problem::because(ErrorCode::InvalidBody, why));
            }
        };
        // What it says counts, whatever the rail would have answered.
        let answer = Answer::of(&routes[0], reply);
        // Its own task: a network that hangs up must not leave half of it undone.
        let (engine, feature) = (self.clone(), feature.clone());
        let taking = self.tasks.spawn(async move {
            engine.take_in(&feature, (&routes, item), (notices, heard)).await
        });
        match tokio::time::timeout(limits::TAKING_WAIT, taking).await {
            Ok(Ok(Err(problem))) if problem.code() == ErrorCode::InvalidBody => Err(problem),
            // It is stored, and what it says has its effect as soon as it can.
            Ok(Ok(Err(problem))) => {
                tracing::info!(%problem, "a message of a network waits in the inbox");
                answer
            }
            Ok(Err(cause)) => Err(Problem::internal(cause)),
            Ok(Ok(Ok(()))) | Err(_) => answer,
        }
    }

    /// Whether a message is one that may be known by its signature, so that its body has to be
    /// read first: it carries what looks like one, for a route that could check it, and whatever
    /// else opens that one.
    async fn is_signed(
        &self,
        (by, from): (Door<'_>, IpAddr),
        message: &Message,
    ) -> Result<bool, Problem> {
        Ok(self.routes.all().await?.iter().any(|route| {
            let terms = route.rail.declaration.notice(&message.method, &message.path);
            let may_be_its = by.leads_to(route) && route.hears(from);
            terms.filter(|_| may_be_its).is_some_and(|NoticeTerms { auth, .. }| {
                let signature = auth.signature.as_ref();
                let is_carried = signature.is_some_and(|it| it.carried(message).is_some());
                is_carried && by.presents(route, auth)
            })
        }))
    }

    /// The routes whose token or signature the message carries, at least one.
    async fn authenticate(
        &self,
        (by, from): (Door<'_>, IpAddr),
        message: &Message,
    ) -> Result<Vec<Arc<ReadyRoute>>, Problem> {
        let (mut is_known, mut is_unready, mut matching) = (false, false, Vec::new());
        for route in self.routes.all().await?.iter() {
            let terms = route.rail.declaration.notice(&message.method, &message.path);
            let Some(terms) = terms else { continue };
            if !by.leads_to(route) {
                continue;
            }
            let is_opened = by.is_opened(route, &terms.auth, (message, self.clock.now()));
            if let Some(missing) = route.missing() {
                // Another version of its rail may want something in addition: nothing is lost by it.
                if is_opened && route.hears(from) {
                    let name = &route.route.name;
                    tracing::error!(route.name = name, missing, "a notice for a route without it");
                    is_unready = true;
                }
                continue;
            }
            is_known = true;
            if !is_opened {
                continue;
            }
            match route.hears(from) {
                true => matching.push(Arc::clone(route)),
                // Somebody has what opens it, and is not where its network is.
                false => {
                    tracing::warn!(route.name = route.route.name, %from, "not from its network");
                }
            }
        }
        // Who was given an address says a thing once, and is heard even then.
        let may_wait = matches!(by, Door::Rail { .. });
        let is_paused = may_wait && matching.iter().all(|route| route.route.is_paused);
        match (matching.is_empty(), is_known) {
            (false, _) if is_paused => Err(later(&matching[0])),
            (false, _) => Ok(matching),
            (true, _) if is_unready => {
                let message = "This route is not configured. Say it again later.";
                Err(Problem::because(ErrorCode::ServiceUnavailable, message))
            }
            (true, true) => Err(Problem::new(ErrorCode::Unauthorized)),
            (true, false) => Err(Problem::new(ErrorCode::NotFound)),
        }
    }
}

impl<'a> Door<'a> {
    /// What stands beside others: the rail of its environment, or the route.
    fn name(&self) -> String {
        match self {
            Self::Rail { env, rail, .. } => format!("{env}/{rail}"),
            Self::Route { id, .. } => (*id).to_owned(),
        }
    }

    fn leads_to(&self, route: &ReadyRoute) -> bool {
        match self {
            Self::Rail { env, rail, .. } => {
                (route.route.env, route.route.rail.as_str()) == (*env, *rail)
            }
            Self::Route { id, .. } => route.route.id.as_str() == *id,
        }
    }

    fn is_opened(
        &self,
        route: &ReadyRoute,
        auth: &NoticeAuth,
        (message, now): (&Message, Moment),
    ) -> bool {
        let signature = auth.signature.as_ref();
        self.presents(route, auth) && signature.is_none_or(|it| route.is_signed(it, message, now))
    }

    /// Whether whoever is at the door has every token that opens it. A simulated network that signs
    /// presents one, too: everybody could sign like it.
    fn presents(&self, route: &ReadyRoute, auth: &NoticeAuth) -> bool {
        let (opens, bearer) = match *self {
            Self::Rail { bearer, .. } => {
                let is_open = auth.signature.is_none() || route.is_spoken_for(bearer);
                (!auth.path_token && is_open, bearer)
            }
            Self::Route { token, bearer, .. } => (auth.path_token && route.opens(token), bearer),
        };
        let is_its = |name: &String| {
            // Nothing is nobody's token, whatever was configured.
            let token = bearer.filter(|token| !token.is_empty());
            let secret = route.secret(name).map(|secret| secret.expose_secret().as_bytes());
            let both = secret.zip(token);
            both.is_some_and(|(secret, token)| secret.ct_eq(token.as_bytes()).into())
        };
        opens && auth.bearer.as_ref().is_none_or(is_its)
    }
}

/// What a network is told that speaks to a paused route.
pub(super) fn later(paused: &ReadyRoute) -> Problem {
    tracing::warn!(route.name = paused.route.name, "a notice for a route that is paused");
    let message = "This route is paused. Say it again later.";
    Problem::because(ErrorCode::ServiceUnavailable, message).retry_after(60)
}
