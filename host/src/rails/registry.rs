//! The rails that are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::calendar::Calendar;
use crate::clock::Moment;
use crate::error::{ErrorCode, Problem};
use crate::money::Currency;
use crate::simulator::{Network, sandbox_keys};
use crate::wasm::keys::SimulatedKey;
use crate::wasm::module::{self, Kind, Module, Refused};
use crate::wasm::rail::{Access, Broken, CONTRACT, Field, Grant, RailCode, Violation};
use crate::wasm::simulator::{SimulatorCode, Size};
use crate::wasm::tables::ReferenceTable;
use crate::wasm::{CodeCache, Engines};

use super::declaration::{Declaration, Invalid, KeyTerms, Recipient};
use super::fields::{Block, RecipientFields, Shapes, refusal};
use super::methods::{Choice, Fit, MethodTerms};
use super::redact::Redactor;

/// A loaded rail.
pub struct Rail {
    /// What it declares.
    pub declaration: Declaration,
    /// What it does.
    pub code: RailCode,
    /// SHA-256 of its file.
    pub digest: String,
    /// Its file.
    pub component: Vec<u8>,
    /// Its reference tables, or the operator's in their place.
    pub tables: BTreeMap<String, Arc<ReferenceTable>>,
    /// Its own calendars.
    pub calendars: BTreeMap<String, Arc<Calendar>>,
    /// Masks its messages.
    pub redactor: Redactor,
    /// The other side of its network, if it brings it.
    pub network: Option<Network>,
    shapes: Shapes,
    /// What its calls reach that send nothing.
    pure: Arc<Access>,
}

/// Why a rail is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The component is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Its declaration is.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A reference table cannot be read.
    #[error("table {name}: {why}")]
    Table {
        /// The rail's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// Another rail has this name and version.
    #[error("a rail named {0} is loaded already")]
    Duplicate(String),
    /// What is an amount to one rail is another amount to the other.
    #[error(
        "amounts in {currency} have {} decimal places by the rail {}, and {} by the rail {}",
        .exponents[0], .rails[0], .exponents[1], .rails[1]
    )]
    Units {
        /// The currency that both serve.
        currency: Currency,
        /// Their names.
        rails: [String; 2],
        /// What each declares.
        exponents: [u8; 2],
    },
}

