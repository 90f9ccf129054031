use crate::fixtures;

use super::receive;

const NOTICES: &str = include_str!("../cases/instant/notices.toml");

#[test]
fn what_is_understood_is_acknowledged_without_a_word() {
    fixtures::install();
    let body = NOTICES.split("'''").nth(1).expect("a notice");
    let (reply, notices) = receive("/sepa/notices", body.as_bytes()).expect("a notice");
    assert_eq!((reply.body.len(), reply.headers.len(), notices.len()), (0, 0, 1));
    assert!(receive("/sepa/notices/", body.as_bytes()).is_err());
}
