//! Signatures, as far as editing bodies needs them: a method's return type becomes the type of a
//! local variable. Source: ECMA-335, II.23.2.

use crate::{Error, Result, element};

/// First byte of a signature of local variables.
const LOCALS: u8 = 7;
/// Flags in the first byte of a method's signature.
const GENERIC: u8 = 0x10;
const HAS_THIS: u8 = 0x20;
const EXPLICIT_THIS: u8 = 0x40;
/// Mask of the kind in a signature's first byte. The kinds from `FIELD` up to, but not including,
/// `UNMANAGED` are not methods.
const KIND: u8 = 0x0f;
const FIELD: u8 = 6;
const UNMANAGED: u8 = 9;
/// Maximum nesting depth of types.
const DEEPEST: u8 = 64;
const MOST_LOCALS: u32 = 0xfffe;

/// Reader of a signature's bytes.
struct Blob<'s>(&'s [u8]);

impl<'s> Blob<'s> {
    fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.0.split_first().ok_or(Error::Signature)?;
        self.0 = rest;
        Ok(first)
    }

    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// A number in one, two or four bytes.
    fn number(&mut self) -> Result<u32> {
        let first = u32::from(self.byte()?);
        let mut more =
            |start: u32, bytes: u32| (0..bytes).try_fold(start, |number, _| Ok(number << 8 | u32::from(self.byte()?)));
        match first >> 5 {
            0..4 => Ok(first),
            4 | 5 => more(first & 0x3f, 1),
            6 => more(first & 0x1f, 3),
            _ => Err(Error::Signature),
        }
    }

    /// Reads a type and returns its bytes.
    fn ty(&mut self) -> Result<&'s [u8]> {
        let before = self.0;
        self.skip_type(0)?;
        Ok(&before[..before.len() - self.0.len()])
    }

    fn skip_type(&mut self, depth: u8) -> Result<()> {
        if depth > DEEPEST {
            return Err(Error::Signature);
        }
        match self.byte()? {
            element::VOID..=element::STRING | element::TYPED_REF | element::INT | element::UINT | element::OBJECT => {
                Ok(())
            }
            element::POINTER | element::BY_REF | element::VECTOR | element::PINNED | element::SENTINEL => {
                self.skip_type(depth + 1)
            }
            element::VALUE_TYPE | element::CLASS | element::VAR | element::METHOD_VAR => self.number().map(drop),
            element::REQUIRED | element::OPTIONAL => {
                self.number()?;
                self.skip_type(depth + 1)
            }
            element::ARRAY => {
                self.skip_type(depth + 1)?;
                self.number()?;
                for _ in 0..2 {
                    for _ in 0..self.number()? {
                        self.number()?;
                    }
                }
                Ok(())
            }
            element::INSTANCE => {
                self.byte()?;
                self.number()?;
                for _ in 0..self.number()? {
                    self.skip_type(depth + 1)?;
                }
                Ok(())
            }
            element::FUNCTION => self.skip_method(depth + 1),
            _ => Err(Error::Signature),
        }
    }

    fn skip_method(&mut self, depth: u8) -> Result<()> {
        let (parameters, _) = self.method_head()?;
        for _ in 0..=parameters {
            self.skip_type(depth)?;
        }
        Ok(())
    }

    /// Returns the number of declared parameters, and whether the method also has `this`.
    fn method_head(&mut self) -> Result<(u32, bool)> {
        let flags = self.byte()?;
        if (FIELD..UNMANAGED).contains(&(flags & KIND)) || flags & KIND > UNMANAGED {
            return Err(Error::Signature);
        }
        if flags & GENERIC != 0 {
            self.number()?;
        }
        Ok((self.number()?, flags & HAS_THIS != 0 && flags & EXPLICIT_THIS == 0))
    }
}

/// Facts from a method's signature, for code that calls the method or changes its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MethodShape<'s> {
    /// Number of values that a call pops, including `this`.
    pub takes: u32,
    /// Type of the result without modifiers, so that it can be the type of a local variable. `None`
    /// if the method returns nothing.
    pub result: Option<&'s [u8]>,
}

/// Reads the signature of a method, or of a call.
///
/// # Errors
/// [`Error::Signature`] if the bytes are not such a signature.
pub fn method_shape(signature: &[u8]) -> Result<MethodShape<'_>> {
    let mut blob = Blob(signature);
    let (parameters, has_this) = blob.method_head()?;
    while matches!(blob.peek(), Some(element::REQUIRED | element::OPTIONAL)) {
        blob.byte()?;
        blob.number()?;
    }
    let result = blob.ty()?;
    let takes = parameters.checked_add(has_this.into()).ok_or(Error::Signature)?;
    Ok(MethodShape { takes, result: (result != [element::VOID]).then_some(result) })
}

