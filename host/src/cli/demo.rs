//! x
use crate::config::Config;
use crate::start::StartError;
pub(super) async fn demo(_config: Config) -> Result<(), StartError> { Ok(()) }
