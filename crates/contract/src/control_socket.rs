//! The control socket of a dormant agent: what the launcher asks, and what the agent answers.
//!
//! The runtime does not detach an agent that may have given methods other code. The agent then goes
//! dormant, and listens at a socket next to that of the runtime's diagnostics:
//! `clrscope-agent-PID-START-socket`, with the id and the start of the process as the runtime's has
//! them; where another user has put a file there, `clrscope-agent-PID-START-WORD-socket`. A client
//! sends one [question] and shuts down its side; the agent sends one [answer](Answer) and closes
//! the connection. Both must be of one version: the request's grammar and the recording's format
//! are known to that version alone.

use std::fmt;

/// First part of the socket's name, where that of the runtime has `dotnet-diagnostic`.
pub const PREFIX: &str = "clrscope-agent";
/// The version that both sides must have.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Maximum length of a question in bytes; no command of the runtime's can be longer either.
pub const MAX_QUESTION_BYTES: u64 = 64 << 10;

const WAKE: &str = "clrscope wake ";
const AWAKE: &str = "awake";
const OTHER_VERSION: &str = "version ";
const REFUSED: &str = "refused ";

/// Name of the socket of a process that began at `started`, in ticks since the machine's start.
#[must_use]
pub fn socket_name(pid: u32, started: u64) -> String {
    format!("{PREFIX}-{pid}-{started}-socket")
}

/// Name of the socket of such a process where another user has taken the usual one, with a word
/// that can't be foreseen.
#[must_use]
pub fn fallback_socket_name(pid: u32, started: u64, word: &str) -> String {
    format!("{PREFIX}-{pid}-{started}-{word}-socket")
}

/// The question whether the agent begins to record what `request` asks for.
#[must_use]
pub fn question(request: &str) -> String {
    format!("{WAKE}{VERSION}\n{request}")
}

/// The request that a question has.
///
/// # Errors
/// The answer to a question of another version, or to what is no question.
pub fn request_of(question: &[u8]) -> Result<&str, Answer> {
    let no_question = || Answer::Refused("that is no question to an agent".to_owned());
    let text = std::str::from_utf8(question).map_err(|_| no_question())?;
    let (version, request) = text.strip_prefix(WAKE).and_then(|rest| rest.split_once('\n')).ok_or_else(no_question)?;
    if version == VERSION { Ok(request) } else { Err(Answer::OtherVersion(VERSION.to_owned())) }
}

/// Answer of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The agent records.
    Awake,
    /// The agent has another version, this one, and sleeps on.
    OtherVersion(String),
    /// The agent does not record, for this reason, and sleeps on.
    Refused(String),
}

impl Answer {
    /// The answer that a text is; `None` where it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = |word| text.strip_prefix(word).map(str::to_owned);
        let awake = (text == AWAKE).then_some(Self::Awake);
        awake.or_else(|| rest(OTHER_VERSION).map(Self::OtherVersion)).or_else(|| rest(REFUSED).map(Self::Refused))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Awake => f.write_str(AWAKE),
            Self::OtherVersion(version) => write!(f, "{OTHER_VERSION}{version}"),
            Self::Refused(why) => write!(f, "{REFUSED}{why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_are_understood_by_the_other_side() {
        assert_eq!(request_of(question("cpu;out=/tmp/a b\n").as_bytes()), Ok("cpu;out=/tmp/a b\n"));
        for answer in [Answer::Awake, Answer::OtherVersion("1.2.3".into()), Answer::Refused("no\nreason".into())] {
            assert_eq!(Answer::parse(&answer.to_string()), Some(answer));
        }
    }

    #[test]
    fn what_is_not_of_this_version_or_no_question_is_answered_in_words() {
        assert_eq!(request_of(b"clrscope wake 0.0.0-other\ncpu"), Err(Answer::OtherVersion(VERSION.to_owned())));
        for odd in [&b""[..], b"clrscope wake", b"GET / HTTP/1.1\n", &[0xff, 0xfe]] {
            assert!(matches!(request_of(odd), Err(Answer::Refused(_))), "{odd:?}");
        }
        assert_eq!((Answer::parse(""), Answer::parse("awake ")), (None, None));
    }
}
