//! Writes instructions and clauses as bytes.

use crate::body::{Body, Index, SectionForm};
use crate::clause::{Clause, ClauseKind};
use crate::format::{
    ANOTHER_SECTION, CLAUSES, FAT, FAT_HEADER, FAT_SECTION, FAT_WORDS, LONGEST_TINY, MORE_SECTIONS, SECTION_HEADER,
    SMALL_CLAUSE, TINY, TINY_BITS, TINY_STACK, clause_size,
};
use crate::{Error, Instruction, Label, Opcode, Operand, OperandKind, Result};

/// Number of rounds in which only the necessary branches become long. After these rounds all
/// branches become long, which bounds the time for any code.
const ROUNDS: usize = 16;

/// Old and new offset of an instruction, see [`Body::moves`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Move {
    /// Offset of the instruction in the code that was read.
    pub old: u32,
    /// Offset in the written code, of the instruction or of the code inserted in front of it.
    pub new: u32,
    /// Whether `new` is the offset of inserted code.
    pub is_inserted: bool,
}

/// Offsets of all instructions.
struct Layout {
    opcodes: Vec<Opcode>,
    /// Offset of each instruction, and of the end.
    offsets: Vec<u32>,
    index: Index,
}

impl Layout {
    fn new(body: &Body) -> Result<Self> {
        let opcodes = body.instructions.iter().map(Instruction::opcode).collect();
        let mut layout = Self { opcodes, offsets: Vec::new(), index: body.index() };
        layout.assign_offsets(body)?;
        for round in 0.. {
            if !layout.lengthen(body, round >= ROUNDS)? {
                break;
            }
            layout.assign_offsets(body)?;
        }
        Ok(layout)
    }

    fn assign_offsets(&mut self, body: &Body) -> Result<()> {
        self.offsets.clear();
        let mut at = 0_usize;
        for (instruction, opcode) in body.instructions.iter().zip(&self.opcodes) {
            self.offsets.push(at as u32);
            let longer = opcode.operand().size() - instruction.opcode.operand().size();
            at += instruction.size() + longer;
            if at >= Label::FIRST_NEW as usize {
                return Err(Error::TooLong);
            }
        }
        self.offsets.push(at as u32);
        Ok(())
    }

    /// Makes the short branches long whose target is too far away, or all of them if `all`. Returns
    /// whether any branch changed.
    fn lengthen(&mut self, body: &Body, all: bool) -> Result<bool> {
        let mut found = false;
        for (number, instruction) in body.instructions.iter().enumerate() {
            if self.opcodes[number].operand() != OperandKind::ShortTarget {
                continue;
            }
            let Operand::Target(target) = instruction.operand else { continue };
            if all || i8::try_from(self.distance(number, target)?).is_err() {
                self.opcodes[number] = self.opcodes[number].long_form();
                found = true;
            }
        }
        Ok(found)
    }

    /// Offset of a label.
    fn offset(&self, label: Label) -> Result<u32> {
        if label == Label::END {
            return Ok(self.code_size());
        }
        let number = self.index.get(label).ok_or(Error::NoSuchPlace(label))?;
        Ok(self.offsets[number as usize])
    }

    /// Distance from the end of an instruction to a label.
    fn distance(&self, number: usize, target: Label) -> Result<i32> {
        Ok(self.offset(target)? as i32 - self.offsets[number + 1] as i32)
    }

    fn code_size(&self) -> u32 {
        self.offsets.last().copied().unwrap_or(0)
    }
}

impl Body {
    /// Returns the body's bytes for the runtime. Short branches become long if they no longer reach
    /// their target. Small clause tables and a tiny header become fat if necessary. Everything else
    /// keeps the form that was read.
    ///
    /// # Errors
    /// The reason why the body can't be written. An unchanged body can always be written.
    pub fn write(&self) -> Result<Vec<u8>> {
        let layout = Layout::new(self)?;
        let size = layout.code_size();
        let mut bytes = Vec::with_capacity(FAT_HEADER + size as usize);
        self.write_header(size, &mut bytes);
        for (number, instruction) in self.instructions.iter().enumerate() {
            write_instruction(&layout, number, instruction, &mut bytes)?;
        }
        self.write_sections(&layout, &mut bytes)?;
        Ok(bytes)
    }

