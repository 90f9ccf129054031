//! Limits that no deployment needs to change, each with its reason.

use std::time::Duration;

/// Largest request body: far above any single call, far below what hurts.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// A caller has this long to send a body.
pub const BODY_MAX: Duration = Duration::from_secs(10);
/// The same for a component, which may be sixteen times as large.
pub const UPLOAD_MAX: Duration = Duration::from_secs(60);
/// For how long what was refused before it was read is read all the same.
pub const UNREAD_MAX: Duration = Duration::from_secs(2);
/// A connection has this long to begin a request and to send its head.
pub const HEAD_MAX: Duration = Duration::from_secs(30);
/// An answer of which nobody takes a byte for this long is given up.
pub const ANSWER_STALLED_MAX: Duration = Duration::from_secs(20);
/// Connections beyond all places, in which a health check is answered and anybody else is told
/// that the host is full.
pub const CONNECTIONS_CROWDED_MAX: usize = 32;
/// What is left of an answer when the host stops gets this long to leave.
pub const GOODBYE: Duration = Duration::from_secs(1);
/// File descriptors besides callers' connections: the database, banks, receivers, files.
pub const DESCRIPTORS_OWN: u64 = 1_536;
/// Fewer places for callers are no service.
pub const CONNECTIONS_MIN: usize = 16;
/// Longest Idempotency-Key, as the contract says.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// One credit or debit of a wallet: ten million millions, where a unit has hundredths.
pub const MOVEMENT_MINOR_MAX: i64 = 1_000_000_000_000_000;
/// What a wallet may hold by them. Of a thousand such wallets the sum still fits 64 bits.
pub const BALANCE_MINOR_MAX: i64 = 9_000_000_000_000_000;
/// Networks on a key's allow-list, each looked at in every request.
pub const KEY_NETWORKS_MAX: usize = 256;
/// The shortest prefix of such a network, in IPv4 and in IPv6: what holds more says nothing of
/// where a key is used.
pub const KEY_PREFIX_MIN: (u8, u8) = (8, 16);
/// How many of the widest networks of IPv4 an allow-list may hold, or as many addresses.
pub const KEY_WIDEST_MAX: u64 = 4;
/// Merchants that a route may be restricted to.
pub const ROUTE_MERCHANTS_MAX: usize = 1_000;
/// A route is paused for so long before it can be deleted: no host's cache knows it any other way.
pub const ROUTE_REST: Duration = Duration::from_secs(10);
/// A shorter token could be guessed: an operator's, or what a network presents.
pub const TOKEN_BYTES_MIN: usize = 16;
/// Names that are resolved at once for merchants' addresses.
pub const NAMES_AT_ONCE: usize = 256;
/// How long what people are to be told is left to hosts that can tell it.
pub const NOTIFICATION_OTHERS_FIRST: Duration = Duration::from_secs(3600);
/// For how long a host is not ready after the database has not accepted what was to be written.
pub const UNREADY_FOR: Duration = Duration::from_secs(5);
/// Items on a page of a list.
pub const PAGE_DEFAULT: i64 = 50;
/// For how long two hosts may set the same thing at the same moment.
pub const SETTING_CONTESTED: Duration = Duration::from_secs(60);
/// Rates that are set by one call.
pub const RATES_IMPORTED_MAX: usize = 1_000;
/// Seconds that a rate may be valid: ten years.
pub const RATE_VALID_S_MAX: u64 = 10 * 366 * 86_400;
/// Items on the largest page.
pub const PAGE_MAX: i64 = 100;
/// JSON of a page's items: a hundred deliveries with answers of 16 KiB each. What is longer is
/// cut, and the rest is on the next page.
pub const PAGE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How far the instant in an id may be from the one that its row bears.
pub const IDS_DIFFER: Duration = Duration::from_secs(3600);
/// Characters of a refusal's message, which may quote what was sent.
pub const MESSAGE_MAX: usize = 1_000;
/// Webhook deliveries that the timeline of one payout shows.
pub const TIMELINE_DELIVERIES_MAX: i64 = 1_000;
/// Commands in one transaction of the writer: beyond 256 a batch gains nothing and
/// everyone in it waits longer.
pub const BATCH_MAX: usize = 256;
/// Entries of a wallet that a report reads at a time.
pub const REPORT_PORTION: i64 = 2_000;
/// Entries or payouts that a report adds up at a time.
pub const REPORT_SUMMED: i64 = 100_000;
/// How long whoever asks for a report waits for what is wrong with it; later its rows follow when they
/// are known.
pub const REPORT_AT_ONCE: Duration = Duration::from_secs(5);
/// Connections to the database for each long read that may be under way.
pub const CONNECTIONS_PER_LONG_READ: usize = 4;
/// Reports that are sent to one key at once, and to all keys of a merchant's environment.
pub const REPORTS_PER_KEY_MAX: usize = 4;
/// See [`REPORTS_PER_KEY_MAX`].
pub const REPORTS_PER_OWNER_MAX: usize = 16;
/// How long the body of a report may take: whoever reads more slowly asks for fewer days.
pub const REPORT_SENT_MAX: Duration = Duration::from_secs(600);
/// Workbooks that a host makes at once; others wait for their turn.
pub const WORKBOOKS_AT_ONCE: usize = 2;
/// Failed payouts that a report shows.
pub const REPORT_FAILED_MAX: i64 = 500;
/// The same in a file.
pub const REPORT_FAILED_FILE_MAX: i64 = 5_000;
/// How long what a network said of an account is remembered for whoever has not saved it.
pub const NAME_REMEMBERED: Duration = Duration::from_secs(600);
/// Rows of a batch of payouts that are made ready at once.
pub const BATCH_ROWS_AT_ONCE: usize = 8;
/// How often a row's question for a name is put again where the network has no place for it.
pub const BATCH_ENQUIRY_RETRIES: u32 = 20;
/// How often a host looks for batches of payouts that have come to their end.
pub const BATCHES_POLL: Duration = Duration::from_millis(500);
/// Rows that a month may have in the table of strays and still get a table of its own: more is not
/// moved, because everybody waits meanwhile.
pub const STRAYS_MAX: i64 = 10_000;
/// For how long at most one kind of data is swept in a turn, so that the others have theirs.
pub const SWEEP_FOR: Duration = Duration::from_secs(60);
/// For how long at most a turn of sweeping goes on.
pub const SWEEP_MAX: Duration = Duration::from_secs(3600);
/// Batches that are told to be complete at once.
pub const BATCHES_ENDED_AT_ONCE: i64 = 50;
/// Threads on PostgreSQL that write down what callers ask for, by wallet.
pub const REQUEST_LANES: usize = 2;
/// How long a batch of requests waits for those under way: far longer than one of them takes.
pub const PLACE_WAIT_MAX: Duration = Duration::from_millis(50);
/// From how many commands on a batch holds the next one of its lane back; see [`BATCH_EVERY_MAX`].
pub const BATCH_OF_MANY: usize = 8;
/// After a batch of many commands the next one of its lane begins when twice the time that it took
/// has gone by since it began; this much at most, and never before it ended. What a batch costs by
/// itself is far more than what one command does; where the machine is pressed batches take longer,
/// and are fuller. On PostgreSQL requests are not held back while no work is written down.
pub const BATCH_EVERY_MAX: Duration = Duration::from_millis(10);
/// The same on SQLite: a batch there makes no trips to a server, so it costs less by itself, and
/// holding it back gains less.
pub const BATCH_EVERY_MAX_EMBEDDED: Duration = Duration::from_millis(3);
/// Commands waiting in a lane of the writer before callers are turned away: four batches.
pub const QUEUE_MAX: usize = 4 * BATCH_MAX;
/// How often a batch is begun again after a conflict or a lost connection.
pub const BATCH_RETRIES_MAX: u32 = 8;
/// How often, besides, because the database already has one of its rows: whoever wrote that may
/// have been a moment faster.
pub const BATCH_ALREADY_THERE_MAX: u32 = 4;
/// A batch that takes longer has met a connection that is silent: it is given up, and begun
/// again on a new one. Longer than any wait for a lock on PostgreSQL; on SQLite a statement runs on
/// the writer's thread, and ends by itself.
pub const BATCH_DEADLINE: Duration = Duration::from_secs(8);
/// The same for a background job's statements. Look-ups that are made together have as long, and
/// are not begun again after it.
pub const DATABASE_DEADLINE: Duration = Duration::from_secs(15);
/// For how long a connection is given to say that it still leads somewhere.
pub const PING_MAX: Duration = Duration::from_secs(2);
/// A step of a background job that has more to do than a few statements.
pub const JOB_DEADLINE: Duration = Duration::from_secs(120);
/// What carrying one payment takes at most: every call of its rail, and what is written down
/// between them. Its lease is over by then.
pub const CARRY_MAX: Duration = Duration::from_secs(300);
/// The same of what a network said in one message or file, which may be of ten thousand payments.
pub const TAKE_IN_MAX: Duration = Duration::from_secs(3600);
/// Look-ups that one statement answers at most.
pub const ROUND_MAX: usize = 256;
/// A round of look-ups that takes longer is overtaken by the next: far longer than a healthy
/// database takes, so that as many as possible go together.
pub const ROUND_OVERTAKEN: Duration = Duration::from_millis(50);
/// Rounds of one kind under way at most; there are two kinds, and the pool's other connections are
/// for everything else.
pub const ROUNDS_AT_ONCE: usize = 2;
/// A host whose oldest command waits longer for the database is not ready.
pub const READY_WAIT_MAX: Duration = Duration::from_secs(5);
/// A merchant_reference is unique this long.
pub const MERCHANT_REFERENCE_WINDOW: Duration = Duration::from_secs(30 * 24 * 3600);
/// Two payouts to one recipient within this span look like a mistake.
pub const COOL_DOWN: Duration = Duration::from_secs(5 * 60);
/// Payouts to one recipient that are remembered for that.
pub const COOL_DOWN_REMEMBERED: usize = 8;
/// How stale a cached key, merchant, route or beneficiary may be on another host. A
/// change made on the same host is seen at once.
pub const CACHE_FRESH: Duration = Duration::from_secs(1);
/// Entries in each of those caches.
pub const CACHE_ENTRIES_MAX: u64 = 100_000;
/// How often a recipient that changed meanwhile is looked at again: on one host those who save it
/// take turns, so this is about other hosts and payouts.
pub const RECIPIENT_RETRIES_MAX: u32 = 16;
/// A dispatcher holds a payout this long before another host may take it over. Longer
/// than any rail call, which is cut at [`RAIL_WALL_MAX`].
pub const LEASE: Duration = Duration::from_secs(120);
/// Longest a rail call may take, answers included.
pub const RAIL_WALL_MAX: Duration = Duration::from_secs(60);
/// How long a payment's call waits for its turn, where a network takes so many a second.
pub const THROTTLE_WAIT_MAX: Duration = Duration::from_secs(20);
/// How long a question waits that somebody else waits for.
pub const THROTTLE_ENQUIRY_WAIT_MAX: Duration = Duration::from_secs(2);
/// Questions about names that wait for one network at a time.
pub const ENQUIRIES_MAX: usize = 64;
/// Merchants whose questions are counted before those are forgotten that ask nothing.
pub const ENQUIRING_MERCHANTS_MAX: usize = 1_000;
/// Most that can be said of it, a second or at once.
pub const THROTTLE_MAX: u32 = 10_000;
/// Processor time of one rail call, in epoch ticks of 10 ms.
pub const RAIL_TICKS_MAX: u64 = 20;
/// The same where a whole file is made, taken by a simulated network or read.
pub const FILE_TICKS_MAX: u64 = 1_000;
/// Memory of one guest instance, all its memories and tables together.
pub const GUEST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Elements in all tables of one guest instance.
pub const GUEST_TABLE_ELEMENTS_MAX: usize = 100_000;
/// What crosses between host and guest in one call, counted by wasmtime.
pub const GUEST_EXCHANGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same where a whole file is made, delivered, taken by a simulated network or read.
pub const FILE_EXCHANGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Requests that one rail call may make.
pub const GUEST_REQUESTS_MAX: u32 = 4;
/// Log lines that one guest call may write.
pub const GUEST_LOG_LINES_MAX: u32 = 50;
/// Characters of one log line.
pub const GUEST_LOG_LINE_MAX: usize = 500;
/// Calls of rails at once, each with an instance of the pool. At the default of
/// `worker.dispatch_concurrency` a route that hangs takes 240 of them by sending and asking, and
/// [`ENQUIRIES_MAX`] by asking for names: four of them leave room for whatever else calls a rail.
pub const RAIL_GUESTS_MAX: u32 = 1_344;
/// Calls of simulated networks at once, in instances of the same pool. They have places of their
/// own: whoever waits for their answer has an instance already.
pub const SIMULATED_GUESTS_MAX: u32 = 128;
/// How long a call waits for an instance before it is given up; shorter than a request may take.
pub const GUEST_WAIT_MAX: Duration = Duration::from_secs(5);
/// Largest component that is accepted: its code, its data and what travels with them.
pub const COMPONENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Modules and components inside one component. A guest of Rust has three and a few; one that was
/// composed of others, some more.
pub const COMPONENT_PARTS_MAX: u64 = 64;
/// How deep components stand in components.
pub const COMPONENT_DEPTH_MAX: u64 = 8;
/// Functions of a component. The built-in packs have a thousand.
pub const COMPONENT_FUNCTIONS_MAX: u64 = 20_000;
/// Bytes of all functions of a component: six times a built-in pack's, and what one core compiles
/// within [`COMPILE_SECONDS_MAX`] if it is ordinary code.
pub const COMPONENT_CODE_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Bytes of its data.
pub const COMPONENT_DATA_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Types, imports, exports, tables, globals and whatever else it lists, all together. The
/// built-in ones list some hundreds.
pub const COMPONENT_ITEMS_MAX: u64 = 50_000;
/// Bytes of one function: the time that the compiler takes for a function grows faster than its
/// size. The largest one of a built-in component has 9 kB.
pub const FUNCTION_BYTES_MAX: u64 = 128 * 1024;
/// Locals of one function; the built-in ones have at most 35. The compiler follows each of them
/// through every block.
pub const FUNCTION_LOCALS_MAX: u64 = 2_000;
/// How deep blocks stand in blocks: a `match` has one for each of its arms.
pub const FUNCTION_DEPTH_MAX: u64 = 1_000;
/// Targets of one jump table: a `match` has one for each value between its arms.
pub const FUNCTION_TARGETS_MAX: u64 = 4_096;
/// Processor time for compiling what somebody uploads. A built-in pack takes one second or two.
pub const COMPILE_SECONDS_MAX: u64 = 10;
/// The same on a machine that has other things to do; shorter than a request may take.
pub const COMPILE_WALL_MAX: Duration = Duration::from_secs(20);
/// Address space of the process that compiles; a built-in pack takes a quarter of it at most.
pub const COMPILE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// What may come of it: machine code and its tables, several times the component.
pub const COMPILED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Components are opened one at a time; an upload that waits longer for the one before is turned
/// away.
pub const OPENING_WAIT_MAX: Duration = Duration::from_secs(5);
/// Largest answer of a network, unless the rail declares less.
pub const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What is kept of a message to or from a network, as evidence: many times an ordinary one. It is
/// masked among other work, and kept once for each payment that it names.
pub const EVIDENCE_BYTES_MAX: usize = 64 * 1024;
/// Fuel of one decision of a rule pack; a plain price takes a few thousand units.
/// Decisions about fraud are made while wallets are locked: this is a millisecond or two. After a
/// trap, or very many calls, one may have to read the rules again, under the same locks.
pub const PACK_FUEL_PER_DECISION: u64 = 2_000_000;
/// Fuel for reading a pack's rules once: a list of 20,000 accounts takes 142 million.
pub const PACK_FUEL_OPEN: u64 = 200_000_000;
/// Fuel of one call of a rate source: a megabyte of pages is read with a fifth of it.
pub const SOURCE_FUEL_MAX: u64 = 500_000_000;
/// Ticks of 10 ms that it may take: several times what all of its fuel takes on a busy machine, for
/// these pass while it waits for a processor as well.
pub const SOURCE_TICKS_MAX: u64 = 1_000;
/// Pages that a rate source may ask for at a time.
pub const SOURCE_PAGES_MAX: usize = 8;
/// Largest page, all of which a source has to be told in one call.
pub const SOURCE_PAGE_BYTES_MAX: usize = 400 * 1024;
/// Longest path of a page.
pub const SOURCE_PATH_MAX: usize = 2048;
/// How long a provider has for a page.
pub const SOURCE_WALL_MAX: Duration = Duration::from_secs(20);
/// How far a provider's clock may be ahead.
pub const SOURCE_CLOCK_AHEAD: Duration = Duration::from_secs(60);
/// Rates that one source may tell.
pub const SOURCE_RATES_MAX: usize = 10_000;
/// Currencies that one source keeps up: each pair of them is a row that is written at once.
pub const SOURCE_CURRENCIES_MAX: usize = 30;
/// Ticks of 10 ms that a decision may take, whatever its fuel says.
pub const PACK_TICKS_PER_DECISION: u64 = 10;
/// Ticks for reading a pack's rules: several times what all of its fuel takes, as for a source.
pub const PACK_TICKS_OPEN: u64 = 500;
/// Bytes of a pack's rules, and of all its cases together.
pub const PACK_TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Lines of a price.
pub const PACK_LINES_MAX: usize = 20;
/// Packs kept opened besides those that decide, for explanations and backtests.
pub const PACKS_OPENED_MAX: u64 = 16;
/// Warm instances kept per rule pack.
pub const PACK_WARM_MAX: usize = 4;
/// Calls after which a warm instance is replaced, in case it grows.
pub const PACK_CALLS_MAX: u32 = 100_000;
/// Hits of one verdict, and characters of a label and of a reason; more is nonsense.
pub const PACK_HITS_MAX: usize = 1_000;
/// Longest label of a rule.
pub const PACK_LABEL_MAX: usize = 64;
/// Longest reason of a hit, and longest text about it for merchants.
pub const PACK_REASON_MAX: usize = 500;
/// Facts that a pack may ask for.
pub const PACK_FACTS_MAX: usize = 64;
/// Failures in a row, all about live payouts, after which a fraud pack is taken out.
pub const PACK_FAILURES_MAX: u32 = 5;
/// And so many merchants at least whose payouts they were about: no merchant alone can have a pack
/// taken out that decides for others.
pub const PACK_FAILURES_MERCHANTS_MIN: usize = 3;
/// Bytes of a fact that is a text: above any account or code, and all but the longest names. What a
/// decision costs grows with its facts, and nobody may send a text that uses its fuel up.
pub const FACT_TEXT_BYTES_MAX: usize = 160;
/// How often a host looks whether another rule pack was activated.
pub const RULES_POLL: Duration = Duration::from_millis(250);
/// Others have this long to agree to what somebody asked for.
pub const APPROVAL_VALID: Duration = Duration::from_secs(24 * 3600);
/// And this long where it is about a rate, which counts as one of the moment when all have agreed.
pub const RATE_APPROVAL_VALID: Duration = Duration::from_secs(3600);
/// And this long where it is about a draft or a batch of a merchant's: teams have weekends.
pub const TEAM_APPROVAL_VALID: Duration = Duration::from_secs(7 * 24 * 3600);
/// People that a payment may take, besides whoever made it.
pub const APPROVERS_MAX: u32 = 5;
/// Amounts of one currency from which on it takes more.
pub const APPROVAL_TIERS_MAX: usize = 8;
/// Members of one team.
pub const MEMBERS_MAX: usize = 200;
/// An invitation is good for so long.
pub const INVITATION_VALID: Duration = Duration::from_secs(3 * 24 * 3600);
/// Characters of a password.
pub const PASSWORD_CHARACTERS_MIN: usize = 12;
/// The longest one: hashing takes longer for longer ones.
pub const PASSWORD_CHARACTERS_MAX: usize = 128;
/// Different characters in it.
pub const PASSWORD_DISTINCT_MIN: usize = 5;
/// Passwords that a host compares at once: each takes a processor's tens of milliseconds.
pub const PASSWORDS_AT_ONCE: usize = 2;
/// How long a log-in waits for its turn.
pub const PASSWORD_WAIT_MAX: Duration = Duration::from_secs(5);
/// Failures of a log-in in a row, after which the next has to wait.
pub const LOG_IN_FAILURES_FREE: u32 = 5;
/// For how long at first, and at most.
pub const LOG_IN_PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(900));
/// For how long a failure is remembered where many fail.
pub const LOG_IN_REMEMBERED: Duration = Duration::from_secs(3600);
/// Whose failures are remembered at once.
pub const LOG_IN_HOLDERS_MAX: usize = 20_000;
/// And how many counts whoever else fails then shares with others.
pub const LOG_IN_SHARED: u64 = 1_024;
/// A member is known at an address for so long after signing in there.
pub const LOG_IN_PLACE_KNOWN: Duration = Duration::from_secs(30 * 24 * 3600);
/// Longest session.
pub const SESSION_MAX: Duration = Duration::from_secs(12 * 3600);
/// A session that nobody uses ends after this long.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// How exactly it is known when a session was last used.
pub const SESSION_SEEN_EVERY: Duration = Duration::from_secs(60);
/// For how long a password or a code counts for what is dangerous.
pub const RECENT_LOG_IN: Duration = Duration::from_secs(15 * 60);
/// Sessions are kept this long: who was signed in, and from where.
pub const SESSIONS_KEPT: Duration = Duration::from_secs(400 * 24 * 3600);
/// Refusals that a host writes into the audit log in a minute, each of somebody else.
pub const REFUSALS_TOLD_PER_MINUTE_MAX: usize = 30;
/// Stored decisions that a backtest looks at in one request.
pub const BACKTEST_SLICE: i64 = 1_000;
/// Decisions that wait to be compared with a pack in shadow; more are not compared.
pub const SHADOW_QUEUE_MAX: usize = 4096;
/// Payouts of one route that a dispatcher claims at a time.
pub const CLAIM_MAX: usize = 512;
/// Failures in a row after which a route is left alone for a while.
pub const BREAKER_FAILURES: u32 = 8;
/// For how long at first, and at most.
pub const BREAKER_PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// The same where no connection comes about: whoever tries it risks no payment.
pub const BREAKER_PAUSE_ABSENT: (Duration, Duration) =
    (Duration::from_secs(5), Duration::from_secs(10));
