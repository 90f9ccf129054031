//! Reports: what they show adds up to the ledger, in whatever timezone, as JSON, CSV and workbook.

use std::collections::BTreeMap;

use calamine::{Data, Reader as _, Xlsx};
use http::Method;
use railhead::clock::{Clock, Moment};
use railhead::id::{Id as _, IdGenerator, WalletId};
use railhead::ledger::wallets::{Span, balance_before, list_span};
use railhead::money::Minor;
use rstest::rstest;
use serde_json::{Value, json};

use crate::test_host::{Answer, Engine, TestHost, naira, with, with_host};

const TYPES: [&str; 6] =
    ["payouts", "funding", "cashflow", "fees", "bank_statement", "failed_payouts"];

async fn report(host: &TestHost, query: &str) -> Answer {
    host.get(&format!("/v1/reports/{query}")).await
}

fn rows(answer: &Answer) -> &Vec<Value> {
    answer.json["data"].as_array().unwrap_or_else(|| panic!("no rows: {}", answer.text))
}

/// An amount of a row.
fn minor(row: &Value, name: &str) -> i64 {
    let text = row[name].as_str().unwrap_or_else(|| panic!("no {name}: {row}"));
    text.parse().expect("an amount")
}

fn sum(answer: &Answer, name: &str) -> i64 {
    rows(answer).iter().map(|row| minor(row, name)).sum()
}

/// A CSV file, row by row.
fn table(answer: &Answer) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(answer.text.as_bytes());
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

async fn set_timezone(host: &TestHost, timezone: &str) {
    let path = format!("merchants/{}", host.merchant.id);
    host.admin(Method::PATCH, &path, json!({ "timezone": timezone })).await.ok();
}

/// A history that dice have made: credits, debits, payouts that end in every way.
async fn history(host: &TestHost, seed: u64, steps: usize) {
    let dice = IdGenerator::seeded(Clock::System, seed);
    let throw = |sides: u64| dice.below(sides);
    for _ in 0..steps {
        host.advance(600 + throw(40_000));
        let amount = 100_000 + throw(1_500_000);
        match throw(8) {
            0 => host.credit(&host.merchant.test_wallet, amount).await,
            1 => {
                let body = json!({ "currency": "NGN", "amount_minor": amount.to_string() });
                host.post("/v1/sandbox/fund", body).await.ok();
            }
            2 => {
                let path = format!("wallets/{}/debit", host.merchant.test_wallet);
                let body = json!({ "amount_minor": "777", "reason": "a test" });
                host.admin(Method::POST, &path, body).await.ok();
            }
            3 => drop(host.pay("failed", naira(amount)).await.ok()),
            4 => drop(host.pay("returned", naira(amount)).await.ok()),
            5 => drop(host.pay("processing", naira(amount)).await.ok()),
            _ => drop(host.pay("paid", naira(amount)).await.ok()),
        }
    }
}

