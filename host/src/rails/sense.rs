//! Whether a declaration makes sense: what the format alone cannot say.

use std::collections::BTreeSet;

use http::Method;

use crate::config::limits;
use crate::simulator::RESERVED;
use crate::simulator::scenario::what_happens;
use crate::wasm::keys::{Bits, Use};
use crate::wasm::rail::CONTRACT;

use super::declaration::{CallTerms, Declaration, KeyTerms, Supplier, TableTerms};
use super::fields::whole;
use super::file_transport::CARRIED;
use super::files::FilesTerms;
use super::methods::{MethodTerms, Via};
use super::notices::NoticeTerms;

/// Most decimal places that a currency has: 4, of some units of account.
const EXPONENT_MAX: u8 = 4;

impl Declaration {
    /// The first thing that makes no sense.
    pub(super) fn nonsense(&self) -> Option<String> {
        let word = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if self.manifest != 2 {
            return Some(format!("manifest is {}; this host reads 2", self.manifest));
        }
        if !CONTRACT.serves(&self.rail.contract) {
            let (found, wanted) = (&self.rail.contract, CONTRACT.package);
            return Some(format!("rail.contract is {found}; this host speaks {wanted}"));
        }
        if !word(&self.rail.name) {
            return Some("rail.name must be lowercase letters, digits and dashes".into());
        }
        if self.rail.name == RESERVED {
            return Some(format!("rail.name {RESERVED} is taken"));
        }
        let parts: Vec<_> = self.rail.version.split('.').collect();
        if parts.len() != 3 || parts.iter().any(|part| part.parse::<u32>().is_err()) {
            return Some(format!("rail.version is {}; it is three numbers", self.rail.version));
        }
        let patterns = self.recipient.fields.iter().filter_map(|field| field.pattern.as_deref());
        let settings = self.settings.values().filter_map(|setting| setting.pattern.as_deref());
        for pattern in patterns.chain(settings) {
            if let Err(cause) = whole(pattern) {
                return Some(format!("{pattern}: {cause}"));
            }
        }
        for (name, terms) in &self.settings {
            let mut values = terms.default.iter().chain(&terms.sandbox);
            if let Some(odd) = values.find(|value| !terms.takes(value)) {
                return Some(format!("settings.{name}: {odd} is not what its pattern wants"));
            }
        }
        if self.query.never_received_answers < 1 {
            return Some("query.never_received_answers is positive".into());
        }
        if self.query.schedule_s.is_empty() || self.query.schedule_s.contains(&0) {
            return Some("query.schedule_s needs positive seconds".into());
        }
        self.methods_nonsense(word)
            .or_else(|| self.fields_nonsense())
            .or_else(|| self.calls_nonsense())
            .or_else(|| self.tokens_nonsense())
            .or_else(|| self.shown_nonsense())
            .or_else(|| self.notices_nonsense())
            .or_else(|| self.names_nonsense())
            .or_else(|| self.tables_nonsense())
            .or_else(|| self.hours_nonsense())
            .or_else(|| self.files_nonsense())
            .or_else(|| self.throttle_nonsense())
            .or_else(|| self.keys_nonsense())
            .or_else(|| self.scenarios_nonsense())
    }

    /// A recipient of the sandbox that chooses what there is not would be paid.
    fn scenarios_nonsense(&self) -> Option<String> {
        let scenarios = self.scenarios.as_ref()?;
        let is_known =
            |name: &String| what_happens(name).is_some() || scenarios.own.contains_key(name);
        let (value, name) = scenarios.values.iter().find(|(_, name)| !is_known(name))?;
        Some(format!("scenarios.values: {value} chooses {name}, which there is not"))
    }

    fn throttle_nonsense(&self) -> Option<String> {
        let terms = self.throttle.as_ref()?;
        let mut limits = [("per_second", terms.per_second), ("at_once", terms.at_once)].into_iter();
        let is_odd = |count: u32| !(1..=limits::THROTTLE_MAX).contains(&count);
        let (name, count) = limits.find(|(_, count)| count.is_some_and(is_odd))?;
        let most = limits::THROTTLE_MAX;
        Some(format!("throttle.{name} is {}; it is from 1 to {most}", count.unwrap_or_default()))
    }

