//! What a declaration has merchants told of a payment that its network has taken on, and the texts
//! that nobody can guess which the host makes for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::declaration::Declaration;

/// What every payout has.
pub const PAYOUT_MEMBERS: [&str; 31] = [
    "object",
    "id",
    "reference",
    "status",
    "currency",
    "method",
    "amount_minor",
    "fee_minor",
    "tax_minor",
    "levy_minor",
    "total_debit_minor",
    "recipient_name",
    "recipient_account",
    "recipient_bank_code",
    "recipient_correction",
    "beneficiary_id",
    "wallet_id",
    "nip_reference",
    "merchant_reference",
    "narration",
    "customer_id",
    "customer_reference",
    "batch_id",
    "hold_reason",
    "failure_code",
    "failure_message",
    "created_at",
    "queued_at",
    "processing_at",
    "completed_at",
    "fx",
];

/// `[seeds.<name>]`: a text that the host makes for each attempt, and that nobody can guess.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedTerms {
    /// What people call it.
    pub title: String,
    /// How many characters it has.
    #[serde(default = "seed_length")]
    pub length: usize,
    /// The characters that it is made of; small letters and digits that nobody mixes up, if left
    /// out.
    #[serde(default = "seed_alphabet")]
    pub alphabet: String,
}

const fn seed_length() -> usize {
    12
}

fn seed_alphabet() -> String {
    "abcdefghjkmnpqrstuvwxyz23456789".to_owned()
}

/// Of fewer possible texts than this one is guessed.
const SEEDS_MIN: u128 = 1 << 40;

impl SeedTerms {
    /// A new text; `below` gives a random number below its argument.
    pub fn make(&self, below: impl Fn(u64) -> u64) -> String {
        let letters: Vec<char> = self.alphabet.chars().collect();
        let count = u64::try_from(letters.len()).unwrap_or(1).max(1);
        let letter = |_| usize::try_from(below(count)).ok().and_then(|at| letters.get(at));
        (0..self.length).filter_map(letter).collect()
    }

    fn nonsense(&self) -> Option<String> {
        let mut letters: Vec<char> = self.alphabet.chars().collect();
        if letters.iter().any(|c| !c.is_ascii_alphanumeric()) {
            return Some("alphabet is letters and digits".to_owned());
        }
        letters.sort_unstable();
        letters.dedup();
        if letters.len() != self.alphabet.len() || self.length > 64 {
            return Some(
                "each letter of alphabet stands there once, and length is 64 at most".into(),
            );
        }
        let (count, length) = (letters.len() as u128, u32::try_from(self.length).unwrap_or(0));
        (letters.len() < 2 || count.saturating_pow(length) < SEEDS_MIN)
            .then(|| "with so few characters it can be guessed".to_owned())
    }
}

/// `[[shown]]`: what merchants see of a payment once its network has taken it on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownTerms {
    /// Its place in a payout: the rail's name comes first, as in `interac_reference`. With a
    /// point, a member of a block.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The fact of a receipt that it is.
    pub fact: Option<String>,
    /// The seed that it is.
    pub seed: Option<String>,
    /// It is the network's own name for the payment.
    #[serde(default)]
    pub network_id: bool,
    /// It is there where a receipt told this fact.
    pub when_fact: Option<String>,
    /// For the docs.
    pub example: Option<String>,
}

/// What merchants are shown of a payment, as members of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What may be known afterwards, too.
    pub open: Map<String, Value>,
    /// Blocks with a seed in them: whoever has them may take the money, until it is taken.
    pub claim: Map<String, Value>,
}

/// A value that is longer is not shown.
const SHOWN_LENGTH_MAX: usize = 256;

/// What is known of an attempt that its network has taken on.
pub struct Known<'a> {
    /// A fact of this name.
    pub fact: &'a dyn Fn(&str) -> Option<String>,
    /// A seed of this name.
    pub seed: &'a dyn Fn(&str) -> Option<String>,
    /// The network's own name for it.
    pub network_id: Option<&'a str>,
}

impl ShownTerms {
    fn value(&self, known: &Known<'_>) -> Option<String> {
        let said = |name: &String| (known.fact)(name).filter(|value| !value.is_empty());
        if self.when_fact.as_ref().is_some_and(|name| said(name).is_none()) {
            return None;
        }
        let value = match (&self.fact, &self.seed) {
            (Some(name), _) => said(name),
            (None, Some(name)) => (known.seed)(name),
            (None, None) => known.network_id.map(str::to_owned),
        };
        value.filter(|value| value.len() <= SHOWN_LENGTH_MAX)
    }

    /// The member of a payout that it is, or is in.
    fn outer(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }
}

impl Declaration {
    /// What merchants are shown. A block with a part missing is left out.
    #[must_use]
    pub fn shown_of(&self, known: &Known<'_>) -> Told {
        let mut told = Told::default();
        let is_claim = |outer: &str| {
            self.shown.iter().any(|terms| terms.outer() == outer && terms.seed.is_some())
        };
        let mut broken: Vec<&str> = Vec::new();
        for terms in &self.shown {
            let outer = terms.outer();
            let into = if is_claim(outer) { &mut told.claim } else { &mut told.open };
            match (terms.value(known), terms.name.split_once('.')) {
                (None, _) => broken.push(outer),
                (Some(value), None) => {
                    into.insert(outer.to_owned(), value.into());
                }
                (Some(value), Some((_, inner))) => {
                    let block = into.entry(outer).or_insert_with(|| Map::new().into());
                    block[inner] = value.into();
                }
            }
        }
        for members in [&mut told.open, &mut told.claim] {
            members.retain(|name, _| !broken.contains(&name.as_str()));
        }
        told
    }