/// Statements are read in portions that may end in the middle of a journal.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn entries_are_found_in_the_middle_of_journals(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        for scenario in ["paid", "failed", "paid"] {
            // Three entries: of a million kobo a levy is taken.
            host.pay(scenario, naira(1_000_000)).await.ok();
        }
        let (pool, wallet) =
            (host.app().db.pool(), WalletId::from_text(host.merchant.test_wallet.clone()));
        let read = async |from: i64, to: i64, limit: i64| {
            list_span(pool, &wallet, (Span { from, to }, limit)).await.expect("entries")
        };
        let sql = format!("SELECT seq FROM wallets WHERE id = '{wallet}'");
        let end = host.count(&sql).await + 1;
        let whole = read(1, end, 1_000).await;
        let numbers: Vec<i64> = whole.iter().map(|entry| entry.seq).collect();
        assert_eq!(numbers, (1..end).collect::<Vec<_>>());
        assert!(end > 12, "{end}");
        for limit in 1..=4 {
            let (mut from, mut pages) = (1, Vec::new());
            while from < end {
                pages.extend(read(from, end, limit).await.into_iter().map(|entry| entry.seq));
                from = pages.last().expect("a page that is not empty") + 1;
            }
            assert_eq!(pages, numbers, "{limit} at a time");
        }
        for to in 1..=end {
            let last = read(1, to, 1_000).await.last().map_or(0, |entry| entry.seq);
            assert_eq!(last, to - 1, "to {to}");
        }
        for entry in whole {
            let before = balance_before(pool, &wallet, entry.seq + 1).await.expect("a balance");
            assert_eq!(before, entry.balance_after, "after {}", entry.seq);
        }
        assert_eq!(balance_before(pool, &wallet, 1).await.expect("none"), Minor::ZERO);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn every_report_adds_up_to_the_ledger_in_every_timezone(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        // Across the night in which Lord Howe's clocks went, before Lagos' year ends.
        history(host, 7, 60).await;
        let wallet = &host.merchant.test_wallet;
        let of = |condition: &str| {
            format!(
                "SELECT CAST(COALESCE(SUM(amount_minor), 0) AS BIGINT) FROM entries \
                 WHERE wallet_id = '{wallet}' AND {condition}"
            )
        };
        let balance = host.balance(wallet).await;
        let fees = -host.count(&of("source IN ('payout_fee', 'payout_fee_reversal')")).await;
        let funded = of("amount_minor > 0 AND source IN ('admin_credit', 'demo_self_fund')");
        let funded = host.count(&funded).await;
        assert!(fees > 0 && funded > 100_000_000);
        for timezone in ["Africa/Lagos", "America/New_York", "Australia/Lord_Howe"] {
            set_timezone(host, timezone).await;
            let all = "from=2026-11-01&to=2027-03-01&currency=NGN";
            let cashflow = report(host, &format!("cashflow?{all}")).await.ok();
            assert_eq!(cashflow.json["range"]["timezone"], timezone);
            assert_eq!(sum(&cashflow, "net_minor"), balance);
            let inflow = sum(&cashflow, "inflow_minor");
            assert_eq!(inflow - sum(&cashflow, "outflow_minor"), balance);
            let paid = report(host, &format!("fees?{all}")).await.ok();
            assert_eq!(sum(&paid, "fee_minor") + sum(&paid, "tax_minor"), fees);
            let funding = report(host, &format!("funding?{all}")).await.ok();
            assert_eq!(sum(&funding, "amount_minor"), funded);
            let payouts = report(host, &format!("payouts?{all}")).await.ok();
            let made: i64 = ["paid_count", "failed_count", "in_flight_count", "cancelled_count"]
                .iter()
                .flat_map(|name| rows(&payouts).iter().filter_map(move |row| row[*name].as_i64()))
                .sum();
            assert_eq!(made, host.count("SELECT COUNT(*) FROM payouts").await);
            let statement = report(host, &format!("bank_statement?{all}")).await.ok();
            assert_eq!(statement.json["opening_balance_minor"], "0");
            assert_eq!(minor(&statement.json, "closing_balance_minor"), balance);
            prove_days(host, (&cashflow, &statement)).await;
        }
    })
    .await;
}

