//! Who a caller is: merchants, and the keys that speak for them.

mod directory;
pub mod key;
pub mod merchant;
pub mod sql;

pub use directory::Directory;
pub use key::{ApiKey, Capability, Permission};
pub use merchant::{Feature, Merchant, MerchantStatus, Settings};
