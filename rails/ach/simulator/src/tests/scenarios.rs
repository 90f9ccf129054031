//! What each scenario comes to.

use railhead_simulator::host::double;
use railhead_simulator::types::{Answer, State};

use super::nacha::{self, Entry};
use super::writer::{Credit, Draft, credit, draft, id, plain, trace};
use super::{
    asked, came_to, cast, contents, errors, handle, install, kept, play, read, refusal, refused,
    rejected, report, request, sent, standing,
};

#[test]
fn what_a_file_of_one_entry_comes_to() {
    let (paid, returned) = (State::Paid, State::Returned);
    let invalid = refused("invalid_account");
    for (scenario, executed, state, told) in [
        ("paid", 1, paid.clone(), vec!["accepted"]),
        ("unheard_of", 1, paid.clone(), vec!["accepted"]),
        ("return_r3", 1, paid.clone(), vec!["accepted"]),
        ("return_x", 1, paid.clone(), vec!["accepted"]),
        ("correction_c61", 1, paid.clone(), vec!["accepted"]),
        ("failed", 0, invalid, vec!["accepted"]),
        ("returned", 1, returned.clone(), vec!["accepted", "99R03"]),
        ("return_r16", 1, returned, vec!["accepted", "99R16"]),
        ("correction_c02", 1, paid.clone(), vec!["accepted", "98C02"]),
        ("duplicate_callback", 1, paid, vec!["accepted", "accepted"]),
        ("file_rejected", 0, refused("exposure_limit"), vec!["rejected"]),
        ("processing", 0, State::Pending, vec![]),
    ] {
        install(scenario);
        let (status, answer) = read(sent("a.ach", &plain(7, &[1])));
        assert_eq!(status, 201, "{scenario}: {answer}");
        assert_eq!(came_to(&id(1)), (1, executed, state), "{scenario}");
        assert_eq!(kept(&id(1)).scenario, scenario);
        let contents = contents();
        let said = contents.iter().map(|content| match content.strip_prefix('{') {
            Some(_) => report(content)["status"].as_str().expect("a status").to_owned(),
            None => nacha::read(content).1[0].what.clone(),
        });
        assert_eq!(said.collect::<Vec<_>>(), told, "{scenario}");
        let stands = match scenario {
            "file_rejected" => "rejected",
            "processing" => "received",
            _ => "accepted",
        };
        assert_eq!(standing("a.ach"), stands, "{scenario}");
        let is_rejected = u64::from(scenario == "failed");
        let listed = contents
            .first()
            .map_or(0, |it| report(it)["rejected_entries"].as_array().map_or(0, Vec::len));
        assert_eq!(u64::try_from(listed), Ok(is_rejected), "{scenario}");
        assert_eq!(errors(), 0, "{scenario}");
    }
}

