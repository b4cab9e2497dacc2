//! The stream: its objects, one after another.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use super::block::Events;
use super::description::EventDescription;
use super::value::{self, Value};
use crate::Error;
use crate::ipc::system;
use crate::wire;

/// Beginning of a stream.
const MAGIC: &[u8] = b"Nettrace";
const SERIALIZATION: &[u8] = b"!FastSerialization.1";
/// Tags between objects.
const NULL: u8 = 1;
const BEGIN: u8 = 5;
const END: u8 = 6;
/// Larger blocks are errors; a runtime's blocks have some hundred kilobytes.
const LARGEST_BLOCK: u32 = 64 << 20;
/// Longer names of objects are errors.
const LONGEST_NAME: u32 = 256;
/// Maximum number of event descriptions in a stream.
const MOST_DESCRIPTIONS: usize = 1 << 16;
/// Maximum bytes of all descriptions in a stream.
const MOST_DESCRIBED: usize = 64 << 20;
/// Maximum bytes of stacks between two sequence points.
const MOST_STACKS: usize = 256 << 20;
/// The supported version of the format.
const VERSION: u32 = 4;

/// Clock of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Clock {
    /// Time of the session's start, in ticks.
    pub began: u64,
    /// Ticks per second.
    pub frequency: u64,
    /// Bytes of an address in the process.
    pub pointer_size: u32,
    /// The process id in the namespace of the process.
    pub pid: u32,
}

impl Clock {
    /// Nanoseconds from the session's start to a time in ticks; 0 for earlier times.
    #[must_use]
    pub fn nanoseconds(&self, timestamp: u64) -> u64 {
        let ticks = u128::from(timestamp.saturating_sub(self.began));
        u64::try_from(ticks * 1_000_000_000 / u128::from(self.frequency.max(1))).unwrap_or(u64::MAX)
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The stream's description of this kind of event.
    pub description: Arc<EventDescription>,
    /// The operating system's thread id.
    pub thread_id: u64,
    /// Time of the event, in ticks of the [clock](Clock).
    pub timestamp: u64,
    /// Number of the stack in the stream, 0 for none.
    pub stack: u32,
    /// The payload, undecoded.
    pub payload: Vec<u8>,
}

impl Event {
    /// The payload's fields with their values, if the stream describes them.
    ///
    /// # Errors
    /// [`Error::Nonsense`] if the payload is shorter than its description.
    pub fn fields(&self) -> Result<Vec<(String, Value)>, Error> {
        value::read(&self.description.fields, &mut wire::Reader(&self.payload))
    }
}

/// Reads a stream of events.
#[derive(Debug)]
pub struct Reader<R> {
    stream: R,
    /// Number of bytes read so far: blocks begin at a multiple of four.
    position: u64,
    clock: Clock,
    descriptions: HashMap<u32, Arc<EventDescription>>,
    /// Bytes of all descriptions so far.
    described: usize,
    /// Stacks by their numbers; the numbers start again at each sequence point.
    stacks: HashMap<u32, Vec<u64>>,
    /// Bytes of all stacks.
    stacked: usize,
    /// The block whose events are being returned.
    events: Option<Events>,
    is_over: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a stream.
    ///
    /// # Errors
    /// [`Error::Nonsense`] if the bytes are not a stream of version 4; [`Error::System`] and
    /// [`Error::TimedOut`] if they can't be read.
    pub fn new(stream: R) -> Result<Self, Error> {
        let mut this = Self {
            stream,
            position: 0,
            clock: Clock::default(),
            descriptions: HashMap::new(),
            described: 0,
            stacks: HashMap::new(),
            stacked: 0,
            events: None,
            is_over: false,
        };
        if this.read(MAGIC.len())? != MAGIC {
            return Err(Error::nonsense("it does not begin as event streams do"));
        }
        let length = this.u32()?;
        if length as usize != SERIALIZATION.len() || this.read(SERIALIZATION.len())? != SERIALIZATION {
            return Err(Error::nonsense("it is serialized in another way than event streams are"));
        }
        while this.clock.frequency == 0 && !this.is_over {
            this.next_object()?;
        }
        Ok(this)
    }

    /// The clock of the stream.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the next event; `None` at the end of the stream. If the process ended and its stream
    /// is cut off between two objects, that also counts as the end.
    ///
    /// # Errors
    /// [`Error::Nonsense`], [`Error::System`]; [`Error::TimedOut`] if the stream has a time limit.
    /// Nothing can be read after an error.
    pub fn next_event(&mut self) -> Result<Option<Event>, Error> {
        let next = self.next_of_all();
        self.is_over |= !matches!(next, Ok(Some(_)));
        next
    }

    /// The addresses of a stack, innermost first. `number` must be the [`Event::stack`] of the
    /// event that was returned last: the stream reuses numbers later. `None` for 0, and for a stack
    /// that the stream does not contain.
    #[must_use]
    pub fn stack(&self, number: u32) -> Option<&[u64]> {
        self.stacks.get(&number).map(Vec::as_slice)
    }

    fn next_of_all(&mut self) -> Result<Option<Event>, Error> {
        while !self.is_over {
            if let Some(event) = self.next_of_block()? {
                return Ok(Some(event));
            }
            self.next_object()?;
        }
        Ok(None)
    }

