//! What was booked by mistake and put right, and statements in several files.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};

use crate::live::{pay, until, with_bank};
use crate::notices::{RIGHT, deliver, status};
use crate::seams::{mark, marked_while_unknown, resolve, until_case};
use crate::test_host::{DESK_TOKEN, Engine, OPERATOR_TOKEN, TestHost};

use super::{DAY, adjust, camt, of_charge, own_account, reconcile};

/// Pages of one statement are files of their own: what looks alike in two of them happened twice.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn pages_lose_nothing_and_the_same_page_counts_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let charge = ":61:2611211121D10,00NCHGNONREF\r\n:86:SMS CHARGE\r\n";
        let page = |opening: &str, count: usize, closing: &str| {
            let entries = charge.repeat(count);
            format!(":20:S1\r\n:25:0123456785\r\n:60{opening}\r\n{entries}:62{closing}\r\n-\r\n")
        };
        let first = page("F:C261120NGN1000,00", 2, "M:C261121NGN980,00");
        let second = page("M:C261121NGN980,00", 1, "F:C261121NGN970,00");
        let path = host.database.folder.path().join("second.sta");
        let other = path.display().to_string();
        std::fs::write(&path, &second).expect("written");
        for more in [vec![other.as_str()], vec![other.as_str(), other.as_str()]] {
            let (_, said) = reconcile(host, &first, &more);
            assert!(said.contains("0 of 3 entries"), "{said}");
            assert!(said.contains("At the bank only: 3, -30.00 in total"), "{said}");
            assert!(!said.contains("does not add up"), "{said}");
        }
        // Where the balances do not say that one follows the other, they say what is missing.
        std::fs::write(&path, second.replace("M:C261121", "M:C261120")).expect("written");
        let (_, said) = reconcile(host, &first, &[&other]);
        assert!(said.contains("0 of 2 entries"), "{said}");
        assert!(said.contains("does not add up: entries of -10.00 are missing"), "{said}");
    })
    .await;
}

/// The bank has never executed it, and knows nothing of what is done about that.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_by_mistake_and_put_right_is_not_left_over(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, bank| {
        let id = pay(host, "0123456785").await.ok().id();
        until(host, &id, "paid").await;
        let (is_clean, said) = reconcile(host, &camt(&[]), &[]);
        assert!(!is_clean && said.contains("In the books only: 1"), "{said}");
        mark(host, "mark_failed", &id).await.ok();
        let (is_clean, said) = reconcile(host, &camt(&[]), &[]);
        assert!(is_clean && said.contains("0 of 0 entries"), "{said}");
        // Marked as paid, refused by the network, given back.
        let (_, marked) = marked_while_unknown(host, "mark_paid").await;
        bank.control(&marked, "fail").await.ok();
        deliver(host, ("live", RIGHT), &status(&marked, "05")).await.ok();
        let case = until_case(host, "refused_after_payment").await;
        resolve(host, &case, "give_back").await.ok();
        let (is_clean, said) = reconcile(host, &camt(&[]), &[]);
        assert!(is_clean && said.contains("0 of 0 entries"), "{said}");
    })
    .await;
}

/// Two operators, one after the other: what the second one is answered.
async fn by_two(host: &TestHost, changes: &Value) -> Value {
    let mut made = Value::Null;
    for token in [DESK_TOKEN, OPERATOR_TOKEN] {
        made = adjust(host, token, of_charge(changes.clone())).await.ok().json;
    }
    made
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn an_adjusting_entry_goes_by_its_reference_and_by_its_id_and_is_taken_back_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_bank(engine, async |host, _| {
        let made = by_two(host, &json!({})).await;
        let (is_clean, said) = reconcile(host, &camt(&[]), &[]);
        assert!(!is_clean && said.contains("FT0042  settlement_adjustment"), "{said}");
        let by_id = json!({ "direction": "received", "reference": made["id"] });
        let by_reference = json!({ "direction": "received" });
        by_two(host, &by_id).await;
        let (is_clean, said) = reconcile(host, &camt(&[]), &[]);
        assert!(is_clean && said.contains("0 of 0 entries"), "{said}");
        let twice = adjust(host, DESK_TOKEN, of_charge(by_id.clone())).await;
        assert_eq!(twice.refused(), (409, "state_conflict"));
        // It is taken in again, taken back under its reference, and then not by its id.
        by_two(host, &json!({})).await;
        by_two(host, &by_reference).await;
        let other_name = adjust(host, DESK_TOKEN, of_charge(by_id)).await;
        assert_eq!(other_name.refused(), (409, "state_conflict"));
        // Of two who take it back, each under another name, one does: whoever agreed to the other
        // one meant what is taken back by now.
        for at_once in [false, true] {
            let made = by_two(host, &json!({})).await;
            let by_id = of_charge(json!({ "direction": "received", "reference": made["id"] }));
            let by_reference = of_charge(by_reference.clone());
            for act in [&by_id, &by_reference] {
                assert_eq!(adjust(host, DESK_TOKEN, act.clone()).await.ok().status, 202);
            }
            let (one, other) = if at_once {
                let [one, other] =
                    [by_id, by_reference].map(|act| adjust(host, OPERATOR_TOKEN, act));
                futures::join!(one, other)
            } else {
                let one = adjust(host, OPERATOR_TOKEN, by_id).await;
                (one, adjust(host, OPERATOR_TOKEN, by_reference).await)
            };
            let mut statuses = [one.status, other.status];
            statuses.sort_unstable();
            let is_one = if at_once {
                [[201, 202], [201, 409]].contains(&statuses)
            } else {
                statuses == [201, 202]
            };
            assert!(is_one, "{} {}", one.text, other.text);
        }
        let (is_clean, said) = reconcile(host, &camt(&[]), &[]);
        assert!(is_clean && said.contains("0 of 0 entries"), "{said}");
        assert_eq!(own_account(host, "bank_charges").await, 0);
        let path = format!("/admin/v1/settlement_entries?route=ngn_nip&from={DAY}");
        let told = host.send(Method::GET, &path, OPERATOR_TOKEN, &[], None).await.ok();
        let names = format!("\"references\":[\"FT0042\",{}]", made["id"]);
        assert!(told.text.contains(&names), "{}", told.text);
    })
    .await;
}
