//! What rails make of payments when a window closes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Router;

use crate::rails::Rail;
use crate::rails::assembled::objection;
use crate::wasm::rail::{Assembled, Grant, Money, Payment, Window};

use super::super::cases::{AssemblyCase, Cases, WindowCase};
use super::super::exchange::{grant, payment, pure};

/// Makes the file of a case.
pub(super) async fn make(rail: &Rail, case: &AssemblyCase) -> Result<Assembled, String> {
    let payments = case.payments.iter().map(|it| payment(rail, Some(it)));
    let payments: Vec<Payment> = payments.collect::<Result<_, _>>()?;
    for payment in &payments {
        match prepared(rail, payment).await? {
            // Whoever joined was prepared; cases show what no file can carry all the same.
            Err(why) if !case.refused.contains_key(&payment.reference) => return Err(why),
            _ => {}
        }
    }
    assembled(rail, &case.window, &payments).await
}

/// Whether it is the file that the case demands.
pub(super) fn check(cases: &Cases, case: &AssemblyCase, made: &Assembled) -> Result<(), String> {
    same_content(&made.content, &cases.content(&case.file)?)?;
    for (what, found, wanted) in
        [("name", &made.name, &case.file_name), ("identity", &made.identity, &case.identity)]
    {
        if found != wanted {
            return Err(format!("its {what} is {found}, not {wanted}"));
        }
    }
    let placed = made.placed.iter().map(|it| (it.reference.clone(), it.key.clone()));
    same_map("placed", &placed.collect(), &case.placed)?;
    let refused = made.refused.iter().map(|it| (it.reference.clone(), it.why.code.clone()));
    same_map("refused", &refused.collect(), &case.refused)?;
    match made.later == case.later {
        true => Ok(()),
        false => Err(format!("{:?} go later, not {:?}", made.later, case.later)),
    }
}

/// The payment as every later call about it gets it, unless the rail refuses it.
pub(super) async fn prepared(
    rail: &Rail,
    payment: &Payment,
) -> Result<Result<Payment, String>, String> {
    let unmade = Payment { reference: String::new(), ..payment.clone() };
    let called = rail.code.prepare_for_file(&without_network(rail), &unmade).await;
    let wanted = &payment.reference;
    Ok(match called.result.map_err(|broken| broken.to_string())? {
        Ok(opening) if opening.reference != *wanted => {
            return Err(format!("made the reference {}, not {wanted}", opening.reference));
        }
        Ok(opening) => Ok(Payment { facts: opening.facts, ..payment.clone() }),
        Err(refusal) => Err(format!("prepare refused {wanted}: {}", refusal.message)),
    })
}

/// What a rail makes of payments: the same each time, and fit for the host.
pub(super) async fn assembled(
    rail: &Rail,
    window: &WindowCase,
    payments: &[Payment],
) -> Result<Assembled, String> {
    let window = closed(window, payments.first().ok_or("a file is made of payments")?);
    let once = assembled_once(rail, &window, payments).await?;
    let again = assembled_once(rail, &window, payments).await?;
    if once != again {
        return Err("made again of the same payments it is another file".to_owned());
    }
    let joined = payments.iter().map(|payment| payment.reference.as_str()).collect();
    if let Some(why) = objection(&once, &joined) {
        return Err(why);
    }
    shows_its_entries(&once)?;
    Ok(once)
}

async fn assembled_once(
    rail: &Rail,
    window: &Window,
    payments: &[Payment],
) -> Result<Assembled, String> {
    let called = rail.code.assemble(&without_network(rail), window, payments).await;
    let made = called.result.map_err(|broken| broken.to_string())?;
    made.map_err(|why| format!("no file is made: {why}"))
}

fn without_network(rail: &Rail) -> Arc<Grant> {
    pure(&grant(rail, &Router::new(), Money::Stays))
}

fn closed(case: &WindowCase, payment: &Payment) -> Window {
    let case = case.clone();
    Window {
        name: case.name,
        method: payment.method.clone(),
        currency: payment.currency.clone(),
        exponent: payment.exponent,
        number: case.number,
        number_of_day: case.number_of_day,
        first_entry: case.first_entry,
        business_date: case.business_date,
        local_time: case.local_time,
        value_date: case.value_date,
    }
}

/// Entries, as the timeline shows them, are lines of the file.
fn shows_its_entries(made: &Assembled) -> Result<(), String> {
    let lines = lines(&made.content).collect::<BTreeSet<_>>();
    for placed in &made.placed {
        let reference = &placed.reference;
        let mut entry = self::lines(&placed.entry).filter(|line| !line.is_empty()).peekable();
        if entry.peek().is_none() {
            return Err(format!("the timeline of {reference} would show nothing of it"));
        }
        // Of a record with several payments in it, an entry is its own part.
        let is_part =
            |line: &&[u8]| lines.contains(line) || lines.iter().any(|whole| holds(whole, line));
        if let Some(astray) = entry.find(|line| !is_part(line)) {
            let astray = String::from_utf8_lossy(astray);
            return Err(format!("{reference} is shown with a line that the file lacks: {astray}"));
        }
    }
    Ok(())
}

fn holds(whole: &[u8], part: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii)
}

fn same_map(
    what: &str,
    found: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
) -> Result<(), String> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} are {found:?}, not {wanted:?}")),
    }
}

fn same_content(made: &[u8], wanted: &[u8]) -> Result<(), String> {
    if made == wanted {
        return Ok(());
    }
    let lines = |content: &[u8]| -> Vec<String> {
        content.split(|byte| *byte == b'\n').map(|it| format!("{}", it.escape_ascii())).collect()
    };
    let (made, wanted) = (lines(made), lines(wanted));
    let at = (0..).find(|at| made.get(*at) != wanted.get(*at)).unwrap_or(0);
    let shown =
        |lines: &[String]| lines.get(at).map_or("missing".to_owned(), |it| format!("{it:?}"));
    Err(format!("line {} is {}, not {}", at + 1, shown(&made), shown(&wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wasm::rail::Placement;

    fn placed(reference: &str, key: &str, entry: &str) -> Placement {
        let (reference, key) = (reference.to_owned(), key.to_owned());
        Placement { reference, key, entry: entry.as_bytes().to_vec() }
    }

    fn made() -> Assembled {
        Assembled {
            name: "a.txt".to_owned(),
            identity: "1".to_owned(),
            content: b"head\nfirst\nmore of it\nsecond\n".to_vec(),
            placed: vec![placed("A", "1", "first\nmore of it\n"), placed("B", "2", "second")],
            refused: Vec::new(),
            later: Vec::new(),
        }
    }

    #[test]
    fn entries_are_lines_of_the_file() {
        shows_its_entries(&made()).expect("lines of it");
        for odd in ["\n", "third"] {
            let odd = Assembled { placed: vec![placed("A", "1", odd)], ..made() };
            shows_its_entries(&odd).expect_err("not a line of it");
        }
    }

    #[test]
    fn another_content_is_told_by_its_first_line() {
        same_content(b"a\nb\n", b"a\nb\n").expect("the same");
        let why = same_content(b"a\nc\n", b"a\nb\n").expect_err("another");
        assert!(why.starts_with("line 2"), "{why}");
        let why = same_content(b"a\n", b"a").expect_err("an end of line more");
        assert!(why.starts_with("line 2"), "{why}");
    }
}
