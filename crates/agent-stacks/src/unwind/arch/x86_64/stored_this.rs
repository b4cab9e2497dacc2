//! `this` in the frame of a compiled method.

/// Offset from the frame pointer of the word in which a method stores its first argument before
/// anything can change it. `None` if the method's first bytes contain no such store. Methods with
/// handlers that need the argument store it, since its register is not preserved when an exception
/// occurs (`lvLiveInOutOfHndlr` in the runtime's `lclvars.cpp`). Bytes within other instructions
/// may look like the store, so callers must check the stored word.
pub(crate) fn bytes_to_stored_this(first: &[u8]) -> Option<i32> {
    // push rbp
    if first.first() != Some(&0x55) {
        return None;
    }
    (1..first.len()).find_map(|at| match first[at..] {
        // mov [rbp + n], rdi
        [0x48, 0x89, 0x7D, offset, ..] => Some(i32::from(offset.cast_signed())),
        [0x48, 0x89, 0xBD, a, b, c, d, ..] => Some(i32::from_le_bytes([a, b, c, d])),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_of_the_first_argument_is_found_near_and_far() {
        // push rbp; push rbx; sub rsp, 0x48; lea rbp, [rsp + 0x50]; mov [rbp - 0x10], rdi
        let near = [0x55, 0x53, 0x48, 0x83, 0xEC, 0x48, 0x48, 0x8D, 0x6C, 0x24, 0x50, 0x48, 0x89, 0x7D, 0xF0];
        assert_eq!(bytes_to_stored_this(&near), Some(-16));
        // push rbp; mov [rbp - 0x100], rdi
        assert_eq!(bytes_to_stored_this(&[0x55, 0x48, 0x89, 0xBD, 0x00, 0xFF, 0xFF, 0xFF]), Some(-256));
        assert_eq!(bytes_to_stored_this(&near[..14]), None);
        assert_eq!(bytes_to_stored_this(&near[1..]), None, "no frame pointer");
        assert_eq!(bytes_to_stored_this(&[]), None);
    }
}
