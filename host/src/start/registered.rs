//! The rails of a host: in which order, with which routes, and that they count as the books do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::clock::Clock;
use crate::db::Db;
use crate::db::bulk::Write;
use crate::env::Env;
use crate::id::IdGenerator;
use crate::rails::methods::MethodTerms;
use crate::rails::{Rail, Registry, Route, seeded_name, sql};

use super::StartError;

/// The rails that were loaded, those first that this database saw first, each with its routes.
pub(super) async fn registered(
    mut rails: Vec<Rail>,
    db: &Db,
    (ids, clock): (&IdGenerator, &Clock),
) -> Result<Arc<Registry>, StartError> {
    let seen = sql::list_first_seen(db.pool()).await?;
    rails.sort_by_key(|rail| seen.get(&rail.declaration.rail.name).copied().unwrap_or(i64::MAX));
    let rails = Arc::new(Registry::of(rails)?);
    refuse_other_exponents(db, &rails).await?;
    seed_routes(db, &rails, ids, clock).await?;
    Ok(rails)
}

/// Amounts are whole numbers of a unit: whoever counts in another one than the books would pay a
/// hundred times as much, or a hundredth. What is new is remembered.
async fn refuse_other_exponents(db: &Db, rails: &Registry) -> Result<(), StartError> {
    let known = sql::list_exponents(db.pool()).await?;
    let rails = rails.all();
    let terms = rails.iter().flat_map(|rail| {
        let name = &rail.declaration.rail.name;
        rail.declaration.methods.iter().map(move |terms| (name, terms))
    });
    let mut new = BTreeMap::new();
    for (rail, MethodTerms { currency, exponent, .. }) in terms {
        match known.get(currency.as_str()) {
            Some(places) if places == exponent => {}
            Some(places) if sql::has_wallets(db.pool(), *currency).await? => {
                return Err(format!(
                    "amounts in {currency} have {places} decimal places in this database, and \
                     {exponent} by the rail {rail}: load one that counts as the books do"
                )
                .into());
            }
            _ => _ = new.insert(*currency, *exponent),
        }
    }
    if new.is_empty() {
        return Ok(());
    }
    let mut tx = db.write().await?;
    for (currency, exponent) in new {
        sql::update_exponent(&mut tx, currency, exponent).await?;
    }
    Ok(tx.commit().await?)
}

/// A method of a rail that this database sees for the first time gets a route in each environment.
/// What an operator deletes later stays deleted.
async fn seed_routes(
    db: &Db,
    rails: &Registry,
    ids: &IdGenerator,
    clock: &Clock,
) -> Result<(), StartError> {
    let known = sql::list_routes(db.pool()).await?;
    let seen = sql::list_seeded(db.pool()).await?;
    warn_of_unserved(&known, rails);
    let names = known.iter().map(|route| (route.name.clone(), route.rail.clone()));
    let mut taken: HashMap<String, String> = names.collect();
    let (mut marks, mut rows) = (Vec::new(), Vec::new());
    for rail in rails.all() {
        let name = &rail.declaration.rail.name;
        for MethodTerms { name: method, currency, .. } in &rail.declaration.methods {
            let mark = format!("{name}/{currency}/{method}");
            if seen.contains(&mark) {
                continue;
            }
            marks.push(mark);
            let is_its =
                |it: &Route| (&it.rail, it.currency, &it.method) == (name, *currency, method);
            if known.iter().any(is_its) {
                continue;
            }
            let route = seeded_name(currency.as_str(), method);
            if let Some(other) = taken.insert(route.clone(), name.clone()) {
                let advice = "make one: railhead admin route create";
                tracing::warn!(rail.name = name, method, other, advice, "no route leads over it");
                taken.insert(route, other);
                continue;
            }
            for env in [Env::Test, Env::Live] {
                let now = clock.now();
                rows.push(sql::ROUTES.row(&Route {
                    id: ids.id(),
                    name: route.clone(),
                    env,
                    currency: *currency,
                    method: method.clone(),
                    rail: name.clone(),
                    position: 0,
                    is_paused: false,
                    merchants: Vec::new(),
                    settings: BTreeMap::new(),
                    created_at: now,
                    updated_at: now,
                }));
            }
        }
    }
    let turn = db.turn().await;
    let mut native = db.native().await?;
    // All of them or none: a rail that has one route is not given another.
    native.begin().await?;
    native.write(&[Write::Rows(&sql::ROUTES, &rows)]).await?;
    native.commit().await?;
    native.close().await;
    drop(turn);
    // Only now: a start that was cut off before makes them again, and none of them twice.
    let mut tx = db.write().await?;
    for mark in &marks {
        sql::insert_seeded(&mut tx, mark).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Routes that no rail serves any more.
fn warn_of_unserved(known: &[Route], rails: &Registry) {
    for Route { name, rail, currency, method, .. } in known {
        match rails.get(rail) {
            None => {
                tracing::warn!(
                    route.name = name,
                    rail,
                    "its rail is not loaded: nobody sends or asks"
                );
            }
            Some(loaded) if loaded.declaration.method(*currency, method).is_none() => {
                tracing::warn!(route.name = name, rail, method, "its rail has no such method");
            }
            Some(_) => {}
        }
    }
}
