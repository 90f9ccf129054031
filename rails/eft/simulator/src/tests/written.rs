//! Files as an originator writes them, and as it reads those of the bank's. Written for the tests,
//! from the layout alone.

/// A credit.
#[derive(Clone)]
pub(super) struct Credit {
    pub(super) reference: String,
    pub(super) institution: &'static str,
    pub(super) account: &'static str,
    pub(super) cents: u64,
}

/// The reference of a payment.
pub(super) fn id(serial: u32) -> String {
    format!("E16{serial:012}")
}

pub(super) fn credit(serial: u32) -> Credit {
    Credit { reference: id(serial), institution: "000400012", account: "7654321", cents: 12_345 }
}

fn segment(credit: &Credit) -> String {
    let Credit { reference, institution, account, cents } = credit;
    format!(
        "450{cents:010}026068{institution}{account:<12}{:025}{:15}{:30}{:30}{:10}{reference:<19}\
         {:9}{:12}{:15}{:24}{:011}",
        0,
        "EXAMPLE PAYOUTS",
        "JANE DOE",
        "EXAMPLE PAYOUTS INC",
        "ORIG000001",
        "000300320",
        "1234567",
        "",
        "",
        0,
    )
}

/// The records of a file of these credits.
pub(super) fn records(number: u32, credits: &[Credit]) -> Vec<String> {
    let common = |kind: char, place: usize| format!("{kind}{place:09}ORIG000001{number:04}");
    let mut records = vec![format!("{}02606500320{:20}CAD", common('A', 1), "")];
    for credits in credits.chunks(6) {
        let segments: String = credits.iter().map(segment).collect();
        records.push(common('C', records.len() + 1) + &segments);
    }
    let total: u64 = credits.iter().map(|credit| credit.cents).sum();
    let place = records.len() + 1;
    let sums = format!("{:022}{total:014}{:08}{:044}", 0, credits.len(), 0);
    records.push(common('Z', place) + &sums);
    records.iter().map(|record| format!("{record:1464}")).collect()
}

/// A file of these credits.
pub(super) fn text(number: u32, credits: &[Credit]) -> String {
    records(number, credits).iter().map(|record| format!("{record}\r\n")).collect()
}

/// A file of credits with these serials.
pub(super) fn plain(number: u32, serials: &[u32]) -> String {
    text(number, &serials.iter().map(|serial| credit(*serial)).collect::<Vec<_>>())
}

/// A payment that comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Back {
    pub(super) code: String,
    pub(super) cents: u64,
    pub(super) date: String,
    pub(super) trace: String,
    pub(super) stored: String,
    pub(super) user: String,
    pub(super) reference: String,
    /// To which account it goes: institution and number.
    pub(super) to: (String, String),
    /// From which account it comes.
    pub(super) from: (String, String),
    pub(super) original: String,
}

fn digits(text: &str) -> u64 {
    assert!(text.bytes().all(|byte| byte.is_ascii_digit()), "{text:?}");
    text.parse().expect("a number")
}

/// Reads a file of the bank's, with everything in it that is said twice.
pub(super) fn read(content: &str) -> Vec<Back> {
    let lines: Vec<&str> = content.strip_suffix("\r\n").expect("an end").split("\r\n").collect();
    assert!(lines.iter().all(|line| line.len() == 1464 && line.is_ascii()));
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    assert!(first.starts_with('A') && last.starts_with('Z'));
    for (place, line) in (1..).zip(&lines) {
        assert_eq!((digits(&line[1..10]), &line[10..24]), (place, &first[10..24]));
    }
    let mut back = Vec::new();
    for line in &lines[1..lines.len() - 1] {
        assert!(line.starts_with('I'));
        for place in 0..6 {
            let segment = &line[24 + 240 * place..][..240];
            if segment.trim().is_empty() {
                continue;
            }
            let at =
                |first: usize, last: usize| segment[first - 25..last - 24].trim_end().to_owned();
            assert_eq!((at(90, 104), at(105, 134)), ("EXAMPLE PAYOUTS".into(), "JANE DOE".into()));
            assert_eq!((at(252, 253), digits(&at(254, 264))), (String::new(), 0));
            back.push(Back {
                code: at(25, 27),
                cents: digits(&at(28, 37)),
                date: at(38, 43),
                trace: at(65, 86),
                stored: at(87, 89),
                user: at(165, 174),
                reference: at(175, 193),
                to: (at(44, 52), at(53, 64)),
                from: (at(194, 202), at(203, 214)),
                original: at(230, 251),
            });
        }
    }
    assert!(back.iter().all(|it| it.trace.parse::<u128>().is_ok() && it.trace.len() == 22));
    assert_eq!(digits(&last[24..46]), 0);
    assert_eq!(digits(&last[46..60]), back.iter().map(|it| it.cents).sum::<u64>());
    assert_eq!((digits(&last[60..68]), digits(&last[68..112])), (back.len() as u64, 0));
    back
}
