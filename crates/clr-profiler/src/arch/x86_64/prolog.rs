//! Prologs: what the first instructions of a compiled method say about its frame.

/// From a method's first bytes of code: how many bytes its frame has, the return address included, and whether the
/// caller's frame pointer is the word below that; `None` for a prolog that is not understood.
pub(crate) fn frame_of_prolog(code: &[u8]) -> Option<(usize, bool)> {
    let (mut bytes, mut keeps_frame_pointer) = (8, code.first() == Some(&0x55));
    let mut rest = code;
    // mov rax, [rbp]; push rax: what takes over a running frame keeps its caller's frame pointer.
    if let [0x48, 0x8B, 0x45, 0x00, 0x50, after @ ..] = code {
        (bytes, keeps_frame_pointer, rest) = (16, true, after);
    }
    loop {
        rest = match rest {
            // push of an old register, of a new one
            [0x50..=0x57, rest @ ..] | [0x41, 0x50..=0x57, rest @ ..] => {
                bytes += 8;
                rest
            }
            // vzeroupper
            [0xC5, 0xF8, 0x77, rest @ ..] => rest,
            // sub rsp, and nothing after it moves the stack pointer
            [0x48, 0x83, 0xEC, more @ 0..0x80, ..] => {
                bytes += usize::from(*more);
                break;
            }
            [0x48, 0x81, 0xEC, a, b, c, d, ..] => {
                bytes += u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                break;
            }
            // lea r11, [rsp - n]: a large frame, page by page
            [0x4C, 0x8D, 0x9C, 0x24, ..] => return None,
            [] => return None,
            _ => break,
        };
    }
    // The caller has an aligned stack.
    (bytes.is_multiple_of(16) && bytes < 1 << 20).then_some((bytes, keeps_frame_pointer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prologs_say_how_large_the_frame_is() {
        let shape = frame_of_prolog;
        // push rbp; push r15; push rbx; sub rsp, 0x10; lea rbp, [rsp+0x20]; mov rbx, rdi
        let framed = [0x55, 0x41, 0x57, 0x53, 0x48, 0x83, 0xEC, 0x10, 0x48, 0x8D, 0x6C, 0x24, 0x20, 0x48, 0x8B, 0xDF];
        assert_eq!(shape(&framed), Some((8 + 24 + 0x10, true)));
        // push rax; call
        assert_eq!(shape(&[0x50, 0xE8, 0, 0, 0, 0]), Some((16, false)));
        // push rbp; vzeroupper; sub rsp, 0x110
        assert_eq!(shape(&[0x55, 0xC5, 0xF8, 0x77, 0x48, 0x81, 0xEC, 0x10, 1, 0, 0]), Some((16 + 0x110, true)));
        // mov rax, [rbp]; push rax; sub rsp, 0x80
        let osr = [0x48, 0x8B, 0x45, 0, 0x50, 0x48, 0x81, 0xEC, 0x80, 0, 0, 0];
        assert_eq!(shape(&osr), Some((0x90, true)));
        // A frame larger than a page, and one that no call could be made from.
        assert_eq!(shape(&[0x55, 0x4C, 0x8D, 0x9C, 0x24, 0, 0, 0xFF, 0xFF]), None);
        assert_eq!((shape(&[0x90]), shape(&[])), (None, None));
    }
}
