//! What conditions mean, and which ones are refused with which words.

#![cfg(not(target_family = "wasm"))]
#![expect(clippy::expect_used, reason = "tests")]

use std::fmt::Write;

use railhead_facts::Type;
use railhead_rule::Value;
use railhead_rules_fraud::cel::{
    CONDITION_BYTES_MAX, DEPTH_MAX, Fault, List, Names, Param, compile,
};

/// Facts that are known, and after them one of each type that is absent.
fn facts() -> Vec<(&'static str, Type, Value)> {
    vec![
        ("amount_minor", Type::Int, 1_500.into()),
        ("currency", Type::String, "NGN".into()),
        ("first_payment", Type::Bool, true.into()),
        ("hour", Type::Int, 3.into()),
        ("recipient_name", Type::String, "Ádá \"Obi\"".into()),
        ("lowest", Type::Int, i64::MIN.into()),
        ("zero", Type::Int, 0.into()),
        ("no_int", Type::Int, Value::Absent),
        ("no_string", Type::String, Value::Absent),
        ("no_bool", Type::Bool, Value::Absent),
    ]
}

fn names() -> Names {
    Names {
        facts: facts().into_iter().map(|(name, kind, _)| (name.to_owned(), kind)).collect(),
        params: [
            ("cap".to_owned(), Param::Int(1_000)),
            ("home".to_owned(), Param::String("NGN".into())),
            ("strict".to_owned(), Param::Bool(true)),
        ]
        .into(),
        lists: [
            ("banks".to_owned(), List::of_strings(vec!["NGN".into(), "044".into()])),
            ("hours".to_owned(), List::of_ints(vec![5, 3, 4])),
            ("nothing".to_owned(), List::Empty),
        ]
        .into(),
    }
}

fn holds(condition: &str) -> Result<bool, Fault> {
    let condition = compile(condition, &names()).expect(condition);
    let facts = facts();
    let known: Vec<&Value> = facts.iter().map(|(_, _, value)| value).collect();
    condition.holds(&known)
}

#[test]
fn conditions_that_hold() {
    for condition in [
        "true",
        "!false",
        "!!true",
        "amount_minor == 1500",
        "amount_minor == 0x5dc",
        "amount_minor != 1501 // and the rest is not read",
        "amount_minor > cap",
        "amount_minor >= 1500 && amount_minor <= 1500",
        "currency == 'NGN' && currency == \"NGN\"",
        "currency == home",
        "currency != 'ngn'",
        "currency < 'NGO' && 'NGNA' > currency && 'Z' < 'a' && 'z' < 'é'",
        "first_payment",
        "first_payment == strict",
        "first_payment != false",
        "(first_payment)",
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "10 - 3 - 2 == 5",
        "100 / 10 / 2 == 5",
        "7 % 4 == 3 && -7 % 4 == -3",
        "7 / 2 == 3 && -7 / 2 == -3",
        "-amount_minor == -1500",
        "- - 5 == 5",
        "2 - -3 == 5",
        "lowest == -9223372036854775808",
        "true || false && false",
        "!(true && false)",
        "1 < 2 == true",
        "amount_minor > 5 ? first_payment : false",
        "(hour < 6 ? 100 : 200) == 100",
        "(hour > 6 ? 'a' : hour > 2 ? 'b' : 'c') == 'b'",
        "currency in banks",
        "currency in ['USD', 'NGN']",
        "currency in [home]",
        "hour in hours && !(2 in hours)",
        "hour in [1, 2, 3]",
        "hour - 1 in [2]",
        "!(currency in [])",
        "!(hour in nothing)",
        "recipient_name.startsWith('Á')",
        "recipient_name.endsWith('\\\"')",
        "recipient_name.contains(\" \\\"Ob\")",
        "recipient_name.contains('')",
        "startsWith(currency, 'N')",
        "recipient_name == '\\u00c1d\\u00e1 \"Obi\"'",
        "'it\\'s\\t\\\\' == \"it's\t\\\\\"",
        "size(recipient_name) == 9",
        "recipient_name.size() == 9",
        "size(banks) == 2 && banks.size() == 2 && size(nothing) == 0 && size([1, 1]) == 2",
        "'' == '' && size('') == 0",
    ] {
        assert_eq!(holds(condition), Ok(true), "{condition}");
        assert_eq!(holds(&format!("!({condition}\n)")), Ok(false), "not {condition}");
    }
}

