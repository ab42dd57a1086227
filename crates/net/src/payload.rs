//! What is sent: random bytes that no device on the way can compress, made once.

use std::io;
use std::sync::OnceLock;

use pathcast_base::Stream;
use pathcast_session::Entropy;

use crate::error::NetError;

/// How much is offered to the kernel at once [byte].
pub(crate) const CHUNK: usize = 256 << 10;

/// One chunk of filling. It is repeated: farther apart than the window of any compressor on a line.
pub(crate) fn chunk() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut stream = Stream::new(1, "payload");
        (0..CHUNK / 8).flat_map(|_| stream.bits().to_le_bytes()).collect()
    })
}

/// What a session draws from the system's random generator.
///
/// # Errors
/// Runtime where the system gives none.
pub fn entropy() -> Result<Entropy, NetError> {
    let what = "drawing random numbers";
    let nonce = random().map_err(NetError::system(what))?;
    Ok(Entropy { nonce, session: random().map_err(NetError::system(what))? })
}

/// `N` bytes from the system's random generator.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut out = [0; N];
    let mut have = 0;
    while have < N {
        // SAFETY: the rest of the array is valid for its length
        let n = unsafe { libc::getrandom(out[have..].as_mut_ptr().cast(), N - have, 0) };
        if n < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        } else {
            have += n as usize;
        }
    }
    Ok(out)
}
