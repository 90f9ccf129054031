//! Inputs: those of the corpus, and others that are made out of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

/// Inputs between two looks at the clock.
const ROUND: u32 = 64;
/// Changes to one input.
const CHANGES_MAX: usize = 6;
/// Longest input that changes lead to.
const BYTES_MAX: usize = 64 * 1024;

/// One change to an input.
#[derive(Clone, Debug)]
enum Change {
    Remove(Index, u8),
    Repeat(Index, u8, u16),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    /// Puts a word in the place of some bytes.
    Replace(Index, u8, Vec<u8>),
    /// Goes on as another input of the corpus does.
    Cross(Index, Vec<u8>, Index),
}

impl Change {
    fn apply(&self, input: &mut Vec<u8>) {
        let place = |index: &Index, len: usize| index.index(len + 1);
        let end = |start: usize, len: u8, of: usize| (start + usize::from(len)).min(of);
        match self {
            Self::Remove(at, len) => {
                let start = place(at, input.len());
                input.drain(start..end(start, *len, input.len()));
            }
            Self::Repeat(at, len, times) => {
                let start = place(at, input.len());
                let part = input[start..end(start, *len, input.len())].to_vec();
                let times = usize::from(*times).min(BYTES_MAX / part.len().max(1));
                input.splice(start..start, part.repeat(times));
            }
            Self::Flip(at, bits) => {
                if !input.is_empty() {
                    let at = at.index(input.len());
                    input[at] ^= bits;
                }
            }
            Self::Insert(at, word) => {
                let start = place(at, input.len());
                input.splice(start..start, word.iter().copied());
            }
            Self::Replace(at, len, word) => {
                let start = place(at, input.len());
                let end = end(start, *len, input.len());
                input.splice(start..end, word.iter().copied());
            }
            Self::Cross(at, other, from) => {
                input.truncate(place(at, input.len()));
                input.extend(&other[place(from, other.len())..]);
            }
        }
        input.truncate(BYTES_MAX);
    }
}

fn change(corpus: Vec<Vec<u8>>, words: &'static [&'static str]) -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    let known = prop::sample::select(words).prop_map(|word| word.as_bytes().to_vec());
    let odd = prop::sample::select(ODD).prop_map(|word| word.as_bytes().to_vec());
    let random = prop::collection::vec(any::<u8>(), 1..4);
    let word = prop_oneof![4 => known, 2 => odd, 1 => random].boxed();
    prop_oneof![
        2 => (at(), 1..16_u8).prop_map(|(at, len)| Change::Remove(at, len)),
        1 => (at(), 1..32_u8, 1..300_u16).prop_map(|(at, len, times)| Change::Repeat(at, len, times)),
        1 => (at(), any::<u8>()).prop_map(|(at, bits)| Change::Flip(at, bits)),
        3 => (at(), word.clone()).prop_map(|(at, word)| Change::Insert(at, word)),
        3 => (at(), 1..12_u8, word).prop_map(|(at, len, word)| Change::Replace(at, len, word)),
        1 => (at(), prop::sample::select(corpus), at())
            .prop_map(|(at, other, from)| Change::Cross(at, other, from)),
    ]
}

/// What troubles readers of any kind.
const ODD: &[&str] = &[
    "0",
    "-1",
    "00",
    "1e9",
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551616",
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\u{a0}",
    "\u{202e}",
    "\u{fffe}",
    "\u{10ffff}",
    "é",
    "ß",
    "İ",
    "Ⅷ",
    "٣",
    "\u{301}",
    "\u{feff}",
    "'",
    "\"",
    "\\",
    "%00",
    "%",
    "~",
    "*",
    "?",
    "#",
    "..",
    "/",
    "//",
    "\\u0000",
    "\\ud800",
    "[",
    "{",
    "(",
    "<",
    ">",
    "&",
    ";",
    ",",
    ".",
    "null",
    "true",
    "NaN",
];

/// Runs a check on every input of a corpus, then on what is made out of it. A check panics where
/// something is wrong; `words` are what inputs of this kind are made of.
pub(crate) fn fuzz(target: &str, words: &'static [&'static str], check: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let corpus = read(&folder);
    assert!(!corpus.is_empty(), "{target} has no corpus");
    for (path, input) in &corpus {
        println!("{}", path.display());
        check(input);
    }
    let corpus: Vec<Vec<u8>> = corpus.into_iter().map(|(_, input)| input).collect();
    let changes = prop::collection::vec(change(corpus.clone(), words), 1..=CHANGES_MAX);
    let inputs = (prop::sample::select(corpus), changes).prop_map(|(mut input, changes)| {
        changes.iter().for_each(|change| change.apply(&mut input));
        input
    });
    let config = Config { cases: ROUND, failure_persistence: None, ..Config::default() };
    let (until, mut rounds) = (Instant::now() + budget(), 0);
    while rounds == 0 || Instant::now() < until {
        rounds += 1;
        let checked = TestRunner::new(config.clone()).run(&inputs, |input| {
            check(&input);
            Ok::<(), TestCaseError>(())
        });
        if let Err(TestError::Fail(why, input)) = checked {
            let path = keep(&folder, &input);
            let shown = String::from_utf8_lossy(&input).into_owned();
            panic!("{why}\n{shown:?}\nkept as {}", path.display());
        }
    }
    println!("{target}: {} inputs", rounds * ROUND);
}

fn budget() -> Duration {
    let seconds = std::env::var("FUZZ_SECONDS").map_or(1, |text| text.parse().expect("seconds"));
    Duration::from_secs(seconds)
}

fn read(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder).expect("a corpus");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).expect("an input"));
    paths.into_iter().map(read).collect()
}

fn keep(folder: &Path, input: &[u8]) -> PathBuf {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = folder.join(format!("found-{:016x}", hasher.finish()));
    std::fs::write(&path, input).expect("kept");
    path
}