#[test]
fn absent_facts_are_null() {
    for (condition, expected) in [
        ("no_int == null", true),
        ("null == no_string", true),
        ("no_bool != null", false),
        ("amount_minor == null", false),
        ("amount_minor != null", true),
        // Null spreads through what works with values.
        ("no_int + 1 == null", true),
        ("-no_int == null", true),
        ("size(no_string) == null", true),
        ("!no_bool == null", true),
        ("(no_bool ? 1 : 2) == null", true),
        ("(strict ? no_int : 2) == null", true),
        // Every comparison with it is false, so its opposite may be false as well.
        ("no_int == 1", false),
        ("no_int != 1", false),
        ("no_int < 1", false),
        ("no_int >= 1", false),
        ("no_int == no_int", false),
        ("no_string == ''", false),
        ("no_string != ''", false),
        ("no_bool == true", false),
        ("no_bool != true", false),
        ("no_int * 0 == 0", false),
        ("no_string in banks", false),
        ("no_int in hours", false),
        ("no_string.startsWith('')", false),
        ("currency.contains(no_string)", false),
        ("size(no_string) >= 0", false),
        // That a comparison is false is known.
        ("!(no_int > 5)", true),
        // A bool that is not known is neither true nor false.
        ("no_bool", false),
        ("!no_bool", false),
        ("no_bool || first_payment", true),
        ("no_bool && first_payment", false),
        ("no_bool ? true : true", false),
    ] {
        assert_eq!(holds(condition), Ok(expected), "{condition}");
    }
}

#[test]
fn numbers_never_leave_64_bits_silently() {
    for (condition, fault) in [
        ("9223372036854775807 + amount_minor > 0", Fault::Overflow),
        ("lowest - 1 < 0", Fault::Overflow),
        ("lowest * 2 < 0", Fault::Overflow),
        ("-lowest > 0", Fault::Overflow),
        ("lowest / -1 > 0", Fault::Overflow),
        ("lowest % -1 == 0", Fault::Overflow),
        ("amount_minor / zero > 0", Fault::DivisionByZero),
        ("amount_minor % zero > 0", Fault::DivisionByZero),
        ("amount_minor / zero == null", Fault::DivisionByZero),
        ("!(1 / zero == 1)", Fault::DivisionByZero),
        ("1 / zero == 1 || false", Fault::DivisionByZero),
        ("true && 1 / zero == 1", Fault::DivisionByZero),
        ("1 / zero == 1 && 1 / zero == 1", Fault::DivisionByZero),
        // Of more than one the first is told.
        ("1 / zero == 1 && (true && lowest - 1 < 0)", Fault::DivisionByZero),
        ("(lowest - 1 < 0 || false) || 1 / zero == 1", Fault::Overflow),
        ("1 / zero == 1 ? true : true", Fault::DivisionByZero),
        ("1 / zero in nothing", Fault::DivisionByZero),
    ] {
        assert_eq!(holds(condition), Err(fault), "{condition}");
    }
    // One side that decides is enough, whichever it is.
    for (condition, expected) in [
        ("zero != 0 && 1 / zero == 1", false),
        ("1 / zero == 1 && zero != 0", false),
        ("true || 1 / zero == 1", true),
        ("1 / zero == 1 || true", true),
        ("zero == 0 ? true : 1 / zero == 1", true),
        // Nothing comes of nothing, so there is nothing to overflow.
        ("no_int / zero == 1", false),
    ] {
        assert_eq!(holds(condition), Ok(expected), "{condition}");
    }
}

#[test]
fn a_fact_of_another_type_is_a_fault() {
    let condition = compile("amount_minor > 5", &names()).expect("valid");
    let text = Value::String("6".into());
    assert_eq!(condition.holds(&[&text]), Err(Fault::WrongType(0)));
    assert_eq!(condition.holds(&[]), Ok(false));
}

