//! The operator's mail server: it takes letters over SMTP, or does not. It speaks the protocol by
//! hand, so that it shares nothing with what sends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::packs::until;

/// A letter as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub from: String,
    pub to: String,
    headers: Vec<(String, String)>,
    pub text: String,
}

impl Letter {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct MailServer {
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    letters: Mutex<Vec<Letter>>,
    /// What recipients are answered with, where it is not "250".
    refusal: Mutex<Option<String>>,
    refused: AtomicUsize,
}

/// In place of a refusal: nothing is answered at all.
pub(crate) const HANGS: &str = "hangs";

impl MailServer {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("smtp://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared::default());
        let server = Self { url, shared: Arc::clone(&shared) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        server
    }

    /// From now on recipients are refused in this way; not at all if it is empty.
    pub(crate) fn refuse(&self, refusal: &str) {
        let refusal = Some(refusal.to_owned()).filter(|text| !text.is_empty());
        *self.shared.refusal.lock().expect("not poisoned") = refusal;
    }

    /// How many letters were refused.
    pub(crate) fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::SeqCst)
    }

    /// The letters whose subject has this in it, once there are so many.
    pub(crate) async fn letters(&self, subject: &str, count: usize) -> Vec<Letter> {
        let found = || -> Vec<Letter> {
            let letters = self.shared.letters.lock().expect("not poisoned");
            letters.iter().filter(|it| it.header("subject").contains(subject)).cloned().collect()
        };
        until(subject, async || found().len() >= count).await;
        let letters = found();
        assert_eq!(letters.len(), count, "{letters:#?}");
        letters
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let (reading, mut writing) = stream.into_split();
    let mut lines = BufReader::new(reading).lines();
    let (mut from, mut to) = (String::new(), String::new());
    writing.write_all(b"220 mail.example\r\n").await.ok()?;
    while let Some(line) = lines.next_line().await.ok()? {
        let verb = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
        let said = match verb.as_str() {
            "EHLO" => "250-mail.example\r\n250 8BITMIME\r\n".to_owned(),
            "MAIL" => {
                from = within_angles(&line);
                "250 fine\r\n".to_owned()
            }
            "RCPT" => {
                to = within_angles(&line);
                let refusal = shared.refusal.lock().expect("not poisoned").clone();
                if refusal.as_deref() == Some(HANGS) {
                    std::future::pending::<()>().await;
                }
                if refusal.is_some() {
                    shared.refused.fetch_add(1, Ordering::SeqCst);
                }
                format!("{}\r\n", refusal.unwrap_or_else(|| "250 fine".to_owned()))
            }
            "DATA" => {
                writing.write_all(b"354 go on\r\n").await.ok()?;
                let mut content = Vec::new();
                loop {
                    let line = lines.next_line().await.ok()??;
                    if line == "." {
                        break;
                    }
                    content.push(line.strip_prefix('.').map(str::to_owned).unwrap_or(line));
                }
                let letter = read(&content, (&from, &to));
                shared.letters.lock().expect("not poisoned").push(letter);
                "250 taken\r\n".to_owned()
            }
            "QUIT" => {
                writing.write_all(b"221 bye\r\n").await.ok()?;
                return Some(());
            }
            _ => "250 fine\r\n".to_owned(),
        };
        writing.write_all(said.as_bytes()).await.ok()?;
    }
    Some(())
}

fn within_angles(line: &str) -> String {
    let inner = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inner.map(|(inner, _)| inner.to_owned()).unwrap_or_default()
}

fn read(lines: &[String], (from, to): (&str, &str)) -> Letter {
    let end = lines.iter().position(String::is_empty).unwrap_or(lines.len());
    let mut headers: Vec<(String, String)> = Vec::new();
    for line in &lines[..end] {
        match line.split_once(": ") {
            Some((name, value)) if !line.starts_with([' ', '\t']) => {
                headers.push((name.to_owned(), value.to_owned()));
            }
            // A header goes on in the next line.
            _ => headers.last_mut().into_iter().for_each(|(_, value)| value.push_str(line)),
        }
    }
    let text = lines.get(end + 1..).unwrap_or_default().join("\n");
    let encoding =
        headers.iter().find(|(n, _)| n.eq_ignore_ascii_case("content-transfer-encoding"));
    let text = match encoding.map(|(_, value)| value.as_str()) {
        Some("quoted-printable") => unquoted(&text),
        _ => text,
    };
    Letter { from: from.to_owned(), to: to.to_owned(), headers, text }
}

/// Quoted-printable, read.
fn unquoted(text: &str) -> String {
    let text = text.replace("=\n", "");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'=').then(|| after.get(..2)).flatten();
        let code = code.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}
