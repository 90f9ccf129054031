//! Every key of `rail.toml` has an effect: each stands here with a test that sets it, in a
//! declaration of its own or in one that comes with the host, and that fails where the host
//! ignores it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{root, rust_files};

/// Where blocks of a declaration are read, and the block that is around all others.
const READ_IN: (&str, &str) = ("host/src/rails", "Declaration");

/// Types that have no keys of their own: a key leads to one of these, or to a block.
const VALUES: [&str; 21] = [
    "Algorithm",
    "Bits",
    "Currency",
    "Encoding",
    "Piece",
    "Said",
    "String",
    "Supplier",
    "TokenBody",
    "TokenRefused",
    "Trust",
    "Unit",
    "Use",
    "Via",
    "[String; 2]",
    "bool",
    "i64",
    "u32",
    "u64",
    "u8",
    "usize",
];

/// Keys, and for each a test that sees its effect. `[]` is one of a list, and `*` a name that the
/// rail gives.
#[rustfmt::skip]
const KEYS: &[(&str, &str)] = &[
    ("manifest", "host/src/rails/declaration.rs::nonsense_is_named"),
    ("rail.name", "tests/api/two_rails.rs::another_rail_carries_what_the_first_one_cannot"),
    ("rail.title", "tests/api/contract.rs::the_served_document_is_the_committed_one"),
    ("rail.contract", "tests/api/hostile.rs::a_rail_of_another_version_is_refused_by_its_version"),

    ("methods[].name", "tests/api/interac.rs::a_recipient_selects_its_method_or_the_merchant_does"),
    ("methods[].currency", "tests/api/outside.rs::a_rail_from_elsewhere_pays_without_a_line_of_the_host"),
    ("methods[].exponent", "tests/api/two_rails.rs::what_the_other_rail_does_not_take_is_not_given_to_it"),
    ("methods[].amount_minor_min", "tests/api/mpesa.rs::what_cannot_be_paid_is_refused_in_words"),
    ("methods[].amount_minor_max", "tests/api/two_rails.rs::what_the_other_rail_does_not_take_is_not_given_to_it"),
    ("methods[].step", "tests/api/mpesa.rs::what_cannot_be_paid_is_refused_in_words"),
    ("methods[].via", "tests/api/ach.rs::payouts_wait_for_a_window_and_leave_together"),
    ("methods[].hours.timezone", "tests/api/hours.rs::a_payment_waits_until_its_network_opens"),
    ("methods[].hours.calendar", "tests/api/hours.rs::a_payment_waits_until_its_network_opens"),
    ("methods[].hours.opens", "tests/api/hours.rs::a_payment_waits_until_its_network_opens"),
    ("methods[].hours.opens_day_before", "tests/api/hours.rs::a_payment_waits_until_its_network_opens"),
    ("methods[].hours.closes", "host/src/rails/hours.rs::a_network_is_open_from_the_evening_before_until_it_closes"),
    ("methods[].hours.closes_setting", "host/src/rails/hours.rs::a_network_is_open_from_the_evening_before_until_it_closes"),
    ("methods[].select.field", "host/src/rails/methods.rs::a_recipient_names_a_method_or_has_its_fields"),
    ("methods[].select.values", "host/src/rails/methods.rs::a_recipient_names_a_method_or_has_its_fields"),
    ("methods[].select.present", "host/src/rails/methods.rs::a_recipient_names_a_method_or_has_its_fields"),

    ("rail.version", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("rail.countries", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("endpoints.*.title", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("secrets.*.title", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("settings.*.title", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("keys.*.title", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("tables.*.dated", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("tables.*.source", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("seeds.*.title", "tests/api/routing.rs::rails_are_shown_as_they_declare_themselves"),
    ("recipient.fields[].hint", "host/src/rails/fields.rs::what_is_wrong_is_said_as_the_field_declares"),
    ("recipient.fields[].code", "host/src/rails/fields.rs::what_is_wrong_is_said_as_the_field_declares"),
    ("recipient.bank_name", "host/src/rails/fields.rs::the_name_of_a_bank_is_shown_whatever_its_field_is_called"),
    ("endpoints.*.calls[].timeout_ms", "tests/api/patience.rs::a_call_has_the_time_that_is_declared"),
    ("endpoints.*.calls[].answer_bytes_max", "tests/api/patience.rs::an_answer_is_as_long_as_is_declared"),
    ("query.never_received_answers", "tests/api/live.rs::as_many_answers_permit_another_sending_as_are_declared"),
    ("files.idempotent_delivery", "tests/api/file_operations.rs::a_rail_says_whether_a_delivery_may_be_made_twice"),
    ("throttle.per_second", "host/src/rails/own_settings.rs::a_declared_pace_holds_where_the_operator_says_nothing"),
    ("throttle.at_once", "host/src/rails/own_settings.rs::a_declared_pace_holds_where_the_operator_says_nothing"),
    ("keys.*.bits_min", "host/src/rails/granted.rs::a_key_is_as_long_as_is_declared"),
    ("seeds.*.length", "host/src/rails/shown.rs::a_seed_is_as_long_as_is_declared_and_of_its_letters"),
    ("seeds.*.alphabet", "host/src/rails/shown.rs::a_seed_is_as_long_as_is_declared_and_of_its_letters"),

    ("recipient.identity", "tests/api/beneficiaries.rs::the_same_account_is_the_same_beneficiary"),
    ("recipient.shape", "tests/api/two_rails.rs::what_the_other_rail_does_not_take_is_not_given_to_it"),
    ("recipient.account", "tests/api/mpesa.rs::operators_are_listed_and_recipients_saved"),
    ("recipient.bank", "tests/api/mpesa.rs::operators_are_listed_and_recipients_saved"),
    ("recipient.name", "tests/api/fps.rs::recipients_are_saved_and_what_a_request_says_is_paid"),
    ("recipient.fields[].name", "tests/api/payouts.rs::bad_bodies_are_refused_by_name"),
    ("recipient.fields[].title", "tests/api/contract.rs::the_served_document_is_the_committed_one"),
    ("recipient.fields[].pattern", "tests/api/two_rails.rs::what_the_other_rail_does_not_take_is_not_given_to_it"),
    ("recipient.fields[].max_length", "tests/api/long_inputs.rs::no_text_of_any_body_is_as_long_as_one_likes"),
    ("recipient.fields[].from", "tests/api/fps.rs::recipients_are_saved_and_what_a_request_says_is_paid"),
    ("recipient.fields[].required", "tests/api/fps.rs::what_cannot_be_paid_is_refused_in_words"),
    ("recipient.fields[].required_inline", "tests/api/fps.rs::what_cannot_be_paid_is_refused_in_words"),
    ("recipient.fields[].required_when.field", "tests/api/interac.rs::a_recipient_selects_its_method_or_the_merchant_does"),
    ("recipient.fields[].required_when.values", "tests/api/interac.rs::a_recipient_selects_its_method_or_the_merchant_does"),
    ("recipient.fields[].sensitive", "host/src/rails/redact.rs::elements_and_values_are_masked"),
    ("recipient.fields[].example", "tests/api/contract.rs::the_served_document_is_the_committed_one"),

    ("sender.required", "tests/api/senders.rs::a_sender_is_required_of_merchants_that_are_set_to_it"),
    ("sender.required_business", "tests/api/senders.rs::a_sender_is_required_of_merchants_that_are_set_to_it"),

    ("names.overwrite", "tests/api/alike_names.rs::without_a_likeness_any_name_is_paid"),
    ("names.fresh_for_days", "tests/api/lookup.rs::a_name_is_asked_for_until_it_is_saved_and_again_when_it_is_old"),
    ("names.alike_at_least", "tests/api/alike_names.rs::a_name_has_to_be_as_alike_as_the_rail_declares"),

    ("endpoints.*.client_certificate", "tests/api/gateway.rs::a_network_that_wants_to_see_a_certificate_sees_it"),
    ("endpoints.*.calls[].name", "tests/api/hostile.rs::a_rail_that_fails_before_anything_left_is_tried_again_later"),
    ("endpoints.*.calls[].method", "tests/api/tokens.rs::one_token_is_fetched_for_all_who_wait_for_it"),
    ("endpoints.*.calls[].path", "tests/api/rail_upgrade.rs::a_payment_is_asked_about_by_the_version_that_sent_it"),
    ("endpoints.*.calls[].moves_money", "tests/api/hostile.rs::a_question_moves_no_money_whatever_the_rail_tries"),

    ("secrets.*.sealed_with", "tests/api/mpesa.rs::every_scenario_ends_as_it_says"),

    ("tokens.*.call", "tests/api/mpesa.rs::every_scenario_ends_as_it_says"),
    ("tokens.*.query", "tests/api/mpesa.rs::every_scenario_ends_as_it_says"),
    ("tokens.*.basic", "tests/api/mpesa.rs::every_scenario_ends_as_it_says"),
    ("tokens.*.headers", "tests/api/matrix.rs::every_rail_ends_every_scenario_as_it_is_declared"),
    ("tokens.*.body", "tests/api/interac.rs::what_the_recipient_has_to_answer_is_told_once_it_was_taken_on"),
    ("tokens.*.encoding", "tests/api/interac.rs::what_the_recipient_has_to_answer_is_told_once_it_was_taken_on"),
    ("tokens.*.token", "tests/api/mpesa.rs::every_scenario_ends_as_it_says"),
    ("tokens.*.lifetime_s", "tests/api/tokens.rs::a_token_is_renewed_before_its_end"),
    ("tokens.*.refused", "tests/api/tokens.rs::a_token_that_is_not_found_is_forgotten_as_well"),

    ("keys.*.algorithm", "tests/api/signed_notices.rs::every_way_that_is_declared_must_hold"),
    ("keys.*.use", "tests/api/fps.rs::only_what_the_network_has_signed_is_heard"),

    ("shown[].name", "host/src/rails/shown.rs::what_is_known_is_shown_and_no_half_of_a_block"),
    ("shown[].title", "tests/api/contract.rs::the_served_document_is_the_committed_one"),
    ("shown[].fact", "host/src/rails/shown.rs::what_is_known_is_shown_and_no_half_of_a_block"),
    ("shown[].seed", "host/src/rails/shown.rs::what_is_known_is_shown_and_no_half_of_a_block"),
    ("shown[].network_id", "host/src/rails/shown.rs::what_is_known_is_shown_and_no_half_of_a_block"),
    ("shown[].when_fact", "host/src/rails/shown.rs::what_is_known_is_shown_and_no_half_of_a_block"),
    ("shown[].example", "tests/api/contract.rs::the_served_document_is_the_committed_one"),

    ("operators[].slug", "tests/api/mpesa.rs::operators_are_listed_and_recipients_saved"),
    ("operators[].name", "tests/api/mpesa.rs::operators_are_listed_and_recipients_saved"),
    ("operators[].country", "tests/api/mpesa.rs::operators_are_listed_and_recipients_saved"),
    ("operators[].currency", "tests/api/mpesa.rs::operators_are_listed_and_recipients_saved"),

    ("settings.*.pattern", "tests/api/same_day.rs::without_the_setting_nothing_goes_on_the_same_day"),
    ("settings.*.default", "tests/api/routing.rs::the_operator_is_told_what_a_route_lacks_and_the_merchant_is_not"),
    ("settings.*.sandbox", "tests/api/routing.rs::the_operator_is_told_what_a_route_lacks_and_the_merchant_is_not"),

    ("query.schedule_s", "tests/api/live.rs::an_unknown_outcome_is_asked_about_on_the_rails_schedule_and_never_sent_again"),
    ("query.never_received_after_s", "tests/api/live.rs::what_was_never_received_is_sent_once_more_after_a_day_under_the_same_reference"),
    ("query.accepted_for_s", "tests/api/interac.rs::a_transfer_may_wait_for_its_recipient"),

    ("files.timezone", "tests/api/file_operations.rs::a_window_is_held_before_it_closes_and_let_go_after"),
    ("files.calendar", "tests/api/file_operations.rs::a_window_is_held_before_it_closes_and_let_go_after"),
    ("files.entries_max", "tests/api/hostile_files.rs::what_is_too_much_for_a_file_goes_into_further_ones"),
    ("files.settles_at", "tests/api/same_day.rs::an_entry_goes_on_the_same_day_up_to_a_million_dollars"),
    ("files.acknowledged_within_s", "tests/api/files.rs::a_delivery_that_nobody_knows_of_is_looked_for_and_never_made_again"),
    ("files.numbered_by", "tests/api/interac.rs::files_are_counted_for_each_originator"),
    ("files.poll_s", "tests/api/hostile_files.rs::a_feed_that_fails_for_an_hour_is_somebodys_case"),
    ("files.feeds", "tests/api/hostile_files.rs::a_feed_that_fails_for_an_hour_is_somebodys_case"),
    ("files.windows[].name", "tests/api/same_day.rs::an_entry_goes_on_the_same_day_up_to_a_million_dollars"),
    ("files.windows[].closes", "tests/api/file_operations.rs::a_window_is_held_before_it_closes_and_let_go_after"),
    ("files.windows[].value_days", "tests/api/same_day.rs::an_entry_goes_on_the_same_day_up_to_a_million_dollars"),
    ("files.windows[].settles_at", "tests/api/same_day.rs::an_entry_goes_on_the_same_day_up_to_a_million_dollars"),
    ("files.windows[].amount_minor_max", "tests/api/same_day.rs::an_entry_goes_on_the_same_day_up_to_a_million_dollars"),
    ("files.windows[].when.setting", "tests/api/same_day.rs::without_the_setting_nothing_goes_on_the_same_day"),
    ("files.windows[].when.is", "tests/api/same_day.rs::without_the_setting_nothing_goes_on_the_same_day"),

    ("notices[].path", "tests/api/notice_methods.rs::a_message_is_taken_by_the_methods_that_are_declared"),
    ("notices[].methods", "tests/api/notice_methods.rs::a_message_is_taken_by_the_methods_that_are_declared"),
    ("notices[].auth.bearer", "tests/api/notices.rs::a_message_that_does_not_prove_itself_changes_nothing"),
    ("notices[].auth.path_token", "tests/api/mpesa.rs::live_results_come_in_at_the_address_that_was_given"),
    ("notices[].auth.signature.key", "tests/api/signed_notices.rs::every_way_that_is_declared_must_hold"),
    ("notices[].auth.signature.header", "tests/api/signed_notices.rs::every_way_that_is_declared_must_hold"),
    ("notices[].auth.signature.prefix", "tests/api/signed_notices.rs::every_way_that_is_declared_must_hold"),
    ("notices[].auth.signature.encoding", "tests/api/signed_notices.rs::every_way_that_is_declared_must_hold"),
    ("notices[].auth.signature.over", "tests/api/signed_notices.rs::every_way_that_is_declared_must_hold"),
    ("notices[].auth.signature.signed_at.header", "host/src/rails/notices_tests.rs::what_is_signed_is_put_together"),
    ("notices[].auth.signature.signed_at.unit", "host/src/rails/notices_tests.rs::instants_are_written_in_several_ways"),
    ("notices[].auth.signature.signed_at.within_s", "tests/api/signed_notices.rs::every_way_that_is_declared_must_hold"),
    ("notices[].trust", "tests/api/notices.rs::a_return_that_is_only_a_hint_is_asked_about"),
    ("notices[].answers_queries", "tests/api/mpesa.rs::every_scenario_ends_as_it_says"),

    ("refusals.ours", "tests/api/lanes.rs::a_route_that_refuses_us_is_left_alone"),

    ("redact.elements", "host/src/rails/redact.rs::elements_and_values_are_masked"),

    ("tables.*.supplied_by", "tests/api/tables.rs::a_table_that_only_the_operator_has_is_used_once_it_is_there"),
    ("tables.*.columns", "tests/api/tables.rs::a_table_that_cannot_be_used_is_named"),
    ("tables.*.file", "tests/api/lookup.rs::banks_are_listed_with_their_codes"),

    ("calendars.*.file", "tests/api/outside.rs::a_rail_from_elsewhere_pays_by_file"),

    ("scenarios.field", "tests/api/sandbox.rs::the_recipients_that_are_listed_do_what_is_said_of_them"),
    ("scenarios.values", "tests/api/sandbox.rs::the_recipients_that_are_listed_do_what_is_said_of_them"),
    ("scenarios.own", "tests/api/sandbox.rs::the_recipients_that_are_listed_do_what_is_said_of_them"),
];

/// A struct that a block of a declaration is read into.
struct Block {
    name: String,
    /// Whether it refuses keys that it does not know.
    is_strict: bool,
    /// Its keys, each with the type that it leads to.
    keys: Vec<(String, String)>,
}

/// The structs of a source file that something is read into.
fn blocks(text: &str) -> Vec<Block> {
    let (mut found, mut open, mut attributes) = (Vec::new(), None::<Block>, String::new());
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        if line.starts_with("#[") {
            attributes.push_str(line);
            continue;
        }
        let of_line = std::mem::take(&mut attributes);
        if line == "}" {
            found.extend(open.take());
        } else if let Some(block) = &mut open {
            block.keys.push(key(line, &of_line));
        } else {
            open = opened(line, &of_line);
        }
    }
    found
}

/// The struct that begins in a line, if it is one of these.
fn opened(line: &str, attributes: &str) -> Option<Block> {
    let name = line.strip_prefix("pub struct ")?.strip_suffix(" {")?;
    if !attributes.contains("Deserialize") {
        return None;
    }
    assert!(!attributes.contains("rename_all"), "{name}: its keys are not called as its fields");
    let is_strict = attributes.contains("deny_unknown_fields");
    Some(Block { name: name.to_owned(), is_strict, keys: Vec::new() })
}

/// The key and the type of a field: `pub name: Type,`.
fn key(line: &str, attributes: &str) -> (String, String) {
    let is_odd = ["alias", "flatten", "skip"].iter().any(|word| attributes.contains(word));
    assert!(!is_odd, "{attributes} {line}");
    let field = line.strip_prefix("pub ").and_then(|field| field.strip_suffix(','));
    let (name, kind) = field.and_then(|field| field.split_once(": ")).expect(line);
    let renamed = attributes.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
    (renamed.unwrap_or(name).to_owned(), kind.to_owned())
}

/// What a type comes to, without what it stands in, and the way through that.
fn inner(kind: &str) -> (String, &str) {
    for (outer, step) in [("Option<", ""), ("Vec<", "[]"), ("BTreeMap<String, ", ".*")] {
        if let Some(rest) = kind.strip_prefix(outer) {
            let (steps, kind) = inner(rest.strip_suffix('>').expect(kind));
            return (format!("{step}{steps}"), kind);
        }
    }
    (String::new(), kind)
}

/// The keys of a block and of those within it, after what leads there.
fn keys_of(blocks: &BTreeMap<String, Block>, name: &str, way: &str) -> Vec<String> {
    let block = &blocks[name];
    assert!(block.is_strict, "{name} lets keys through that nobody reads");
    let mut found = Vec::new();
    for (key, kind) in &block.keys {
        let (steps, kind) = inner(kind);
        if blocks.contains_key(kind) {
            found.extend(keys_of(blocks, kind, &format!("{way}{key}{steps}.")));
        } else {
            assert!(VALUES.contains(&kind), "{way}{key}: whether {kind} has keys is not known");
            found.push(format!("{way}{key}"));
        }
    }
    found
}

/// Every key that a declaration may have.
fn declared() -> Vec<String> {
    let (folder, whole) = READ_IN;
    let mut known = BTreeMap::new();
    let files = rust_files(&root().join(folder));
    for block in files.iter().flat_map(|(_, text)| blocks(text)) {
        let name = block.name.clone();
        assert!(known.insert(name.clone(), block).is_none(), "{name} stands there twice");
    }
    keys_of(&known, whole, "")
}

/// Whether a file holds a test of this name.
fn holds(file: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else { return false };
    let attributes = before.rsplit("\n\n").next().unwrap_or_default();
    ["#[test]", "#[rstest]", "#[tokio::test"].iter().any(|it| attributes.contains(it))
}

/// A key without a test may do nothing, and who sets it would not notice.
#[test]
fn every_key_has_a_test() {
    let declared: BTreeSet<String> = declared().into_iter().collect();
    let listed: BTreeSet<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
    assert_eq!(listed.len(), KEYS.len(), "a key is listed twice");
    let untested = declared.difference(&listed).map(|key| format!("{key} has no test"));
    let unknown = listed.difference(&declared).map(|key| format!("{key} is no key"));
    let mut wrong: Vec<String> = untested.chain(unknown).collect();
    for (key, test) in KEYS {
        let (file, name) = test.split_once("::").expect("a file and a name");
        if !holds(file, name) {
            wrong.push(format!("{key}: there is no test {test}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn blocks_of_keys_are_read() {
    let text = "/// A block.\n#[derive(Clone, Deserialize)]\n#[serde(deny_unknown_fields)]\n\
                pub struct Outer {\n    /// A list.\n    #[serde(default, rename = \"use\")]\n    \
                pub half: Option<Vec<Inner>>,\n    pub plain: BTreeMap<String, String>,\n}\n\
                #[derive(Clone)]\npub struct Other {\n    pub unread: u8,\n}\n\
                #[derive(Deserialize)]\npub struct Inner {\n    pub is: bool,\n}\n";
    let found = blocks(text);
    let shown = |at: usize| (found[at].name.as_str(), found[at].is_strict);
    assert_eq!((found.len(), shown(0), shown(1)), (2, ("Outer", true), ("Inner", false)));
    let mut known: BTreeMap<_, _> = found.into_iter().map(|it| (it.name.clone(), it)).collect();
    known.get_mut("Inner").expect("a block").is_strict = true;
    assert_eq!(keys_of(&known, "Outer", ""), ["use[].is", "plain"]);
    assert_eq!(inner("BTreeMap<String, Vec<Inner>>"), (".*[]".to_owned(), "Inner"));
}
