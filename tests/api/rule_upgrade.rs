//! What becomes of decisions when the binary changes under them, or a pack is lost.

use railhead::config::{Config, OnFailure};
use railhead::start::{Sources, start};
use rstest::rstest;
use secrecy::SecretString;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::packs::{adopt, assign, decision, fees, guard, push, restart, shown};
use crate::test_host::{Database, Engine, TestHost, config, naira, with_host};

/// Does what an operator's tool, an accident or another binary could do.
async fn change(host: &TestHost, sql: &str) {
    let statement = sqlx::query(AssertSqlSafe(sql.to_owned()));
    let done = statement.execute(host.app().db.pool()).await.expect(sql);
    assert!(done.rows_affected() > 0, "{sql}");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn where_a_pack_is_lost_the_host_starts_and_the_setting_decides(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
    #[values(OnFailure::Closed, OnFailure::Open)] setting: OnFailure,
    // Base64 of no component, and of none of that digest.
    #[values("AAAA", "")] component: &str,
) {
    let (status, action) = match setting {
        OnFailure::Closed => ("awaiting_admin_review", "hold"),
        OnFailure::Open => ("paid", "allow"),
    };
    with_host(engine, async |host| {
        let large = [("large", "block", "amount_minor > 500000")];
        adopt(host, &guard("1", "amount_minor", &large)).await;
        adopt(host, &guard("2", "amount_minor", &large)).await;
        let lost = match component {
            "" => "(SELECT component FROM rule_packs WHERE id = 'guard/1')".to_owned(),
            text => format!("'{text}'"),
        };
        let sql = "SELECT component FROM rule_packs WHERE id = 'guard/2'";
        let pool = host.app().db.pool();
        let whole: String = sqlx::query_scalar(sql).fetch_one(pool).await.expect("a component");
        let sql = format!("UPDATE rule_packs SET component = {lost} WHERE id = 'guard/2'");
        change(host, &sql).await;
        restart(host, |config| config.rules.on_failure = setting).await;
        let paid = host.pay("paid", naira(100_000)).await.ok();
        assert_eq!(paid.status_word(), status);
        let why = decision(host, &paid.id()).await;
        assert_eq!((&why["pack"], &why["action"]), (&Value::Null, &json!(action)), "{why}");
        let hit = (&why["hits"][0]["label"], &why["hits"][0]["action"]);
        assert_eq!(hit, (&json!("rules_failed"), &json!(action)));
        let failure = why["failure"].as_str().expect("why");
        assert!(failure.starts_with("guard 2 is missing: "), "{failure}");
        // The way back is open.
        assign(host, "guard/1", "rollback", json!({})).await.ok();
        assert_eq!(host.pay("paid", naira(100_000)).await.ok().status_word(), "paid");
        let refused = host.pay("paid", naira(600_000)).await;
        assert_eq!(refused.refused(), (422, "fraud_rule_blocked"));
        // Whoever proves the books would notice.
        let sql = "UPDATE rule_packs SET component = $1 WHERE id = 'guard/2'";
        let found = sqlx::query(sql).bind(whole).execute(host.app().db.pool()).await;
        found.expect("put back");
    })
    .await;
}

/// Another binary carries another fee pack of the same version.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn another_binary_changes_no_prices(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        push(host, &fees("1", "[[price]]\ntiers = [{ flat_minor = 7 }]\n")).await.ok();
        let built_in = shown(host, "fees/0.1.0").await["digest"].clone();
        for column in ["digest", "component"] {
            let sql = format!(
                "UPDATE rule_packs SET {column} = \
                 (SELECT {column} FROM rule_packs WHERE id = 'prices/1') WHERE id = 'fees/0.1.0'"
            );
            change(host, &sql).await;
        }
        restart(host, |_| {}).await;
        let paid = host.pay("paid", naira(100_000)).await.ok();
        assert_eq!(paid.json["fee_minor"], "7", "{}", paid.text);
        assert_eq!(shown(host, "fees/0.1.0").await["state"], "active");
        let listed = format!("fees/0.1.0+{}", &built_in.as_str().expect("a digest")[..8]);
        let beside = shown(host, &listed).await;
        assert_eq!((&beside["state"], &beside["digest"]), (&json!("checked"), &built_in));
        assign(host, &listed, "activate", json!({})).await.ok();
        let paid = host.pay("paid", naira(100_001)).await.ok();
        assert_ne!(paid.json["fee_minor"], "7", "{}", paid.text);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_who_cannot_be_told_apart_stop_the_start() {
    let named = |names: &'static [(&'static str, &'static str)]| {
        move |config: &mut Config| {
            for (name, token) in names {
                config.admin.operators.insert((*name).into(), SecretString::from(*token));
            }
        }
    };
    let alone = |config: &mut Config| {
        config.admin.operators.clear();
        config.approvals.two_people = vec![railhead::config::ApprovalAct::RulePack];
    };
    let too_many = |config: &mut Config| {
        config.approvals.tiers = vec![railhead::config::ApprovalTier {
            act: railhead::config::ApprovalAct::Mark,
            currency: "NGN".into(),
            above_minor: 1,
            people: 3,
        }];
    };
    let refused = async |change: &dyn Fn(&mut Config)| {
        let database = Database::new(Engine::Sqlite).await;
        let mut config = config(&database);
        change(&mut config);
        let sources = Sources::system().expect("sources");
        start(config, sources).await.err().expect("a refusal").to_string()
    };
    for (change, word) in [
        (&named(&[("host", "a token of its own")]) as &dyn Fn(&mut Config), "is taken"),
        (&named(&[("operator", "a token of its own")]), "is taken"),
        (&named(&[("ada", "short")]), "16 characters at least"),
        (&named(&[("ada", "the very same token"), ("ben", "the very same token")]), "one operator"),
        (&alone, "needs a second operator"),
        (&too_many, "3 people are more than there are operators"),
        (&named(&[("mem_ada", "a token of its own")]), "is taken"),
    ] {
        let why = refused(change).await;
        assert!(why.contains(word), "{word}: {why}");
    }
}
