//! What a rate source is written with.
//!
//! A source says what to ask a provider of exchange rates, and reads what it answers. One line makes
//! a component of it:
//!
//! ```
//! use railhead_rate::{Pair, Rate, Source, export_source};
//!
//! struct Daily;
//!
//! impl Source for Daily {
//!     fn requests(_pairs: &[Pair]) -> Vec<String> {
//!         vec!["/daily".to_owned()]
//!     }
//!
//!     fn read(answers: &[Vec<u8>]) -> Result<Vec<Rate>, String> {
//!         let page = answers.first().ok_or("nothing was answered")?;
//!         let value = std::str::from_utf8(page).map_err(|cause| cause.to_string())?;
//!         let of = Pair { from: "EUR".to_owned(), to: "USD".to_owned() };
//!         Ok(vec![Rate { of, value: value.to_owned(), as_of_ms: 1_795_600_000_000 }])
//!     }
//! }
//!
//! export_source!(Daily);
//! ```
//!
//! On the developer's own machine the line exports nothing, so sources are tested like any other
//! code. A source must be pure: no clock, no randomness, no state that one call leaves to the next.

#[doc(hidden)]
#[allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit/rates.wit",
        world: "rate-source",
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        default_bindings_module: "railhead_rate::bindings",
    });
}

pub use bindings::exports::railhead::rates::source::{Pair, Rate};

/// A provider of exchange rates.
pub trait Source {
    /// What to ask for these pairs, with GET: what follows the provider's address, such as
    /// `/latest.json?base=USD`.
    fn requests(pairs: &[Pair]) -> Vec<String>;

    /// The rates that the answers tell, which come in the order of the requests.
    ///
    /// # Errors
    /// What is wrong with the answers, for operators.
    fn read(answers: &[Vec<u8>]) -> Result<Vec<Rate>, String>;
}

/// Makes this crate a component of the given [`Source`].
#[macro_export]
macro_rules! export_source {
    ($source:ty) => {
        // On every target, so that a type that is no source is noticed on all of them.
        const _: fn(&[$crate::Pair]) -> ::std::vec::Vec<::std::string::String> =
            <$source as $crate::Source>::requests;

        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Exports;

            impl $crate::bindings::exports::railhead::rates::source::Guest for Exports {
                fn requests(
                    pairs: ::std::vec::Vec<$crate::Pair>,
                ) -> ::std::vec::Vec<::std::string::String> {
                    <$source as $crate::Source>::requests(&pairs)
                }

                fn read(
                    answers: ::std::vec::Vec<::std::vec::Vec<u8>>,
                ) -> ::std::result::Result<::std::vec::Vec<$crate::Rate>, ::std::string::String>
                {
                    <$source as $crate::Source>::read(&answers)
                }
            }

    $crate::bindings::export!(Exports with_types_in $crate::bindings);
        };
    };
}