/// For how long at most a network is left alone that asks for it.
pub const PATIENCE_MAX: Duration = Duration::from_secs(900);
/// How often a payment is looked at that waits until its network opens.
pub const CLOSED_POLL: Duration = Duration::from_secs(900);
/// What cannot be sent now, because no route takes it or its wallet is frozen, is looked at
/// again after this long.
pub const SEND_LATER: Duration = Duration::from_secs(30);
/// Answers of "never received" in a row that permit sending again, whatever a rail declares.
pub const NEVER_RECEIVED_ANSWERS_MIN: i64 = 3;
/// And how long after the last byte left: a bank's books may lag behind its answers.
pub const NEVER_RECEIVED_AFTER_MIN: Duration = Duration::from_secs(5 * 60);
/// A payment whose outcome is unknown for longer needs a person.
pub const UNANSWERED_MAX: Duration = Duration::from_secs(24 * 3600);
/// Tries after which what cannot be sent for a reason of its rail needs a person.
pub const SEND_TRIES_MAX: i64 = 5;
/// Payments of which a host remembers how often it failed at them.
pub const FAILURES_MAX: usize = 10_000;
/// A bank that has ended a payment itself is not asked again about it for this long.
pub const ANSWER_FRESH: Duration = Duration::from_secs(10 * 60);
/// A payment that there is news of, and that somebody is at, is waited for this long.
pub const NOTICE_WAIT: Duration = Duration::from_secs(5);
/// What has been taken in of a network waits this long for its effect before the network hears
/// that it was stored.
pub const TAKING_WAIT: Duration = Duration::from_secs(5);
/// How often what is left in the inbox is looked for.
pub const INBOX_POLL: Duration = Duration::from_secs(1);
/// How often the inbox is looked through for what another version of a rail could not read.
pub const INBOX_READ_AGAIN: Duration = Duration::from_secs(600);
/// Seconds after which what could not be taken in is tried again. What is about nobody
/// known, or cannot be read, is given up then; anything else is tried on, and a person told.
pub const INBOX_SCHEDULE_S: [u64; 7] = [5, 30, 300, 1_800, 3_600, 6 * 3_600, 24 * 3_600];
/// After so many seconds, at most, it is looked at again whether a person has looked at what keeps
/// a file's acknowledgement back.
pub const INBOX_KEPT_BACK_S: u64 = 3_600;
/// How long a file of payments is somebody's: longer than any call about one takes.
pub const FILE_LEASE: Duration = Duration::from_secs(300);
/// How often files that something is to be done about are looked for.
pub const FILES_POLL: Duration = Duration::from_secs(1);
/// How often a file is looked at that is held back.
pub const FILE_HELD_POLL: Duration = Duration::from_secs(30);
/// How long after its closing a file may still be made: those who sent in time may be late to join.
pub const WINDOW_GRACE: Duration = Duration::from_secs(15 * 60);
/// How long after an unclear delivery a file is first looked for.
pub const FILE_LOOK_AFTER: Duration = Duration::from_secs(10);
/// And how often at least; what cannot be made is tried again as often.
pub const FILE_RETRY: Duration = Duration::from_secs(3600);
/// Largest file of payments.
pub const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Intents are kept this long: longer than any backup is old that somebody would restore.
pub const INTENTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// The least time from one sync of intents to the next: one alone waits for nothing, and what comes
/// close together shares a sync.
pub const INTENTS_EVERY: Duration = Duration::from_millis(2);
/// How much room is made at a time for intents. Syncing what is written where there is room already
/// costs the disk the bytes alone; a file that grows with each line costs its filesystem a
/// transaction.
pub const INTENTS_ROOM: u64 = 1 << 20;
/// How often a host leaves its mark in the database and in its side file. A backup that is
/// older than the last mark is recognised when it is restored.
pub const EPOCH_EVERY: Duration = Duration::from_secs(10);
/// How far ahead a host's clock may be of the one that noticed a restore.
pub const CLOCKS_APART: Duration = Duration::from_secs(60);
/// How long the dispatcher sleeps when there is nothing to do and nobody wakes it.
pub const DISPATCH_POLL: Duration = Duration::from_millis(250);
/// A connection that was not used for this long is asked whether it is still there.
pub const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(1);
/// The least time between two rounds of claiming work.
pub const DISPATCH_EVERY: Duration = Duration::from_millis(20);
/// How often a lane is looked at for what is to be asked about, unless there was more of it.
pub const ASK_EVERY: Duration = Duration::from_millis(100);
/// A look into a lane that finds nothing in so long has gone past many who have nothing due.
pub const LOOK_DEAR: Duration = Duration::from_millis(40);
/// What is looked through again and again is left alone for so many times as long as that took,
pub const LOOK_SHARE: u32 = 10;
/// and what somebody waits for is looked for at least so often.
pub const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// How long to rest after a look that took so long: within these bounds.
#[must_use]
pub fn rest_after(took: Duration, (least, most): (Duration, Duration)) -> Duration {
    (took * LOOK_SHARE).clamp(least, most)
}

