//! Parses bytes into instructions and clauses.

use crate::body::{Body, Header, SectionForm};
use crate::clause::{Clause, ClauseKind};
use crate::format::{self, ANOTHER_SECTION, CLAUSES, FAT_SECTION, SECTION_HEADER, SECTION_KIND, TINY_STACK};
use crate::instruction::implied_constant;
use crate::{Error, Instruction, Label, Opcode, Operand, OperandKind, Result};

/// An instruction that borrows its operand from the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RawInstruction<'c> {
    /// Offset of the instruction in the code.
    pub offset: u32,
    /// Opcode of the instruction.
    pub opcode: Opcode,
    /// Bytes of the operand.
    pub operand: &'c [u8],
}

impl RawInstruction<'_> {
    /// The 4-byte constant that the instruction pushes; `None` for other instructions. See
    /// [`Instruction::constant`](crate::Instruction::constant).
    #[must_use]
    pub fn constant(&self) -> Option<i32> {
        match (self.opcode, self.operand) {
            (Opcode::LdcI4S, [number]) => Some((*number as i8).into()),
            (Opcode::LdcI4, bytes) => Some(i32::from_le_bytes(bytes.try_into().ok()?)),
            (opcode, _) => implied_constant(opcode),
        }
    }

    /// Offset of the next instruction. Distances of branches count from this offset.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.offset + (self.opcode.code_size() + self.operand.len()) as u32
    }
}

/// Iterator over the instructions of code. It ends with an error at the first instruction that
/// can't be read.
#[derive(Clone, Debug)]
pub struct RawInstructions<'c> {
    code: &'c [u8],
    at: usize,
}

/// Iterates over the instructions of a method's body (with header), without allocating.
///
/// # Errors
/// The defect in the body.
pub fn raw_instructions(body: &[u8]) -> Result<RawInstructions<'_>> {
    Ok(RawInstructions { code: format::split(body)?.code, at: 0 })
}

/// Iterates over the instructions of code without a header, such as the code of dynamic methods.
#[must_use]
pub fn raw_code(code: &[u8]) -> RawInstructions<'_> {
    RawInstructions { code, at: 0 }
}

impl<'c> Iterator for RawInstructions<'c> {
    type Item = Result<RawInstruction<'c>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.code.len() {
            return None;
        }
        let read = read_one(self.code, self.at);
        self.at = read.map_or(self.code.len(), |instruction| instruction.end() as usize);
        Some(read)
    }
}

impl RawInstructions<'_> {
    /// Length of the code in bytes.
    #[must_use]
    pub fn code_size(&self) -> usize {
        self.code.len()
    }
}

fn read_one(code: &[u8], at: usize) -> Result<RawInstruction<'_>> {
    let offset = u32::try_from(at).map_err(|_| Error::TooLong)?;
    let rest = &code[at..];
    let opcode = match Opcode::decode(rest) {
        Some(opcode) => opcode,
        None if rest == [0xfe] => return Err(Error::CutInstruction { offset }),
        None => return Err(Error::UnknownInstruction { offset }),
    };
    let cut = Error::CutInstruction { offset };
    let rest = &rest[opcode.code_size()..];
    let kind = opcode.operand();
    let size = match kind {
        OperandKind::Targets => {
            let count = rest.first_chunk().ok_or(cut)?;
            (u32::from_le_bytes(*count) as usize).checked_mul(4).and_then(|size| size.checked_add(4)).ok_or(cut)?
        }
        _ => kind.size(),
    };
    Ok(RawInstruction { offset, opcode, operand: rest.get(..size).ok_or(cut)? })
}

/// The bytes of a number. The caller has checked the length.
fn number<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

fn operand(raw: &RawInstruction<'_>) -> Result<Operand> {
    let bytes = raw.operand;
    let int = || i32::from_le_bytes(number(bytes));
    Ok(match raw.opcode.operand() {
        OperandKind::None => Operand::None,
        OperandKind::Byte => Operand::Byte(number::<1>(bytes)[0]),
        OperandKind::Word => Operand::Word(u16::from_le_bytes(number(bytes))),
        OperandKind::Int => Operand::Int(int()),
        OperandKind::Long => Operand::Long(i64::from_le_bytes(number(bytes))),
        OperandKind::Float => Operand::Float(u32::from_le_bytes(number(bytes))),
        OperandKind::Double => Operand::Double(u64::from_le_bytes(number(bytes))),
        OperandKind::Token => Operand::Token(u32::from_le_bytes(number(bytes))),
        OperandKind::ShortTarget => Operand::Target(target(raw, i8::from_le_bytes(number(bytes)).into())?),
        OperandKind::Target => Operand::Target(target(raw, int())?),
        OperandKind::Targets => {
            let distances = bytes[4..].chunks_exact(4).map(|bytes| i32::from_le_bytes(number(bytes)));
            Operand::Targets(distances.map(|distance| target(raw, distance)).collect::<Result<_>>()?)
        }
    })
}

fn target(raw: &RawInstruction<'_>, distance: i32) -> Result<Label> {
    let wrong = Error::Target { offset: raw.offset };
    let place = raw.end().checked_add_signed(distance).ok_or(wrong)?;
    if place >= Label::FIRST_NEW { Err(wrong) } else { Ok(Label(place)) }
}

