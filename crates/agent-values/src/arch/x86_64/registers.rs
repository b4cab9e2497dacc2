//! The registers of a hook's caller, as the hooks' own stubs save them.

/// The registers when a method is entered, as the stub saves them.
#[repr(C)]
pub struct ArgumentRegisters {
    vectors: [[u8; 16]; 8],
    _padding: u64,
    r9: u64,
    r8: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
}

impl ArgumentRegisters {
    /// The general register of this number, counted in the order of arguments.
    #[inline]
    pub fn general(&self, number: u8) -> *const u64 {
        match number {
            0 => &raw const self.rdi,
            1 => &raw const self.rsi,
            2 => &raw const self.rdx,
            3 => &raw const self.rcx,
            4 => &raw const self.r8,
            _ => &raw const self.r9,
        }
    }

    /// The vector register of this number, counted in the order of arguments.
    #[inline]
    pub fn vector(&self, number: u8) -> &[u8; 16] {
        &self.vectors[usize::from(number)]
    }
}

/// The registers when a method returns, as the stub saves them.
#[repr(C)]
pub struct ResultRegisters {
    vectors: [[u8; 16]; 2],
    _rcx: u64,
    rdx: u64,
    rax: u64,
}

impl ResultRegisters {
    /// The general register of this number, counted in the order of results.
    #[inline]
    pub fn general(&self, number: u8) -> &u64 {
        if number == 0 { &self.rax } else { &self.rdx }
    }

    /// The vector register of this number, counted in the order of results.
    #[inline]
    pub fn vector(&self, number: u8) -> &[u8; 16] {
        &self.vectors[usize::from(number).min(1)]
    }
}

/// The registers as the runtime's own stub saves them for slow hooks on .NET 8, 9 and 10
/// (`PROFILE_PLATFORM_SPECIFIC_DATA`).
#[repr(C)]
pub struct StubRegisters {
    _function: usize,
    _frame_pointer: usize,
    _stack_pointer_of_stub: usize,
    _instruction: usize,
    /// The caller's stack pointer.
    pub stack_pointer: usize,
    /// The first register of results.
    pub rax: u64,
    _hidden: usize,
    /// The lower halves of the vector registers, in the order of arguments and of results.
    pub(crate) vectors: [u64; 8],
    /// The general registers, in the order of arguments.
    pub general: [u64; 6],
}

impl StubRegisters {
    /// The second register of results.
    #[inline]
    pub fn rdx(&self) -> &u64 {
        &self.general[2]
    }
}