/// Appends a variable to a signature of local variables. Returns the new signature and the number
/// of the new variable. An empty signature has no variables.
///
/// ```
/// // An int; then another, of type string.
/// assert_eq!(clr_il::append_local(&[7, 1, 8], &[14]), Ok((vec![7, 2, 8, 14], 1)));
/// ```
///
/// # Errors
/// [`Error::Signature`] if `signature` is not a signature of local variables or `ty` is not a type;
/// [`Error::TooManyLocals`].
pub fn append_local(signature: &[u8], ty: &[u8]) -> Result<(Vec<u8>, u16)> {
    let mut whole = Blob(ty);
    if whole.ty()?.len() != ty.len() {
        return Err(Error::Signature);
    }
    let (count, types) = match signature {
        [] => (0, &[][..]),
        [LOCALS, rest @ ..] => {
            let mut rest = Blob(rest);
            (rest.number()?, rest.0)
        }
        _ => return Err(Error::Signature),
    };
    if count >= MOST_LOCALS {
        return Err(Error::TooManyLocals);
    }
    let mut new = vec![LOCALS];
    append_number(&mut new, count + 1);
    new.extend(types);
    new.extend(ty);
    Ok((new, count as u16))
}

/// Appends a number to a signature in as few bytes as possible (ECMA-335, II.23.2). Numbers of 2^29
/// or more have no encoding.
pub fn append_number(signature: &mut Vec<u8>, number: u32) {
    match number {
        0..0x80 => signature.push(number as u8),
        0x80..0x4000 => signature.extend((number as u16 | 0x8000).to_be_bytes()),
        _ => signature.extend((number | 0xc000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_types_without_modifiers() {
        let shape = |signature: &'static [u8]| method_shape(signature).map(|shape| (shape.takes, shape.result));
        // static void(); instance int(string); static modreq byref of T1<!!0, int[]>.
        assert_eq!(shape(&[0, 0, 1]), Ok((0, None)));
        assert_eq!(shape(&[0x20, 1, 8, 14]), Ok((2, Some(&[8][..]))));
        let by_ref: &[u8] = &[0x10, 1, 0, 0x1f, 0x80, 0x81, 0x10, 0x15, 0x12, 5, 2, 0x1e, 0, 0x1d, 8];
        assert_eq!(shape(by_ref), Ok((0, Some(&by_ref[6..]))));
        // A function pointer, a multidimensional array.
        assert_eq!(shape(&[0, 0, 0x1b, 0, 1, 1, 8]), Ok((0, Some(&[0x1b, 0, 1, 1, 8][..]))));
        assert_eq!(shape(&[0, 0, 0x14, 8, 2, 0, 2, 0, 0]), Ok((0, Some(&[0x14, 8, 2, 0, 2, 0, 0][..]))));
        for cut in 0..by_ref.len() {
            assert_eq!(method_shape(&by_ref[..cut]), Err(Error::Signature), "cut after {cut}");
        }
        // A field, and types without an end.
        assert_eq!(shape(&[6, 8]), Err(Error::Signature));
        assert_eq!(method_shape(&[&[0, 0][..], &[0x1d; 5000], &[8]].concat()), Err(Error::Signature));
    }

    #[test]
    fn local_variables_are_counted_in_as_many_bytes_as_it_takes() {
        assert_eq!(append_local(&[], &[8]), Ok((vec![7, 1, 8], 0)));
        let mut signature = Vec::new();
        for number in 0..0x4002 {
            let (longer, local) = append_local(&signature, &[8]).expect("there is room");
            assert_eq!(usize::from(local), number);
            signature = longer;
        }
        assert_eq!(signature[..5], [7, 0xc0, 0, 0x40, 0x02]);
        assert_eq!(signature.len(), 5 + 0x4002);
        assert_eq!(append_local(&[7, 1, 8], &[8, 8]), Err(Error::Signature));
        assert_eq!(append_local(&[6, 8], &[8]), Err(Error::Signature));
        assert_eq!(append_local(&[7, 0xc0, 0, 0xff, 0xfe], &[8]), Err(Error::TooManyLocals));
    }
}