    /// Maps original offsets to offsets in the result of [`write`](Self::write), in code order.
    /// Debuggers and stack traces need the map, because they use the original offsets.
    ///
    /// The map has an entry for each original instruction, and one for the first instruction of
    /// each inserted sequence. The entry of a sequence has the old offset of the instruction that
    /// follows the sequence. Reason: if the compiler records a position for that instruction, such
    /// as the position after a call, it now records the position for the sequence.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn moves(&self) -> Result<Vec<Move>> {
        let layout = Layout::new(self)?;
        let places = self.instructions.iter().zip(&layout.offsets);
        let mut moves = Vec::with_capacity(self.instructions.len());
        // Offset of the first instruction of an inserted sequence.
        let mut inserted = None;
        for (instruction, new) in places {
            let new = *new;
            match instruction.label.offset() {
                Some(old) => {
                    moves.extend(inserted.take().map(|new| Move { old, new, is_inserted: true }));
                    moves.push(Move { old, new, is_inserted: false });
                }
                None => _ = inserted.get_or_insert(new),
            }
        }
        Ok(moves)
    }

    fn write_header(&self, code: u32, bytes: &mut Vec<u8>) {
        let header = &self.header;
        let has_sections = !(self.clauses.is_empty() && self.sections.is_empty());
        let fits = code as usize <= LONGEST_TINY && header.max_stack <= TINY_STACK && header.locals == 0;
        if header.is_tiny && fits && !has_sections {
            bytes.push((code as u8) << TINY_BITS | TINY);
            return;
        }
        let more = if has_sections { MORE_SECTIONS } else { 0 };
        let flags = header.flags & !MORE_SECTIONS | u16::from(FAT) | more | u16::from(FAT_WORDS) << 12;
        bytes.extend(flags.to_le_bytes());
        bytes.extend(header.max_stack.to_le_bytes());
        bytes.extend(code.to_le_bytes());
        bytes.extend(header.locals.to_le_bytes());
    }

    fn write_sections(&self, layout: &Layout, bytes: &mut Vec<u8>) -> Result<()> {
        let mut clauses = Vec::with_capacity(self.clauses.len());
        for (index, clause) in self.clauses.iter().enumerate() {
            clauses.push(Numbers::from_clause(clause, layout, index as u32)?);
        }
        let mut forms = self.sections.clone();
        // Added clauses come after the original ones.
        let known: usize = forms.iter().filter_map(|form| form.clauses).sum();
        let added = self.clauses.len() - known;
        match forms.iter_mut().rev().find_map(|form| form.clauses.as_mut()) {
            Some(count) => *count += added,
            None if added > 0 => forms.push(SectionForm {
                flags: CLAUSES,
                clauses: Some(added),
                counts_header: true,
                reserved: [0; 2],
                padding: Vec::new(),
                rest: Vec::new(),
            }),
            None => {}
        }
        let mut rest = clauses.as_slice();
        for (number, form) in forms.iter().enumerate() {
            let (own, others) = rest.split_at(form.clauses.unwrap_or(0));
            rest = others;
            let is_last = number + 1 == forms.len();
            write_section(form, own, is_last, bytes)?;
        }
        Ok(())
    }
}

fn write_instruction(layout: &Layout, number: usize, instruction: &Instruction, bytes: &mut Vec<u8>) -> Result<()> {
    let opcode = layout.opcodes[number];
    let code = opcode.code().to_be_bytes();
    bytes.extend(&code[2 - opcode.code_size()..]);
    match &instruction.operand {
        Operand::None => {}
        Operand::Byte(value) => bytes.push(*value),
        Operand::Word(value) => bytes.extend(value.to_le_bytes()),
        Operand::Int(value) => bytes.extend(value.to_le_bytes()),
        Operand::Long(value) => bytes.extend(value.to_le_bytes()),
        Operand::Float(bits) | Operand::Token(bits) => bytes.extend(bits.to_le_bytes()),
        Operand::Double(bits) => bytes.extend(bits.to_le_bytes()),
        Operand::Target(target) => {
            let distance = layout.distance(number, *target)?.to_le_bytes();
            bytes.extend(&distance[..opcode.operand().size()]);
        }
        Operand::Targets(targets) => {
            bytes.extend((targets.len() as u32).to_le_bytes());
            for target in targets {
                bytes.extend(layout.distance(number, *target)?.to_le_bytes());
            }
        }
    }
    Ok(())
}

