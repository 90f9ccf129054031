//! A payment that leaves in a file of its own, played by the simulator: delivered, looked for, and
//! told of in what lies ready. It is paid once its file was accepted and nothing else was said.

use std::collections::BTreeMap;

use crate::rails::Rail;
use crate::wasm::rail::{
    Assembled, Called, Delivery, File, Finding, Money, News, Notice, Payment, Presence, Subject,
};

use super::super::cases::WindowCase;
use super::super::stage::{Stage, Stands};
use super::made::{assembled, prepared};
use super::moves_nothing;
use super::told::{makes_sense, read};

/// Questions in a row about one feed, each of which may bring several files.
const ROUNDS_MAX: usize = 100;
/// The scenario in which what lies ready cannot be fetched either.
const PROVIDER_DOWN: &str = "provider_down";

/// A Friday, and the Monday after it: holidays of hardly any network.
const FRIDAY: &str = "2026-03-06";
const MONDAY: &str = "2026-03-09";

/// What is known about the delivery of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivered {
    No,
    Unclear,
    Yes,
}

/// A payment in a file, and what was said about both.
pub(in super::super) struct Filed<'a> {
    stage: Stage<'a>,
    payment: Payment,
    file: File,
    key: String,
    delivered: Delivered,
    /// What was said about the whole file, if anything was.
    is_accepted: Option<bool>,
    /// What was said about the payment itself.
    said: Stands,
    /// Where to go on, by feed.
    cursors: BTreeMap<String, String>,
}

impl<'a> Filed<'a> {
    /// Prepares a payment, and makes a file of it.
    pub(in super::super) async fn new(stage: Stage<'a>, payment: &Payment) -> Result<Self, String> {
        let payment = prepared(stage.rail, payment).await??;
        let (file, key) = alone(stage.rail, &payment, 1).await?;
        Ok(Self {
            stage,
            payment,
            file,
            key,
            delivered: Delivered::No,
            is_accepted: None,
            said: Stands::Open,
            cursors: BTreeMap::new(),
        })
    }

    /// Delivers the file, and takes in what lies ready if it was taken.
    pub(in super::super) async fn send(&mut self) -> Result<Stands, String> {
        let earlier = self.delivered;
        self.delivered = match self.deliver(&self.file).await? {
            Delivery::Taken => Delivered::Yes,
            Delivery::Refused(why) if earlier != Delivered::No => {
                return Err(format!("the same file is refused the second time: {}", why.message));
            }
            Delivery::Unknown(_) if earlier == Delivered::No => Delivered::Unclear,
            Delivery::Refused(_) | Delivery::NotTaken(_) | Delivery::Unknown(_) => earlier,
        };
        match self.delivered {
            Delivered::Yes => self.hear().await,
            Delivered::No | Delivered::Unclear => Ok(self.stands()),
        }
    }

    /// Looks for the file, if nobody knows whether it was delivered, and takes in what lies ready.
    pub(in super::super) async fn ask(&mut self) -> Result<Stands, String> {
        if self.delivered == Delivered::Unclear {
            let grant = self.stage.plain_grant(Money::Stays);
            let called = self.stage.rail.code.look(&grant, &self.file).await;
            moves_nothing(&called.exchanges)?;
            if answer(called)? == Presence::Present {
                self.delivered = Delivered::Yes;
            }
        }
        self.hear().await
    }

    /// Delivers the payment in a second file, which has a name, an identity and keys of its own.
    pub(in super::super) async fn send_in_another(&mut self) -> Result<(), String> {
        let (file, key) = alone(self.stage.rail, &self.payment, 2).await?;
        for (what, first, second) in [
            ("name", &self.file.name, &file.name),
            ("identity", &self.file.identity, &file.identity),
            ("key", &self.key, &key),
        ] {
            if first == second {
                return Err(format!("two files have the {what} {first}"));
            }
        }
        self.deliver(&file).await.map(drop)
    }

    /// How often its network paid what it was sent, by payment.
    pub(in super::super) async fn executed(&self) -> Result<Vec<u32>, String> {
        self.stage.executed().await
    }

    async fn deliver(&self, file: &File) -> Result<Delivery, String> {
        let grant = self.stage.grant(Money::MayMove);
        let called = self.stage.rail.code.deliver(&grant, file).await;
        let has_left = called.may_have_moved_money;
        let came = answer(called)?;
        match &came {
            Delivery::Taken | Delivery::Refused(_) if !has_left => {
                Err(format!("{came:?}, and no call was made that moves money"))
            }
            _ => Ok(came),
        }
    }

    fn stands(&self) -> Stands {
        match self.said {
            Stands::Open if self.is_accepted == Some(true) => Stands::Paid,
            said => said,
        }
    }

