//! Pay.UK's modulus check: whether a sort code and an account number can belong together.
//!
//! The rules are those of the document "Validating account numbers", whose numbered exceptions
//! the weight table refers to. The tables themselves are the operator's. A pair that no row
//! speaks of is presumed valid: the check is a filter, and no proof that there is an account.

use railhead_rail::host::{self, Row};

/// The operator's table of weights.
pub const WEIGHTS: &str = "weights";
/// The operator's table of sort codes that are checked as others (exception 5).
pub const SUBSTITUTIONS: &str = "substitutions";

/// Columns of the weights, in the order of the digits: sort code, then account.
const COLUMNS: [&str; 14] = ["u", "v", "w", "x", "y", "z", "a", "b", "c", "d", "e", "f", "g", "h"];
/// Places of single digits of the account number.
const A: usize = 6;
const B: usize = 7;
const C: usize = 8;
const G: usize = 12;
const H: usize = 13;

/// Weights have up to three digits.
const WEIGHT_MAX: i32 = 999;

/// Exception 8 checks every account as one of this sort code.
const SORT_CODE_8: &str = "090126";
/// Exception 9 checks a euro account as a sterling one, which has this sort code.
const SORT_CODE_9: &str = "309634";
/// Exception 2, where a is not 0 and g is not 9.
const WEIGHTS_2: [i32; 14] = [0, 0, 1, 2, 5, 3, 6, 4, 8, 7, 10, 9, 3, 1];
/// Exception 2, where a is not 0 and g is 9.
const WEIGHTS_2_G9: [i32; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 8, 7, 10, 9, 3, 1];

/// How the digits are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Mod10,
    Mod11,
    /// Double alternate: the digits of each product, modulo 10.
    DoubleAlternate,
}

/// A row of the weight table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    method: Method,
    weights: [i32; 14],
    /// The number of the exception; 0 without one.
    exception: u8,
}

/// Six digits of a sort code, then eight of an account.
type Digits = [i32; 14];

/// Whether the sort code (six digits) and the account (eight) pass every check that the
/// operator's tables have for them.
#[must_use]
pub fn is_possible(sort_code: &str, account: &str) -> bool {
    let rows = host::rows_around(WEIGHTS, sort_code);
    let checks: Option<Vec<Check>> = rows.iter().map(read).collect();
    let (Some(checks), Some(digits)) = (checks, digits(sort_code, account)) else {
        host::warn(&format!("the table {WEIGHTS} has an unreadable row for {sort_code}"));
        return true;
    };
    match checks.as_slice() {
        [] => true,
        [only] => passes(only, sort_code, account, &digits),
        [first, second, ..] => both(first, second, sort_code, account, &digits),
    }
}

/// Two rows: as a rule both checks must pass.
fn both(first: &Check, second: &Check, sort_code: &str, account: &str, digits: &Digits) -> bool {
    let first_passes = passes(first, sort_code, account, digits);
    match (first.exception, second.exception) {
        // One of the two is enough.
        (2, 9) | (10, 11) | (12, 13) => first_passes || passes(second, sort_code, account, digits),
        // The second check is left out.
        (_, 3) if matches!(digits[C], 6 | 9) => first_passes,
        _ => first_passes && passes(second, sort_code, account, digits),
    }
}

