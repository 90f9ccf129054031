use super::*;

const PRIVATE: &str = include_str!("../../../src/simulator/keys.pem");
const RSA: Algorithm = Algorithm::RsaPkcs1Sha256;

#[test]
fn what_one_half_signs_the_other_half_knows() {
    let pair = SandboxKeys::read(PRIVATE).expect("pairs");
    for algorithm in Algorithm::SIGNING {
        let key = pair.signing(algorithm).expect("a key");
        let signature = key.sign(b"message").expect("signed");
        let public = key.verifying();
        assert!(public.verify(b"message", &signature), "{algorithm:?}");
        assert!(!public.verify(b"messagf", &signature), "{algorithm:?}");
        assert!(!public.verify(b"message", &signature[1..]), "{algorithm:?}");
        assert!(!public.verify(b"message", b""), "{algorithm:?}");
        for other in Algorithm::SIGNING.into_iter().filter(|other| *other != algorithm) {
            let other = pair.signing(other).expect("a key").verifying();
            assert!(!other.verify(b"message", &signature), "{algorithm:?}");
        }
        assert!(Key::Verify(public).is_half_of(&pair));
    }
}

const SECRET: &str = "a secret of both sides";
const HMAC_SHA256: &str = "273f433b3e692192841ce731cc00530f7673c4bb93725a38ba11a6cb20552f24";
const HMAC_SHA512: &str = "de891b4a381276a7f1fdf1d9b287fc3c4cc012a8edd1222f86d0b3a886915a9c0a0512de643ae005fca56805\
    b6ac9ca176aaaa054a7525a4ac52b7b97a17717e";
const RSA_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAs7f+nYyLpRFfVocufA6b\n\
Z029q6he0zXcyUfZcMRaNkXEGHOEBverU5IDOUsWUotDAPPEPTUeYHJ6viUJl/J0\n\
3YqHrndh/0qvwfEzJ7Eoy8rPTu6gme/VUMhq2s0Jw1D/uHU/spTsdhKXChjITWOU\n\
5uad+3PMharsirWlkiX6gB/KlQDr8ZtIyWQRFzacyclWRWTFXmK1u+plfOf5inql\n\
rnRok1GlTieG7WggbM/9wqUnekV8BzfzBZyjy8Qo2G9CNIBPVWTfSiZlBVdiiHxb\n\
fwEYOLFPqJ2IHLGpLyC3Mr/parBWpTSMqsrBqJx+p3s0SfDF8xMUSwTtj8m48lIi\n\
kwIDAQAB\n\
-----END PUBLIC KEY-----\n\
";
const RSA_PSS: &str = "8be30dea3de1c579ad62e8c1a7d9a816f360c82dcb43f140e001f0ac5c12a3932ee19b382570f2074a82fbce\
    69fd68d336a7c53025b970ece53680d24418795e3b1dd92c8f80fadef167fd1c0a7582d0e126882de3aafbd9\
    7aa291ceddca4696bc252e240283dbe1dcf26bfb0e9f1fa57235c4dee56875119a5f5bef9de6a5c862337f12\
    216c5100f698c981724861db6baacb6796fa2e3bad06190ab5f0b75116742a5cfcd37fc068a58ab780b1e593\
    ac9bf6f9b14a3deb2c458e315ff326d4fbeeffd2cf41409430754a68dab56408e66dcc6a5c40f2dc57a33d34\
    3bd3f7e070dcbc47b07875c1d3ba62499ca3bf5caf1dbbbe61734e97fbf1d56624415a68";
const P256_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEpBwCp8DNcedNWvh7U/OoH9eTVi9o\n\
nu7D3IjkKt/tElYXflqWqYI6Auf9LDkUeGsphXYm/x5hVOZjSzeihWi7jA==\n\
-----END PUBLIC KEY-----\n\
";
const ECDSA: &str = "3045022100edde97d7f61e27565cd70a361d2f039c3681e576fb92657814f0f944eebc7c8f022055db71c116\
    125569455ed9972d78e4debbf2f69da5f8e6f27bc4c0bdcd7e29d7";
const ED25519_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MCowBQYDK2VwAyEAlBwlJPR+4auVEVG3fkRGd5vGT7XquKJRtCec6gqY2Gw=\n\
-----END PUBLIC KEY-----\n\
";
const ED25519: &str = "feb0f700b049adbafcf5068992d24b7e79a955f94d003c216738e2c45d5f407351e6d011ca4b90e7df85acbf\
    f7f9f00e1dbaf96cc0921769b308a22d49194904";
