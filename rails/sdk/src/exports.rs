//! What a rail offers, one module for each interface of `wit/rail.wit`.
//!
//! What a component exports is decided where the macros made here are used, in the rail's own
//! crate: `export_recipients`, and whichever of the others the rail implements.

#![allow(unsafe_code, missing_docs, unreachable_pub, unused_qualifications, clippy::all)]

pub mod recipients {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "package railhead:sdk; world exports-recipients { export railhead:rail/recipients@1.0.0; }",
        world: "railhead:sdk/exports-recipients",
        with: {
            "railhead:rail/types@1.0.0": crate::imports::types,
            "railhead:host/http@1.0.0": crate::imports::http,
        },
        pub_export_macro: true,
        export_macro_name: "export_recipients",
        default_bindings_module: "railhead_rail::exports::recipients",
    });
    pub use exports::railhead::rail::recipients::Guest;
}

pub mod payouts {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "package railhead:sdk; world exports-payouts { export railhead:rail/payouts@1.0.0; }",
        world: "railhead:sdk/exports-payouts",
        with: {
            "railhead:rail/types@1.0.0": crate::imports::types,
            "railhead:host/http@1.0.0": crate::imports::http,
        },
        pub_export_macro: true,
        export_macro_name: "export_payouts",
        default_bindings_module: "railhead_rail::exports::payouts",
    });
    pub use exports::railhead::rail::payouts::Guest;
}

pub mod recalls {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "package railhead:sdk; world exports-recalls { export railhead:rail/recalls@1.0.0; }",
        world: "railhead:sdk/exports-recalls",
        with: {
            "railhead:rail/types@1.0.0": crate::imports::types,
            "railhead:host/http@1.0.0": crate::imports::http,
        },
        pub_export_macro: true,
        export_macro_name: "export_recalls",
        default_bindings_module: "railhead_rail::exports::recalls",
    });
    pub use exports::railhead::rail::recalls::Guest;
}

pub mod names {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "package railhead:sdk; world exports-names { export railhead:rail/names@1.0.0; }",
        world: "railhead:sdk/exports-names",
        with: {
            "railhead:rail/types@1.0.0": crate::imports::types,
            "railhead:host/http@1.0.0": crate::imports::http,
        },
        pub_export_macro: true,
        export_macro_name: "export_names",
        default_bindings_module: "railhead_rail::exports::names",
    });
    pub use exports::railhead::rail::names::Guest;
}

pub mod notices {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "package railhead:sdk; world exports-notices { export railhead:rail/notices@1.0.0; }",
        world: "railhead:sdk/exports-notices",
        with: {
            "railhead:rail/types@1.0.0": crate::imports::types,
            "railhead:host/http@1.0.0": crate::imports::http,
        },
        pub_export_macro: true,
        export_macro_name: "export_notices",
        default_bindings_module: "railhead_rail::exports::notices",
    });
    pub use exports::railhead::rail::notices::Guest;
}

pub mod files {
    wit_bindgen::generate!({
        path: ["../../wit/host.wit", "../../wit/rail.wit"],
        inline: "package railhead:sdk; world exports-files { export railhead:rail/files@1.0.0; }",
        world: "railhead:sdk/exports-files",
        with: {
            "railhead:rail/types@1.0.0": crate::imports::types,
            "railhead:host/http@1.0.0": crate::imports::http,
        },
        pub_export_macro: true,
        export_macro_name: "export_files",
        default_bindings_module: "railhead_rail::exports::files",
    });
    pub use exports::railhead::rail::files::Guest;
}