fn passes(check: &Check, sort_code: &str, account: &str, digits: &Digits) -> bool {
    let (a, b, g, h) = (digits[A], digits[B], digits[G], digits[H]);
    let mut weights = check.weights;
    match check.exception {
        2 if a != 0 => weights = if g == 9 { WEIGHTS_2_G9 } else { WEIGHTS_2 },
        // A foreign currency account, which cannot be checked.
        6 if (4..=8).contains(&a) && g == h => return true,
        7 if g == 9 => weights[..=B].fill(0),
        10 if matches!((a, b), (0 | 9, 9)) && g == 9 => weights[..=B].fill(0),
        _ => {}
    }
    let digits = match substitute(check.exception, sort_code) {
        Some(other) => self::digits(&other, account).unwrap_or(*digits),
        None => *digits,
    };
    let sum = total(check.method, &weights, &digits);
    match (check.exception, check.method) {
        (1, _) => (sum + 27) % 10 == 0,
        (4, _) => sum.rem_euclid(11) == g * 10 + h,
        // The check digit stands beside the sum: g for the first check, h for the second.
        (5, Method::Mod11) => match sum.rem_euclid(11) {
            0 => g == 0,
            1 => false,
            rest => 11 - rest == g,
        },
        (5, _) => (10 - sum.rem_euclid(10)) % 10 == h,
        (14, _) => is_zero(check.method, sum) || is_possible_14(check, &digits),
        (_, method) => is_zero(method, sum),
    }
}

/// Exception 14, where the first check failed: an account that ends with 0, 1 or 9 is checked
/// once more without that digit, all others moved one place to the right.
fn is_possible_14(check: &Check, digits: &Digits) -> bool {
    if !matches!(digits[H], 0 | 1 | 9) {
        return false;
    }
    let mut moved = *digits;
    moved.copy_within(A..H, B);
    moved[A] = 0;
    is_zero(check.method, total(check.method, &check.weights, &moved))
}

/// The sort code that stands in for this one in the check.
fn substitute(exception: u8, sort_code: &str) -> Option<String> {
    match exception {
        5 => {
            let rows = host::rows(SUBSTITUTIONS, "sort_code", sort_code);
            let other = rows.first().map(|row| row.get("substitute").to_owned());
            other.filter(|other| !other.is_empty())
        }
        8 => Some(SORT_CODE_8.to_owned()),
        9 => Some(SORT_CODE_9.to_owned()),
        _ => None,
    }
}

fn total(method: Method, weights: &[i32; 14], digits: &Digits) -> i32 {
    let products = weights.iter().zip(digits).map(|(weight, digit)| weight * digit);
    match method {
        Method::Mod10 | Method::Mod11 => products.sum(),
        Method::DoubleAlternate => products.map(digit_sum).sum(),
    }
}

fn digit_sum(product: i32) -> i32 {
    let (mut rest, mut sum) = (product.abs(), 0);
    while rest > 0 {
        sum += rest % 10;
        rest /= 10;
    }
    sum
}

fn is_zero(method: Method, sum: i32) -> bool {
    let modulus = if method == Method::Mod11 { 11 } else { 10 };
    sum.rem_euclid(modulus) == 0
}

fn digits(sort_code: &str, account: &str) -> Option<Digits> {
    let digits: Option<Vec<i32>> = sort_code
        .chars()
        .chain(account.chars())
        .map(|c| i32::try_from(c.to_digit(10)?).ok())
        .collect();
    digits?.try_into().ok()
}