const P384_PUBLIC: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE7fqU75lsQ5yMzMjur6EabOTaJFXVs1Ho\n\
9m5/VAIXkgDfogdEZQjLstIXFrHpL0pHRWHOa0LK2x6K35GsXDD/FetDnOQTlcWT\n\
MHqs5OrUD7tWmeT3qcSOzndjf2wm4Ris\n\
-----END PUBLIC KEY-----\n\
";

/// Made by OpenSSL 3 of the text `message`: `openssl dgst`, with `-sign` or `-hmac`, and
/// `openssl pkeyutl -sign -rawin`.
#[test]
fn what_another_program_signed_is_known() {
    for (algorithm, key, signature) in [
        (Algorithm::HmacSha256, SECRET, HMAC_SHA256),
        (Algorithm::HmacSha512, SECRET, HMAC_SHA512),
        (Algorithm::RsaPssSha256, RSA_PUBLIC, RSA_PSS),
        (Algorithm::EcdsaP256Sha256, P256_PUBLIC, ECDSA),
        (Algorithm::Ed25519, ED25519_PUBLIC, ED25519),
    ] {
        let Ok(Key::Verify(read)) = Key::read(algorithm, Use::Verify, key) else {
            panic!("{algorithm:?}")
        };
        let signature = hex::decode(signature).expect("hex");
        assert!(read.verify(b"message", &signature), "{algorithm:?}");
        assert!(!read.verify(b"messages", &signature), "{algorithm:?}");
    }
    for (algorithm, key) in [
        (Algorithm::Ed25519, P256_PUBLIC),
        (Algorithm::EcdsaP256Sha256, ED25519_PUBLIC),
        (Algorithm::RsaPssSha256, P256_PUBLIC),
        (Algorithm::EcdsaP256Sha256, P384_PUBLIC),
        (Algorithm::HmacSha256, "fifteen letters"),
    ] {
        assert!(Key::read(algorithm, Use::Verify, key).is_err(), "{algorithm:?} {key}");
    }
}

#[test]
fn what_is_sealed_is_read_by_the_other_half_alone() {
    let pair = Arc::new(SandboxKeys::read(PRIVATE).expect("a pair"));
    for algorithm in [Algorithm::RsaPkcs1, Algorithm::RsaOaepSha256] {
        let network = SimulatedKey { algorithm, pair: Arc::clone(&pair) };
        let key = pair.sealing(algorithm);
        let sealed = key.seal(b"hunter2").expect("sealed");
        assert_eq!(network.open(&sealed).as_deref(), Some(b"hunter2".as_slice()));
        assert_ne!(key.seal(b"hunter2").expect("sealed"), sealed, "never twice the same");
        assert_eq!(network.open(&sealed[..sealed.len() - 4]), None);
        assert!(key.seal(&[0; 300]).is_err(), "it has no room for so much");
        let other = SimulatedKey { algorithm: RSA, pair: Arc::clone(&pair) };
        assert_eq!(other.open(&sealed), None);
    }
}

/// Of 1024 bits.
const SHORT: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/AHACJn2MFqWu+SvBpnF4gn0I\n\
nTOvfB6Qq8/B0CBBbPrOQKmOrabRFqkLfi0YkuBakdccbhw1Ra7dQhRpyzPZKcGF\n\
dbbSa5DaTWQUvY4reS9x9N0F5PgSZ41mb1JbUYLf9mC4ZJ0JfxMFqU6VGFt/R5bE\n\
hzUeIiMhPgnnXNJz2wIDAQAB\n\
-----END PUBLIC KEY-----\n\
";

#[test]
fn a_short_key_is_refused() {
    let refused = Key::read(RSA, Use::Verify, SHORT).err().expect("refused");
    assert!(refused.contains("2048 bits"), "{refused}");
    let sealing = |bits| Key::read_of((Algorithm::RsaPkcs1, Use::Seal, bits), SHORT);
    assert!(sealing(Bits::Long).is_err() && sealing(Bits::Short).is_ok());
}

#[test]
fn what_is_no_key_is_refused_without_being_shown() {
    for (kind, pem) in [
        (Use::Sign, "hunter2"),
        (Use::Verify, PRIVATE),
        (Use::Sign, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
        (Use::Verify, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
        (Use::Seal, PRIVATE),
        (Use::Seal, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ] {
        let algorithm = if kind == Use::Seal { Algorithm::RsaPkcs1 } else { RSA };
        let refused = Key::read(algorithm, kind, pem).err().expect("refused");
        assert!(!refused.contains("hunter2") && !refused.contains("AAAA"), "{refused}");
    }
}
