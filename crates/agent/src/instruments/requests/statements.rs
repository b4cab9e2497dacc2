//! Kind of an SQL statement, from its first word. Nothing else of the statement is kept, since it
//! may hold secrets.

/// Words that statements begin with.
const VERBS: [&str; 40] = [
    "ALTER",
    "ANALYZE",
    "BACKUP",
    "BEGIN",
    "CALL",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DESCRIBE",
    "DROP",
    "EXEC",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "GRANT",
    "IF",
    "INSERT",
    "LISTEN",
    "LOCK",
    "MERGE",
    "NOTIFY",
    "PRAGMA",
    "REPLACE",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "TRUNCATE",
    "UPDATE",
    "USE",
    "VACUUM",
    "WITH",
];
/// Name for all others: names of procedures, and unknown statements.
const OTHER: &str = "COMMAND";
/// Number of characters of the longest verb.
pub(super) const LONGEST: usize = 10;
/// Most characters of a statement that are searched.
const MOST: usize = 4_096;

/// The first word of a statement, after comments and parentheses.
pub(super) fn verb(statement: &[u16]) -> &'static str {
    let mut text = &statement[..statement.len().min(MOST)];
    loop {
        let blank = |unit: &u16| matches!(u8::try_from(*unit), Ok(b' ' | b'\t' | b'\r' | b'\n' | b'(' | b';'));
        text = &text[text.iter().take_while(|unit| blank(unit)).count()..];
        let rest = match text {
            [first, second, rest @ ..] if [*first, *second] == [u16::from(b'-'); 2] => behind(rest, b"\n"),
            [first, second, rest @ ..] if [*first, *second] == [u16::from(b'/'), u16::from(b'*')] => {
                behind(rest, b"*/")
            }
            _ => break,
        };
        text = rest;
    }
    let letter = |unit: &u16| u8::try_from(*unit).ok().filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let length = text.iter().take_while(|unit| letter(unit).is_some()).count();
    let word = text[..length].iter().filter_map(letter);
    let is_it = |verb: &&&str| {
        verb.len() == length && word.clone().zip(verb.bytes()).all(|(byte, wanted)| byte.to_ascii_uppercase() == wanted)
    };
    VERBS.iter().find(is_it).copied().unwrap_or(OTHER)
}

/// The text behind a mark; empty if there is no mark.
fn behind<'t>(text: &'t [u16], mark: &[u8]) -> &'t [u16] {
    let is_it = |part: &[u16]| part.iter().zip(mark).all(|(unit, byte)| *unit == u16::from(*byte));
    text.windows(mark.len()).position(is_it).map_or(&[], |at| &text[at + mark.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> &'static str {
        verb(&text.encode_utf16().collect::<Vec<u16>>())
    }

    #[test]
    fn statements_are_known_by_their_first_word() {
        assert_eq!(of_text("select password from users"), "SELECT");
        assert_eq!(of_text("\r\n  (SELECT 1)"), "SELECT");
        assert_eq!(of_text("/* SELECT */-- INSERT\nUpdate users"), "UPDATE");
        assert_eq!(of_text("DELETE"), "DELETE");
        assert_eq!(
            ["", "sp_secret", "SELECTED", "select_all", "-- only", "/* open", "/", "-"].map(of_text),
            [OTHER; 8]
        );
        assert_eq!(of_text("sélect"), OTHER);
        assert_eq!(verb(&[u16::MAX; 100_000]), OTHER);
        assert!(VERBS.iter().all(|verb| verb.len() <= LONGEST) && OTHER.len() <= LONGEST);
    }
}