const REFUSED: &[&str] = &[
    // Not in the language.
    "",
    "amount_minor > 1.5",
    "amount_minor > 1e3",
    "amount_minor > 5u",
    "amount_minor > 5kobo",
    "amount_minor > 0x",
    "amount_minor > 9223372036854775808",
    "amount_minor > -9223372036854775809",
    "amount_minor > 99999999999999999999",
    "currency = 'NGN'",
    "first_payment & strict",
    "currency == ‘NGN’",
    "currency == 'NGN",
    "currency == 'N\\xGN'",
    "currency == '\\ud800'",
    "currency == r'NGN'",
    "currency == b'NGN'",
    "currency == '''NGN'''",
    "currency 'NGN'",
    "currency == x'NGN'",
    "amount_minor # 5",
    // Grammar.
    "amount_minor >",
    "(amount_minor > 5",
    "amount_minor > 5)",
    "amount_minor > 5 hour",
    "hour in [1, 2",
    "hour in [1 2]",
    "strict ? true",
    "not strict",
    "strict and first_payment",
    "currency.",
    "currency.1",
    "&& strict",
    // Parts of CEL that are not offered.
    "has(currency)",
    "banks.exists(b, b == currency)",
    "currency.matches('N.*')",
    "int(currency) > 5",
    "timestamp('2026-01-01T00:00:00Z') != null",
    "currency.lowerAscii() == 'ngn'",
    "payout.amount > 5",
    "banks[0] == currency",
    "{'a': 1} == null",
    "Payout{amount: 5} == null",
    ".currency == 'NGN'",
    "while == 5",
    "currency + 'X' == 'NGNX'",
    // Types.
    "amount_minor",
    "'yes'",
    "banks",
    "null",
    "null == null",
    "amount_minor > null",
    "banks == null",
    "amount_minor == 'x'",
    "first_payment == 1",
    "first_payment < true",
    "!amount_minor",
    "-currency == 5",
    "amount_minor && strict",
    "strict || currency",
    "amount_minor + first_payment > 5",
    "amount_minor ? true : false",
    "(strict ? 1 : 'x') == 1",
    "(strict ? null : 1) == 1",
    "(strict ? banks : banks) == null",
    "1 < amount_minor < 5",
    "banks == banks",
    "currency in 'NGN'",
    "'N' in currency",
    "amount_minor in banks",
    "currency in hours",
    "strict in []",
    "null in banks",
    "hour in [1, 'x']",
    "hour in [hour]",
    "hour in [null]",
    "hour in [[1]]",
    "currency.startsWith(5)",
    "hour.startsWith('5')",
    "currency.startsWith()",
    "currency.contains('a', 'b')",
    "size() == 1",
    "size(hour) == 1",
    // Names.
    "amount > 5",
    "curency == 'NGN'",
    "bank_code in banks",
    "bank_cod in banks",
    "count_per_walet_1h > 5",
    "x > 5",
    "Amount_minor > 5",
    "currency in bank",
    // Places are counted in lines and letters.
    "strict &&\n  'é' == currency && amout_minor > 5",
];

#[test]
fn refusals() {
    let mut told = String::new();
    for condition in REFUSED {
        let mistake = compile(condition, &names()).map(|_| ()).expect_err(condition);
        writeln!(told, "{condition}\n    {mistake}").expect("memory");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn size_and_depth_have_limits() {
    let depth = usize::try_from(DEPTH_MAX).expect("small");
    let deep = |open: &str, close: &str, levels: usize| {
        let condition = format!("{}strict{}", open.repeat(levels), close.repeat(levels));
        compile(&condition, &names()).map(|_| ())
    };
    let chain = |levels| deep("strict || ", "", levels);
    for limited in [
        &|levels| deep("(", ")", levels) as Result<(), String>,
        &|levels| deep("!", "", levels),
        &|levels| deep("strict ? strict : ", "", levels),
        &|levels| deep("", " && strict", levels),
        &|levels| deep("(strict || ", ")", levels / 2),
        &chain,
    ] as [&dyn Fn(usize) -> Result<(), String>; 6]
    {
        assert_eq!(limited(depth / 3), Ok(()));
        let refused = limited(CONDITION_BYTES_MAX / 20).expect_err("too deep");
        assert!(refused.contains("deeper than 100 levels"), "{refused}");
    }
    let refused = deep("", &" ".repeat(CONDITION_BYTES_MAX), 1).expect_err("too long");
    assert!(refused.contains("at most 4096 bytes"), "{refused}");
}