    pub(super) fn shown_nonsense(&self) -> Option<String> {
        for (name, terms) in &self.seeds {
            if let Some(why) = terms.nonsense() {
                return Some(format!("seeds.{name}: {why}"));
            }
        }
        let own = format!("{}_", self.rail.name.replace('-', "_"));
        let is_word = |text: &str| {
            !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
        };
        for (index, terms) in self.shown.iter().enumerate() {
            let ShownTerms { name, fact, seed, network_id, .. } = terms;
            let mut words = name.split('.');
            if PAYOUT_MEMBERS.contains(&terms.outer()) {
                return Some(format!("shown {name}: payouts have that already"));
            }
            if !name.starts_with(&own) || words.clone().count() > 2 || !words.all(is_word) {
                return Some(format!(
                    "shown {name}: it begins with {own}, and may be in one block"
                ));
            }
            let is_within = |other: &ShownTerms| {
                other.name == *name
                    || other.name.starts_with(&format!("{name}."))
                    || name.starts_with(&format!("{}.", other.name))
            };
            if self.shown[..index].iter().any(is_within) {
                return Some(format!("shown {name} is declared twice"));
            }
            let sources = [fact.is_some(), seed.is_some(), *network_id];
            if sources.into_iter().filter(|is_one| *is_one).count() != 1 {
                return Some(format!("shown {name} is one of fact, seed and network_id"));
            }
            if let Some(seed) = seed.as_ref().filter(|seed| !self.seeds.contains_key(*seed)) {
                return Some(format!("shown {name}: {seed} is no seed"));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> ShownTerms {
        toml::from_str(text).expect("terms")
    }

    #[test]
    fn a_seed_is_as_long_as_is_declared_and_of_its_letters() {
        let seed = |text: &str| toml::from_str::<SeedTerms>(text).expect("terms");
        let own = seed("title = \"Answer\"\nlength = 20\nalphabet = \"WXYZ\"");
        assert_eq!((own.nonsense(), own.make(|below| below - 1)), (None, "Z".repeat(20)));
        assert_eq!(seed("title = \"Answer\"").make(|_| 0), "a".repeat(12));
    }

    fn declaration() -> Declaration {
        let nip = include_str!("../../../rails/nip/rail.toml");
        let mut declaration = Declaration::read(nip).expect("valid");
        let seed = SeedTerms { title: "Answer".into(), length: 12, alphabet: seed_alphabet() };
        declaration.seeds.insert("answer".to_owned(), seed);
        declaration.shown = vec![
            terms("name = \"nip_claim.question\"\ntitle = \"Question\"\nfact = \"question\""),
            terms("name = \"nip_claim.answer\"\ntitle = \"Answer\"\nseed = \"answer\""),
            terms("name = \"nip_id\"\ntitle = \"Id\"\nnetwork_id = true\nwhen_fact = \"question\""),
        ];
        declaration
    }

    #[test]
    fn what_is_known_is_shown_and_no_half_of_a_block() {
        let declaration = declaration();
        assert_eq!(declaration.shown_nonsense(), None);
        let question = |name: &str| (name == "question").then(|| "Who?".to_owned());
        let answer = |_: &str| Some("me".to_owned());
        let nothing = |_: &str| None;
        let shown = |fact, seed| {
            let shown = declaration.shown_of(&Known { fact, seed, network_id: Some("CA1") });
            (Value::from(shown.open), Value::from(shown.claim))
        };
        let (empty, open) = (serde_json::json!({}), serde_json::json!({ "nip_id": "CA1" }));
        let claim = serde_json::json!({ "nip_claim": { "question": "Who?", "answer": "me" } });
        assert_eq!(shown(&question, &answer), (open.clone(), claim));
        assert_eq!(shown(&question, &nothing), (open, empty.clone()));
        assert_eq!(shown(&nothing, &answer), (empty.clone(), empty.clone()));
        let long = |_: &str| Some("x".repeat(257));
        assert_eq!(shown(&long, &answer).1, empty);
    }

    #[test]
    fn a_seed_that_can_be_guessed_and_a_place_of_the_hosts_own_are_refused() {
        let seed = |length, alphabet: &str| {
            SeedTerms { title: "Answer".into(), length, alphabet: alphabet.into() }.nonsense()
        };
        assert_eq!(seed(12, &seed_alphabet()), None);
        for (length, alphabet) in
            [(4, "abcdef"), (12, "aab"), (12, "ab c"), (65, "abcdef"), (0, "")]
        {
            assert!(seed(length, alphabet).is_some(), "{length} of {alphabet}");
        }
        for odd in ["status", "nip_a.b.c", "nip_claim", "nip_claim.answer", "nip_", "nip_A"] {
            let mut declaration = declaration();
            let odd = format!("name = {odd:?}\ntitle = \"?\"\nfact = \"question\"");
            declaration.shown.push(terms(&odd));
            let is_fine = declaration.shown_nonsense().is_none();
            assert_eq!(is_fine, odd.contains("\"nip_\""), "{odd}");
        }
    }
}
