//! What a file of the bank's says: a report on a file of ours, or what was booked.

use railhead_rail::file_gateway;
use railhead_rail::types::Notice;

use crate::{camt054, pain002, xml};

/// Reads a file that was fetched.
///
/// # Errors
/// It is neither kind of file, or cannot be read.
pub fn read(feed: &str, name: &str, content: &[u8]) -> Result<Vec<Notice>, String> {
    file_gateway::check_readable(feed, content)?;
    let message = xml::read(content)?;
    match message.kind.as_str() {
        "pain.002.001.10" => pain002::read(&message.content),
        "camt.054.001.08" => camt054::read(&message.content, name),
        _ => Err("it is neither a pain.002.001.10 nor a camt.054.001.08".to_owned()),
    }
}
