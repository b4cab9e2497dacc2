//! Lambdas of Visual Basic. Its compiler names them by number: `_Closure$__::_Lambda$__0-1`.
//!
//! The source method of such a lambda is the method whose code loads the lambda's address.

use super::source::is_visual_basic_lambda;
use super::types::ModuleNames;
use crate::{ModuleId, ProfilerInfo, Token};

/// Maximum nesting depth of lambdas.
const NESTING: usize = 8;

/// The name of the source method of the lambda `lambda`: a method of `owner`, the type in the
/// source that contains the lambda. `None` if no code loads the lambda's address.
pub(super) fn source_method(
    info: &ProfilerInfo,
    (id, module): (ModuleId, &ModuleNames),
    owner: Token,
    lambda: &str,
) -> Option<String> {
    let types = own_types(module, owner);
    let mut wanted = lambda.to_owned();
    for _ in 0..NESTING {
        let (ty, method) = loader(info, (id, module), &types, &wanted)?;
        let machine = module.type_name(ty).ok()?.helper.as_ref().and_then(|helper| helper.machine.clone());
        let method = machine.map_or(method, |(source, ..)| source);
        if !is_visual_basic_lambda(&method) {
            return Some(method);
        }
        wanted = method;
    }
    None
}

/// The type and the compiler-generated types nested in it.
fn own_types(module: &ModuleNames, owner: Token) -> Vec<Token> {
    let is_within = |token: &Token| {
        let mut outer = *token;
        (0..NESTING).any(|_| match module.metadata.enclosing_type(outer) {
            Ok(Some(found)) => {
                outer = found;
                outer == owner
            }
            _ => {
                outer = Token(0);
                false
            }
        })
    };
    let is_helper = |token: &Token| module.type_name(*token).is_ok_and(|name| name.helper.is_some());
    let all = module.metadata.type_defs().unwrap_or_default();
    [owner].into_iter().chain(all.into_iter().filter(|token| is_within(token) && is_helper(token))).collect()
}

/// The method that loads the address of the method called `lambda`, with its type.
fn loader(
    info: &ProfilerInfo,
    (id, module): (ModuleId, &ModuleNames),
    types: &[Token],
    lambda: &str,
) -> Option<(Token, String)> {
    let name_of = |token: Token| match token.table() {
        Token::METHOD_DEF => module.metadata.name(token).ok(),
        Token::MEMBER_REF => module.metadata.member_ref(token).ok().map(|found| found.name),
        _ => None,
    };
    types.iter().find_map(|&ty| {
        let methods = module.metadata.methods(ty).unwrap_or_default();
        let found = methods.into_iter().find(|&method| {
            let body = info.il_function_body(id, method);
            body.is_ok_and(|body| loaded(&body[..]).any(|token| name_of(token).is_some_and(|name| name == lambda)))
        })?;
        Some((ty, module.metadata.name(found).ok()?.to_owned()))
    })
}

/// The methods whose addresses a body of IL loads (`ldftn`). Other bytes that look like `ldftn` do
/// no harm: they name no method with the name of the lambda.
fn loaded(body: &[u8]) -> impl Iterator<Item = Token> {
    const LDFTN: [u8; 2] = [0xFE, 0x06];
    body.windows(6).filter(|window| window.starts_with(&LDFTN)).map(|window| {
        let token = [window[2], window[3], window[4], window[5]];
        Token(u32::from_le_bytes(token))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_addresses_are_found_wherever_they_stand() {
        let body = [0x02, 0xFE, 0x06, 0x07, 0, 0, 0x06, 0x73, 0x0A, 0xFE, 0x06, 0x09, 0, 0, 0x0A, 0x2A, 0xFE];
        assert_eq!(loaded(&body).collect::<Vec<_>>(), [Token(0x0600_0007), Token(0x0A00_0009)]);
        assert_eq!(loaded(&[0xFE, 0x06]).count(), 0);
    }
}
