//! Single calls into the sandbox, and the start of a host.

use std::sync::Arc;
use std::time::Instant;

use railhead::clock::Clock;
use railhead::id::{Id as _, MerchantId};
use railhead::keyring::Keyring;
use railhead::money::{Currency, Minor};
use railhead::rails::Block;
use railhead::rules::{FeeFacts, PackKind, PayoutKind};
use railhead::start::load;
use railhead::wasm::{CodeCache, Engines};

use super::server;

const CALLS: u32 = 20_000;

pub(crate) async fn run() {
    let keyring = Arc::new(Keyring::from_hex(&["22".repeat(32)]).unwrap());
    let engines = Engines::start().unwrap();
    let components = load(&engines, &CodeCache::new(None, keyring), None).unwrap();
    let rail = components.rails.into_iter().next().unwrap();
    let supplied = |kind| components.packs.iter().find(|supplied| supplied.pack.about.kind == kind);
    let fees = &supplied(PackKind::Fees).unwrap().pack;
    let now = Clock::System.now();

    let fields = [("account_number", "0123456785"), ("bank_code", "058")];
    let sent = |name: &str| fields.iter().find(|f| f.0 == name).map(|f| f.1.to_owned());
    let recipient = rail.take_recipient(Block::Inline, sent).unwrap().to_guest();
    let grant = rail.pure_grant(now.millis());
    let mut checks = Vec::new();
    for _ in 0..CALLS {
        let one = Instant::now();
        let called = rail.code.check(&grant, ("nip", "NGN"), &recipient).await;
        called.result.unwrap().unwrap();
        checks.push(one.elapsed());
    }

    let merchant = MerchantId::from_text("c0".into());
    let facts = FeeFacts {
        merchant: &merchant,
        currency: Currency::parse("NGN").unwrap(),
        method: "nip",
        kind: PayoutKind::Single,
        amount: Minor::new(1_500_000),
        is_live: true,
    };
    let mut prices = Vec::new();
    for _ in 0..CALLS {
        let one = Instant::now();
        fees.price(&facts).unwrap();
        prices.push(one.elapsed());
    }
    let us = |times: &mut Vec<std::time::Duration>, percent: usize| {
        times.sort_unstable();
        times[times.len() * percent / 100].as_nanos() as f64 / 1000.0
    };
    println!("Sandbox, {CALLS} calls each");
    println!(
        "    fresh rail call (instance, recipient check, drop)  p50 {:.1} us, p99 {:.1} us",
        us(&mut checks, 50),
        us(&mut checks, 99)
    );
    println!(
        "    warm rule call (one price)                         p50 {:.1} us, p99 {:.1} us",
        us(&mut prices, 50),
        us(&mut prices, 99)
    );
    println!(
        "    start with compiled code on disk                   {} ms\n",
        server::start_up_ms().await
    );
}