impl Body {
    /// Reads a method's body: header, code and sections. `bytes` must hold the complete body and
    /// nothing after it.
    ///
    /// # Errors
    /// The defect in the bytes.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let parts = format::split(bytes)?;
        if parts.code.len() >= Label::FIRST_NEW as usize {
            return Err(Error::TooLong);
        }
        let header = match parts.fat {
            None => Header { is_tiny: true, flags: 0, max_stack: TINY_STACK, locals: 0 },
            Some(fat) => Header { is_tiny: false, flags: fat.flags, max_stack: fat.max_stack, locals: fat.locals },
        };
        let raw = RawInstructions { code: parts.code, at: 0 };
        let mut instructions = Vec::new();
        for raw in raw {
            let raw = raw?;
            instructions.push(Instruction { label: Label(raw.offset), opcode: raw.opcode, operand: operand(&raw)? });
        }
        let mut body =
            Self { header, instructions, clauses: Vec::new(), sections: Vec::new(), next_new: Label::FIRST_NEW };
        body.check_targets()?;
        if body.header.has_sections() {
            body.read_sections(parts.code.len(), parts.rest)?;
        }
        Ok(body)
    }

    fn is_start(&self, offset: u32) -> bool {
        self.instructions.binary_search_by_key(&offset, |instruction| instruction.label.0).is_ok()
    }

    fn check_targets(&self) -> Result<()> {
        for instruction in &self.instructions {
            if !instruction.operand.targets().iter().all(|target| self.is_start(target.0)) {
                return Err(Error::Target { offset: instruction.label.0 });
            }
        }
        Ok(())
    }

    /// Reads the sections. `rest` is the bytes after the code, `code` the length of the code.
    fn read_sections(&mut self, code: usize, rest: &[u8]) -> Result<()> {
        let mut at = 0;
        let mut end = code;
        loop {
            let padding = end.next_multiple_of(4) - end;
            let section = rest.get(at + padding..).ok_or(Error::CutSections)?;
            let [flags, sizes @ ..] = *section.first_chunk::<4>().ok_or(Error::CutSections)?;
            let size = match format::size_bytes(flags) {
                1 => usize::from(sizes[0]),
                _ => u32::from_le_bytes([sizes[0], sizes[1], sizes[2], 0]) as usize,
            };
            let length = format::section_length(flags, size)?;
            let content = section.get(SECTION_HEADER..length).ok_or(Error::CutSections)?;
            let padding = rest[at..at + padding].to_vec();
            let reserved = [sizes[1], sizes[2]];
            self.read_section(flags, size, reserved, padding, content, code)?;
            at += self.sections.last().map_or(0, |section| section.padding.len()) + length;
            end = end.next_multiple_of(4) + length;
            if flags & ANOTHER_SECTION == 0 {
                return Ok(());
            }
        }
    }

    fn read_section(
        &mut self,
        flags: u8,
        size: usize,
        reserved: [u8; 2],
        padding: Vec<u8>,
        content: &[u8],
        code: usize,
    ) -> Result<()> {
        let each = format::clause_size(flags);
        let is_clauses = flags & SECTION_KIND == CLAUSES;
        let (clauses, rest) =
            if is_clauses { content.split_at(content.len() / each * each) } else { (&[][..], content) };
        for bytes in clauses.chunks_exact(each) {
            let index = self.clauses.len() as u32;
            let clause = self.read_clause(bytes, flags & FAT_SECTION != 0, code);
            self.clauses.push(clause.ok_or(Error::Clause { index })?);
        }
        self.sections.push(SectionForm {
            flags: flags & !ANOTHER_SECTION,
            clauses: is_clauses.then_some(clauses.len() / each),
            counts_header: !(is_clauses && size != 0 && size.is_multiple_of(each)),
            reserved,
            padding,
            rest: rest.to_vec(),
        });
        Ok(())
    }

    fn read_clause(&self, bytes: &[u8], is_fat: bool, code: usize) -> Option<Clause> {
        let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u32::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
        let byte = |at: usize| bytes.get(at).copied().map(u32::from);
        let (flags, try_start, try_length, start, length, last) = match is_fat {
            true => (word(0)?, word(4)?, word(8)?, word(12)?, word(16)?, word(20)?),
            false => (half(0)?, half(2)?, byte(4)?, half(5)?, byte(7)?, word(8)?),
        };
        let from = |offset: u32| self.is_start(offset).then_some(Label(offset));
        let to = |start: u32, length: u32| match start.checked_add(length)? {
            end if end as usize == code => Some(Label::END),
            end => from(end),
        };
        let kind = match flags {
            0 => ClauseKind::Catch(last),
            1 => ClauseKind::Filter(from(last)?),
            2 => ClauseKind::Finally,
            4 => ClauseKind::Fault,
            _ => return None,
        };
        let unused = if matches!(kind, ClauseKind::Finally | ClauseKind::Fault) { last } else { 0 };
        Some(Clause {
            kind,
            try_start: from(try_start)?,
            try_end: to(try_start, try_length)?,
            start: from(start)?,
            end: to(start, length)?,
            unused,
        })
    }
}