impl Rail {
    /// Loads a rail from its component. Tables in `tables_folder` (`<table>.csv`) stand in for
    /// those inside.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(
        engines: &Engines,
        cache: &CodeCache,
        bytes: &[u8],
        tables_folder: Option<&Path>,
    ) -> Result<Self, LoadError> {
        let module = Module::load(&engines.rails, cache, bytes, CONTRACT)?;
        let declaration = Declaration::read(&module.declaration)?;
        let code = RailCode::link(engines, &module)?;
        if (code.makes_payouts() || code.makes_files()) && !declaration.moves_money() {
            let why = "it makes payouts, and no call of it moves money";
            return Err(Invalid::Sense(why.to_owned()).into());
        }
        let mut tables = BTreeMap::new();
        for (name, terms) in &declaration.tables {
            let folder = tables_folder.map(|folder| folder.join(&declaration.rail.name));
            let operators = folder.map(|folder| folder.join(format!("{name}.csv")));
            let csv = operators.map_or(Ok(None), |path| supplied(&path, name))?;
            let Some(csv) = csv.as_ref().or_else(|| module.tables.get(name)) else { continue };
            let table = ReferenceTable::parse(csv);
            let table = table
                .map_err(|cause| LoadError::Table { name: name.clone(), why: cause.to_string() })?;
            if let Some(column) = terms.columns.iter().find(|column| !table.has_column(column)) {
                let why = format!("it has no column {column}");
                return Err(LoadError::Table { name: name.clone(), why });
            }
            tables.insert(name.clone(), Arc::new(table));
        }
        let calendars = calendars(&declaration, &module)?;
        let simulator = module.simulator.as_deref();
        let network = other_side((engines, cache), simulator, &declaration)?;
        let pure = Access {
            rail: declaration.rail.name.clone(),
            tables: tables.clone(),
            ..Access::default()
        };
        Ok(Self {
            pure: Arc::new(pure),
            redactor: Redactor::new(&declaration),
            network,
            shapes: Shapes::new(&declaration.recipient),
            digest: module.digest,
            component: bytes.to_vec(),
            declaration,
            code,
            tables,
            calendars,
        })
    }

    /// Takes a recipient block apart by the declared fields; the first that is missing or
    /// malformed is refused.
    ///
    /// # Errors
    /// `missing_field` or `invalid_field`, naming the field.
    pub fn take_recipient(
        &self,
        block: Block,
        sent: impl Fn(&str) -> Option<String>,
    ) -> Result<RecipientFields, Problem> {
        self.shapes.take(block, sent)
    }

    /// Refuses what is longer than a field of this rail may be, in a block that is for another.
    ///
    /// # Errors
    /// `invalid_field`, naming the field.
    pub fn refuse_long(&self, sent: impl Fn(&str) -> Option<String>) -> Result<(), Problem> {
        self.shapes.refuse_long(sent)
    }

    /// The canonical form of a recipient, from the component's answer.
    ///
    /// # Errors
    /// The first violation's code.
    pub fn canonical(
        &self,
        checked: Result<Vec<Field>, Vec<Violation>>,
        block: Block,
    ) -> Result<RecipientFields, Problem> {
        match checked {
            Ok(fields) => {
                Ok(RecipientFields::from_guest(fields).marked(&self.declaration.recipient))
            }
            Err(violations) => Err(refusal(&violations, |name| self.shapes.place(name, block))),
        }
    }

    /// Whether a recipient that another rail has made canonical is a canonical one of this rail, too.
    ///
    /// # Errors
    /// The component failed.
    pub async fn recognises(
        &self,
        (method, currency): (&str, Currency),
        recipient: &RecipientFields,
        now: Moment,
    ) -> Result<bool, Broken> {
        let given = |name: &str| {
            let found = recipient.own().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.clone())
        };
        let Ok(taken) = self.take_recipient(Block::Saved, given) else { return Ok(false) };
        let grant = self.pure_grant(now.millis());
        let called = self.code.check(&grant, (method, currency.as_str()), &taken.to_guest()).await;
        let canonical = self.canonical(called.result?, Block::Saved);
        Ok(canonical.is_ok_and(|canonical| canonical.own().eq(recipient.own())))
    }

    /// Whether the name on record replaces the one that was given.
    #[must_use]
    pub fn overwrites_names(&self) -> bool {
        self.declaration.names.as_ref().is_some_and(|names| names.overwrite)
    }

    /// Whether merchants are shown something of a payment once its network has taken it on.
    #[must_use]
    pub fn has_something_to_show(&self) -> bool {
        !self.declaration.shown.is_empty()
    }

    /// Whether a recipient has what each must have here to be told from others: another version of
    /// the rail, which names accounts otherwise, may have made it canonical.
    #[must_use]
    pub fn knows_the_account(&self, recipient: &RecipientFields) -> bool {
        let Recipient { identity, fields, .. } = &self.declaration.recipient;
        let mut required = fields.iter().filter(|field| field.required || field.required_inline);
        required
            .all(|field| !identity.contains(&field.name) || !recipient.get(&field.name).is_empty())
    }

    /// What makes the account of a canonical recipient the same as another one.
    #[must_use]
    pub fn account_fields(&self, recipient: &RecipientFields) -> String {
        let identity = &self.declaration.recipient.identity;
        identity.iter().map(|name| recipient.get(name)).collect::<Vec<_>>().join(":")
    }

    /// What keeps its recipients apart from those of other rails with the same accounts.
    #[must_use]
    pub fn shape(&self) -> Option<&str> {
        self.declaration.recipient.shape.as_deref()
    }

    /// A grant for pure calls: tables, and nothing to send to.
    #[must_use]
    pub fn pure_grant(&self, now_ms: u64) -> Arc<Grant> {
        Arc::new(Grant { access: Arc::clone(&self.pure), now_ms, ..Grant::default() })
    }
}

/// The calendars that a rail brings, each as its declaration names it.
fn calendars(
    declaration: &Declaration,
    module: &Module,
) -> Result<BTreeMap<String, Arc<Calendar>>, LoadError> {
    let read = |name: &String| {
        let csv = module.calendars.get(name).ok_or("it was not packed")?;
        let csv = std::str::from_utf8(csv).map_err(|_| "it is not text")?;
        Calendar::read(name, csv).map(Arc::new).map_err(|cause| cause.to_string())
    };
    let named = declaration.calendars.keys();
    named
        .map(|name| {
            let failed = |why| LoadError::Table { name: format!("calendars.{name}"), why };
            Ok((name.clone(), read(name).map_err(failed)?))
        })
        .collect()
}