fn read(row: &Row) -> Option<Check> {
    let method = match row.get("method") {
        "MOD10" => Method::Mod10,
        "MOD11" => Method::Mod11,
        "DBLAL" => Method::DoubleAlternate,
        _ => return None,
    };
    let mut weights = [0; 14];
    for (weight, column) in weights.iter_mut().zip(COLUMNS) {
        let is_weight = |found: &i32| (-WEIGHT_MAX..=WEIGHT_MAX).contains(found);
        *weight = row.get(column).parse().ok().filter(is_weight)?;
    }
    let exception = match row.get("exception") {
        "" => 0,
        number => number.parse().ok().filter(|number| (1..=14).contains(number))?,
    };
    Some(Check { method, weights, exception })
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::Row;
    use railhead_rail::host::double::{self, Host};

    use super::{SUBSTITUTIONS, WEIGHTS, is_possible};
    use crate::fixtures;

    /// Sort codes and accounts for the rows of the fixtures, and whether they pass.
    const VECTORS_CSV: &str = include_str!("../fixtures/vectors.csv");

    const HEAD: &str = "start,end,method,u,v,w,x,y,z,a,b,c,d,e,f,g,h,exception";

    #[test]
    fn every_vector() {
        fixtures::install();
        let vectors = double::table(VECTORS_CSV);
        assert_eq!(vectors.len(), 500);
        for vector in vectors {
            let (sort_code, account) = (vector.get("sort_code"), vector.get("account"));
            let about = format!("{sort_code} {account}: {}", vector.get("about"));
            assert!(matches!(vector.get("passes"), "yes" | "no"), "{about}");
            assert_eq!(is_possible(sort_code, account), vector.get("passes") == "yes", "{about}");
        }
    }

    #[test]
    fn every_method_and_every_exception_has_vectors() {
        let rows = double::table(fixtures::WEIGHTS_CSV);
        for method in ["MOD10", "MOD11", "DBLAL"] {
            let mut rows = rows.iter().filter(|row| row.get("method") == method);
            assert!(rows.any(|row| row.get("exception").is_empty()), "{method}");
        }
        for exception in 1..=14_u8 {
            let exception = exception.to_string();
            assert!(rows.iter().any(|row| row.get("exception") == exception), "{exception}");
        }
        let vectors = double::table(VECTORS_CSV);
        for row in &rows {
            for passes in ["yes", "no"] {
                let is_of_row = |vector: &&Row| {
                    let range = row.get("start")..=row.get("end");
                    vector.get("passes") == passes && range.contains(&vector.get("sort_code"))
                };
                assert!(vectors.iter().filter(is_of_row).count() >= 5, "{row:?}: {passes}");
            }
        }
    }

    #[test]
    fn what_no_row_speaks_of_is_presumed_valid() {
        fixtures::install();
        assert!(is_possible("000000", "12345678"));
        assert!(is_possible("999999", "00000001"));
        assert!(!is_possible("990149", "54186352"));
        assert!(is_possible("990150", "54186352"));
        double::install(Host::default());
        assert!(is_possible("990149", "54186352"));
    }

    #[test]
    fn a_substituted_sort_code_decides() {
        let mut host = fixtures::host();
        host.tables.remove(SUBSTITUTIONS);
        double::install(host);
        assert!(!is_possible("995003", "49548123"));
        assert!(is_possible("995003", "49542994"));
        fixtures::install();
        assert!(is_possible("995003", "49548123"));
        assert!(!is_possible("995003", "49542994"));
    }

    #[test]
    fn weights_of_three_digits() {
        let mut host = Host::default();
        let row = "990001,990009,MOD11,0,0,0,0,0,0,999,-999,0,0,0,0,0,1,";
        host.tables.insert(WEIGHTS.into(), double::table(&format!("{HEAD}\n{row}\n")));
        double::install(host);
        // 999 is 9 more than 90 x 11.
        assert!(is_possible("990001", "10000002"));
        assert!(is_possible("990001", "01000009"));
        assert!(!is_possible("990001", "10000009"));
        assert!(!is_possible("990001", "01000002"));
    }

    #[test]
    fn a_row_that_cannot_be_read_forbids_nothing() {
        for (row, is_readable) in [
            ("990149,990149,MOD10,0,0,0,0,0,0,8,3,6,5,9,2,4,7,", true),
            ("990149,990149,MOD97,0,0,0,0,0,0,8,3,6,5,9,2,4,7,", false),
            ("990149,990149,MOD10,0,0,0,0,0,0,8,3,6,5,9,2,4,x,", false),
            ("990149,990149,MOD10,0,0,0,0,0,0,8,3,6,5,9,2,4,7,15", false),
            ("990149,990149,MOD10,0,0,0,0,0,0,8,3,6,5,9,2,4,1000,", false),
            ("990149,990149,MOD10,0,0,0,0,0,0,8,3,6,5,9,2,4,1000000000,", false),
            ("990149,990149,MOD10", false),
        ] {
            let mut host = Host::default();
            host.tables.insert(WEIGHTS.into(), double::table(&format!("{HEAD}\n{row}\n")));
            double::install(host);
            assert_eq!(is_possible("990149", "00000001"), !is_readable, "{row}");
        }
    }
}
