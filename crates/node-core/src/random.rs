//! Random bytes.

/// Returns random bytes from the operating system.
///
/// # Panics
/// If the operating system cannot provide any, which never happens on supported systems.
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