/// A table that the operator has put beside the rail, if he has.
fn supplied(path: &Path, name: &str) -> Result<Option<Vec<u8>>, LoadError> {
    match std::fs::read(path) {
        Ok(csv) => Ok(Some(csv)),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => {
            let why = format!("{}: {cause}", path.display());
            Err(LoadError::Table { name: name.to_owned(), why })
        }
    }
}

/// The other side of the network of the rail in a component, if it is one and brings it; with the
/// rail's name. Nothing else of the rail is compiled.
///
/// # Errors
/// The component, its declaration or its simulator is refused.
pub fn network(
    engines: &Engines,
    cache: &CodeCache,
    bytes: &[u8],
) -> Result<Option<(String, Network)>, LoadError> {
    if Kind::of(bytes) != Kind::Rail {
        return Ok(None);
    }
    let sections = module::custom_sections(bytes)?;
    let declaration = Declaration::read(&sections.declaration)?;
    let network = other_side((engines, cache), sections.simulator.as_deref(), &declaration)?;
    Ok(network.map(|network| (declaration.rail.name, network)))
}

fn other_side(
    (engines, cache): (&Engines, &CodeCache),
    simulator: Option<&[u8]>,
    declaration: &Declaration,
) -> Result<Option<Network>, Refused> {
    let Some(bytes) = simulator else { return Ok(None) };
    let size = if declaration.files.is_some() { Size::File } else { Size::One };
    let code = SimulatorCode::load(engines, cache, (bytes, size));
    let code = code.map_err(|cause| Refused::Simulator(Box::new(cause)))?;
    let magic = declaration.scenarios.as_ref().map(|scenarios| scenarios.values.clone());
    let simulated =
        |terms: &KeyTerms| SimulatedKey { algorithm: terms.algorithm, pair: sandbox_keys() };
    let keys = declaration.keys.iter().map(|(name, terms)| (name.clone(), simulated(terms)));
    Ok(Some(Network {
        code: Arc::new(code),
        magic: Arc::new(magic.unwrap_or_default()),
        keys: Arc::new(keys.collect()),
    }))
}

/// All loaded rails: where several serve a currency, the first one's method is the default, and the
/// first that serves a method checks its recipients. Those come first that this database saw first,
/// so that a rail that is added changes nothing, whatever its file is called.
/// Calls that began with one go on with it when it is replaced.
#[derive(Default)]
pub struct Registry(ArcSwap<Vec<Arc<Rail>>>);

impl Registry {
    /// A registry of these rails.
    ///
    /// # Errors
    /// Two have the same name, or count a currency in units of their own.
    pub fn of(rails: Vec<Rail>) -> Result<Self, LoadError> {
        let mut names = BTreeSet::new();
        let mut places: BTreeMap<Currency, (u8, &str)> = BTreeMap::new();
        for rail in &rails {
            let name = &rail.declaration.rail.name;
            if !names.insert(name) {
                return Err(LoadError::Duplicate(name.clone()));
            }
            for MethodTerms { currency, exponent, .. } in &rail.declaration.methods {
                let (known, by) = *places.entry(*currency).or_insert((*exponent, name));
                if known != *exponent {
                    return Err(LoadError::Units {
                        currency: *currency,
                        rails: [by.to_owned(), name.clone()],
                        exponents: [known, *exponent],
                    });
                }
            }
        }
        Ok(Self(ArcSwap::from_pointee(rails.into_iter().map(Arc::new).collect())))
    }

    /// The other sides of their networks, by the rails' names.
    #[must_use]
    pub fn networks(&self) -> BTreeMap<String, Network> {
        let of =
            |rail: &Arc<Rail>| Some((rail.declaration.rail.name.clone(), rail.network.clone()?));
        self.0.load().iter().filter_map(of).collect()
    }