    /// What a key is for, and what shows who this host is.
    fn keys_nonsense(&self) -> Option<String> {
        if let Some((name, terms)) =
            self.keys.iter().find(|(_, terms)| !terms.algorithm.is_for(terms.half))
        {
            return Some(format!("keys.{name}: {:?} is not for this use", terms.algorithm));
        }
        let is_short = |terms: &KeyTerms| terms.bits_min == Bits::Short && terms.half != Use::Seal;
        if let Some((name, _)) = self.keys.iter().find(|(_, terms)| is_short(terms)) {
            return Some(format!("keys.{name}: only what is encrypted may be under a short key"));
        }
        for (name, key) in self.sealed_with() {
            let is_for_it = self.keys.get(&key).is_some_and(|terms| terms.half == Use::Seal);
            if !is_for_it || self.tokens.values().any(|token| token.presents(&name)) {
                return Some(format!("secrets.{name}.sealed_with: {key} is no key that seals it"));
            }
        }
        for (name, terms) in &self.endpoints {
            let Some(secret) = &terms.client_certificate else { continue };
            let is_otherwise_used = self.is_presented(secret)
                || self.tokens.values().any(|token| token.presents(secret));
            if !self.secrets.contains_key(secret) || is_otherwise_used {
                return Some(format!(
                    "endpoints.{name}.client_certificate: {secret} is no secret of its own"
                ));
            }
        }
        None
    }

    /// Whoever pays by file says when, and whoever does not says nothing of it.
    fn files_nonsense(&self) -> Option<String> {
        let by_file = self.methods.iter().find(|terms| terms.via == Via::Files);
        match (by_file, &self.files) {
            (Some(terms), None) => Some(format!("method {} goes by file: say [files]", terms.name)),
            (None, Some(_)) => Some("[files] is declared, and no method goes by file".to_owned()),
            (_, files) => files
                .as_ref()
                .and_then(|files| files.nonsense().or_else(|| self.windows_nonsense(files)))
                .or_else(|| self.numbers_nonsense()),
        }
    }

    /// A window that waits for what a setting never is would never be used.
    fn windows_nonsense(&self, files: &FilesTerms) -> Option<String> {
        files.windows.iter().find_map(|window| {
            let when = window.when.as_ref()?;
            let terms = self.settings.get(&when.setting);
            let is_ever = terms.is_some_and(|terms| terms.takes(&when.is));
            let (name, setting, is) = (&window.name, &when.setting, &when.is);
            (!is_ever).then(|| format!("files: the window {name} waits for {setting} to be {is}"))
        })
    }

    /// What is not declared counts nothing.
    fn numbers_nonsense(&self) -> Option<String> {
        let setting = self.files.as_ref()?.numbered_by.as_ref()?;
        let is_known = self.settings.contains_key(setting);
        (!is_known).then(|| format!("files.numbered_by: no setting {setting} is declared"))
    }

    /// Secrets, keys and settings are configured in one place, by name.
    fn names_nonsense(&self) -> Option<String> {
        let mut names = BTreeSet::new();
        let all = self.secrets.keys().chain(self.keys.keys()).chain(self.settings.keys());
        let mut twice = all.filter(|name| !names.insert(*name));
        if let Some(name) = twice.next() {
            return Some(format!("{name} is declared twice"));
        }
        // The host's own, where it carries files: a component must not name them.
        let all = self.secrets.keys().chain(self.keys.keys()).chain(self.settings.keys());
        if let Some(name) = all.into_iter().find(|name| CARRIED.contains(&name.as_str())) {
            return Some(format!("{name} is the host's own name"));
        }
        let alike = self.names.as_ref().map_or(0, |names| names.alike_at_least);
        (!(0..=100).contains(&alike))
            .then(|| format!("names.alike_at_least is {alike}; it is a share of a hundred"))
    }

    fn tables_nonsense(&self) -> Option<String> {
        let is_whole = |terms: &TableTerms| match terms.supplied_by {
            Supplier::Rail => {
                terms.file.is_some() && terms.dated.is_some() && terms.source.is_some()
            }
            Supplier::Operator => terms.file.is_none(),
        };
        let (name, terms) = self.tables.iter().find(|(_, terms)| !is_whole(terms))?;
        Some(match terms.supplied_by {
            Supplier::Rail => format!("tables.{name} needs file, dated and source"),
            Supplier::Operator => format!("tables.{name} is the operator's, and names a file"),
        })
    }

