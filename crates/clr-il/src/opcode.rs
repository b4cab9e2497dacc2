//! The table of all instructions, the only source of their properties in this crate. Source:
//! ECMA-335, III and VI.C.3.

use std::fmt;

/// Kind of an instruction's operand, which determines its length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum OperandKind {
    /// No operand.
    None,
    /// One byte: a variable's number, a small constant, an alignment.
    Byte,
    /// Two bytes: a variable's number.
    Word,
    /// A constant of four bytes.
    Int,
    /// A constant of eight bytes.
    Long,
    /// A floating-point number of four bytes.
    Float,
    /// A floating-point number of eight bytes.
    Double,
    /// A metadata token: a method, field, type, string or signature.
    Token,
    /// A branch target, as a one-byte distance.
    ShortTarget,
    /// A branch target, as a four-byte distance.
    Target,
    /// The branch targets of a `switch`, any number.
    Targets,
}

impl OperandKind {
    /// Length of the operand in bytes; for [`Targets`](Self::Targets) only the length of the count.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::None => 0,
            Self::Byte | Self::ShortTarget => 1,
            Self::Word => 2,
            Self::Int | Self::Float | Self::Token | Self::Target | Self::Targets => 4,
            Self::Long | Self::Double => 8,
        }
    }
}

/// Control flow after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Flow {
    /// Continues with the next instruction.
    Next,
    /// Calls a method, then continues with the next instruction.
    Call,
    /// Prefix of the following instruction.
    Prefix,
    /// Continues with the next instruction or at a target.
    Condition,
    /// Continues at the target.
    Branch,
    /// Leaves the block: a return, an exception, the end of a handler.
    Leave,
}

impl Flow {
    /// Whether execution can continue with the next instruction.
    #[must_use]
    pub const fn goes_on(self) -> bool {
        !matches!(self, Self::Branch | Self::Leave)
    }
}

struct Row {
    name: &'static str,
    code: u16,
    operand: OperandKind,
    pops: Option<u8>,
    pushes: Option<u8>,
    flow: Flow,
}

/// A number in the table; `_` means that a signature determines it.
macro_rules! amount {
    (_) => {
        None
    };
    ($number:literal) => {
        Some($number)
    };
}