#[test]
fn a_rejected_entry_does_not_hold_up_its_neighbours() {
    install("paid");
    cast(&id(2), "failed");
    assert_eq!(read(sent("a.ach", &plain(7, &[1, 2, 3]))).0, 201);
    let contents = contents();
    let [content] = contents.as_slice() else { panic!("{contents:?}") };
    let report = report(content);
    assert_eq!((&report["entries"], &report["total_credit"]), (&3.into(), &37_035.into()));
    assert_eq!(rejected(&report), [("invalid_account", trace(7, 2).as_str())]);
    assert_eq!(report["rejected_entries"][0]["amount"], 12_345);
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
        let answer = sent("a.ach", &plain(7, &[1, 2, 3]));
        if scenario == "file_rejected" {
            assert_eq!(read(answer).0, 201);
            let report = report(&contents()[0]);
            assert_eq!((&report["status"], &report["code"]), (&"rejected".into(), &code.into()));
            assert!(report["message"].is_string() && report.get("rejected_entries").is_none());
            assert_eq!((&report["entries"], &report["total_credit"]), (&3.into(), &37_035.into()));
        } else {
            assert_eq!(refusal(answer), (409, code.to_owned()));
            assert_eq!(asked("/outgoing/a.ach").0, 404);
            // It stays what it is called.
            let again = sent("a.ach", &plain(7, &[1, 2, 3]));
            assert_eq!(refusal(again), (409, code.to_owned()));
            let renamed = sent("b.ach", &plain(7, &[1, 2, 3]));
            assert_eq!(refusal(renamed), (409, code.to_owned()));
            assert!(contents().is_empty());
        }
        let arrived = kept(&id(1)).received;
        for serial in 1..=3 {
            assert_eq!(came_to(&id(serial)), (arrived, 0, refused(code)), "{scenario}");
        }
        // The references in another file are carried out, each as it would have been.
        assert_eq!(read(sent("b.ach", &plain(8, &[3, 2, 1]))).0, 201);
        for serial in [1, 2] {
            assert_eq!(came_to(&id(serial)), (arrived + 1, 1, State::Paid), "{scenario}");
            assert_eq!(kept(&id(serial)).noted("file"), "b.ach");
        }
        assert_eq!(kept(&id(1)).noted("trace"), trace(8, 3));
        let report = report(contents().last().expect("a report"));
        assert_eq!(rejected(&report), [("invalid_account", trace(8, 1).as_str())]);
        // And in a third one they are not.
        assert_eq!(read(sent("c.ach", &plain(9, &[1, 2]))).0, 201);
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
        assert_eq!(sent("a.ach", &plain(7, &[1, 2])), Answer::Silence, "{scenario}");
        assert_eq!(standing("a.ach"), "accepted");
        assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
        assert_eq!(came_to(&id(2)), (1, executed, state), "{scenario}");
        assert_eq!(contents().len(), 1);
        // Sent once more it is known, and nothing is done again.
        assert_eq!(read(sent("a.ach", &plain(7, &[1, 2]))).0, 200);
        assert_eq!((kept(&id(2)).received, kept(&id(2)).executed), (2, executed));
        assert_eq!(contents().len(), 1);
    }
    install("paid");
    cast(&id(2), "timeout_then_unknown");
    assert_eq!(sent("a.ach", &plain(7, &[1, 2])), Answer::Silence);
    assert_eq!(refusal(handle(&request("GET", "/outgoing/a.ach", ""))).0, 404);
    for serial in [1, 2] {
        assert_eq!(came_to(&id(serial)), (1, 0, State::Unclear));
    }
    assert!(contents().is_empty());
    // It is there all the same.
    assert_eq!(refusal(sent("b.ach", &plain(7, &[1, 2]))).1, "duplicate_file");
    assert_eq!(read(sent("b.ach", &plain(8, &[1]))).0, 201);
    assert_eq!(rejected(&report(&contents()[0])), [("duplicate_entry", trace(8, 1).as_str())]);
    assert_eq!(came_to(&id(1)), (2, 0, State::Unclear));
}