/// Questions to a network that wants patience: none is asked, but who waits too long is noticed.
pub const PATIENT_QUESTIONS: usize = 8;
/// A lane that is quick has as much claimed work at hand as it carries in this time.
pub const CLAIM_AHEAD: Duration = Duration::from_millis(400);
/// What was to be sent and never left is asked about, and sent, again after this long,
pub const UNSENT_ASKED_EVERY: Duration = Duration::from_secs(60);
/// or after this share of the time that it has waited.
pub const UNSENT_ASKED_SHARE: u32 = 8;
/// Of what no route takes now, so many of each merchant in a lane are looked at again soon,
pub const SCOUTS: u32 = 64;
/// and one more after this long each time;
pub const SCOUT_EVERY: Duration = Duration::from_millis(500);
/// the others after this long,
pub const PARKED_FOR: Duration = Duration::from_secs(300);
/// or so shortly after one has got on,
pub const WAKE_AFTER: Duration = Duration::from_millis(500);
/// and so long after they were woken last.
pub const WAKE_EVERY: Duration = Duration::from_secs(60);
/// Merchants and lanes of which that is kept in mind.
pub const PARKED_MAX: usize = 100_000;
/// Claimed work that has waited this long for a place is given back.
pub const AT_HAND_MAX: Duration = Duration::from_secs(5);
/// A payout in the sandbox whose creator died is answered to a repeat after this long.
pub const SANDBOX_ANSWER_WAIT: Duration = Duration::from_secs(10);
/// Batches of fresh deliveries on their way to this process's deliverer. More are found in
/// the queue, a little later.
pub const HANDED_OVER_MAX: usize = 4096;
/// Deliveries that wait in memory for one endpoint; the others wait in the queue.
pub const WAITING_PER_ENDPOINT_MAX: usize = 512;
/// Deliveries that wait in memory for all endpoints, before each one's share is cut.
pub const WAITING_MAX: usize = 8192;
/// Deliveries under way to one endpoint that answers well; one that does not gets one.
pub const UNDER_WAY_PER_ENDPOINT_MAX: usize = 16;
/// Webhook endpoints of one merchant in one environment.
pub const WEBHOOK_ENDPOINTS_MAX: usize = 50;
/// A receiver has this long for the whole exchange: name, connection, TLS, head and body.
pub const WEBHOOK_EXCHANGE_MAX: Duration = Duration::from_secs(10);
/// An exchange that takes longer moves to the slow lane.
pub const WEBHOOK_SLOW_AFTER: Duration = Duration::from_millis(1_000);
/// What is kept of a receiver's answer.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 16 * 1024;
/// How long after the attempt before each attempt is made. After the last, it is given up.
pub const WEBHOOK_DELAYS: [Duration; 7] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(8 * 3600),
];
/// A receiver may ask for this much patience with Retry-After, and no more.
pub const WEBHOOK_RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);
/// An endpoint that fails without a break for this long is switched off.
pub const WEBHOOK_FAILING_MAX: Duration = Duration::from_secs(5 * 24 * 3600);
/// After a rotation the old secret signs beside the new one for this long.
pub const WEBHOOK_OLD_SECRET: Duration = Duration::from_secs(60 * 60);
/// Secrets of an endpoint that were replaced and sign beside the new one, at most.
pub const WEBHOOK_OLD_SECRETS_MAX: usize = 4;
/// Failures in a row after which an endpoint is left alone for a while.
pub const WEBHOOK_BREAKER_FAILURES: i64 = 5;
/// For how long at first, and at most.
pub const WEBHOOK_BREAKER_PAUSE: (Duration, Duration) =
    (Duration::from_secs(5), Duration::from_secs(300));
