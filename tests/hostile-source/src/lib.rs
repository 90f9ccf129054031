//! A rate source that does what its provider's page says, and that is never any good.

use railhead_rate::{Pair, Rate, Source, export_source};

/// The source.
pub struct Hostile;

impl Source for Hostile {
    /// What it asks for hangs on the currencies that it is asked about.
    fn requests(pairs: &[Pair]) -> Vec<String> {
        let asks = |code: &str| pairs.iter().any(|pair| pair.from == code);
        let path = match () {
            () if asks("GBP") => "/../elsewhere",
            () if asks("CAD") => "@elsewhere.example/",
            () if asks("GHS") => "/page\r\nx-header: 1",
            () if asks("KES") => return vec!["/page".to_owned(); 9],
            () if asks("EUR") => return Vec::new(),
            () => "/page",
        };
        vec![path.to_owned()]
    }

    fn read(answers: &[Vec<u8>]) -> Result<Vec<Rate>, String> {
        let page = String::from_utf8_lossy(&answers[0]).into_owned();
        let rate = |value: &str, as_of_ms| {
            let of = Pair { from: "USD".to_owned(), to: "NGN".to_owned() };
            Rate { of, value: value.to_owned(), as_of_ms }
        };
        match page.as_str() {
            "spin" => loop {
                std::hint::spin_loop();
            },
            "fill" => {
                let mut kept = Vec::new();
                loop {
                    kept.push(vec![1_u8; 1 << 20]);
                    std::hint::black_box(&kept);
                }
            }
            "flood" => Ok(vec![rate("1500", 1); 10_001]),
            "tomorrow" => Ok(vec![rate("1500", u64::MAX)]),
            "nonsense" => Ok(vec![rate("-1", 1), rate("NaN", 1), rate("", 1)]),
            "refuse" => Err("x".repeat(100_000)),
            "good" => Ok(vec![rate("1500", 1)]),
            other => panic!("{other}"),
        }
    }
}

export_source!(Hostile);