/// A clause with the numbers of the table.
struct Numbers {
    flags: u16,
    try_start: u32,
    try_length: u32,
    start: u32,
    length: u32,
    last: u32,
}

impl Numbers {
    fn from_clause(clause: &Clause, layout: &Layout, index: u32) -> Result<Self> {
        let length = |start: Label, end: Label| {
            let (start, end) = (layout.offset(start)?, layout.offset(end)?);
            Ok((start, end.checked_sub(start).ok_or(Error::Clause { index })?))
        };
        let (try_start, try_length) = length(clause.try_start, clause.try_end)?;
        let (start, length) = length(clause.start, clause.end)?;
        let (flags, last) = match clause.kind {
            ClauseKind::Catch(token) => (0, token),
            ClauseKind::Filter(start) => (1, layout.offset(start)?),
            ClauseKind::Finally => (2, clause.unused),
            ClauseKind::Fault => (4, clause.unused),
        };
        Ok(Self { flags, try_start, try_length, start, length, last })
    }

    fn is_small(&self) -> bool {
        let offsets = [self.try_start, self.start].iter().all(|offset| u16::try_from(*offset).is_ok());
        offsets && [self.try_length, self.length].iter().all(|length| u8::try_from(*length).is_ok())
    }

    fn write(&self, is_fat: bool, bytes: &mut Vec<u8>) {
        if is_fat {
            let words = [u32::from(self.flags), self.try_start, self.try_length, self.start, self.length, self.last];
            bytes.extend(words.map(u32::to_le_bytes).as_flattened());
            return;
        }
        bytes.extend(self.flags.to_le_bytes());
        for (start, length) in [(self.try_start, self.try_length), (self.start, self.length)] {
            bytes.extend((start as u16).to_le_bytes());
            bytes.push(length as u8);
        }
        bytes.extend(self.last.to_le_bytes());
    }
}

fn write_section(form: &SectionForm, clauses: &[Numbers], is_last: bool, bytes: &mut Vec<u8>) -> Result<()> {
    let padding = aligned(bytes) - bytes.len();
    if form.padding.len() == padding {
        bytes.extend(&form.padding);
    } else {
        bytes.resize(bytes.len() + padding, 0);
    }
    let header = if form.counts_header { SECTION_HEADER } else { 0 };
    let fits = clauses.len() * SMALL_CLAUSE + header + form.rest.len() <= usize::from(u8::MAX);
    let is_fat = form.flags & FAT_SECTION != 0 || !fits || !clauses.iter().all(Numbers::is_small);
    let fat = if is_fat { FAT_SECTION } else { 0 };
    let size = clauses.len() * clause_size(fat) + header + form.rest.len();
    let [s0, s1, s2, 0] = u32::try_from(size).map_err(|_| Error::TooLong)?.to_le_bytes() else {
        return Err(Error::TooLong);
    };
    let more = if is_last { 0 } else { ANOTHER_SECTION };
    bytes.push(form.flags | fat | more);
    bytes.extend(if is_fat { [s0, s1, s2] } else { [s0, form.reserved[0], form.reserved[1]] });
    for clause in clauses {
        clause.write(is_fat, bytes);
    }
    bytes.extend(&form.rest);
    Ok(())
}

/// Padding to the next section: sections begin at multiples of four from the body's start. A body
/// with sections has a fat header.
fn aligned(bytes: &[u8]) -> usize {
    bytes.len().next_multiple_of(4)
}
