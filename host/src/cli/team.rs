//! `railhead team`: what a member does about themselves; and `railhead admin member`: what is done
//! about members.

use std::io::{BufRead as _, IsTerminal as _};

use clap::{Args, Subcommand};
use reqwest::Method;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::config::Config;
use crate::start::StartError;

use super::admin::{self, Request, json_object, object, send};
use super::{say, warn};

/// Arguments of the command.
#[derive(Args)]
pub(super) struct Team {
    /// The host's address; that of the configuration if left out.
    #[arg(long, global = true, value_name = "URL", value_parser = crate::cli::account::http_url)]
    url: Option<String>,
    #[command(subcommand)]
    command: TeamCommand,
}

#[derive(Subcommand)]
enum TeamCommand {
    /// Take up an invitation: asks for the password that is to count.
    Accept {
        /// The invitation's token.
        token: String,
    },
    /// Sign in: asks for the password, and prints the session's token for the other commands.
    SignIn {
        /// Your address.
        #[arg(long)]
        email: String,
        /// A one-time code, if you have set them up.
        #[arg(long)]
        otp: Option<String>,
        /// Of which merchant's team, if you are in several.
        #[arg(long)]
        merchant: Option<String>,
    },
    /// Show who is signed in.
    Me,
    /// Confirm who you are, for what is dangerous: asks for the password unless there is a code.
    Confirm {
        /// A one-time code, in place of the password.
        #[arg(long)]
        otp: Option<String>,
    },
    /// End the session.
    SignOut,
    /// Change your password: asks for both. Ends all sessions.
    Password,
    /// One-time codes.
    #[command(subcommand)]
    Otp(Otp),
}

#[derive(Subcommand)]
enum Otp {
    /// Show a secret for your authenticator.
    Begin,
    /// Give a code of it: from then on they count. Prints codes for when you lose it.
    Confirm {
        /// The code.
        otp: String,
    },
    /// Go without.
    Remove {
        /// A code.
        otp: String,
    },
}

#[derive(Subcommand)]
pub(super) enum Member {
    /// Invite somebody; the invitation is shown once.
    Invite {
        /// The merchant's id.
        merchant: String,
        /// With what they will sign in.
        #[arg(long)]
        email: String,
        /// For people.
        #[arg(long)]
        name: String,
        /// `owner`, `admin`, `developer`, `finance` or `viewer`.
        #[arg(long)]
        role: String,
        /// A permission besides those of the role.
        #[arg(long = "permission")]
        permissions: Vec<String>,
    },
    /// List a merchant's members.
    List {
        /// The merchant's id.
        merchant: String,
    },
    /// Show a member.
    Show {
        /// The member's id.
        id: String,
    },
    /// Change a member, given as a JSON object.
    Set {
        /// The member's id.
        id: String,
        /// For example '{"role":"finance"}' or '{"status":"disabled"}'.
        changes: String,
    },
    /// Invite a member again who has lost the invitation or the password.
    InviteAgain {
        /// The member's id.
        id: String,
        /// They have lost their one-time codes, too.
        #[arg(long)]
        reset_otp: bool,
    },
    /// Remove a member.
    Remove {
        /// The member's id.
        id: String,
    },
}

pub(super) fn member(command: Member) -> Result<Request, StartError> {
    Ok(match command {
        Member::Invite { merchant, email, name, role, permissions } => {
            let body = object([
                ("email", json!(email)),
                ("name", json!(name)),
                ("role", json!(role)),
                ("permissions", json!(permissions)),
            ]);
            (Method::POST, format!("merchants/{merchant}/members"), Some(body))
        }
        Member::List { merchant } => (Method::GET, format!("merchants/{merchant}/members"), None),
        Member::Show { id } => (Method::GET, format!("members/{id}"), None),
        Member::Set { id, changes } => {
            (Method::PATCH, format!("members/{id}"), Some(json_object(&changes)?))
        }
        Member::InviteAgain { id, reset_otp } => {
            let body = object([("reset_otp", json!(reset_otp))]);
            (Method::POST, format!("members/{id}/invite"), Some(body))
        }
        Member::Remove { id } => (Method::DELETE, format!("members/{id}"), None),
    })
}