    fn next_of_block(&mut self) -> Result<Option<Event>, Error> {
        let Some(events) = &mut self.events else { return Ok(None) };
        let Some((header, payload)) = events.next()? else {
            self.events = None;
            return Ok(None);
        };
        let description = self.descriptions.get(&header.description);
        Ok(Some(Event {
            description: Arc::clone(description.ok_or(Error::nonsense("an event that nothing describes"))?),
            thread_id: header.thread_id,
            timestamp: header.timestamp,
            stack: header.stack,
            payload: payload.to_vec(),
        }))
    }

    fn next_object(&mut self) -> Result<(), Error> {
        match self.tag()? {
            None | Some(NULL) => self.is_over = true,
            Some(BEGIN) => {
                let name = self.object_type()?;
                self.object(&name)?;
                self.expect(END)?;
            }
            Some(_) => return Err(Error::nonsense("an object begins with another tag")),
        }
        Ok(())
    }

    /// Reads the type of an object, which is also an object, and returns its name.
    fn object_type(&mut self) -> Result<String, Error> {
        self.expect(BEGIN)?;
        self.expect(NULL)?;
        let (_version, needs, length) = (self.u32()?, self.u32()?, self.u32()?);
        if needs > VERSION {
            return Err(Error::nonsense("a format later than version 4"));
        }
        if length > LONGEST_NAME {
            return Err(Error::nonsense("an object with an endless name"));
        }
        let name = String::from_utf8_lossy(&self.read(length as usize)?).into_owned();
        self.expect(END)?;
        Ok(name)
    }

    fn object(&mut self, name: &str) -> Result<(), Error> {
        if name == "Trace" {
            return self.trace();
        }
        let size = self.u32()?;
        if size > LARGEST_BLOCK {
            return Err(Error::nonsense("a block of more than 64 MiB"));
        }
        let fill = self.position.next_multiple_of(4) - self.position;
        self.read(fill as usize)?;
        let block = self.read(size as usize)?;
        match name {
            "MetadataBlock" => self.describe(block),
            "EventBlock" => {
                self.events = Some(Events::new(block)?);
                Ok(())
            }
            "StackBlock" => self.learn_stacks(&block),
            "SPBlock" => {
                self.stacks.clear();
                self.stacked = 0;
                Ok(())
            }
            // Objects of later versions are skipped.
            _ => Ok(()),
        }
    }

    /// Reads a block of stacks: they have consecutive numbers, and each has its size before it.
    fn learn_stacks(&mut self, block: &[u8]) -> Result<(), Error> {
        let mut block = wire::Reader(block);
        let (first, count) = (block.u32()?, block.u32()?);
        let bytes = self.clock.pointer_size.clamp(4, 8) as usize;
        for at in 0..count {
            let size = block.u32()? as usize;
            let addresses = block.read_bytes(size)?.chunks_exact(bytes);
            let address = |word: &[u8]| word.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
            self.stacked = self.stacked.saturating_add(size.max(bytes));
            if self.stacked > MOST_STACKS {
                return Err(Error::nonsense("more stacks than there can be"));
            }
            self.stacks.insert(first.wrapping_add(at), addresses.map(address).collect());
        }
        Ok(())
    }

    fn trace(&mut self) -> Result<(), Error> {
        // The object begins with the date and time.
        let bytes = self.read(16 + 8 + 8 + 16)?;
        let mut reader = wire::Reader(&bytes[16..]);
        self.clock = Clock {
            began: reader.u64()?,
            frequency: reader.u64()?.max(1),
            pointer_size: reader.u32()?,
            pid: reader.u32()?,
        };
        Ok(())
    }

    fn describe(&mut self, block: Vec<u8>) -> Result<(), Error> {
        let mut descriptions = Events::new(block)?;
        while let Some((_, payload)) = descriptions.next()? {
            self.described = self.described.saturating_add(payload.len());
            let (number, description) = EventDescription::parse(payload)?;
            if self.descriptions.len() >= MOST_DESCRIPTIONS || self.described > MOST_DESCRIBED {
                return Err(Error::nonsense("more kinds of events than there can be"));
            }
            self.descriptions.insert(number, Arc::new(description));
        }
        Ok(())
    }

    /// The next tag; `None` at the end of the bytes.
    fn tag(&mut self) -> Result<Option<u8>, Error> {
        let mut byte = [0];
        loop {
            match self.stream.read(&mut byte) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        self.position += 1;
        Ok(Some(byte[0]))
    }

    fn expect(&mut self, tag: u8) -> Result<(), Error> {
        match self.tag()? {
            Some(found) if found == tag => Ok(()),
            Some(_) => Err(Error::nonsense("a tag is missing between two objects")),
            None => Err(Error::Closed { command: "events" }),
        }
    }

    fn u32(&mut self) -> Result<u32, Error> {
        wire::Reader(&self.read(4)?).u32()
    }

    /// Reads bytes. Memory grows with the bytes that arrive, not with the announced length.
    fn read(&mut self, bytes: usize) -> Result<Vec<u8>, Error> {
        let mut read = Vec::new();
        (&mut self.stream).take(bytes as u64).read_to_end(&mut read).map_err(failed)?;
        self.position += read.len() as u64;
        if read.len() < bytes { Err(Error::Closed { command: "events" }) } else { Ok(read) }
    }
}

fn failed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            Error::TimedOut { command: "events", after: std::time::Duration::ZERO }
        }
        io::ErrorKind::ConnectionReset => Error::Closed { command: "events" },
        _ => system("reading events", error),
    }
}
