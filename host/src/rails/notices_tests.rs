use super::{Message, Moment, SignatureTerms};

const NOW: Moment = Moment::from_micros(1_800_000_000_000_000);

fn terms(text: &str) -> SignatureTerms {
    toml::from_str(text).expect("terms")
}

fn message(headers: &[(&str, &str)]) -> Message {
    Message {
        method: "POST".into(),
        path: "/told".into(),
        query: Vec::new(),
        headers: headers.iter().map(|(name, it)| ((*name).into(), (*it).into())).collect(),
        body: b"{}".to_vec(),
    }
}

#[test]
fn what_is_signed_is_put_together() {
    let plain = terms("key = \"k\"\nheader = \"x-signature\"");
    let found = plain.signed(&message(&[("x-signature", "AQI=")]), NOW);
    assert_eq!(found, Some((b"{}".to_vec(), vec![1, 2])));
    let dated = terms(
        "key = \"k\"\nheader = \"x-signature\"\nencoding = \"hex\"\nprefix = \"v1=\"\n\
         over = [{ header = \"x-at\" }, { text = \".\" }, \"body\"]\n\
         signed_at = { header = \"x-at\", within_s = 300 }",
    );
    assert_eq!(dated.nonsense(), None);
    let signed = |at: &str, signature: &str| {
        dated.signed(&message(&[("x-at", at), ("x-signature", signature)]), NOW)
    };
    let near = Some((b"1800000300.{}".to_vec(), vec![1, 2]));
    assert_eq!(signed("1800000300", "v1=0102"), near);
    for (at, signature) in [
        ("1800000301", "v1=0102"),
        ("1799999699", "v1=0102"),
        ("1800000000000", "v1=0102"),
        ("", "v1=0102"),
        ("now", "v1=0102"),
        ("9223372036854775807", "v1=0102"),
        ("1800000000", "0102"),
        ("1800000000", "v1="),
        ("1800000000", "v1=010"),
        ("1800000000", "v1=AQI="),
    ] {
        assert_eq!(signed(at, signature), None, "{at} {signature}");
    }
    let twice = [("x-at", "1800000000"), ("x-at", "1800000000"), ("x-signature", "v1=0102")];
    assert_eq!(dated.signed(&message(&twice), NOW), None);
    assert_eq!(plain.signed(&message(&[("x-signature", &"A".repeat(2_052))]), NOW), None);
}

#[test]
fn instants_are_written_in_several_ways() {
    for (unit, at) in
        [("s", "1800000001"), ("ms", "1800000001000"), ("rfc3339", "2027-01-15T08:00:01Z")]
    {
        let dated = terms(&format!(
            "key = \"k\"\nheader = \"s\"\nover = [{{ header = \"at\" }}, \"body\"]\n\
             signed_at = {{ header = \"at\", within_s = 2, unit = \"{unit}\" }}"
        ));
        assert!(dated.signed(&message(&[("at", at), ("s", "AQI=")]), NOW).is_some(), "{unit}");
    }
}

#[test]
fn nonsense_is_named() {
    for odd in [
        "over = [{ text = \"a\" }]",
        "over = [{ header = \"X-At\" }, \"body\"]",
        "signed_at = { header = \"x-at\", within_s = 300 }",
        "over = [{ header = \"x-at\" }, \"body\"]\nsigned_at = { header = \"x-at\", within_s = 0 }",
        "over = [{ header = \"x-at\" }, \"body\"]\nsigned_at = { header = \"x-at\", within_s = 9999 }",
    ] {
        let odd = terms(&format!("key = \"k\"\nheader = \"x-signature\"\n{odd}"));
        assert!(odd.nonsense().is_some(), "{odd:?}");
    }
    assert!(
        toml::from_str::<SignatureTerms>("key = \"k\"\nheader = \"s\"\nover = [\"path\"]").is_err()
    );
}
