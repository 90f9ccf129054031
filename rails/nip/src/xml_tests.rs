use proptest::prelude::*;

use super::{BODY_BYTES_MAX, Document, read};

fn code_of(body: &str) -> Result<String, &'static str> {
    read(body.as_bytes(), "Answer").map(|element| element.get("Code").to_owned())
}

#[test]
fn written_and_escaped_once() {
    let body = Document::new("Answer").element("Code", "a<b>&\"'\u{1}\n").element("No", "");
    let text = String::from_utf8(body.finish()).expect("UTF-8");
    assert_eq!(
        text,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Answer>\
         <Code>a&lt;b&gt;&amp;&quot;&apos;  </Code><No></No></Answer>"
    );
}

#[test]
fn read_in_every_shape_that_is_known() {
    for body in [
        "<Answer><Code>00</Code></Answer>",
        "\u{feff}<?xml version=\"1.0\"?>\r\n<Answer>\n <Code>\n00 </Code>\n</Answer>\n<!-- end -->",
        "<n:Answer xmlns:n=\"http://core.nip.nibss/\"><n:Code>00</n:Code></n:Answer>",
        "<Answer xmlns=\"http://core.nip.nibss/\"><Code kind=\"x\">00</Code></Answer>",
        "<Envelope><Body><r><Answer><Code>00</Code></Answer></r></Body></Envelope>",
        "<Answer><More><Code>05</Code></More><Code><![CDATA[00]]></Code><Other/></Answer>",
        "<Answer><Code>&#48;&#x30;</Code></Answer>",
    ] {
        assert_eq!(code_of(body), Ok("00".into()), "{body}");
    }
    let ada = read(b"<A><Name>Ada &amp; &lt;Obi&gt; &apos;&quot;</Name></A>", "A");
    assert_eq!(ada.map(|a| a.get("Name").to_owned()), Ok("Ada & <Obi> '\"".into()));
    assert_eq!(code_of("<Answer><Else>00</Else></Answer>"), Ok(String::new()));
    assert_eq!(code_of("<Answer><Code>0<b/>0</Code></Answer>"), Ok(String::new()));
    assert_eq!(code_of("<Answer/>"), Ok(String::new()));
}

#[test]
fn what_is_not_one_whole_answer() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"00\"><!ENTITY b \"&a;&a;\">]>\
                <Answer><Code>&b;</Code></Answer>";
    for body in [
        "",
        "OK",
        "{\"Code\":\"00\"}",
        "<html><body>Bad gateway</body></html>",
        "<Answer><Code>00</Code>",
        "<Answer><Code>00</Code></Ans",
        "<Answer><Code>00</Answer></Code>",
        "<Answer><Code>00</Code></Answer></Answer>",
        "<Answer><Code>00</Code></Answer>rest",
        "<Answer><Code>00</Code></Answer><Answer><Code>05</Code></Answer>",
        "<Answer><Code>00</Code><Code>05</Code></Answer>",
        "<Answer><n:Code>00</n:Code><Code>05</Code></Answer>",
        "<Answer><Code>&b;</Code></Answer>",
        "<Answer><Code>&#0;</Code></Answer>",
        "<Answer><Code>&amp</Code></Answer>",
        bomb,
    ] {
        assert!(code_of(body).is_err(), "{body}");
    }
    assert!(read(&[0xff, 0xfe], "Answer").is_err());
}

#[test]
fn limits() {
    let filler = "x".repeat(BODY_BYTES_MAX);
    assert!(code_of(&format!("<Answer><Code>{filler}</Code></Answer>")).is_err());
    let deep = format!("{}{}", "<a>".repeat(20_000), "</a>".repeat(3));
    assert!(code_of(&deep).is_err());
    let wide = format!("<Answer>{}</Answer>", "<a/>".repeat(300));
    assert!(code_of(&wide).is_err());
}

proptest! {
    #[test]
    fn any_body_is_answered(body: Vec<u8>) {
        let _ = read(&body, "Answer");
    }

    #[test]
    fn markup_is_answered(body in "(<Answer>|<Code>|</Code>|</Answer>|<|&|;|0|]]>|<!\\[CDATA\\[|/>){0,30}") {
        let _ = read(body.as_bytes(), "Answer");
    }

    #[test]
    fn what_was_written_is_read(value in "[^\\p{Cc}\u{fffe}\u{ffff}]{0,60}") {
        let body = Document::new("Answer").element("Code", &value).finish();
        let element = read(&body, "Answer").expect("an answer");
        prop_assert_eq!(element.get("Code"), value.trim());
    }
}
