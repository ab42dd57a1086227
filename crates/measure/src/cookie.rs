//! Proofs of address without state: a digest, under a secret that only the far end has, of the address and of what the client
//! said. Whoever can return it receives at that address. It is good for the rest of its epoch and the next one.

use pathcast_base::Nanos;
use pathcast_session::{Entropy, Tag, sign};
use subtle::ConstantTimeEq;

use super::messages::Cookie;

/// An epoch [s].
const EPOCH: u64 = 10;

/// Nothing that was bought with a cookie need be remembered for longer: two epochs [ns].
pub(super) const VALID: Nanos = Nanos::secs(2 * EPOCH);

/// The far end's secret.
pub(super) struct CookieSigner(Tag);

impl CookieSigner {
    pub fn new(entropy: &Entropy) -> CookieSigner {
        CookieSigner(sign(&entropy.nonce, &[b"measure cookie", &entropy.session]))
    }

    fn make(&self, epoch: u32, address: &[u8], words: &[&[u8]]) -> Cookie {
        // with their lengths, so that no two lists of words are the same bytes
        let mut all = epoch.to_be_bytes().to_vec();
        for word in std::iter::once(&address).chain(words) {
            all.extend((word.len() as u32).to_be_bytes());
            all.extend_from_slice(word);
        }
        Cookie { epoch, digest: sign(&self.0, &[&all]) }
    }

    fn epoch(now: Nanos) -> u32 {
        (now.0 / (EPOCH * 1_000_000_000)) as u32
    }

    pub fn issue(&self, now: Nanos, address: &[u8], words: &[&[u8]]) -> Cookie {
        self.make(Self::epoch(now), address, words)
    }

    pub fn is_ours(&self, now: Nanos, cookie: &Cookie, address: &[u8], words: &[&[u8]]) -> bool {
        let age = Self::epoch(now).wrapping_sub(cookie.epoch);
        let right = self.make(cookie.epoch, address, words).digest.ct_eq(&cookie.digest);
        age <= 1 && right.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_words_and_time() {
        let cookies = CookieSigner::new(&Entropy { nonce: [1; 32], session: [2; 16] });
        let now = Nanos::secs(1234);
        let cookie = cookies.issue(now, b"here", &[b"a", b"bc"]);
        assert!(cookies.is_ours(now, &cookie, b"here", &[b"a", b"bc"]));
        assert!(cookies.is_ours(now + Nanos::secs(EPOCH), &cookie, b"here", &[b"a", b"bc"]));
        assert!(!cookies.is_ours(now + VALID, &cookie, b"here", &[b"a", b"bc"]));
        assert!(!cookies.is_ours(now, &cookie, b"there", &[b"a", b"bc"]));
        assert!(!cookies.is_ours(now, &cookie, b"here", &[b"ab", b"c"]));
        let other = CookieSigner::new(&Entropy { nonce: [1; 32], session: [3; 16] });
        assert!(!other.is_ours(now, &cookie, b"here", &[b"a", b"bc"]));
        assert!(!cookies.is_ours(now, &Cookie { epoch: cookie.epoch + 1, ..cookie }, b"here", &[b"a", b"bc"]));
    }
}