macro_rules! opcodes {
    ($($variant:ident $name:literal $code:literal $operand:ident $pops:tt $pushes:tt $flow:ident;)*) => {
        /// An instruction of CIL, named as ECMA-335 does.
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Opcode {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        const ROWS: &[Row] = &[$(Row {
            name: $name,
            code: $code,
            operand: OperandKind::$operand,
            pops: amount!($pops),
            pushes: amount!($pushes),
            flow: Flow::$flow,
        },)*];

        impl Opcode {
            /// All instructions, in the order of their codes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
        }
    };
}

// Name, code, operand, values popped, values pushed, flow.
opcodes! {
    Nop "nop" 0x0000 None 0 0 Next;
    Break "break" 0x0001 None 0 0 Next;
    Ldarg0 "ldarg.0" 0x0002 None 0 1 Next;
    Ldarg1 "ldarg.1" 0x0003 None 0 1 Next;
    Ldarg2 "ldarg.2" 0x0004 None 0 1 Next;
    Ldarg3 "ldarg.3" 0x0005 None 0 1 Next;
    Ldloc0 "ldloc.0" 0x0006 None 0 1 Next;
    Ldloc1 "ldloc.1" 0x0007 None 0 1 Next;
    Ldloc2 "ldloc.2" 0x0008 None 0 1 Next;
    Ldloc3 "ldloc.3" 0x0009 None 0 1 Next;
    Stloc0 "stloc.0" 0x000a None 1 0 Next;
    Stloc1 "stloc.1" 0x000b None 1 0 Next;
    Stloc2 "stloc.2" 0x000c None 1 0 Next;
    Stloc3 "stloc.3" 0x000d None 1 0 Next;
    LdargS "ldarg.s" 0x000e Byte 0 1 Next;
    LdargaS "ldarga.s" 0x000f Byte 0 1 Next;
    StargS "starg.s" 0x0010 Byte 1 0 Next;
    LdlocS "ldloc.s" 0x0011 Byte 0 1 Next;
    LdlocaS "ldloca.s" 0x0012 Byte 0 1 Next;
    StlocS "stloc.s" 0x0013 Byte 1 0 Next;
    Ldnull "ldnull" 0x0014 None 0 1 Next;
    LdcI4M1 "ldc.i4.m1" 0x0015 None 0 1 Next;
    LdcI4_0 "ldc.i4.0" 0x0016 None 0 1 Next;
    LdcI4_1 "ldc.i4.1" 0x0017 None 0 1 Next;
    LdcI4_2 "ldc.i4.2" 0x0018 None 0 1 Next;
    LdcI4_3 "ldc.i4.3" 0x0019 None 0 1 Next;
    LdcI4_4 "ldc.i4.4" 0x001a None 0 1 Next;
    LdcI4_5 "ldc.i4.5" 0x001b None 0 1 Next;
    LdcI4_6 "ldc.i4.6" 0x001c None 0 1 Next;
    LdcI4_7 "ldc.i4.7" 0x001d None 0 1 Next;
    LdcI4_8 "ldc.i4.8" 0x001e None 0 1 Next;
    LdcI4S "ldc.i4.s" 0x001f Byte 0 1 Next;
    LdcI4 "ldc.i4" 0x0020 Int 0 1 Next;
    LdcI8 "ldc.i8" 0x0021 Long 0 1 Next;
    LdcR4 "ldc.r4" 0x0022 Float 0 1 Next;
    LdcR8 "ldc.r8" 0x0023 Double 0 1 Next;
    Dup "dup" 0x0025 None 1 2 Next;
    Pop "pop" 0x0026 None 1 0 Next;
    Jmp "jmp" 0x0027 Token 0 0 Leave;
    Call "call" 0x0028 Token _ _ Call;
    Calli "calli" 0x0029 Token _ _ Call;
    Ret "ret" 0x002a None _ 0 Leave;
    BrS "br.s" 0x002b ShortTarget 0 0 Branch;
    BrfalseS "brfalse.s" 0x002c ShortTarget 1 0 Condition;
    BrtrueS "brtrue.s" 0x002d ShortTarget 1 0 Condition;
    BeqS "beq.s" 0x002e ShortTarget 2 0 Condition;
    BgeS "bge.s" 0x002f ShortTarget 2 0 Condition;
    BgtS "bgt.s" 0x0030 ShortTarget 2 0 Condition;
    BleS "ble.s" 0x0031 ShortTarget 2 0 Condition;
    BltS "blt.s" 0x0032 ShortTarget 2 0 Condition;
    BneUnS "bne.un.s" 0x0033 ShortTarget 2 0 Condition;
    BgeUnS "bge.un.s" 0x0034 ShortTarget 2 0 Condition;
    BgtUnS "bgt.un.s" 0x0035 ShortTarget 2 0 Condition;
    BleUnS "ble.un.s" 0x0036 ShortTarget 2 0 Condition;
    BltUnS "blt.un.s" 0x0037 ShortTarget 2 0 Condition;
    Br "br" 0x0038 Target 0 0 Branch;
    Brfalse "brfalse" 0x0039 Target 1 0 Condition;
    Brtrue "brtrue" 0x003a Target 1 0 Condition;
    Beq "beq" 0x003b Target 2 0 Condition;
    Bge "bge" 0x003c Target 2 0 Condition;
    Bgt "bgt" 0x003d Target 2 0 Condition;
    Ble "ble" 0x003e Target 2 0 Condition;
    Blt "blt" 0x003f Target 2 0 Condition;
    BneUn "bne.un" 0x0040 Target 2 0 Condition;
    BgeUn "bge.un" 0x0041 Target 2 0 Condition;
    BgtUn "bgt.un" 0x0042 Target 2 0 Condition;
    BleUn "ble.un" 0x0043 Target 2 0 Condition;
    BltUn "blt.un" 0x0044 Target 2 0 Condition;
    Switch "switch" 0x0045 Targets 1 0 Condition;
    LdindI1 "ldind.i1" 0x0046 None 1 1 Next;
    LdindU1 "ldind.u1" 0x0047 None 1 1 Next;
    LdindI2 "ldind.i2" 0x0048 None 1 1 Next;
    LdindU2 "ldind.u2" 0x0049 None 1 1 Next;
    LdindI4 "ldind.i4" 0x004a None 1 1 Next;
    LdindU4 "ldind.u4" 0x004b None 1 1 Next;
    LdindI8 "ldind.i8" 0x004c None 1 1 Next;
    LdindI "ldind.i" 0x004d None 1 1 Next;
    LdindR4 "ldind.r4" 0x004e None 1 1 Next;
    LdindR8 "ldind.r8" 0x004f None 1 1 Next;
    LdindRef "ldind.ref" 0x0050 None 1 1 Next;
    StindRef "stind.ref" 0x0051 None 2 0 Next;
    StindI1 "stind.i1" 0x0052 None 2 0 Next;
    StindI2 "stind.i2" 0x0053 None 2 0 Next;
    StindI4 "stind.i4" 0x0054 None 2 0 Next;
    StindI8 "stind.i8" 0x0055 None 2 0 Next;
    StindR4 "stind.r4" 0x0056 None 2 0 Next;
    StindR8 "stind.r8" 0x0057 None 2 0 Next;
    Add "add" 0x0058 None 2 1 Next;
    Sub "sub" 0x0059 None 2 1 Next;
    Mul "mul" 0x005a None 2 1 Next;
    Div "div" 0x005b None 2 1 Next;
    DivUn "div.un" 0x005c None 2 1 Next;
    Rem "rem" 0x005d None 2 1 Next;
    RemUn "rem.un" 0x005e None 2 1 Next;
    And "and" 0x005f None 2 1 Next;
    Or "or" 0x0060 None 2 1 Next;
    Xor "xor" 0x0061 None 2 1 Next;
    Shl "shl" 0x0062 None 2 1 Next;
    Shr "shr" 0x0063 None 2 1 Next;
    ShrUn "shr.un" 0x0064 None 2 1 Next;
    Neg "neg" 0x0065 None 1 1 Next;
    Not "not" 0x0066 None 1 1 Next;
    ConvI1 "conv.i1" 0x0067 None 1 1 Next;
    ConvI2 "conv.i2" 0x0068 None 1 1 Next;
    ConvI4 "conv.i4" 0x0069 None 1 1 Next;
    ConvI8 "conv.i8" 0x006a None 1 1 Next;
    ConvR4 "conv.r4" 0x006b None 1 1 Next;
    ConvR8 "conv.r8" 0x006c None 1 1 Next;
    ConvU4 "conv.u4" 0x006d None 1 1 Next;
    ConvU8 "conv.u8" 0x006e None 1 1 Next;
    Callvirt "callvirt" 0x006f Token _ _ Call;
    Cpobj "cpobj" 0x0070 Token 2 0 Next;
    Ldobj "ldobj" 0x0071 Token 1 1 Next;
    Ldstr "ldstr" 0x0072 Token 0 1 Next;
    Newobj "newobj" 0x0073 Token _ 1 Call;
    Castclass "castclass" 0x0074 Token 1 1 Next;
    Isinst "isinst" 0x0075 Token 1 1 Next;
    ConvRUn "conv.r.un" 0x0076 None 1 1 Next;
    Unbox "unbox" 0x0079 Token 1 1 Next;
    Throw "throw" 0x007a None 1 0 Leave;
    Ldfld "ldfld" 0x007b Token 1 1 Next;
    Ldflda "ldflda" 0x007c Token 1 1 Next;
    Stfld "stfld" 0x007d Token 2 0 Next;
    Ldsfld "ldsfld" 0x007e Token 0 1 Next;
    Ldsflda "ldsflda" 0x007f Token 0 1 Next;
    Stsfld "stsfld" 0x0080 Token 1 0 Next;
    Stobj "stobj" 0x0081 Token 2 0 Next;
    ConvOvfI1Un "conv.ovf.i1.un" 0x0082 None 1 1 Next;
    ConvOvfI2Un "conv.ovf.i2.un" 0x0083 None 1 1 Next;
    ConvOvfI4Un "conv.ovf.i4.un" 0x0084 None 1 1 Next;
    ConvOvfI8Un "conv.ovf.i8.un" 0x0085 None 1 1 Next;
    ConvOvfU1Un "conv.ovf.u1.un" 0x0086 None 1 1 Next;
    ConvOvfU2Un "conv.ovf.u2.un" 0x0087 None 1 1 Next;
    ConvOvfU4Un "conv.ovf.u4.un" 0x0088 None 1 1 Next;
    ConvOvfU8Un "conv.ovf.u8.un" 0x0089 None 1 1 Next;
    ConvOvfIUn "conv.ovf.i.un" 0x008a None 1 1 Next;
    ConvOvfUUn "conv.ovf.u.un" 0x008b None 1 1 Next;
    Box "box" 0x008c Token 1 1 Next;
    Newarr "newarr" 0x008d Token 1 1 Next;
    Ldlen "ldlen" 0x008e None 1 1 Next;
    Ldelema "ldelema" 0x008f Token 2 1 Next;
    LdelemI1 "ldelem.i1" 0x0090 None 2 1 Next;
    LdelemU1 "ldelem.u1" 0x0091 None 2 1 Next;
    LdelemI2 "ldelem.i2" 0x0092 None 2 1 Next;
    LdelemU2 "ldelem.u2" 0x0093 None 2 1 Next;
    LdelemI4 "ldelem.i4" 0x0094 None 2 1 Next;
    LdelemU4 "ldelem.u4" 0x0095 None 2 1 Next;
    LdelemI8 "ldelem.i8" 0x0096 None 2 1 Next;
    LdelemI "ldelem.i" 0x0097 None 2 1 Next;
    LdelemR4 "ldelem.r4" 0x0098 None 2 1 Next;
    LdelemR8 "ldelem.r8" 0x0099 None 2 1 Next;
    LdelemRef "ldelem.ref" 0x009a None 2 1 Next;
    StelemI "stelem.i" 0x009b None 3 0 Next;
    StelemI1 "stelem.i1" 0x009c None 3 0 Next;
    StelemI2 "stelem.i2" 0x009d None 3 0 Next;
    StelemI4 "stelem.i4" 0x009e None 3 0 Next;
    StelemI8 "stelem.i8" 0x009f None 3 0 Next;
    StelemR4 "stelem.r4" 0x00a0 None 3 0 Next;
    StelemR8 "stelem.r8" 0x00a1 None 3 0 Next;
    StelemRef "stelem.ref" 0x00a2 None 3 0 Next;
    Ldelem "ldelem" 0x00a3 Token 2 1 Next;
    Stelem "stelem" 0x00a4 Token 3 0 Next;
    UnboxAny "unbox.any" 0x00a5 Token 1 1 Next;
    ConvOvfI1 "conv.ovf.i1" 0x00b3 None 1 1 Next;
    ConvOvfU1 "conv.ovf.u1" 0x00b4 None 1 1 Next;
    ConvOvfI2 "conv.ovf.i2" 0x00b5 None 1 1 Next;
    ConvOvfU2 "conv.ovf.u2" 0x00b6 None 1 1 Next;
    ConvOvfI4 "conv.ovf.i4" 0x00b7 None 1 1 Next;
    ConvOvfU4 "conv.ovf.u4" 0x00b8 None 1 1 Next;
    ConvOvfI8 "conv.ovf.i8" 0x00b9 None 1 1 Next;
    ConvOvfU8 "conv.ovf.u8" 0x00ba None 1 1 Next;
    Refanyval "refanyval" 0x00c2 Token 1 1 Next;
    Ckfinite "ckfinite" 0x00c3 None 1 1 Next;
    Mkrefany "mkrefany" 0x00c6 Token 1 1 Next;
    Ldtoken "ldtoken" 0x00d0 Token 0 1 Next;
    ConvU2 "conv.u2" 0x00d1 None 1 1 Next;
    ConvU1 "conv.u1" 0x00d2 None 1 1 Next;
    ConvI "conv.i" 0x00d3 None 1 1 Next;
    ConvOvfI "conv.ovf.i" 0x00d4 None 1 1 Next;
    ConvOvfU "conv.ovf.u" 0x00d5 None 1 1 Next;
    AddOvf "add.ovf" 0x00d6 None 2 1 Next;
    AddOvfUn "add.ovf.un" 0x00d7 None 2 1 Next;
    MulOvf "mul.ovf" 0x00d8 None 2 1 Next;
    MulOvfUn "mul.ovf.un" 0x00d9 None 2 1 Next;
    SubOvf "sub.ovf" 0x00da None 2 1 Next;
    SubOvfUn "sub.ovf.un" 0x00db None 2 1 Next;
    Endfinally "endfinally" 0x00dc None 0 0 Leave;
    Leave "leave" 0x00dd Target 0 0 Branch;
    LeaveS "leave.s" 0x00de ShortTarget 0 0 Branch;
    StindI "stind.i" 0x00df None 2 0 Next;
    ConvU "conv.u" 0x00e0 None 1 1 Next;
    Arglist "arglist" 0xfe00 None 0 1 Next;
    Ceq "ceq" 0xfe01 None 2 1 Next;
    Cgt "cgt" 0xfe02 None 2 1 Next;
    CgtUn "cgt.un" 0xfe03 None 2 1 Next;
    Clt "clt" 0xfe04 None 2 1 Next;
    CltUn "clt.un" 0xfe05 None 2 1 Next;
    Ldftn "ldftn" 0xfe06 Token 0 1 Next;
    Ldvirtftn "ldvirtftn" 0xfe07 Token 1 1 Next;
    Ldarg "ldarg" 0xfe09 Word 0 1 Next;
    Ldarga "ldarga" 0xfe0a Word 0 1 Next;
    Starg "starg" 0xfe0b Word 1 0 Next;
    Ldloc "ldloc" 0xfe0c Word 0 1 Next;
    Ldloca "ldloca" 0xfe0d Word 0 1 Next;
    Stloc "stloc" 0xfe0e Word 1 0 Next;
    Localloc "localloc" 0xfe0f None 1 1 Next;
    Endfilter "endfilter" 0xfe11 None 1 0 Leave;
    Unaligned "unaligned." 0xfe12 Byte 0 0 Prefix;
    Volatile "volatile." 0xfe13 None 0 0 Prefix;
    Tail "tail." 0xfe14 None 0 0 Prefix;
    Initobj "initobj" 0xfe15 Token 1 0 Next;
    Constrained "constrained." 0xfe16 Token 0 0 Prefix;
    Cpblk "cpblk" 0xfe17 None 3 0 Next;
    Initblk "initblk" 0xfe18 None 3 0 Next;
    No "no." 0xfe19 Byte 0 0 Prefix;
    Rethrow "rethrow" 0xfe1a None 0 0 Leave;
    Sizeof "sizeof" 0xfe1c Token 0 1 Next;
    Refanytype "refanytype" 0xfe1d None 1 1 Next;
    Readonly "readonly." 0xfe1e None 0 0 Prefix;
}

/// First byte of two-byte codes.
const TWO_BYTES: u8 = 0xfe;

/// Instructions by the last byte of their code.
const fn index(is_long: bool) -> [Option<Opcode>; 256] {
    let mut found = [None; 256];
    let mut at = 0;
    while at < ROWS.len() {
        let [first, second] = ROWS[at].code.to_be_bytes();
        if (first == TWO_BYTES) == is_long {
            found[second as usize] = Some(Opcode::ALL[at]);
        }
        at += 1;
    }
    found
}

static SHORT: [Option<Opcode>; 256] = index(false);
static LONG: [Option<Opcode>; 256] = index(true);

/// Difference between the codes of a branch's short and long form: `br.s` to `blt.un.s`, `br` to
/// `blt.un`.
const BETWEEN_FORMS: u8 = 0x0d;

impl Opcode {
    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Returns the instruction at the beginning of the bytes; `None` if they don't begin with an
    /// instruction.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [TWO_BYTES, second, ..] => LONG[usize::from(second)],
            [first, ..] => SHORT[usize::from(first)],
            [] => None,
        }
    }

    /// Name in assembly language, such as `ldc.i4.s`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The instruction's code: one byte, or two bytes, the first of them `0xfe`.
    #[must_use]
    pub const fn code(self) -> u16 {
        self.row().code
    }

    /// Length of the code without the operand, in bytes.
    #[must_use]
    pub const fn code_size(self) -> usize {
        if self.code() > 0xff { 2 } else { 1 }
    }

    /// Kind of operand.
    #[must_use]
    pub const fn operand(self) -> OperandKind {
        self.row().operand
    }

    /// Number of values popped from the stack. `None` for calls, whose signature determines the
    /// number, and for `ret`, which pops the method's result.
    #[must_use]
    pub const fn pops(self) -> Option<u8> {
        self.row().pops
    }

    /// Number of values pushed on the stack; `None` if a signature determines the number.
    #[must_use]
    pub const fn pushes(self) -> Option<u8> {
        self.row().pushes
    }

    /// Control flow after the instruction.
    #[must_use]
    pub const fn flow(self) -> Flow {
        self.row().flow
    }

    /// Whether the instruction is a prefix of the following one, such as `tail.` or `constrained.`.
    #[must_use]
    pub const fn is_prefix(self) -> bool {
        matches!(self.flow(), Flow::Prefix)
    }

    /// Whether the instruction jumps out of a protected block or of a handler.
    #[must_use]
    pub const fn is_leave(self) -> bool {
        matches!(self, Self::Leave | Self::LeaveS)
    }

    /// For a branch with a one-byte distance, returns its form with a four-byte distance; returns
    /// other instructions unchanged.
    #[must_use]
    pub fn long_form(self) -> Self {
        if self == Self::LeaveS {
            return Self::Leave;
        }
        match (self.operand(), self.code().to_be_bytes()) {
            (OperandKind::ShortTarget, [_, code]) => SHORT[usize::from(code + BETWEEN_FORMS)].unwrap_or(self),
            _ => self,
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_to_their_instructions_and_others_to_none() {
        assert_eq!(Opcode::ALL.len(), 219);
        for &opcode in Opcode::ALL {
            let bytes = opcode.code().to_be_bytes();
            assert_eq!(Opcode::decode(&bytes[2 - opcode.code_size()..]), Some(opcode));
        }
        for bytes in [&[][..], &[0x24], &[0xf0], &[0xff], &[0xfe], &[0xfe, 0x08], &[0xfe, 0x1f]] {
            assert_eq!(Opcode::decode(bytes), None, "{bytes:x?}");
        }
    }

    #[test]
    fn short_branches_have_a_long_form_of_the_same_name() {
        for &opcode in Opcode::ALL {
            let long = opcode.long_form();
            if opcode.operand() == OperandKind::ShortTarget {
                assert_eq!((long.operand(), format!("{long}.s")), (OperandKind::Target, opcode.to_string()));
                assert_eq!((long.pops(), long.flow()), (opcode.pops(), opcode.flow()));
            } else {
                assert_eq!(long, opcode);
            }
        }
    }
}