    fn methods_nonsense(&self, is_word: impl Fn(&str) -> bool) -> Option<String> {
        if self.methods.is_empty() {
            return Some("a rail needs a method".into());
        }
        for (index, terms) in self.methods.iter().enumerate() {
            let MethodTerms { name, currency, step, .. } = terms;
            let same = |other: &MethodTerms| (&other.name, other.currency) == (name, *currency);
            if !is_word(name) {
                return Some(format!("method {name}: lowercase letters, digits and dashes"));
            }
            if self.methods[..index].iter().any(same) {
                return Some(format!("method {name} of {currency} is declared twice"));
            }
            if terms.exponent > EXPONENT_MAX {
                return Some(format!("method {name}: an exponent of {}", terms.exponent));
            }
            let others = self.methods.iter().filter(|other| other.currency == *currency);
            if others.into_iter().any(|other| other.exponent != terms.exponent) {
                return Some(format!("{currency} has two exponents"));
            }
            let (least, most) = (terms.amount_minor_min, terms.amount_minor_max);
            if *step < 1 || least < 1 || most < least || least % step != 0 || most % step != 0 {
                return Some(format!(
                    "method {name}: amounts from {least} to {most} in steps of {step} make no sense"
                ));
            }
        }
        None
    }

    fn calls_nonsense(&self) -> Option<String> {
        let mut names = BTreeSet::new();
        for call in self.endpoints.values().flat_map(|endpoint| &endpoint.calls) {
            let CallTerms { name, method, path, .. } = call;
            if !names.insert(name) {
                return Some(format!("the call {name} is declared twice"));
            }
            if call.timeout_ms == 0 || call.answer_bytes_max == 0 {
                return Some(format!("the call {name} has no time, or no room for an answer"));
            }
            if Method::from_bytes(method.as_bytes()).is_err() {
                return Some(format!("{method} is not an HTTP method"));
            }
            let odd = |c: char| c.is_control() || c.is_whitespace() || "\\#?@%".contains(c);
            let fixed = path.strip_suffix("/*").unwrap_or(path);
            let is_path = path.starts_with('/') && !fixed.contains(['*']) && !fixed.contains(odd);
            if !is_path || fixed.contains("..") || fixed.contains("//") {
                return Some(format!("{path} is not a path that can be asked for"));
            }
        }
        None
    }

    fn notices_nonsense(&self) -> Option<String> {
        for (index, NoticeTerms { path, auth, methods, .. }) in self.notices.iter().enumerate() {
            let is_taken = |method: &String| ["POST", "PUT"].contains(&method.as_str());
            if methods.is_empty() || !methods.iter().all(is_taken) {
                return Some(format!("notices {path}: methods are POST and PUT"));
            }
            let is_same = |other: &NoticeTerms| {
                other.path == *path && other.methods.iter().any(|method| methods.contains(method))
            };
            if self.notices[..index].iter().any(is_same) {
                return Some(format!("notices {path} is declared twice"));
            }
            if auth.bearer.is_none() && !auth.path_token && auth.signature.is_none() {
                let why = "auth is one of bearer, path_token and signature, or several";
                return Some(format!("notices {path}: {why}"));
            }
            if let Some(signature) = &auth.signature {
                let key = self.keys.get(&signature.key);
                if key.is_none_or(|key| key.half != Use::Verify) {
                    let key = &signature.key;
                    return Some(format!("notices {path}: {key} is no key to verify by"));
                }
                if let Some(why) = signature.nonsense() {
                    return Some(format!("notices {path}: {why}"));
                }
            }
            if let Some(secret) = auth.bearer.as_ref().filter(|it| !self.secrets.contains_key(*it))
            {
                return Some(format!("notices {path}: auth.bearer {secret} is no secret"));
            }
            if !path.starts_with('/') || path.strip_suffix("/*").unwrap_or(path).contains('*') {
                return Some(format!("notices {path}: a path begins with / and may end with /*"));
            }
        }
        None
    }
}
