//! What each scenario comes to.

use railhead_simulator::host::double;
use railhead_simulator::types::{Answer, State};

use super::written::{self, Back, Credit, credit, id, plain, text};
use super::{
    asked, came_to, cast, contents, errors, handle, install, kept, play, read, refusal, refused,
    rejected, report, request, sent, standing,
};

#[test]
fn what_a_file_of_one_payment_comes_to() {
    let (paid, returned) = (State::Paid, State::Returned);
    let invalid = refused("invalid_account");
    for (scenario, executed, state, told) in [
        ("paid", 1, paid.clone(), vec!["accepted"]),
        ("unheard_of", 1, paid.clone(), vec!["accepted"]),
        ("return_90", 1, paid.clone(), vec!["accepted"]),
        ("return_802", 1, paid.clone(), vec!["accepted"]),
        ("return_9x2", 1, paid.clone(), vec!["accepted"]),
        ("failed", 0, invalid, vec!["accepted"]),
        ("returned", 1, returned.clone(), vec!["accepted", "902"]),
        ("return_905", 1, returned.clone(), vec!["accepted", "905"]),
        ("return_990", 1, returned, vec!["accepted", "990"]),
        ("duplicate_callback", 1, paid, vec!["accepted", "accepted"]),
        ("file_rejected", 0, refused("exposure_limit"), vec!["rejected"]),
        ("processing", 0, State::Pending, vec![]),
    ] {
        install(scenario);
        let (status, answer) = read(sent("a.txt", &plain(7, &[1])));
        assert_eq!(status, 201, "{scenario}: {answer}");
        assert_eq!(answer, r#"{"file_creation_number":"0007","name":"a.txt","status":"received"}"#);
        assert_eq!(came_to(&id(1)), (1, executed, state), "{scenario}");
        assert_eq!(kept(&id(1)).scenario, scenario);
        let contents = contents();
        let said = contents.iter().map(|content| match content.strip_prefix('{') {
            Some(_) => report(content)["status"].as_str().expect("a status").to_owned(),
            None => written::read(content)[0].code.clone(),
        });
        assert_eq!(said.collect::<Vec<_>>(), told, "{scenario}");
        let stands = match scenario {
            "file_rejected" => "rejected",
            "processing" => "received",
            _ => "accepted",
        };
        assert_eq!(standing("a.txt"), stands, "{scenario}");
        let is_rejected = usize::from(scenario == "failed");
        let listed = contents
            .first()
            .map_or(0, |it| report(it)["rejected_payments"].as_array().map_or(0, Vec::len));
        assert_eq!(listed, is_rejected, "{scenario}");
        assert_eq!(errors(), 0, "{scenario}");
    }
}

#[test]
fn what_comes_back_names_the_payment_in_every_way() {
    install("paid");
    for serial in [2, 3, 5, 6, 7, 8, 9] {
        cast(&id(serial), "return_912");
    }
    assert_eq!(read(sent("a.txt", &plain(7, &[1, 2, 3, 4, 5, 6, 7, 8, 9]))).0, 201);
    let back = written::read(&contents()[1]);
    let references: Vec<&str> = back.iter().map(|it| it.reference.as_str()).collect();
    assert_eq!(references, [2, 3, 5, 6, 7, 8, 9].map(id));
    let place = |institution: &str, account: &str| (institution.to_owned(), account.to_owned());
    let expected = Back {
        code: "912".into(),
        cents: 12_345,
        date: "026065".into(),
        trace: "0032000040002000000001".into(),
        stored: "450".into(),
        user: "ORIG000001".into(),
        reference: id(2),
        to: place("000300320", "1234567"),
        from: place("000400012", "7654321"),
        original: "0032000000007000000002".into(),
    };
    assert_eq!(back[0], expected);
    let traces: std::collections::BTreeSet<_> = back.iter().map(|it| &it.trace).collect();
    assert_eq!(traces.len(), 7);
}

#[test]
fn a_rejected_payment_does_not_hold_up_its_neighbours() {
    install("paid");
    cast(&id(2), "failed");
    assert_eq!(read(sent("a.txt", &plain(7, &[1, 2, 3]))).0, 201);
    let contents = contents();
    let [content] = contents.as_slice() else { panic!("{contents:?}") };
    let report = report(content);
    assert_eq!((&report["payments"], &report["total_credit"]), (&3.into(), &37_035.into()));
    assert_eq!(rejected(&report), [("invalid_account", id(2).as_str())]);
    assert_eq!(report["rejected_payments"][0]["amount"], 12_345);
    assert_eq!(came_to(&id(2)), (1, 0, refused("invalid_account")));
    for serial in [1, 3] {
        assert_eq!(came_to(&id(serial)), (1, 1, State::Paid));
    }
}

#[test]
fn a_file_that_is_rejected_or_a_duplicate_comes_again_under_another_number() {
    for (scenario, code) in
        [("file_rejected", "exposure_limit"), ("file_duplicate", "duplicate_file")]
    {
        install("paid");
        cast(&id(2), scenario);
        cast(&id(3), "failed");
        let answer = sent("a.txt", &plain(7, &[1, 2, 3]));
        if scenario == "file_rejected" {
            assert_eq!(read(answer).0, 201);
            let report = report(&contents()[0]);
            assert_eq!((&report["status"], &report["code"]), (&"rejected".into(), &code.into()));
            assert!(report["message"].is_string() && report.get("rejected_payments").is_none());
            assert_eq!((&report["payments"], &report["total_credit"]), (&3.into(), &37_035.into()));
        } else {
            assert_eq!(refusal(answer), (409, code.to_owned()));
            assert_eq!(asked("/outgoing/a.txt").0, 404);
            // It stays what it is called.
            let again = sent("a.txt", &plain(7, &[1, 2, 3]));
            assert_eq!(refusal(again), (409, code.to_owned()));
            let renamed = sent("b.txt", &plain(7, &[1, 2, 3]));
            assert_eq!(refusal(renamed), (409, code.to_owned()));
            assert!(contents().is_empty());
        }
        let arrived = kept(&id(1)).received;
        for serial in 1..=3 {
            assert_eq!(came_to(&id(serial)), (arrived, 0, refused(code)), "{scenario}");
        }
        // The references in another file are carried out, each as it would have been.
        assert_eq!(read(sent("b.txt", &plain(8, &[3, 2, 1]))).0, 201);
        for serial in [1, 2] {
            assert_eq!(came_to(&id(serial)), (arrived + 1, 1, State::Paid), "{scenario}");
            assert_eq!(kept(&id(serial)).noted("file"), "b.txt");
        }
        let report = report(contents().last().expect("a report"));
        assert_eq!(rejected(&report), [("invalid_account", id(3).as_str())]);
        // And in a third one they are not.
        assert_eq!(read(sent("c.txt", &plain(9, &[1, 2]))).0, 201);
        assert_eq!(came_to(&id(1)), (arrived + 2, 1, State::Paid));
    }
}

#[test]
fn silence_leaves_a_file_that_can_be_found_or_cannot() {
    for (scenario, executed, state) in [
        ("timeout_then_paid", 1, State::Paid),
        ("timeout_then_failed", 0, refused("invalid_account")),
    ] {
        install("paid");
        cast(&id(2), scenario);
        assert_eq!(sent("a.txt", &plain(7, &[1, 2])), Answer::Silence, "{scenario}");
        assert_eq!(standing("a.txt"), "accepted");
        assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
        assert_eq!(came_to(&id(2)), (1, executed, state), "{scenario}");
        assert_eq!(contents().len(), 1);
        // Sent once more it is known, and nothing is done again.
        assert_eq!(read(sent("a.txt", &plain(7, &[1, 2]))).0, 200);
        assert_eq!((kept(&id(2)).received, kept(&id(2)).executed), (2, executed));
        assert_eq!(contents().len(), 1);
    }
    install("paid");
    cast(&id(2), "timeout_then_unknown");
    assert_eq!(sent("a.txt", &plain(7, &[1, 2])), Answer::Silence);
    assert_eq!(refusal(handle(&request("GET", "/outgoing/a.txt", ""))).0, 404);
    for serial in [1, 2] {
        assert_eq!(came_to(&id(serial)), (1, 0, State::Unclear));
    }
    assert!(contents().is_empty());
    // It is there all the same.
    assert_eq!(refusal(sent("b.txt", &plain(7, &[1, 2]))).1, "duplicate_file");
    assert_eq!(read(sent("b.txt", &plain(8, &[1]))).0, 201);
    assert_eq!(rejected(&report(&contents()[0])), [("duplicate_payment", id(1).as_str())]);
    assert_eq!(came_to(&id(1)), (2, 0, State::Unclear));
}

#[test]
fn what_never_came_is_counted_and_taken_the_second_time() {
    for second in ["a.txt", "b.txt"] {
        install("paid");
        cast(&id(2), "never_received");
        let file = plain(7, &[1, 2]);
        assert_eq!(sent("a.txt", &file), Answer::NotReceived);
        for serial in [1, 2] {
            assert_eq!(came_to(&id(serial)), (1, 0, State::Lost));
        }
        assert_eq!(asked("/outgoing/a.txt").0, 404);
        assert!(contents().is_empty());
        assert_eq!(read(sent(second, &file)).0, 201);
        for serial in [1, 2] {
            assert_eq!(came_to(&id(serial)), (2, 1, State::Paid));
        }
        assert_eq!(standing(second), "accepted");
        assert_eq!(contents().len(), 1);
        assert_eq!(read(sent(second, &file)).0, 200);
        assert_eq!(came_to(&id(1)), (3, 1, State::Paid));
    }
}

#[test]
fn a_gateway_that_is_down_takes_nothing_and_tells_nothing() {
    install("provider_down");
    let file = plain(7, &[1]);
    assert_eq!(refusal(sent("a.txt", &file)), (503, "unavailable".to_owned()));
    for path in ["/outgoing/a.txt", "/incoming", "/incoming/a.json", "/outgoing/b.txt"] {
        assert_eq!(asked(path).0, 503, "{path}");
    }
    double::with(|host| assert!(!host.book.contains_key(&id(1))));
    // The account is why: whoever asks for nothing finds the file down, and the rest as it is.
    play("paid");
    assert_eq!(asked("/outgoing/a.txt").0, 503);
    assert_eq!(asked("/outgoing/b.txt").0, 404);
    assert_eq!(asked("/incoming").0, 200);
    assert_eq!(read(sent("a.txt", &file)).0, 201);
    assert_eq!(standing("a.txt"), "accepted");
    assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
    // What was taken stays taken.
    play("provider_down");
    assert_eq!(refusal(sent("a.txt", &file)).0, 503);
    play("paid");
    assert_eq!(standing("a.txt"), "accepted");
    assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
}

#[test]
fn a_report_that_comes_twice_is_the_same_in_two_files() {
    install("duplicate_callback");
    assert_eq!(read(sent("a.txt", &plain(7, &[1, 2]))).0, 201);
    let contents = contents();
    assert_eq!(contents.len(), 2);
    assert_eq!(contents[0], contents[1]);
    for serial in [1, 2] {
        assert_eq!(came_to(&id(serial)), (1, 1, State::Paid));
    }
}

#[test]
fn payments_that_wait_hold_the_report_back_only_together() {
    install("paid");
    cast(&id(2), "processing");
    assert_eq!(read(sent("a.txt", &plain(7, &[1, 2]))).0, 201);
    assert_eq!(came_to(&id(2)), (1, 1, State::Paid));
    assert_eq!((contents().len(), standing("a.txt")), (1, "accepted".to_owned()));
}

#[test]
fn an_amount_may_have_ten_digits_and_an_account_twelve() {
    install("paid");
    let big = Credit { cents: 9_999_999_999, account: "000000000001", ..credit(1) };
    assert_eq!(read(sent("a.txt", &text(7, &[big]))).0, 201);
    let kept = kept(&id(1));
    assert_eq!((kept.amount_minor, kept.account.as_str()), (9_999_999_999, "000000000001"));
}