    /// Takes in everything that lies ready, and what the network has told otherwise.
    async fn hear(&mut self) -> Result<Stands, String> {
        let terms = self.stage.rail.declaration.files.iter();
        for feed in terms.flat_map(|terms| terms.feeds.clone()) {
            self.poll(&feed).await?;
        }
        for notice in self.stage.messages().await? {
            self.take_in(&notice)?;
        }
        Ok(self.stands())
    }

    async fn poll(&mut self, feed: &str) -> Result<(), String> {
        let rail = self.stage.rail;
        for _ in 0..ROUNDS_MAX {
            let after = self.cursors.get(feed).cloned().unwrap_or_default();
            let grant = self.stage.plain_grant(Money::Stays);
            let called = rail.code.poll(&grant, (feed, &after)).await;
            moves_nothing(&called.exchanges)?;
            let arrivals = match answer(called)? {
                Ok(arrivals) => arrivals,
                Err(_) if self.stage.scenario == PROVIDER_DOWN => return Ok(()),
                Err(why) => return Err(format!("{feed}: {why}")),
            };
            if arrivals.is_empty() {
                return Ok(());
            }
            for arrival in arrivals {
                let notices = read(rail, (feed, &arrival.name), &arrival.content).await?;
                for notice in notices.map_err(|why| format!("{}: {why}", arrival.name))? {
                    self.take_in(&notice)?;
                }
                self.cursors.insert(feed.to_owned(), arrival.cursor);
            }
        }
        Err(format!("{feed} has more and more files"))
    }

    fn take_in(&mut self, notice: &Notice) -> Result<(), String> {
        makes_sense(self.stage.rail, notice)?;
        match &notice.about {
            Subject::File(identity) if *identity == self.file.identity => {
                self.take_in_about_file(&notice.news)
            }
            Subject::Reference(reference) if *reference == self.payment.reference => {
                self.take_in_about_it(&notice.news)
            }
            Subject::NetworkId(key) if *key == self.key => self.take_in_about_it(&notice.news),
            other => Err(format!("news of {other:?}, which was never sent")),
        }
    }

    /// Payments of a file that was refused join another one: about them it says nothing.
    fn take_in_about_file(&mut self, news: &News) -> Result<(), String> {
        let is_accepted = match news {
            News::Found(Finding::Accepted(_)) => true,
            News::Found(Finding::Refused(_)) => false,
            _ => return Ok(()),
        };
        match self.is_accepted.replace(is_accepted) {
            Some(before) if before != is_accepted => {
                Err("the file is said to be accepted, and to be refused".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn take_in_about_it(&mut self, news: &News) -> Result<(), String> {
        let News::Found(found) = news else { return Ok(()) };
        let amount = match found {
            Finding::Returned(funds) => Some(funds.amount_minor),
            Finding::Paid(receipt) => receipt.amount_minor,
            _ => None,
        };
        let sent = self.payment.amount_minor;
        if let Some(other) = amount.filter(|amount| *amount != sent) {
            return Err(format!("news of {other}, and {sent} was sent"));
        }
        self.said = self.said.after(found);
        Ok(())
    }
}

/// A file of one payment, and what its entry is called.
async fn alone(rail: &Rail, payment: &Payment, number: u32) -> Result<(File, String), String> {
    let window = window(rail, number)?;
    let made = assembled(rail, &window, std::slice::from_ref(payment)).await?;
    let Assembled { name, identity, content, placed, refused, .. } = made;
    match (placed.into_iter().next(), refused.into_iter().next()) {
        (Some(placed), _) => Ok((File { name, identity, content }, placed.key)),
        (None, Some(refused)) => Err(format!("no file carries it: {}", refused.why.message)),
        (None, None) => Err("it shall go with the next file, and is alone in this one".to_owned()),
    }
}

/// The first window that every payment can wait for.
fn window(rail: &Rail, number: u32) -> Result<WindowCase, String> {
    let terms = rail.declaration.files.iter().flat_map(|terms| &terms.windows);
    let mut terms = terms.filter(|it| it.when.is_none() && it.amount_minor_max.is_none());
    let terms = terms.next().ok_or("the rail declares no window")?;
    let value_date = if terms.value_days == 0 { FRIDAY } else { MONDAY };
    Ok(WindowCase {
        name: terms.name.clone(),
        number: number.into(),
        number_of_day: number,
        first_entry: number.into(),
        business_date: FRIDAY.to_owned(),
        local_time: terms.closes.clone(),
        value_date: value_date.to_owned(),
    })
}

fn answer<T>(called: Called<T>) -> Result<T, String> {
    called.result.map_err(|broken| broken.to_string())
}