/// Sweeping holds what it deletes from for so long at a time.
pub const SWEEP_HOLD: Duration = Duration::from_millis(10);
/// Failures of an endpoint are in a row within this: longer than any pause between two attempts.
pub const WEBHOOK_HEALTH_KEPT: Duration = Duration::from_secs(48 * 3600);
/// Ended deliveries are kept for as many days at least.
pub const DELIVERIES_KEPT_DAYS_LEAST: u32 = 30;
/// How far back a stream of events looks for what became visible late: an event's id is
/// made before its COMMIT, on whichever host. Far above any transaction and any difference
/// between the clocks of hosts.
pub const STREAM_LOOK_BACK: Duration = Duration::from_secs(120);
/// How often a stream looks for events.
pub const STREAM_POLL: Duration = Duration::from_millis(250);
/// Of its time, a stream looks for events at most one part in this many.
pub const STREAM_SHARE: u32 = 10;
/// Events that a stream reads at a time.
pub const STREAM_PAGE: i64 = 500;
/// A stream that says nothing for this long says that it is there.
pub const STREAM_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Streams that one key may have open on one host, and all keys of a merchant's environment.
pub const STREAMS_PER_KEY_MAX: usize = 8;
/// See [`STREAMS_PER_KEY_MAX`].
pub const STREAMS_PER_OWNER_MAX: usize = 32;
/// Which part of all connections answers may have that take long: whoever asks for something else
/// finds a place.
pub const CONNECTIONS_PER_LONG_ANSWER: usize = 4;
/// Keys of a merchant that work in one environment.
pub const KEYS_MAX: i64 = 50;
/// Requests that wait to be written into their log; the newest is lost beyond.
pub const REQUEST_LOG_WAITING_MAX: usize = 20_000;
/// How often those that wait are written: what a crash takes with it.
pub const REQUEST_LOG_EVERY: Duration = Duration::from_millis(250);
/// Requests that are written at once: two milliseconds of the writer's time.
pub const REQUEST_LOG_AT_ONCE: usize = 500;
/// How far apart the first and the last request of a chunk came: whoever looks for what is older than
/// a request reads chunks that came later by no more than that.
pub const REQUEST_CHUNK_SPAN: Duration = Duration::from_secs(1);
/// Requests in a chunk: ten kilobytes of ordinary ones.
pub const REQUEST_CHUNK_MAX: usize = 64;
/// Chunks that are read at first; four times as many each time that is not enough.
pub const REQUEST_CHUNKS_FIRST: i64 = 8;
/// Chunks that are read at a time: a megabyte.
pub const REQUEST_CHUNKS_MAX: i64 = 128;
/// How often what is to be told to people is looked for.
pub const NOTIFICATIONS_POLL: Duration = Duration::from_secs(1);
/// Longest time for one.
pub const NOTIFICATION_MAX: Duration = Duration::from_secs(30);
/// How long one belongs to the host that sends it.
pub const NOTIFICATION_LEASE: Duration = Duration::from_secs(180);
/// Seconds after which one that could not be sent is tried again; after the last it is given up.
pub const NOTIFICATION_DELAYS_S: [u64; 6] = [60, 300, 1_800, 7_200, 28_800, 86_400];
/// Notifications that have ended are kept this long, without what they said.
pub const NOTIFICATIONS_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
/// How often a host looks whether somebody has to be told.
pub const ALERTS_POLL: Duration = Duration::from_secs(2);
/// What is the matter more often is told again after this long at the earliest.
pub const ALERT_MORE_AFTER: Duration = Duration::from_secs(3600);
/// A network that is left alone is told of when that has lasted for so long.
pub const ALERT_BREAKER_AFTER: Duration = Duration::from_secs(120);
/// Payouts that no route takes are told of when that has lasted for so long.
pub const ALERT_NO_ROUTE_AFTER: Duration = Duration::from_secs(300);
/// An anchor that is late is told of when that has lasted for so long on a host.
pub const ALERT_ANCHOR_AFTER: Duration = Duration::from_secs(300);
/// People who were not told are the matter for as long as this.
pub const ALERT_NOT_TOLD_FOR: Duration = Duration::from_secs(24 * 3600);
/// Money in question is told of once more when it is as old as this.
pub const ALERT_SUSPENSE_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Failures in a row of a provider of rates.
pub const ALERT_RATE_FAILURES: u32 = 3;
/// Alerts that have ended are kept this long.
pub const ALERTS_KEPT: Duration = Duration::from_secs(400 * 24 * 3600);
/// How often a host looks whether an anchor is due.
pub const ANCHOR_POLL: Duration = Duration::from_secs(60);
/// Characters of a path or a subject that logs keep.
pub const LOGGED_TEXT_MAX: usize = 256;
/// On SIGTERM, running requests and dispatches get this long.
pub const DRAIN: Duration = Duration::from_secs(25);
/// Callers whose requests have not ended by then are cut off; the host's own work goes on.
pub const DRAIN_CALLERS: Duration = Duration::from_secs(15);
