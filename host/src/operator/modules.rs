//! Loaded rails.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::error::{ErrorCode, Problem};
use crate::http::Page;
use crate::rails::Declaration;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[("list_rails", &[])];

/// A loaded rail.
#[derive(Debug, Serialize, ToSchema)]
pub struct RailView {
    /// Always `rail`.
    #[schema(example = "rail")]
    pub object: &'static str,
    /// The name in its declaration.
    #[schema(example = "nip")]
    pub name: String,
    /// The version in its declaration.
    pub version: String,
    /// A title to show; it decides nothing.
    pub title: String,
    /// The contract that it was built against.
    pub contract: String,
    /// SHA-256 of its file.
    pub digest: String,
    /// Where it stands in its life.
    #[schema(example = "active")]
    pub state: &'static str,
    /// Currencies that it serves.
    pub currencies: Vec<String>,
    /// Countries that it reaches: ISO 3166 alpha-2.
    pub countries: Vec<String>,
    /// Interfaces that it offers.
    pub offers: Vec<&'static str>,
    /// What a live route of it is configured with.
    pub configuration: Vec<ConfigurationView>,
    /// Its reference tables.
    pub tables: Vec<TableView>,
    /// Texts that the host makes for each payment, and that nobody can guess.
    pub seeds: Vec<SeedView>,
}

/// A reference table of a rail.
#[derive(Debug, Serialize, ToSchema)]
pub struct TableView {
    /// The name: `tables/<rail>/<name>.csv` in `modules.dir` stands in for it.
    #[schema(example = "banks")]
    pub name: String,
    /// Whether there is one: the rail's own, or the operator's.
    pub is_there: bool,
    /// As of when the rail's own is.
    #[schema(example = "2026-11-20")]
    pub dated: Option<String>,
    /// Where the rail's own was taken from.
    pub source: Option<String>,
}

/// A text that the host makes.
#[derive(Debug, Serialize, ToSchema)]
pub struct SeedView {
    /// The name in the declaration.
    #[schema(example = "answer")]
    pub name: String,
    /// What it is.
    pub title: String,
}

/// Something that an operator configures of a rail's live route.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConfigurationView {
    /// The name: a setting of the route (`endpoint.…` for an address), or, of a secret or a key,
    /// `routes.<route>.<name>` in the host's configuration.
    #[schema(example = "endpoint.gateway")]
    pub name: String,
    /// `endpoint`, `setting`, `secret` or `key`.
    #[schema(example = "endpoint")]
    pub kind: &'static str,
    /// What it is.
    pub title: String,
    /// A regular expression that the whole value of a setting matches.
    pub pattern: Option<String>,
    /// What a setting is if it is not set.
    pub default: Option<String>,
}

fn configuration(declaration: &Declaration) -> Vec<ConfigurationView> {
    let plain = |kind: &'static str, name: String, title: &str| {
        let title = title.to_owned();
        ConfigurationView { name, kind, title, pattern: None, default: None }
    };
    let endpoints = declaration.endpoints.iter();
    let endpoints =
        endpoints.map(|(name, it)| plain("endpoint", format!("endpoint.{name}"), &it.title));
    let settings = declaration.settings.iter().map(|(name, it)| ConfigurationView {
        pattern: it.pattern.clone(),
        default: it.default.clone(),
        ..plain("setting", name.clone(), &it.title)
    });
    let secrets = declaration.secrets.iter();
    let secrets = secrets.map(|(name, it)| plain("secret", name.clone(), &it.title));
    let keys = declaration.keys.iter().map(|(name, it)| plain("key", name.clone(), &it.title));
    endpoints.chain(settings).chain(secrets).chain(keys).collect()
}

/// List rails
#[utoipa::path(
    get, path = "/admin/v1/rails", operation_id = "list_rails", tag = "Operator",
    responses((status = 200, description = "By name", body = inline(Page<RailView>))),
)]
pub async fn rails(State(app): State<App>, _operator: Operator) -> Result<Page<RailView>, Problem> {
    let rails = app.rails.all().into_iter().map(|rail| {
        let about = rail.declaration.rail.clone();
        let tables = rail.declaration.tables.iter().map(|(name, terms)| TableView {
            name: name.clone(),
            is_there: rail.tables.contains_key(name),
            dated: terms.dated.clone(),
            source: terms.source.clone(),
        });
        let seeds = rail.declaration.seeds.iter();
        let seeds =
            seeds.map(|(name, it)| SeedView { name: name.clone(), title: it.title.clone() });
        let offered = [
            ("recipients", true),
            ("payouts", rail.code.makes_payouts()),
            ("recalls", rail.code.calls_off()),
            ("names", rail.code.resolves_names()),
            ("notices", rail.code.takes_notices()),
            ("files", rail.code.makes_files()),
        ];
        RailView {
            configuration: configuration(&rail.declaration),
            tables: tables.collect(),
            seeds: seeds.collect(),
            countries: about.countries,
            object: "rail",
            name: about.name,
            version: about.version,
            title: about.title,
            contract: about.contract,
            digest: rail.digest.clone(),
            state: "active",
            currencies: rail.declaration.currencies().iter().map(ToString::to_string).collect(),
            offers: offered.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect(),
        }
    });
    Ok(Page::whole(rails.collect()))
}
