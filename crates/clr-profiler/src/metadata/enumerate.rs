//! Lists of tokens.

use clr_profiler_sys::types::HCORENUM;
use windows_core::HRESULT;

use super::MetadataImport;
use crate::error::check;
use crate::text::wide;
use crate::{Result, Token};

/// Maximum number of members of a type; protects against metadata that claims too many.
const LIMIT: usize = 1 << 20;
/// Number of tokens fetched at a time.
const AT_ONCE: usize = 64;

impl MetadataImport {
    /// All types the module declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn type_defs(&self) -> Result<Vec<Token>> {
        let metadata = self.read("EnumTypeDefs")?;
        // SAFETY: valid out-parameters.
        self.list("EnumTypeDefs", |position, tokens, capacity, count| unsafe {
            metadata.EnumTypeDefs(position, tokens, capacity, count)
        })
    }

    /// The methods a type declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn methods(&self, type_def: Token) -> Result<Vec<Token>> {
        let metadata = self.read("EnumMethods")?;
        // SAFETY: valid out-parameters.
        self.list("EnumMethods", |position, tokens, capacity, count| unsafe {
            metadata.EnumMethods(position, type_def.0, tokens, capacity, count)
        })
    }

    /// The methods with this name that a type declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn methods_named(&self, type_def: Token, name: &str) -> Result<Vec<Token>> {
        let metadata = self.read("EnumMethodsWithName")?;
        let name = wide(name);
        // SAFETY: valid out-parameters and a zero-terminated name.
        self.list("EnumMethodsWithName", |position, tokens, capacity, count| unsafe {
            metadata.EnumMethodsWithName(position, type_def.0, name.as_ptr(), tokens, capacity, count)
        })
    }

    /// The fields a type declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn fields(&self, type_def: Token) -> Result<Vec<Token>> {
        let metadata = self.read("EnumFields")?;
        // SAFETY: valid out-parameters.
        self.list("EnumFields", |position, tokens, capacity, count| unsafe {
            metadata.EnumFields(position, type_def.0, tokens, capacity, count)
        })
    }

    /// The fields with this name that a type declares.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn fields_named(&self, type_def: Token, name: &str) -> Result<Vec<Token>> {
        let metadata = self.read("EnumFieldsWithName")?;
        let name = wide(name);
        // SAFETY: valid out-parameters and a zero-terminated name.
        self.list("EnumFieldsWithName", |position, tokens, capacity, count| unsafe {
            metadata.EnumFieldsWithName(position, type_def.0, name.as_ptr(), tokens, capacity, count)
        })
    }

    /// The entries of a method's parameters; see [`param`](Self::param).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn params(&self, method: Token) -> Result<Vec<Token>> {
        let metadata = self.read("EnumParams")?;
        // SAFETY: valid out-parameters.
        self.list("EnumParams", |position, tokens, capacity, count| unsafe {
            metadata.EnumParams(position, method.0, tokens, capacity, count)
        })
    }

    /// The interfaces that a type declares to implement, as type tokens.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn interfaces(&self, type_def: Token) -> Result<Vec<Token>> {
        let metadata = self.read("EnumInterfaceImpls")?;
        // SAFETY: valid out-parameters.
        let entries = self.list("EnumInterfaceImpls", |position, tokens, capacity, count| unsafe {
            metadata.EnumInterfaceImpls(position, type_def.0, tokens, capacity, count)
        })?;
        entries.into_iter().map(|entry| self.interface_of(entry)).collect()
    }

    /// Explicit method implementations and overrides of a type; names may differ. Each entry is a
    /// pair of method tokens: the body and the overridden declaration.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn method_impls(&self, type_def: Token) -> Result<Vec<(Token, Token)>> {
        let metadata = self.read("EnumMethodImpls")?;
        let mut declarations = Vec::new();
        let bodies = self.list("EnumMethodImpls", |position, bodies, capacity, count| {
            let mut chunk = [0_u32; AT_ONCE];
            let capacity = capacity.min(AT_ONCE as u32);
            // SAFETY: valid out-parameters, both lists as long as said; `count` is that of `list`.
            let (answer, fetched) = unsafe {
                let answer =
                    metadata.EnumMethodImpls(position, type_def.0, bodies, chunk.as_mut_ptr(), capacity, count);
                (answer, *count)
            };
            declarations.extend(chunk.iter().take(fetched as usize).map(|token| Token(*token)));
            answer
        })?;
        Ok(bodies.into_iter().zip(declarations).collect())
    }

    fn interface_of(&self, entry: Token) -> Result<Token> {
        let metadata = self.read("GetInterfaceImplProps")?;
        let (mut class, mut interface) = (0, 0);
        // SAFETY: valid out-parameters.
        let answer = unsafe { metadata.GetInterfaceImplProps(entry.0, &mut class, &mut interface) };
        check(answer, "GetInterfaceImplProps")?;
        Ok(Token(interface))
    }

    /// Fetches a whole enumeration, and closes it on every path.
    pub(super) fn list(
        &self,
        method: &'static str,
        mut next: impl FnMut(*mut HCORENUM, *mut u32, u32, *mut u32) -> HRESULT,
    ) -> Result<Vec<Token>> {
        let metadata = self.read(method)?;
        let mut position: HCORENUM = std::ptr::null_mut();
        let mut tokens = Vec::new();
        let outcome = loop {
            let (mut buffer, mut count) = ([0_u32; AT_ONCE], 0);
            let answer = next(&mut position, buffer.as_mut_ptr(), buffer.len() as u32, &mut count);
            if let Err(error) = check(answer, method) {
                break Err(error);
            }
            let fetched = buffer.get(..count as usize).unwrap_or_default();
            tokens.extend(fetched.iter().map(|token| Token(*token)));
            if fetched.len() < buffer.len() || tokens.len() >= LIMIT {
                break Ok(tokens);
            }
        };
        if !position.is_null() {
            // SAFETY: an enumeration this interface opened.
            unsafe { metadata.CloseEnum(position) };
        }
        outcome
    }
}
