//! What lies ready, and how it is asked for.

use railhead_simulator::types::{Answer, Request};

use super::written::plain;
use super::{errors, handle, install, listed, read, refusal, request, sent};

fn asked_with(query: &[(&str, &str)]) -> Answer {
    let query = query.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    handle(&Request { query, ..request("GET", "/incoming", "") })
}

#[test]
fn cursors_lead_from_one_page_to_the_next() {
    install("returned");
    assert!(listed("").is_empty());
    for number in 1..=23 {
        assert_eq!(read(sent(&format!("{number}.txt"), &plain(number, &[number]))).0, 201);
    }
    let all = (1..=46_u32).map(|number| {
        let cursor = format!("{number:08}");
        let file = number.div_ceil(2);
        let name = match number % 2 {
            1 => format!("report-{file:04}-{cursor}.json"),
            _ => format!("returns-{cursor}.txt"),
        };
        (cursor, name)
    });
    let all: Vec<(String, String)> = all.collect();
    let mut seen: Vec<(String, String)> = Vec::new();
    for length in [20, 20, 6, 0] {
        let after = seen.last().map_or("", |(cursor, _)| cursor);
        let page = listed(after);
        assert_eq!(page.len(), length);
        seen.extend(page);
    }
    assert_eq!(seen, all);
    assert_eq!(listed("00000045"), all[45..]);
    assert!(listed("00000099").is_empty());
    assert_eq!(read(asked_with(&[])), read(asked_with(&[("after", "")])));
    let names: std::collections::BTreeSet<_> = all.iter().map(|(_, name)| name).collect();
    assert_eq!(names.len(), all.len());
    assert!(names.iter().all(|name| crate::is_file_name(name)));
}

#[test]
fn what_is_fetched_says_what_it_is() {
    install("returned");
    assert_eq!(read(sent("a.txt", &plain(1, &[1]))).0, 201);
    for (name, kind) in [
        ("report-0001-00000001.json", "application/json"),
        ("returns-00000002.txt", "text/plain; charset=us-ascii"),
    ] {
        let answer = handle(&request("GET", &format!("/incoming/{name}"), ""));
        let Answer::Response(response) = answer else { panic!("{answer:?}") };
        assert_eq!(response.headers, [("content-type".to_owned(), kind.to_owned())]);
    }
    // What was sent is not what is fetched.
    assert_eq!(refusal(handle(&request("GET", "/incoming/a.txt", ""))).0, 404);
}

#[test]
fn questions_that_nobody_asks_rightly() {
    install("paid");
    for query in [
        vec![("after", "x")],
        vec![("after", "1")],
        vec![("after", "+0000001")],
        vec![("before", "00000001")],
        vec![("after", ""), ("after", "")],
    ] {
        assert_eq!(refusal(asked_with(&query)), (400, "invalid_cursor".to_owned()), "{query:?}");
    }
    assert_eq!(errors(), 5);
}
