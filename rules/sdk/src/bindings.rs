//! The contract in `wit/rules.wit` as Rust, one module for each interface.
//!
//! What a component exports is decided where the macros made here are used, in the pack's own
//! crate: `export_pack` and one of `export_fees` and `export_fraud`. The worlds are cut by
//! interface because a macro can be exported from a crate once only, and both kinds of pack
//! export `pack`.

#![allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]

pub mod types {
    wit_bindgen::generate!({
        path: "wit/rules.wit",
        world: "types",
        generate_all,
        additional_derives: [PartialEq, Eq],
    });
}

pub mod pack {
    wit_bindgen::generate!({
        path: "wit/rules.wit",
        inline: "package railhead:sdk; world exports-pack { export railhead:rules/pack@0.1.0; }",
        world: "railhead:sdk/exports-pack",
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "export_pack",
        default_bindings_module: "railhead_rule::bindings::pack",
    });
}

pub mod fees {
    wit_bindgen::generate!({
        path: "wit/rules.wit",
        inline: "package railhead:sdk; world exports-fees { export railhead:rules/fees@0.1.0; }",
        world: "railhead:sdk/exports-fees",
        with: { "railhead:rules/facts@0.1.0": crate::bindings::types::railhead::rules::facts },
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "export_fees",
        default_bindings_module: "railhead_rule::bindings::fees",
    });
}

pub mod fraud {
    wit_bindgen::generate!({
        path: "wit/rules.wit",
        inline: "package railhead:sdk; world exports-fraud { export railhead:rules/fraud@0.1.0; }",
        world: "railhead:sdk/exports-fraud",
        with: { "railhead:rules/facts@0.1.0": crate::bindings::types::railhead::rules::facts },
        additional_derives: [PartialEq, Eq],
        pub_export_macro: true,
        export_macro_name: "export_fraud",
        default_bindings_module: "railhead_rule::bindings::fraud",
    });
}