#[test]
fn what_never_came_is_counted_and_taken_the_second_time() {
    for second in ["a.ach", "b.ach"] {
        install("paid");
        cast(&id(2), "never_received");
        let file = plain(7, &[1, 2]);
        assert_eq!(sent("a.ach", &file), Answer::NotReceived);
        for serial in [1, 2] {
            assert_eq!(came_to(&id(serial)), (1, 0, State::Lost));
        }
        assert_eq!(asked("/outgoing/a.ach").0, 404);
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
    assert_eq!(refusal(sent("a.ach", &file)), (503, "unavailable".to_owned()));
    for path in ["/outgoing/a.ach", "/incoming", "/incoming/a.json", "/outgoing/b.ach"] {
        assert_eq!(asked(path).0, 503, "{path}");
    }
    double::with(|host| assert!(!host.book.contains_key(&id(1))));
    // The account is why: whoever asks for nothing finds the file down, and the rest as it is.
    play("paid");
    assert_eq!(asked("/outgoing/a.ach").0, 503);
    assert_eq!(asked("/outgoing/b.ach").0, 404);
    assert_eq!(asked("/incoming").0, 200);
    assert_eq!(read(sent("a.ach", &file)).0, 201);
    assert_eq!(standing("a.ach"), "accepted");
    assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
    // What was taken stays taken.
    play("provider_down");
    assert_eq!(refusal(sent("a.ach", &file)).0, 503);
    play("paid");
    assert_eq!(standing("a.ach"), "accepted");
    assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
}

#[test]
fn a_report_that_comes_twice_is_the_same_in_two_files() {
    install("duplicate_callback");
    assert_eq!(read(sent("a.ach", &plain(7, &[1]))).0, 201);
    let contents = contents();
    let [first, second] = contents.as_slice() else { panic!("{contents:?}") };
    assert_eq!(first, second);
    assert_eq!(came_to(&id(1)), (1, 1, State::Paid));
}

#[test]
fn processing_among_others_is_accepted_with_them() {
    install("paid");
    cast(&id(2), "processing");
    cast(&id(3), "failed");
    assert_eq!(read(sent("a.ach", &plain(7, &[1, 2, 3]))).0, 201);
    assert_eq!(came_to(&id(2)), (1, 1, State::Paid));
    let report = report(&contents()[0]);
    assert_eq!(rejected(&report), [("invalid_account", trace(7, 3).as_str())]);
}

/// Two batches; the entries go to two banks.
fn mixed() -> Draft {
    let other = |serial| Credit {
        code: "32",
        routing: "021000021",
        addenda: Some("THANKS"),
        ..credit(serial)
    };
    let individuals = vec![credit(1), other(2), credit(3), other(4)];
    let businesses = vec![credit(5), other(6), credit(7)];
    Draft { batches: vec![("PPD", individuals), ("CCD", businesses)], ..draft(7, &[]) }
}

#[test]
fn returns_and_notifications_come_in_one_file_behind_the_report() {
    install("paid");
    for (serial, scenario) in [
        (1, "returned"),
        (2, "return_r02"),
        (3, "return_r17"),
        (4, "correction_c03"),
        (5, "correction_c01"),
        (6, "returned"),
    ] {
        cast(&id(serial), scenario);
    }
    assert_eq!(read(sent("a.ach", &mixed().text())).0, 201);
    let contents = contents();
    let [told, file] = contents.as_slice() else { panic!("{contents:?}") };
    assert!(rejected(&report(told)).is_empty());
    let (header, entries) = nacha::read(file);
    // To whom the original came from, from where it went; the second in the feed.
    assert_eq!(&header[3..23], "1210428821 121042882");
    assert_eq!(&header[23..34], "2603062100B");
    assert_eq!(&header[40..63], format!("{:23}", "EXAMPLE PAYOUTS INC"));
    assert_eq!(&header[63..94], format!("{:23}00000002", "FIRST BANK"));
    let said = entries.iter().map(|entry| {
        assert_eq!((entry.to.as_str(), entry.name.as_str()), ("121042882", "JANE DOE"));
        assert_eq!(entry.account, "12345678");
        assert_eq!(entry.original_bank, entry.from);
        let from = (entry.class.as_str(), entry.from.as_str(), entry.code.as_str());
        (entry.id.as_str(), from, entry.what.as_str(), entry.cents)
    });
    let wanted = [
        ("R16000000000006", ("CCD", "02100002", "31"), "99R03", 12_345),
        ("R16000000000004", ("COR", "02100002", "31"), "98C03", 0),
        ("R16000000000005", ("COR", "12100024", "21"), "98C01", 0),
        ("R16000000000002", ("PPD", "02100002", "31"), "99R02", 12_345),
        ("R16000000000001", ("PPD", "12100024", "21"), "99R03", 12_345),
        ("R16000000000003", ("PPD", "12100024", "21"), "99R17", 12_345),
    ];
    assert_eq!(said.collect::<Vec<_>>(), wanted);
    let traces: Vec<&str> = entries.iter().map(|entry| entry.trace.as_str()).collect();
    let own = [
        "021000020000001",
        "021000020000002",
        "121000240000003",
        "021000020000004",
        "121000240000005",
        "121000240000006",
    ];
    assert_eq!(traces, own);
    for (entry, number) in entries.iter().zip([6, 4, 5, 2, 1, 3]) {
        assert_eq!(entry.original_trace, trace(7, number));
        assert_eq!(kept(&entry.id).executed, 1);
    }
    for (serial, state) in [(1, State::Returned), (4, State::Paid), (7, State::Paid)] {
        assert_eq!(came_to(&id(serial)), (1, 1, state));
    }
}

#[test]
fn notifications_say_what_is_right_instead() {
    for (code, data) in [
        ("c01", "12345679                     "),
        ("c02", "021000021                    "),
        ("c03", "021000021   12345679         "),
        ("c04", "JANE DOE JR                  "),
        ("c05", "32                           "),
        ("c06", "12345679            32       "),
        ("c07", "02100002112345679         32 "),
        ("c08", "DEUTDEFF                     "),
        ("c09", "R16000000000001-1            "),
        ("c10", "EXAMPLE AND SONS             "),
        ("c11", "1210428829                   "),
        ("c12", "EXAMPLE AND SONS   1210428829"),
        ("c13", "                             "),
    ] {
        install(&format!("correction_{code}"));
        assert_eq!(read(sent("a.ach", &plain(7, &[1]))).0, 201);
        let (_, entries) = nacha::read(&contents()[1]);
        let [entry] = entries.as_slice() else { panic!("{entries:?}") };
        let Entry { class, code: transaction, cents, what, data: told, .. } = entry;
        assert_eq!((class.as_str(), transaction.as_str(), *cents), ("COR", "21", 0));
        assert_eq!((what, told.as_str()), (&format!("98{}", code.to_uppercase()), data));
        assert_eq!(came_to(&id(1)), (1, 1, State::Paid), "{code}");
    }
}
