use super::{Document, read};

const HEAD: &str = "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:a.1\">";

fn text_of(inside: &str) -> Result<Option<String>, String> {
    let message = read(format!("{HEAD}<M>{inside}</M></Document>").as_bytes())?;
    assert_eq!((&*message.kind, message.content.name()), ("a.1", "M"));
    message.content.text(&["A", "B"]).map(|text| text.map(str::to_owned))
}

#[test]
fn written_and_escaped_once() {
    let mut document = Document::new("a.1");
    document.within("M", |it| {
        it.value("A", "1 < 2 & \"3\"");
        it.euros("B", "1.00");
    });
    let text = String::from_utf8(document.finish()).expect("UTF-8");
    let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                    <Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:a.1\">\n \
                    <M>\n  <A>1 &lt; 2 &amp; \"3\"</A>\n  <B Ccy=\"EUR\">1.00</B>\n </M>\n\
                    </Document>\n";
    assert_eq!(text, expected);
    let message = read(text.as_bytes()).expect("a message");
    assert_eq!(message.content.text(&["A"]), Ok(Some("1 < 2 & \"3\"")));
    let amount = message.content.find("B").expect("once").expect("an amount");
    assert_eq!(amount.attribute("Ccy"), Some("EUR"));
}

#[test]
fn a_part_is_lines_of_the_whole() {
    let mut document = Document::new("a.1");
    let part = Document::part(2, |it| it.value("A", "1"));
    document.within("M", |it| it.lines(&part));
    let text = String::from_utf8(document.finish()).expect("UTF-8");
    assert!(text.contains("\n  <A>1</A>\n"), "{text}");
}

#[test]
fn read_in_every_shape() {
    for inside in [
        "<A><B>1</B></A>",
        " <A>\n\t<B> 1 </B>\r\n</A> <!-- x -->",
        "<A><B><![CDATA[1]]></B></A>",
        "<A><B>&#49;</B><C/></A>",
        "<A><B kind=\"x\">1</B></A><SplmtryData><x:Y xmlns:x=\"urn:y\">2<z/></x:Y></SplmtryData>",
    ] {
        assert_eq!(text_of(inside), Ok(Some("1".to_owned())), "{inside}");
    }
    for inside in ["", "<A/>", "<C/>"] {
        assert_eq!(text_of(inside), Ok(None), "{inside}");
    }
    let prefixed = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\
                    <p:Document xmlns:p=\"urn:iso:std:iso:20022:tech:xsd:a.1\"><p:M/></p:Document>\n";
    assert_eq!(read(prefixed.as_bytes()).expect("a message").kind, "a.1");
}

/// What is repeated of each payment is most of a long report, and nobody looks into it.
#[test]
fn what_is_repeated_is_passed_over() {
    let of = |kind: &str, repeated: &str| {
        let more = "<C>1</C>".repeat(20);
        let one = format!("<A><B>1</B><{repeated}>{more}</{repeated}></A>");
        let head = HEAD.replace("a.1", kind);
        read(format!("{head}<M>{}</M></Document>", one.repeat(10_000)).as_bytes())
    };
    for (kind, repeated) in [
        ("pain.002.001.10", "OrgnlTxRef"),
        ("camt.054.001.08", "RltdPties"),
        ("camt.054.001.08", "RltdAgts"),
        ("camt.054.001.08", "RmtInf"),
        ("a.1", "SplmtryData"),
    ] {
        let message = of(kind, repeated).expect("a message");
        let payments: Vec<_> = message.content.all("A").collect();
        assert_eq!(payments.len(), 10_000);
        assert_eq!(payments[0].text(&["B"]), Ok(Some("1")));
        assert_eq!(payments[0].find(repeated), Ok(None));
    }
    // Elsewhere it is read.
    for (kind, repeated) in [("pacs.002.001.10", "OrgnlTxRef"), ("pain.002.001.10", "RmtInf")] {
        assert!(of(kind, repeated).is_err(), "{kind} {repeated}");
    }
}

#[test]
fn what_stands_twice_or_is_empty_counts_as_nothing() {
    for inside in [
        "<A><B>1</B><B>1</B></A>",
        "<A><B>1</B></A><A/>",
        "<A><B><C/></B></A>",
        "<A><B/></A>",
        "<A><B> </B></A>",
    ] {
        assert!(text_of(inside).is_err(), "{inside}");
    }
}

#[test]
fn half_a_message_is_none() {
    for body in [
        String::new(),
        "x".to_owned(),
        HEAD.to_owned(),
        format!("{HEAD}<M>"),
        format!("{HEAD}<M></M>"),
        format!("{HEAD}</Document>"),
        format!("{HEAD}<M/><M/></Document>"),
        format!("{HEAD}<M/></Document>{HEAD}<M/></Document>"),
        format!("{HEAD}<M/></Document>x"),
        format!("{HEAD}<M>x<A/></M></Document>"),
        format!("{HEAD}<M><A/>x</M></Document>"),
        format!("{HEAD}<M>&own;</M></Document>"),
        format!("{HEAD}<M>&#0;&#xd800;</M></Document>"),
        format!("{HEAD}<M A=\"1\" A=\"2\"/></Document>"),
        format!("{HEAD}<M xmlns=\"urn:x\"/></Document>"),
        format!("{HEAD}<x:M xmlns:x=\"urn:x\"/></Document>"),
        format!("{HEAD}<x:M/></Document>"),
        format!("<!DOCTYPE a>{HEAD}<M/></Document>"),
        format!("<?php x?>{HEAD}<M/></Document>"),
        format!("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>{HEAD}<M/></Document>"),
        format!("{HEAD}{}{}</Document>", "<M>".repeat(40), "</M>".repeat(40)),
        "<Document><M/></Document>".to_owned(),
        "<Document xmlns=\"urn:x\"><M/></Document>".to_owned(),
        "<M xmlns=\"urn:iso:std:iso:20022:tech:xsd:a.1\"/>".to_owned(),
    ] {
        assert!(read(body.as_bytes()).is_err(), "{body}");
    }
    assert!(read(b"\xff\xfe").is_err());
}
