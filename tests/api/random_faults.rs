//! Everything at once, at random: kills, pauses, cut and silent lines to the database, a bank
//! that hangs and loses requests, operators, routes that come and go, a restore, a second host.
//!
//! The bank is the model: it alone knows what it executed. In the end every payout has come to
//! an end, nobody was paid twice, and whoever was paid and given back has a case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use railhead::clock::Clock;
use railhead::db::Db;
use railhead::id::IdGenerator;
use railhead::simulator::{State, Transfer};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bank::Hold;
use crate::crash_at_random::{payout, seed, until_all_ended};
use crate::line::QuietLine;
use crate::notices::{RIGHT, status};
use crate::program::Deployment;
use crate::restores::copy;
use crate::test_host::{Engine, OPERATOR_TOKEN, unique};

const STEPS: usize = 24;
const CALLERS: usize = 3;
const BACKUP_AT: usize = 6;
const RESTORE_AT: usize = 16;
/// What the dice say for a backup or a restore.
const RESTORE: u64 = 9;

/// A deployment that things happen to.
struct Run {
    deployment: Deployment,
    /// The line to PostgreSQL, and the address at its end.
    line: Option<(QuietLine, String)>,
    dice: IdGenerator,
    /// Payouts that an operator marked against what the bank says.
    wronged: BTreeSet<String>,
    has_backup: bool,
    done: Vec<String>,
}

