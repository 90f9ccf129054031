use super::*;

type File = (PathBuf, Vec<Statement>);

fn day(text: &str) -> Date {
    text.parse().expect("a day")
}

fn entry(amount: i64) -> Entry {
    let booked_on = day("2026-11-29");
    Entry { booked_on, amount: Minor::new(amount), bank_reference: None, said: "SMS".into() }
}

/// A page from a balance of a day of November on, that is closed on the 29th.
fn page((opening, on): (i64, &str), amounts: &[i64]) -> File {
    let closing = opening + amounts.iter().sum::<i64>();
    let statement = Statement {
        opening: Some(Minor::new(opening)),
        opening_on: Some(day(&format!("2026-11-{on}"))),
        closing: Some(Minor::new(closing)),
        closing_on: Some(day("2026-11-29")),
        entries: amounts.iter().map(|amount| entry(*amount)).collect(),
        ..Statement::default()
    };
    (PathBuf::new(), vec![statement])
}

/// What the entries come to, each once, how many they are, and what does not add up.
fn found(files: &[File]) -> (i64, usize, Vec<Imbalance>) {
    let Once { entries, short } = once_each(files, Forms::One);
    let sum = entries.iter().map(|entry| entry.amount.units()).sum();
    (sum, entries.len(), short)
}

/// The files in every order.
fn orders(files: &[File]) -> Vec<Vec<File>> {
    if files.is_empty() {
        return vec![Vec::new()];
    }
    let mut orders = Vec::new();
    for at in 0..files.len() {
        let mut rest = files.to_vec();
        let first = rest.remove(at);
        for mut order in self::orders(&rest) {
            order.push(first.clone());
            orders.push(order);
        }
    }
    orders
}

#[test]
fn what_two_files_have_is_one_and_what_one_has_twice_is_two() {
    let named = |reference: &str| Entry { bank_reference: Some(reference.into()), ..entry(-100) };
    let saying = |said: &str| {
        let entries = vec![Entry { said: said.into(), ..named("FT0042") }];
        (PathBuf::new(), vec![Statement { entries, ..Statement::default() }])
    };
    // Two rows of one booking are two; in two forms they may be the same one.
    let two = [saying("ADA"), saying("BOLA")];
    assert_eq!(once_each(&two, Forms::One).entries.len(), 2);
    assert_eq!(once_each(&two, Forms::Several).entries.len(), 1);
    let statement = |references: &[&str]| {
        let entries = references.iter().map(|it| named(it)).collect();
        Statement { entries, ..Statement::default() }
    };
    let file = |references: &[&str]| (PathBuf::new(), vec![statement(references)]);
    let files = [file(&["a", "b", "b"]), file(&["b", "b", "b", "c"]), file(&["a"])];
    let found = once_each(&files, Forms::One);
    let count = |it: &str| {
        let is_it = |entry: &&Entry| entry.bank_reference.as_deref() == Some(it);
        found.entries.iter().filter(is_it).count()
    };
    assert_eq!(([count("a"), count("b"), count("c")], found.short), ([1, 3, 1], Vec::new()));
    // Statements of one file are never the same.
    let both = (PathBuf::new(), vec![statement(&["b", "b"]), statement(&["b"])]);
    for files in orders(&[file(&["b", "b"]), both]) {
        assert_eq!(once_each(&files, Forms::One).entries.len(), 3);
    }
}

#[test]
fn pages_that_follow_each_other_have_nothing_in_common() {
    let pages = [
        page((1_000, "28"), &[-10, -10]),
        page((980, "29"), &[-10]),
        page((970, "29"), &[-10, -10, -10]),
    ];
    for files in orders(&pages) {
        assert_eq!(found(&files), (-60, 6, Vec::new()));
    }
    // One of them is given twice.
    for again in &pages {
        for files in orders(&[&pages[..], std::slice::from_ref(again)].concat()) {
            assert_eq!(found(&files), (-60, 6, Vec::new()));
        }
    }
    // Two of them may stand in one file.
    let mut days = [page((1_010, "27"), &[-10]), page((1_000, "29"), &[-10])];
    let second = page((990, "29"), &[-10]);
    let more = days[1].1.remove(0);
    days[0].1.push(more);
    assert_eq!(found(&[days[0].clone(), second]), (-30, 3, Vec::new()));
}

#[test]
fn what_overlaps_counts_once() {
    let whole = page((1_000, "28"), &[-10, -10, -10]);
    let (first, last) = (page((1_000, "28"), &[-10, -10]), page((980, "29"), &[-10]));
    let further = page((980, "29"), &[-10, -10]);
    let nothing_yet = page((1_000, "28"), &[-10, 10]);
    let more = page((1_000, "28"), &[-10, 10, -10]);
    for (files, sum, count) in [
        (vec![whole.clone(), whole.clone()], -30, 3),
        (vec![whole.clone(), first.clone()], -30, 3),
        (vec![whole.clone(), first.clone(), last], -30, 3),
        (vec![nothing_yet, more], -10, 3),
    ] {
        for files in orders(&files) {
            assert_eq!(found(&files), (sum, count, Vec::new()));
        }
    }
    // The second page goes on where the whole ends.
    for files in orders(&[whole, first, further]) {
        let (sum, count, _) = found(&files);
        assert_eq!((sum, count), (-40, 4));
    }
    // Entries that come to nothing, from a balance of the very day on.
    let today = [page((1_000, "29"), &[-10, 10]), page((1_000, "29"), &[-10, 10, -30])];
    for files in orders(&today) {
        assert_eq!(found(&files), (-30, 3, Vec::new()));
    }
}

#[test]
fn what_does_not_add_up_without_what_counts_once_is_told() {
    // The bank gives the opening balance of its second page another day.
    let pages = [page((1_000, "28"), &[-10, -10]), page((980, "28"), &[-10])];
    for files in orders(&pages) {
        let short = Imbalance { files: BTreeSet::from([0, 1]), by: Some(Minor::new(-10)) };
        assert_eq!(found(&files), (-20, 2, vec![short]));
    }
    // A page between them is missing.
    let gap = [page((1_000, "28"), &[-10, -10]), page((960, "29"), &[-10])];
    for files in orders(&gap) {
        let short = Imbalance { files: BTreeSet::from([0, 1]), by: Some(Minor::new(-30)) };
        assert_eq!(found(&files), (-20, 2, vec![short]));
    }
    // Without balances nobody can say, and what does not add up by itself says so by itself.
    let mut silent = pages.clone();
    silent[0].1[0].opening = None;
    assert_eq!(found(&silent), (-20, 2, Vec::new()));
    let mut odd = pages;
    odd[1].1[0].closing = Some(Minor::new(900));
    assert_eq!(found(&odd), (-20, 2, Vec::new()));
}
