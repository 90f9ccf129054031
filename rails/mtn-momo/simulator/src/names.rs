//! In whose name a wallet is. MTN tells that to whom it has granted it; this one tells it where a
//! scenario is about names, and says otherwise that it is not granted.

use railhead_simulator::answers::unavailable;
use railhead_simulator::host;
use railhead_simulator::types::Answer;
use serde_json::json;

use crate::{as_json, error};

/// Who holds the wallet of this number.
#[must_use]
pub fn of(number: &str) -> Answer {
    match host::scenario(number).as_str() {
        "provider_down" => unavailable(),
        "unresolvable" => error(404, "RESOURCE_NOT_FOUND"),
        // Whom MTN's own sandbox calls everybody.
        "name_mismatch" => as_json(
            200,
            &json!({
                "given_name": "Sand",
                "family_name": "Box",
                "birthdate": "1976-08-13",
                "locale": "sv_SE",
                "gender": "MALE",
                "status": "ACTIVE",
            }),
        ),
        _ => error(500, "NOT_ALLOWED"),
    }
}