    /// Scenarios of their sandboxes, those of one network only among them.
    #[must_use]
    pub fn scenarios(&self) -> BTreeSet<String> {
        let rails = self.0.load();
        rails.iter().flat_map(|rail| rail.declaration.scenario_names()).cloned().collect()
    }

    /// The rail of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Rail>> {
        self.0.load().iter().find(|rail| rail.declaration.rail.name == name).cloned()
    }

    /// Every rail, in the order of loading.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Rail>> {
        self.0.load().to_vec()
    }

    /// The currency that a list is filtered by: one of the contract's, or one that a rail serves;
    /// empty for any.
    ///
    /// # Errors
    /// `invalid_filter`.
    pub fn filter(&self, currency: Option<String>) -> Result<String, Problem> {
        let Some(text) = currency else { return Ok(String::new()) };
        let is_served = || {
            let code = Currency::parse(&text);
            let rails = self.0.load();
            code.is_some_and(|code| rails.iter().any(|rail| rail.declaration.serves(code)))
        };
        if CONTRACT_CURRENCIES.contains(&text.as_str()) || is_served() {
            return Ok(text);
        }
        let known = CONTRACT_CURRENCIES.join(", ");
        let message = format!("currency must be one of {known}.");
        Err(Problem::because(ErrorCode::InvalidFilter, message).field("currency"))
    }

    /// Decimal places of a currency that a rail serves.
    #[must_use]
    pub fn exponent(&self, currency: Currency) -> Option<u8> {
        let rails = self.0.load();
        let mut methods = rails.iter().flat_map(|rail| &rail.declaration.methods);
        methods.find(|terms| terms.currency == currency).map(|terms| terms.exponent)
    }

    /// The same for amounts that are only shown: where its rail is not loaded any more, two, as most
    /// currencies have.
    #[must_use]
    pub fn places_shown(&self, currency: Currency) -> u8 {
        self.exponent(currency).unwrap_or(2)
    }

    /// A rail that serves this currency, and the method: the one that is named, or else the one that
    /// fits the recipient best.
    ///
    /// # Errors
    /// `currency_not_active` where no rail serves the currency, `invalid_field` where none serves
    /// the method, or the recipient is one of another method.
    pub fn serving(
        &self,
        currency: Currency,
        choice: Choice<'_>,
    ) -> Result<(Arc<Rail>, String), Problem> {
        let rails = self.all();
        let served = || rails.iter().filter(|rail| rail.declaration.serves(currency));
        // A recipient that names one method, and has what only another one's have.
        let refuse_shapes = |home: &Rail, which: (&str, &Choice<'_>)| {
            let mut others = served().map(|other| (&other.declaration, currency));
            others.try_for_each(|other| home.declaration.refuse_shape_of(other, which))
        };
        let Some(named) = choice.method else {
            let selected =
                served().filter_map(|r| Some((r, r.declaration.selected(currency, &choice)?)));
            let best = selected.min_by_key(|(_, (fit, _))| *fit);
            let (rail, (fit, terms)) = best.ok_or_else(|| unsupported(currency))?;
            if fit == Fit::Named {
                refuse_shapes(rail, (terms.name.as_str(), &choice))?;
            }
            return Ok((Arc::clone(rail), terms.name.clone()));
        };
        let Some(home) = self.home(currency, named) else {
            served().next().ok_or_else(|| unsupported(currency))?;
            let message = format!("{named} is not a method of {currency}.");
            return Err(Problem::because(ErrorCode::InvalidField, message).field("method"));
        };
        refuse_shapes(&home, (named, &choice))?;
        Ok((home, named.to_owned()))
    }

    /// The rail that checks recipients of this method: the first that serves it. Others that serve
    /// it too carry its payments where the first cannot.
    #[must_use]
    pub fn home(&self, currency: Currency, method: &str) -> Option<Arc<Rail>> {
        let rails = self.0.load();
        rails.iter().find(|rail| rail.declaration.method(currency, method).is_some()).cloned()
    }
}

/// The currencies of the contract, whether a rail serves them yet or not.
const CONTRACT_CURRENCIES: [&str; 7] = ["NGN", "GBP", "USD", "EUR", "CAD", "GHS", "KES"];

fn unsupported(currency: Currency) -> Problem {
    let message = format!("{currency} is not a currency that can be paid here.");
    Problem::because(ErrorCode::CurrencyNotActive, message).field("currency")
}