/// Each day has the entries of that day, and one statement begins where the one before ended.
async fn prove_days(host: &TestHost, (cashflow, whole): (&Answer, &Answer)) {
    let mut entries = rows(whole).iter();
    let mut balance = 0;
    for row in rows(cashflow) {
        let day = row["day"].as_str().expect("a day");
        let query = format!("bank_statement?from={day}&to={day}&currency=NGN");
        let statement = report(host, &query).await.ok();
        assert_eq!(minor(&statement.json, "opening_balance_minor"), balance, "{day}");
        for entry in rows(&statement) {
            assert_eq!(entries.next(), Some(entry), "{day}");
            let sign = if entry["direction"] == "credit" { 1 } else { -1 };
            balance += sign * minor(entry, "amount_minor");
            assert_eq!(minor(entry, "balance_after_minor"), balance);
        }
        assert_eq!(minor(&statement.json, "closing_balance_minor"), balance, "{day}");
        let counts = ["inflow_count", "outflow_count"].map(|name| row[name].as_u64());
        let counted: u64 = counts.into_iter().flatten().sum();
        assert_eq!(counted, rows(&statement).len() as u64, "{day}");
    }
    assert_eq!(entries.next(), None, "every entry has its day");
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_the_merchants_day(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        // 23:30 UTC is the next day in Lagos, and not in New York.
        host.advance(14 * 3600 + 1800);
        assert_eq!(host.clock.now(), Moment::parse("2026-11-21T23:30:00Z").expect("an instant"));
        let paid = host.pay("paid", naira(100_000)).await.ok();
        for (timezone, day) in [("Africa/Lagos", "2026-11-22"), ("America/New_York", "2026-11-21")]
        {
            set_timezone(host, timezone).await;
            let payouts = report(host, "payouts").await.ok();
            assert_eq!(rows(&payouts).len(), 1);
            let row = &rows(&payouts)[0];
            assert_eq!(row["day"], day);
            assert_eq!(row["paid_count"], 1);
            assert_eq!(row["paid_amount_minor"], "100000");
            assert_eq!(payouts.json["report_type"], "payouts");
            assert_eq!(payouts.json["range"]["to"], day);
        }
        let fees = report(host, "fees").await.ok();
        let row = &rows(&fees)[0];
        for (name, value) in [
            ("applies_to", "payout_single"),
            ("fee_minor", paid.json["fee_minor"].as_str().expect("a fee")),
            ("tax_minor", paid.json["tax_minor"].as_str().expect("a tax")),
        ] {
            assert_eq!(row[name], value);
        }
        let none = report(host, "payouts?from=2026-10-01&to=2026-10-02").await.ok();
        assert_eq!(rows(&none).len(), 0);
        let none = report(host, "payouts?currency=GBP").await.ok();
        assert_eq!(rows(&none).len(), 0);
        // Live has books of its own.
        let live = host.get_as(&host.merchant.live_key, "/v1/reports/payouts").await.ok();
        assert_eq!(rows(&live).len(), 0);
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn files_have_the_same_rows_in_major_units(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        history(host, 11, 25).await;
        let note = "=HYPERLINK(\"http://x\",\"1\")";
        let path = format!("wallets/{}/credit", host.merchant.test_wallet);
        host.admin(Method::POST, &path, json!({ "amount_minor": "5", "reason": note })).await.ok();
        for name in TYPES {
            let query = format!("{name}?currency=NGN&from=2026-11-01&to=2027-03-01");
            let shown = report(host, &query).await.ok();
            let file = report(host, &format!("{query}&format=csv")).await.ok();
            assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
            let disposition = &file.headers["content-disposition"];
            assert!(disposition.starts_with("attachment; filename=\""), "{disposition}");
            assert!(disposition.contains(name) && disposition.contains("2027-03-01.csv"));
            let mut lines = table(&file);
            if name == "bank_statement" {
                let closing = lines.pop().expect("a closing row");
                let opening = lines.remove(0);
                assert_eq!(opening["description"], "OPENING BALANCE");
                assert_eq!(opening["balance_after"], "0.00");
                assert_eq!(closing["description"], "CLOSING BALANCE");
                let balance = minor(&shown.json, "closing_balance_minor");
                assert_eq!(closing["balance_after"], major(balance));
            }
            assert_eq!(lines.len(), rows(&shown).len(), "{name}");
            for (line, row) in lines.iter().zip(rows(&shown)) {
                let members = row.as_object().expect("a row");
                assert_eq!(line.len(), members.len(), "{name}: every member has a column");
                for (member, value) in members {
                    let column = member.strip_suffix("_minor").unwrap_or(member);
                    let wanted = match value {
                        Value::Null => String::new(),
                        Value::String(text) if column != member => {
                            major(text.parse().expect("digits"))
                        }
                        Value::String(text) if text.starts_with('=') => format!("'{text}"),
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    assert_eq!(line[column], wanted, "{name}.{member}");
                }
            }
        }
    })
    .await;
}

fn major(units: i64) -> String {
    let sign = if units < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", units.abs() / 100, units.abs() % 100)
}

/// A workbook, as another program reads it.
async fn sheet(host: &TestHost, query: &str) -> Value {
    let url = format!("{}/v1/reports/{query}", host.base);
    let response = host.client.get(url).bearer_auth(&host.merchant.test_key).send().await;
    let response = response.expect("an answer");
    assert!(response.status().is_success(), "{}", response.status());
    let kind = response.headers()["content-type"].to_str().expect("a type").to_owned();
    assert!(kind.contains("spreadsheetml"), "{kind}");
    let bytes = response.bytes().await.expect("a file");
    let mut book = Xlsx::new(std::io::Cursor::new(bytes.to_vec())).expect("a workbook");
    let name = book.sheet_names()[0].clone();
    let range = book.worksheet_range(&name).expect("a sheet");
    let rows = range.rows().map(|row| {
        let cells = row.iter().map(|cell| match cell {
            Data::Empty => Value::Null,
            Data::Float(number) => json!(number),
            Data::Int(number) => json!(number),
            Data::Bool(flag) => json!(flag),
            other => json!(other.to_string()),
        });
        Value::Array(cells.collect())
    });
    Value::Array(rows.collect())
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn workbooks_are_read_by_other_programs(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        host.pay("failed", naira(123_456)).await.ok();
        host.pay("paid", with(naira(250_000), json!({ "narration": "=1+1" }))).await.ok();
        let statement = sheet(host, "bank_statement?currency=NGN&format=xlsx").await;
        let rows = statement.as_array().expect("rows");
        assert_eq!(rows[0][5], "amount");
        assert_eq!((&rows[1][7], &rows[1][6]), (&json!("OPENING BALANCE"), &json!(0.0)));
        assert_eq!(rows[2][5], json!(1_000_000.0), "a number, in major units");
        let last = rows.last().expect("a row");
        let balance = host.balance(&host.merchant.test_wallet).await;
        assert_eq!(last[7], "CLOSING BALANCE");
        assert_eq!(last[6].as_f64().map(|it| format!("{it:.2}")), Some(major(balance)));
        let shown = report(host, "bank_statement?currency=NGN").await.ok();
        assert_eq!(rows.len(), shown.json["data"].as_array().expect("rows").len() + 3);
        let failed = sheet(host, "failed_payouts?format=xlsx").await;
        assert_eq!(failed[1][3], json!(1234.56));
        assert_eq!(failed[1][9], json!(true));
        for name in ["payouts", "funding", "cashflow", "fees"] {
            let book = sheet(host, &format!("{name}?format=xlsx")).await;
            let shown = report(host, name).await.ok();
            assert_eq!(
                book.as_array().map(Vec::len),
                shown.json["data"].as_array().map(|it| it.len() + 1)
            );
        }
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_listed_and_cut(#[values(Engine::Sqlite, Engine::Postgres)] engine: Engine) {
    with_host(engine, async |host| {
        let failed = host.pay("failed", naira(100_000)).await.ok();
        let held = host.pay("fraud_hold", naira(100_000)).await.ok();
        let path = format!("payouts/{}/reject", held.id());
        host.admin(Method::POST, &path, json!({ "reason": "no" })).await.ok();
        let shown = report(host, "failed_payouts").await.ok();
        assert_eq!(shown.json["count"], 2);
        assert_eq!(rows(&shown)[0]["auto_reversed"], false, "nothing had been debited");
        let row = &rows(&shown)[1];
        for name in ["id", "reference", "amount_minor", "failure_code", "failure_message"] {
            assert_eq!(row[name], failed.json[name], "{name}");
        }
        assert_eq!(row["auto_reversed"], true);
        // More than are shown: the number says so.
        let kept = "merchant_id, env, wallet_id, in_batch, status, version, currency, \
                    method, amount_minor, fee_minor, tax_minor, levy_minor, \
                    beneficiary_id, recipient_identity, recipient_name, recipient, \
                    sender, narration, merchant_reference, tariff, charges, maker, \
                    resolution, funding, round, route, rail_reference, failure_code, \
                    failure_message, correction, told, funded, is_waiting, \
                    holds_batch, unusual, owner_number, id_number, created_at, queued_at, processing_at, completed_at, batch_id";
        let copies = (0..600).map(|at| {
            format!(
                "INSERT INTO payouts (id, {kept}) SELECT 'c' || substr(id, 2, 18) || '{at:06}', \
                 {kept} FROM payouts WHERE id = '{}'",
                failed.id()
            )
        });
        host.run(&copies.collect::<Vec<_>>()).await;
        let shown = report(host, "failed_payouts").await.ok();
        assert_eq!((rows(&shown).len(), &shown.json["count"]), (500, &json!(602)));
        let file = report(host, "failed_payouts?format=csv").await.ok();
        assert_eq!(table(&file).len(), 602);
        let (failed, held) = (failed.id(), held.id());
        let gone = format!("DELETE FROM payouts WHERE id NOT IN ('{failed}', '{held}')");
        host.run(&[gone]).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn odd_questions_are_refused_by_field(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let listed = host.get("/v1/reports").await.ok();
        let names: Vec<_> = rows(&listed).iter().map(|row| row["id"].clone()).collect();
        assert_eq!(names, TYPES.map(Value::from));
        for row in rows(&listed) {
            assert_eq!(row["object"], "report_type");
            assert_eq!(row["formats"], json!(["json", "csv", "xlsx"]));
            let path = format!("{}?currency=NGN", row["endpoint"].as_str().expect("a path"));
            host.get(&path).await.ok();
        }
        for (query, code, field) in [
            ("bank_statement", "missing_currency", "currency"),
            ("bank_statement?currency=", "missing_currency", "currency"),
            ("bank_statement?currency=XXX", "invalid_filter", "currency"),
            ("payouts?currency=naira", "invalid_filter", "currency"),
            ("cashflow?from=2026-11-31", "invalid_filter", "from"),
            ("cashflow?to=tomorrow", "invalid_filter", "to"),
            ("fees?from=2026-11-21&to=2026-11-20", "invalid_filter", "from"),
            ("funding?format=pdf", "invalid_filter", "format"),
        ] {
            let refused = report(host, query).await;
            assert_eq!((refused.refused(), refused.field()), ((400, code), field), "{query}");
        }
    })
    .await;
}

/// Clocks of hosts differ: what was booked a moment before midnight may stand behind what was booked
/// a moment after it.
#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn the_border_of_a_day_stays_where_it_is(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let wallet = &host.merchant.test_wallet;
        let midnight = Moment::parse("2026-11-22T00:00:00Z").expect("an instant");
        host.advance(15 * 3600 - 40);
        for _ in 0..20 {
            host.credit(wallet, 100).await;
            host.advance(4);
        }
        // The third one after midnight was booked by a clock that was behind.
        let sql = "SELECT journal_id, seq FROM entries \
                   WHERE wallet_id = $1 AND created_at >= $2 ORDER BY seq LIMIT 1 OFFSET 2";
        let pool = host.app().db.pool();
        let (journal, seq): (String, i64) = sqlx::query_as(sql)
            .bind(wallet)
            .bind(midnight.micros())
            .fetch_one(pool)
            .await
            .expect("an entry");
        let set = |at: i64| format!("UPDATE journals SET created_at = {at} WHERE id = '{journal}'");
        let was =
            host.count(&format!("SELECT created_at FROM journals WHERE id = '{journal}'")).await;
        let armed = host.disarm("journals").await;
        host.run(&[set(midnight.micros() - 10_000_000)]).await;
        let id = WalletId::from_text(wallet.clone());
        for _ in 0..12 {
            let ends = (Moment::default(), midnight);
            let span = Span::of(pool, &id, ends).await.expect("a span");
            assert_eq!(span, Span { from: 1, to: seq + 1 });
            let begins = (midnight, midnight.after(std::time::Duration::from_secs(86_400)));
            let next = Span::of(pool, &id, begins).await.expect("a span");
            assert_eq!(next.from, span.to, "days that follow each other");
            host.advance(30);
            host.credit(wallet, 100).await;
        }
        host.run(&[set(was)]).await;
        host.run(&armed).await;
    })
    .await;
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_sent_so_many_reports_at_once(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    with_host(engine, async |host| {
        let path = format!("merchants/{}/keys", host.merchant.id);
        let keys = host.admin(Method::GET, &path, json!(null)).await.ok();
        let test = keys.json["data"].as_array().expect("keys").iter();
        let test = test.filter(|key| key["env"] == "test").map(|key| key["id"].as_str());
        let id = test.flatten().next().expect("a key").to_owned();
        let places = &host.app().long_answers.reports;
        let mut taken: Vec<_> = (0..4).map(|_| places.take(&[(&*id, 4)])).collect();
        assert!(taken.iter().all(Result::is_ok));
        for format in ["json", "csv", "xlsx"] {
            let refused = report(host, &format!("cashflow?format={format}")).await;
            assert_eq!(refused.refused(), (429, "rate_limit_exceeded"));
        }
        taken.pop();
        for format in ["json", "csv", "csv", "json"] {
            report(host, &format!("cashflow?format={format}")).await.ok();
        }
    })
    .await;
}
