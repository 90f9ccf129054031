//! Texts that recipients read.

/// Most characters of a memo.
const MEMO_MAX: usize = 140;

/// What a memo may hold beside letters, digits and spaces. Brackets, slashes of addresses and the
/// like make networks think of links.
const CARRIED: &str = ".,'-_?!#&";

/// The memo of a transfer: the narration in characters that are carried, or the payout's reference
/// where there is none. A memo that holds the security question is blocked, and so it stays away.
#[must_use]
pub fn memo(narration: &str, payout: &str, question: &str) -> String {
    let text = carried(narration);
    let holds = |part: &str| text.to_lowercase().contains(&part.to_lowercase());
    let question = carried(question);
    let is_blocked = !question.is_empty() && holds(&question);
    if text.is_empty() || is_blocked { carried(payout) } else { text }
}

/// A text on one line, with a space for whatever is not carried.
fn carried(text: &str) -> String {
    let is_carried = |c: char| c.is_alphanumeric() || CARRIED.contains(c);
    let plain: String = text
        .chars()
        .map(|c| match c {
            '’' => '\'',
            c if is_carried(c) => c,
            _ => ' ',
        })
        .collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MEMO_MAX).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use super::memo;

    const QUESTION: &str = "What code did the sender give you?";

    #[test]
    fn what_is_not_carried_is_left_out() {
        for (narration, text) in [
            ("Invoice 17", "Invoice 17"),
            ("  Loyer\tde  mai – l’été ", "Loyer de mai l'été"),
            ("https://example.com/<a>{b}", "https example.com a b"),
            ("", "po_1"),
            ("<>", "po_1"),
            ("\u{0}\u{7f}\n", "po_1"),
        ] {
            assert_eq!(memo(narration, "po_1", QUESTION), text, "{narration:?}");
        }
        assert_eq!(memo(&"é".repeat(500), "po_1", QUESTION).chars().count(), 140);
        assert_eq!(memo(&"word ".repeat(28), "po_1", QUESTION).len(), 139);
    }

    #[test]
    fn the_question_is_not_told_in_the_memo() {
        for narration in [
            QUESTION,
            "Hello. what CODE did the sender (give) you? Bye",
            "Hello. What code did   the sender\ngive you?",
        ] {
            assert_eq!(memo(narration, "po_1", QUESTION), "po_1", "{narration}");
        }
        assert_eq!(memo("What code?", "po_1", QUESTION), "What code?");
        assert_eq!(memo("Invoice", "po_1", ""), "Invoice");
    }
}
