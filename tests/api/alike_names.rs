//! A network that tells whose account it is, of a rail that does not put that name in place of the
//! one that was given: how alike the two have to be.

use http::Method;
use railhead::config::Config;
use rstest::rstest;
use serde_json::{Value, json};

use crate::repacked;
use crate::test_host::{Engine, naira, with, with_host_configured};

/// The account of Halima Musa, says the simulated bank.
fn to(name: &str) -> Value {
    let recipient = json!({ "account_number": "0123456785", "bank_code": "058", "name": name });
    with(naira(100_000), json!({ "recipient": recipient }))
}

/// A name that is too unlike is refused, and the one on the account is told; one that is alike
/// enough is paid as it was given.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_to_be_as_alike_as_the_rail_declares(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let alike = ("overwrite = true", "overwrite = false\nalike_at_least = 80");
    let folder = repacked::folder("nip", &[alike]);
    let change = |config: &mut Config| config.modules.dir = Some(folder.path().to_owned());
    with_host_configured(engine, change, async |host| {
        // Another name, one word of several, and one of two names.
        for name in ["Peter Miller", "Halima", "Musa Bello"] {
            let refused = host.pay("", to(name)).await;
            assert_eq!(refused.refused(), (422, "name_mismatch"), "{name}");
            assert_eq!(refused.field(), "recipient.name", "{name}");
            assert!(refused.text.contains("HALIMA MUSA"), "{}", refused.text);
        }
        assert_eq!(host.count("SELECT COUNT(*) FROM payouts").await, 0);
        assert_eq!(host.balance(&host.merchant.test_wallet).await, 100_000_000);
        // The order does not matter, and a letter too many hardly does.
        for name in ["Halima Musa", "MUSA, HALIMA", "Halima Mussa"] {
            let paid = host.pay("", to(name)).await.ok();
            assert_eq!((paid.status_word(), &paid.json["recipient_name"]), ("paid", &json!(name)));
        }
        // What was found alike once says nothing of another name.
        let refused = host.pay("", to("Peter Miller")).await;
        assert_eq!(refused.refused(), (422, "name_mismatch"));
    })
    .await;
}

/// A recipient that was deleted comes back by a payment under another name, and what was said of
/// that name says nothing of the one that it was saved with.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_that_comes_back_is_known_by_no_other_name(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let alike = ("overwrite = true", "overwrite = false\nalike_at_least = 80");
    let folder = repacked::folder("nip", &[alike]);
    let change = |config: &mut Config| config.modules.dir = Some(folder.path().to_owned());
    with_host_configured(engine, change, async |host| {
        let mut saved = to("Peter Miller")["recipient"].clone();
        saved["currency"] = json!("NGN");
        let saved = host.post("/v1/beneficiaries", saved).await;
        assert_eq!(saved.status, 201, "{}", saved.text);
        let path = format!("/v1/beneficiaries/{}", saved.id());
        host.send(Method::DELETE, &path, &host.merchant.test_key, &[], None).await.ok();
        assert_eq!(host.pay("", to("Halima Musa")).await.ok().status_word(), "paid");
        let back = host.get(&path).await.ok();
        assert_eq!(
            (&back.json["name"], &back.json["verification"]),
            (&json!("Peter Miller"), &json!("pending"))
        );
        let by_id =
            with(naira(100_000), json!({ "beneficiary_id": saved.id(), "recipient": null }));
        for body in [to("Peter Miller"), by_id] {
            assert_eq!(host.pay("", body).await.refused(), (422, "name_mismatch"));
        }
    })
    .await;
}

/// A rail that declares no likeness takes any name for the one on the account.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn without_a_likeness_any_name_is_paid(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let folder = repacked::folder("nip", &[("overwrite = true", "overwrite = false")]);
    let change = |config: &mut Config| config.modules.dir = Some(folder.path().to_owned());
    with_host_configured(engine, change, async |host| {
        let paid = host.pay("", to("Peter Miller")).await.ok();
        assert_eq!(paid.status_word(), "paid");
        assert_eq!(paid.json["recipient_name"], "Peter Miller");
    })
    .await;
}
