//! How the configuration is read: a file, and the environment over it.

use std::path::PathBuf;
use std::str::FromStr;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};

use super::{Config, limits};

impl Config {
    /// Reads the file, if there is one, and the environment.
    ///
    /// # Errors
    /// A key is unknown or a value has the wrong type; the message names the key.
    pub fn load(file: Option<&std::path::Path>) -> Result<Self, config::ConfigError> {
        let path = file.map_or_else(|| PathBuf::from("railhead.toml"), PathBuf::from);
        let file = config::File::from(path).required(file.is_some());
        let mut builder = config::Config::builder().add_source(file).add_source(environment());
        if let Ok(url) = std::env::var("DATABASE_URL") {
            builder = builder.set_override("database_url", url)?;
        }
        let config: Self = builder.build()?.try_deserialize()?;
        config.retention.check(&config.rules).map_err(config::ConfigError::Message)?;
        Ok(config)
    }

    /// Whoever can guess one of these is somebody else.
    ///
    /// # Errors
    /// The first that is too short, in words for the operator.
    pub fn check_tokens(&self) -> Result<(), String> {
        let named = |name: &str, token: &SecretString| (name.to_owned(), token.clone());
        let tokens = [
            self.operator_token.as_ref().map(|token| named("operator_token", token)),
            self.simulator.token.as_ref().map(|token| named("simulator.token", token)),
        ];
        let operators = self.admin.operators.iter();
        let operators =
            operators.map(|(name, token)| named(&format!("admin.operators.{name}"), token));
        for (name, token) in tokens.into_iter().flatten().chain(operators) {
            if token.expose_secret().len() < limits::TOKEN_BYTES_MIN {
                return Err(format!(
                    "{name} must have {} characters at least",
                    limits::TOKEN_BYTES_MIN
                ));
            }
        }
        Ok(())
    }
}

/// `RAILHEAD_SECTION__KEY`.
fn environment() -> config::Environment {
    config::Environment::with_prefix("RAILHEAD").prefix_separator("_").separator("__")
}

/// A list, or its items in one text, separated by commas, as the environment has them. Nothing else
/// is read out of the environment's text before it is known what it is for.
pub(super) fn listed<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: std::fmt::Display>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Item {
        Text(String),
        Number(i64),
    }
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a list, or its items in one text, separated by commas")]
    enum Listed {
        Items(Vec<Item>),
        Text(String),
    }
    let items = match Listed::deserialize(deserializer)? {
        Listed::Items(items) => items,
        Listed::Text(text) => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(|item| Item::Text(item.to_owned())).collect()
        }
    };
    let text = |item| match item {
        Item::Text(text) => text,
        Item::Number(number) => number.to_string(),
    };
    let read = |item: String| {
        let parsed = item.parse();
        parsed
            .map_err(|cause| serde::de::Error::custom(format!("{item:?} cannot be read: {cause}")))
    };
    items.into_iter().map(text).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_named() {
        let file =
            std::env::temp_dir().join(format!("railhead-config-{}.toml", std::process::id()));
        std::fs::write(&file, "[server]\nadress = '127.0.0.1:1'\n").expect("written");
        let refusal = Config::load(Some(&file)).expect_err("a typo").to_string();
        std::fs::remove_file(&file).expect("removed");
        assert!(refusal.contains("adress"), "{refusal}");
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        let config = Config::default();
        assert_eq!(config.server.address.to_string(), "127.0.0.1:8080");
        assert_eq!(config.limits.read_per_minute, 120);
        assert_eq!(config.limits.write_per_minute, 30);
    }
    fn read(variables: &[(&str, &str)]) -> Result<Config, config::ConfigError> {
        let variables = variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let source = environment().source(Some(variables.collect()));
        config::Config::builder().add_source(source).build()?.try_deserialize()
    }

    #[test]
    fn text_of_the_environment_stays_as_it_is() {
        let read = read(&[
            ("RAILHEAD_OPERATOR_TOKEN", "0000000000000007"),
            ("RAILHEAD_ROUTES__NGN_NIP__GATEWAY_TOKEN", "1e5"),
            ("RAILHEAD_ROUTES__NGN_NIP__INSTITUTION_CODE", "000012"),
            ("RAILHEAD_ROUTES__NGN_NIP__NOTICE_TOKEN", "TRUE"),
            ("RAILHEAD_ADMIN__OPERATORS__ADA", "000000000000"),
            ("RAILHEAD_SERVER__DATABASE_CONNECTIONS", "12"),
            ("RAILHEAD_WEBHOOKS__DELIVER", "false"),
            ("RAILHEAD_WEBHOOKS__EXTRA_PORTS", "8444, 9443"),
            ("RAILHEAD_SERVER__TRUSTED_PROXIES", "10.0.0.0/8,192.168.1.0/24"),
            ("RAILHEAD_ENCRYPTION__KEYS", "11,22"),
        ]);
        let read = read.expect("a configuration");
        let token = read.operator_token.as_ref().expect("a token").expose_secret();
        assert_eq!(token, "0000000000000007");
        assert_eq!(read.admin.operators["ada"].expose_secret(), "000000000000");
        let route = &read.routes["ngn_nip"];
        let told = ["gateway_token", "institution_code", "notice_token"].map(|name| &*route[name]);
        assert_eq!(told, ["1e5", "000012", "TRUE"]);
        assert_eq!((read.server.database_connections, read.webhooks.deliver), (12, false));
        assert_eq!(
            (read.webhooks.extra_ports.as_slice(), read.server.trusted_proxies.len()),
            (&[8444, 9443][..], 2)
        );
        assert_eq!(read.encryption.keys, ["11", "22"]);
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        let read = read(&[("RAILHEAD_OPERATOR_TOKEN", "7")]).expect("a configuration");
        let refusal = read.check_tokens().expect_err("one character");
        assert!(refusal.contains("operator_token"), "{refusal}");
    }
}
