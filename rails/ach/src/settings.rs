//! The operator's settings, as rail.toml declares them.

use railhead_rail::host;

/// Values that go into files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Who pays, as recipients' statements show it.
    pub company_name: String,
    /// What the bank calls whoever pays.
    pub company_id: String,
    /// What it has called them before, or calls them in files that lie in the same place.
    pub further_company_ids: Vec<String>,
    /// What is paid, as recipients' statements show it.
    pub entry_description: String,
    /// Immediate origin: who sends the file, right-justified in ten characters.
    pub origin: String,
    /// Its name.
    pub origin_name: String,
    /// Immediate destination: the routing number of the bank that takes the file.
    pub destination: String,
    /// Its name.
    pub destination_name: String,
    /// The first eight digits of the originating bank's routing number.
    pub odfi: String,
    /// Whether narrations travel in addenda.
    pub has_addenda: bool,
}

impl Settings {
    /// The settings of this call.
    ///
    /// # Errors
    /// One is missing, or does not fit into its field.
    pub fn read() -> Result<Self, String> {
        Ok(Self {
            company_name: written("company_name", 1, 16)?,
            company_id: plain("company_id", 10, 10)?,
            further_company_ids: further(),
            entry_description: written("entry_description", 1, 10)?,
            origin: format!("{:>10}", plain("origin", 9, 10)?),
            origin_name: written("origin_name", 1, 23)?,
            destination: digits("destination", 9)?,
            destination_name: written("destination_name", 1, 23)?,
            odfi: digits("odfi", 8)?,
            has_addenda: host::setting("addenda").as_deref() == Some("yes"),
        })
    }
}

fn further() -> Vec<String> {
    let text = host::setting("further_company_ids").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// A setting of between `least` and `most` printable characters.
fn written(name: &str, least: usize, most: usize) -> Result<String, String> {
    let value = host::setting(name).unwrap_or_default().trim().to_owned();
    let is_ascii = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_ascii && (least..=most).contains(&value.len()) {
        return Ok(value);
    }
    Err(format!("the setting {name} is missing, or does not fit into its {most} characters"))
}

fn plain(name: &str, least: usize, most: usize) -> Result<String, String> {
    let value = written(name, least, most)?;
    if value.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(value);
    }
    Err(format!("the setting {name} holds something else than letters and digits"))
}

fn digits(name: &str, count: usize) -> Result<String, String> {
    let value = written(name, count, count)?;
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(value);
    }
    Err(format!("the setting {name} is not {count} digits"))
}

#[cfg(test)]
#[cfg(not(target_family = "wasm"))]
mod tests {
    use railhead_rail::host::double;

    use super::Settings;
    use crate::fixtures;

    #[test]
    fn each_must_fit_into_its_field() {
        fixtures::install();
        assert_eq!(Settings::read().expect("settings").origin, " 121042882");
        for (name, bad) in [
            ("company_name", ""),
            ("company_name", "Seventeen letters"),
            ("company_name", "Müller"),
            ("company_id", "123"),
            ("company_id", "12345678-0"),
            ("origin", "12104288"),
            ("destination", "23138010X"),
            ("odfi", "121042882"),
            ("entry_description", "ELEVENCHARS"),
        ] {
            let mut host = fixtures::host();
            host.settings.insert(name.into(), bad.into());
            double::install(host);
            assert!(Settings::read().expect_err(name).contains(name), "{name} {bad:?}");
        }
    }
}