impl Team {
    pub(super) async fn run(self, config: &Config) -> Result<(), StartError> {
        let base = self.url.unwrap_or_else(|| config.operators_url());
        // Whoever has none yet is about to get one.
        let nobody = SecretString::from(String::new());
        let (token, request) = match self.command {
            TeamCommand::Accept { token } => {
                let password = new_password()?;
                let body = json!({ "token": token, "password": password });
                (&nobody, (Method::POST, "invitations/accept", Some(body)))
            }
            TeamCommand::SignIn { email, otp, merchant } => {
                let body = object([
                    ("email", json!(email)),
                    ("password", json!(password("Password")?)),
                    ("otp", json!(otp)),
                    ("merchant_id", json!(merchant)),
                ]);
                let session =
                    call((&base, &nobody), (Method::POST, "sessions", Some(body))).await?;
                signed_in(&session);
                return Ok(());
            }
            command => (session(config)?, own(command)?),
        };
        let answer = call((&base, token), request).await?;
        say(serde_json::to_string_pretty(&answer)?);
        Ok(())
    }
}

type Call = (Method, &'static str, Option<Value>);

/// What a member who is signed in asks for.
fn own(command: TeamCommand) -> Result<Call, StartError> {
    let code = |otp: String| Some(json!({ "otp": otp }));
    Ok(match command {
        TeamCommand::Confirm { otp } => {
            let body = match otp {
                Some(otp) => json!({ "otp": otp }),
                None => json!({ "password": password("Password")? }),
            };
            (Method::POST, "sessions/current/confirm", Some(body))
        }
        TeamCommand::SignOut => (Method::DELETE, "sessions/current", None),
        TeamCommand::Password => {
            let current = password("Current password")?;
            let body = json!({ "current_password": current, "password": new_password()? });
            (Method::POST, "members/current/password", Some(body))
        }
        TeamCommand::Otp(Otp::Begin) => (Method::POST, "members/current/otp", None),
        TeamCommand::Otp(Otp::Confirm { otp }) => {
            (Method::POST, "members/current/otp/confirm", code(otp))
        }
        TeamCommand::Otp(Otp::Remove { otp }) => (Method::DELETE, "members/current/otp", code(otp)),
        TeamCommand::Me | TeamCommand::Accept { .. } | TeamCommand::SignIn { .. } => {
            (Method::GET, "sessions/current", None)
        }
    })
}

async fn call(
    (base, token): (&str, &SecretString),
    (method, path, body): Call,
) -> Result<Value, StartError> {
    send((base, token), (method, path), body).await
}

/// Says what to do with a session.
fn signed_in(session: &Value) {
    let text = |name: &str| session[name].as_str().unwrap_or_default().to_owned();
    warn(format_args!(
        "signed in until {}; hand the token to the other commands:",
        text("expires_at")
    ));
    say(format!("export RAILHEAD_OPERATOR_TOKEN={}", text("token")));
}

/// The token of a session, which stands where operators have theirs.
fn session(config: &Config) -> Result<&SecretString, StartError> {
    admin::token(config).map_err(|_| {
        "sign in first: railhead team sign-in --email …, and export what it prints".into()
    })
}

/// Asks for a password without showing it; what is piped in is read as it is.
fn password(what: &str) -> Result<String, StartError> {
    if std::io::stdin().is_terminal() {
        warn(format_args!("{what}:"));
        return Ok(console::Term::stderr().read_secure_line()?);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks for a new password, twice where somebody types it.
fn new_password() -> Result<String, StartError> {
    let first = password("New password")?;
    if std::io::stdin().is_terminal() && first != password("Once more")? {
        return Err("the two passwords differ".into());
    }
    Ok(first)
}
