//! Files as an originator writes them. Written for the tests, from the layout alone.

/// A credit.
#[derive(Clone)]
pub(super) struct Credit {
    pub(super) id: String,
    pub(super) code: &'static str,
    pub(super) routing: &'static str,
    pub(super) account: &'static str,
    pub(super) cents: u64,
    pub(super) addenda: Option<&'static str>,
}

/// A file: its number, its modifier, and its batches.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) number: u32,
    pub(super) modifier: char,
    pub(super) batches: Vec<(&'static str, Vec<Credit>)>,
}

/// The reference of a payment.
pub(super) fn id(serial: u32) -> String {
    format!("R16{serial:012}")
}

pub(super) fn credit(serial: u32) -> Credit {
    Credit {
        id: id(serial),
        code: "22",
        routing: "121000248",
        account: "12345678",
        cents: 12_345,
        addenda: None,
    }
}

/// A file of one batch of individuals' credits with these serials.
pub(super) fn draft(number: u32, serials: &[u32]) -> Draft {
    let modifier = char::from(b'A' + u8::try_from(number % 26).expect("small"));
    let credits = serials.iter().map(|serial| credit(*serial)).collect();
    Draft { number, modifier, batches: vec![("PPD", credits)] }
}

/// Text of a file that [`draft`] drafts.
pub(super) fn plain(number: u32, serials: &[u32]) -> String {
    draft(number, serials).text()
}

impl Draft {
    /// Traces count on from one entry to the next: 1 in the first file is `…0010001`.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![format!(
            "101 121042882{:>10}2603061600{}094101{:23}{:23}{:08}",
            "1210428821", self.modifier, "FIRST BANK", "EXAMPLE PAYOUTS INC", self.number,
        )];
        let mut trace = self.number * 10_000;
        let (mut count, mut hash, mut total) = (0, 0_u64, 0);
        for (number, (class, credits)) in (1..).zip(&self.batches) {
            lines.push(format!(
                "5220{:16}{:20}{:10}{class}{:10}{:6}260309{:3}112104288{number:07}",
                "EXAMPLE PAYOUTS", "", "1210428821", "PAYOUT", "", "",
            ));
            let (mut own_count, mut own_hash, mut own_total) = (0, 0_u64, 0);
            for credit in credits {
                trace += 1;
                let marker = u8::from(credit.addenda.is_some());
                lines.push(format!(
                    "6{}{}{:17}{:010}{:15}{:22}{:2}{marker}12104288{trace:07}",
                    credit.code,
                    credit.routing,
                    credit.account,
                    credit.cents,
                    credit.id,
                    "JANE DOE",
                    "",
                ));
                if let Some(text) = credit.addenda {
                    lines.push(format!("705{text:80}0001{trace:07}"));
                    own_count += 1;
                }
                own_count += 1;
                own_hash += credit.routing[..8].parse::<u64>().expect("digits");
                own_total += credit.cents;
            }
            lines.push(format!(
                "8220{own_count:06}{:010}{:012}{own_total:012}{:10}{:25}12104288{number:07}",
                own_hash % 10_000_000_000,
                0,
                "1210428821",
                "",
            ));
            (count, hash, total) = (count + own_count, hash + own_hash, total + own_total);
        }
        let blocks = lines.len() / 10 + 1;
        lines.push(format!(
            "9{:06}{blocks:06}{count:08}{:010}{:012}{total:012}{:39}",
            self.batches.len(),
            hash % 10_000_000_000,
            0,
            "",
        ));
        while lines.len() % 10 != 0 {
            lines.push("9".repeat(94));
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The trace number of an entry of a file, counted from 1.
pub(super) fn trace(number: u32, entry: u32) -> String {
    format!("12104288{:07}", number * 10_000 + entry)
}
