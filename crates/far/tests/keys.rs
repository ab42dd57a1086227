//! Texts of keys, whatever they hold.

use pathcast_far::keyfile::{KeyText, parse};

#[test]
fn a_key_is_written_without_its_secret() {
    let key = KeyText { id: "site".into(), secret: "5e".repeat(32) };
    assert!(!format!("{key:?} {:?}", key.key().unwrap()).contains("5e5e"));
}

#[test]
fn what_is_no_secret_is_refused_and_not_shown() {
    for secret in ["5", "5é", "zz", "+5+5", "5e5e"] {
        let error = KeyText { id: "site".into(), secret: secret.into() }.key().unwrap_err().to_string();
        assert!(error.starts_with("key `site`: ") || error.starts_with("a secret of"), "{error}");
    }
}

#[test]
fn lines_end_as_on_any_system() {
    let text = format!("# both\r\none {0}\r\n two\t{0} \n", "A1".repeat(32));
    let keys = parse(&text, "it").unwrap();
    assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(keys[0].secret, "a1".repeat(32));
}