impl Run {
    async fn open(engine: Engine, seed: u64) -> Self {
        let deployment = Deployment::open(engine, "").await;
        let line = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(QuietLine::open(&deployment.host.database.url).await),
        };
        let dice = IdGenerator::seeded(Clock::System, seed);
        Self {
            deployment,
            line,
            dice,
            wronged: BTreeSet::new(),
            has_backup: false,
            done: Vec::new(),
        }
    }

    async fn start(&mut self) {
        let url = self.line.as_ref().map(|(_, url)| url.clone());
        let settings: Vec<(&str, &str)> =
            url.iter().map(|url| ("DATABASE_URL", url.as_str())).collect();
        self.deployment.start(&settings).await;
    }

    async fn a_while(&self, least: u64, most: u64) {
        tokio::time::sleep(Duration::from_millis(least + self.dice.below(most))).await;
    }

    /// One thing happens. Whatever the dice say, there is a backup early on and a restore later.
    async fn step(&mut self, number: usize) {
        let what = match number {
            BACKUP_AT if !self.has_backup => RESTORE,
            RESTORE_AT if self.has_backup => RESTORE,
            _ => self.dice.below(10),
        };
        self.done.push(what.to_string());
        match what {
            0 | 1 => {
                self.deployment.kill().await;
                self.a_while(0, 100).await;
                self.start().await;
            }
            2 => {
                let span = Duration::from_millis(200 + self.dice.below(1500));
                self.deployment.freeze(span).await;
            }
            3 => {
                if let Some((line, _)) = &self.line {
                    line.cut();
                }
            }
            4 => {
                if let Some((line, _)) = &self.line {
                    line.fall_silent();
                    self.a_while(300, 2_000).await;
                    line.speak();
                }
            }
            5 => {
                let hold = if self.dice.below(2) == 0 { Hold::Request } else { Hold::Answer };
                self.deployment.bank.door.hold(hold);
                self.a_while(100, 500).await;
                if self.dice.below(2) == 0 {
                    // Whoever waited for the bank is gone when it comes back.
                    self.deployment.kill().await;
                    self.deployment.bank.door.hold(Hold::Nothing);
                    self.start().await;
                }
                self.deployment.bank.door.hold(Hold::Nothing);
            }
            6 => self.mark().await,
            7 => {
                self.patch_route(json!({ "is_paused": true })).await;
                self.a_while(50, 200).await;
                self.resume().await;
            }
            8 => match self.dice.below(2) {
                0 if self.deployment.host.engine == Engine::Postgres => {
                    self.deployment.kill_beside().await;
                    self.deployment.start_beside(&[]);
                }
                _ => self.deployment.kill_beside().await,
            },
            RESTORE.. => self.restore().await,
        }
    }

    /// The operator looks at some of what is under way and marks it: most often as the bank says,
    /// sometimes the other way round.
    async fn mark(&mut self) {
        let transfers = self.transfers().await;
        for id in self.deployment.under_way().await.into_iter().take(3) {
            let references = self.references(&id).await;
            let Some(last) = references.last().and_then(|known| transfers.get(known)) else {
                continue;
            };
            let is_wrong = self.dice.below(3) == 0;
            let action = match (&last.state, is_wrong) {
                (State::Paid, false) => "mark_paid",
                (State::Paid, true) => "mark_failed",
                _ => continue,
            };
            if is_wrong {
                // Whatever is answered: the answer may be lost, and the mark stand.
                self.wronged.insert(id.clone());
            }
            let path = format!("/admin/v1/payouts/{id}/{action}");
            self.try_post(&path, json!({ "evidence": "a statement" })).await;
        }
    }

    /// Lets the route go on, however often it takes.
    async fn resume(&self) {
        for _ in 0..50 {
            if self.patch_route(json!({ "is_paused": false })).await == Some(200) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the route stays paused");
    }

    /// Changes the live route; answers the status of the answer, if there was one.
    async fn patch_route(&self, changes: Value) -> Option<u16> {
        let url = format!("{}/admin/v1/routes", self.deployment.host.base);
        let request = self.deployment.host.client.get(&url).bearer_auth(OPERATOR_TOKEN);
        let answer = request.timeout(Duration::from_secs(5)).send().await.ok()?;
        let routes: Value = answer.json().await.ok()?;
        let mut routes = routes["data"].as_array()?.iter();
        let route = routes.find(|route| route["env"] == "live" && route["currency"] == "NGN")?;
        let url = format!("{url}/{}", route["id"].as_str()?);
        let request = self.deployment.host.client.patch(url).bearer_auth(OPERATOR_TOKEN);
        let request = request.timeout(Duration::from_secs(20)).json(&changes);
        Some(request.send().await.ok()?.status().as_u16())
    }

    /// A backup is taken once; the next time it is put back, and the operator lets go.
    async fn restore(&mut self) {
        self.deployment.kill_beside().await;
        self.deployment.kill().await;
        let is_restore = self.has_backup;
        self.has_backup = !is_restore;
        self.deployment
            .copy_database(if is_restore { Copying::Back } else { Copying::Aside })
            .await;
        self.done.push(if is_restore { "restored" } else { "backed up" }.to_owned());
        self.start().await;
        if is_restore {
            self.a_while(0, 300).await;
            self.release().await;
        }
    }

    async fn release(&self) {
        for _ in 0..200 {
            let body = json!({ "reason": "the statement was compared" });
            match self.try_post("/admin/v1/quarantine/release", body).await {
                // 409: there is none, because nothing was forgotten.
                Some(200 | 409) => return,
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        panic!("the quarantine does not end");
    }

    async fn try_post(&self, path: &str, body: Value) -> Option<u16> {
        let url = format!("{}{path}", self.deployment.host.base);
        let request = self.deployment.host.client.post(url).bearer_auth(OPERATOR_TOKEN);
        let request = request.timeout(Duration::from_secs(20)).json(&body);
        Some(request.send().await.ok()?.status().as_u16())
    }

    async fn transfers(&self) -> BTreeMap<String, Transfer> {
        let transfers = self.deployment.bank.transfers().await;
        transfers.into_iter().map(|transfer| (transfer.reference.clone(), transfer)).collect()
    }

    async fn references(&self, id: &str) -> Vec<String> {
        let sql = "SELECT rail_reference FROM attempts WHERE transfer_id = $1 ORDER BY id";
        let pool = self.deployment.db.pool();
        sqlx::query_scalar(sql).bind(id).fetch_all(pool).await.expect("references")
    }

    /// The bank complains about what was marked against its word.
    async fn complain(&self) {
        for id in &self.wronged {
            for reference in self.references(id).await {
                let message = status(&reference, "00");
                let host = &self.deployment.host;
                let url = format!("{}/notices/live/nip{}", host.base, message.path);
                let request = host.client.post(url).bearer_auth(RIGHT).body(message.body);
                let told = request.send().await.expect("an answer").status().as_u16();
                assert_eq!(told, 200, "{id}");
            }
        }
    }

    /// Waits until everything that the bank said has been taken in, or tried to be.
    async fn until_all_was_heard(&self) {
        let left = "SELECT COUNT(*) FROM inbox WHERE state = 'new' AND tries = 0";
        for _ in 0..600 {
            if self.deployment.count(left).await == 0 {
                return self.deployment.until_nothing_is_leased().await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("what the bank said was not taken in ({:?})", self.done);
    }

    /// Whether there is a case about a payout. The bank is asked about what it complains of, which
    /// takes a while on a machine that has much to do.
    async fn has_case(&self, id: &str) -> bool {
        for _ in 0..300 {
            let sql = "SELECT COUNT(*) FROM cases WHERE subject_id = $1";
            let pool = self.deployment.db.pool();
            let cases: i64 =
                sqlx::query_scalar(sql).bind(id).fetch_one(pool).await.expect("a number");
            if cases > 0 {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        false
    }

    /// What the books say against what the bank did.
    async fn compare(&self) {
        let transfers = self.transfers().await;
        let pool = self.deployment.db.pool();
        let payouts: Vec<(String, String)> =
            sqlx::query_as("SELECT id, status FROM payouts").fetch_all(pool).await.expect("all");
        let cases: Vec<(String, String)> =
            sqlx::query_as("SELECT kind, evidence FROM cases").fetch_all(pool).await.expect("all");
        // It was paid before the mark arrived, which is the operator's own decision then.
        let sql = "SELECT subject_id FROM audit WHERE action = 'payout.mark_failed' \
                   AND before LIKE '%\"status\":\"paid\"%'";
        let overruled: Vec<String> = sqlx::query_scalar(sql).fetch_all(pool).await.expect("all");
        let mut known = BTreeSet::new();
        for (id, status) in &payouts {
            let references = self.references(id).await;
            let executed: u32 = references
                .iter()
                .filter_map(|reference| transfers.get(reference))
                .map(|transfer| transfer.executed)
                .sum();
            known.extend(references);
            let is_paid = matches!(status.as_str(), "paid" | "paid_manual");
            assert!(executed <= 1, "{id} was paid {executed} times ({:?})", self.done);
            let is_overruled = status == "failed_manual" && overruled.contains(id);
            let agrees = (executed == 1) == is_paid || is_overruled;
            assert!(
                agrees || self.has_case(id).await,
                "{id} is {status}, and was paid {executed} times ({:?})",
                self.done
            );
            let has_ended = !matches!(status.as_str(), "queued" | "processing");
            assert!(has_ended, "{id} is {status} ({:?})", self.done);
        }
        // What the database has forgotten, a case remembers.
        for (reference, transfer) in &transfers {
            let has_case = cases.iter().any(|(kind, evidence)| {
                kind == "forgotten_transfer" && evidence.contains(reference.as_str())
            });
            assert!(known.contains(reference) || has_case, "{transfer:?} ({:?})", self.done);
        }
        assert!(payouts.len() > 20, "{} payouts are too few to tell anything", payouts.len());
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copying {
    Aside,
    Back,
}

impl Deployment {
    /// Sets the database aside, or puts it back. Nothing runs meanwhile.
    async fn copy_database(&mut self, copying: Copying) {
        let url = self.host.database.url.clone();
        let is_restore = copying == Copying::Back;
        self.db.close().await;
        match self.host.engine {
            Engine::Sqlite => {
                let file = self.host.database.folder.path().join("railhead.db");
                // Whoever was killed has left part of it in the log: the two belong together.
                for ending in ["db", "db-wal"] {
                    let (now, kept) = (
                        file.with_extension(ending),
                        file.with_extension(format!("{ending}-kept")),
                    );
                    let (from, to) = if is_restore { (&kept, &now) } else { (&now, &kept) };
                    match from.exists() {
                        true => drop(std::fs::copy(from, to).expect("copied")),
                        false if to.exists() => std::fs::remove_file(to).expect("removed"),
                        false => {}
                    }
                }
                // It is made anew from the log.
                let _ = std::fs::remove_file(file.with_extension("db-shm"));
            }
            Engine::Postgres => {
                let (server, name) = url.rsplit_once('/').expect("a database");
                let (server, kept) = (format!("{server}/postgres"), format!("{name}_kept"));
                let (from, to) =
                    if is_restore { (kept.as_str(), name) } else { (name, kept.as_str()) };
                copy(&server, from, to).await;
            }
        }
        self.db = Db::open_for_reading(&url.into()).await.expect("a database");
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn whatever_happens_nobody_is_paid_twice_and_nothing_is_stranded(
    #[values(Engine::Sqlite, Engine::Postgres)] engine: Engine,
) {
    let mut run = Run::open(engine, seed()).await;
    run.deployment.kill().await;
    run.start().await;
    let is_over = Arc::new(AtomicBool::new(false));
    for number in 0..STEPS {
        // Callers give up with the program that they speak to; others take their place.
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| {
                let (requests, is_over) = (run.deployment.requests(), Arc::clone(&is_over));
                tokio::spawn(async move {
                    for index in number.. {
                        let (key, body) = (unique(), payout(index));
                        let asked = requests.pay(&key, &body);
                        let asked = tokio::time::timeout(Duration::from_secs(3), asked).await;
                        let is_answered = matches!(asked, Ok(Ok(_)));
                        if !is_answered || is_over.load(Ordering::SeqCst) {
                            return;
                        }
                        tokio::time::sleep(Duration::from_millis(40)).await;
                    }
                })
            })
            .collect();
        run.a_while(50, 400).await;
        run.step(number).await;
        for caller in callers {
            caller.abort();
        }
    }
    is_over.store(true, Ordering::SeqCst);
    run.deployment.kill_beside().await;
    run.deployment.bank.door.hold(Hold::Nothing);
    run.deployment.kill().await;
    run.deployment.start(&[]).await;
    if engine == Engine::Postgres {
        // What the second one sent and a restore has forgotten, nobody else knows.
        run.deployment.until_beside_serves().await;
    }
    run.release().await;
    run.deployment.kill_beside().await;
    run.resume().await;
    until_all_ended(&mut run.deployment).await;
    run.complain().await;
    run.until_all_was_heard().await;
    run.compare().await;
    run.deployment.prove().await;
}
