//! The control socket of a dormant agent: the questions of the launcher, and the answers of the
//! agent.
//!
//! The runtime does not detach an agent that may have changed the code of methods. The agent then
//! becomes dormant, and listens on a socket next to the runtime's diagnostics socket:
//! `clrscope-agent-PID-START-socket`. PID and START are the id and the start time of the process,
//! as in the name of the diagnostics socket. If another user has put a file there, the name is
//! `clrscope-agent-PID-START-WORD-socket`. A client sends one [question] and shuts down its side of
//! the connection; the agent sends one [answer](Answer) and closes the connection. Both must have
//! the same version, because the grammar of the request and the format of the recording belong to
//! one version.

use std::fmt;

/// First part of the socket's name; the name of the runtime's socket has `dotnet-diagnostic`
/// instead.
pub const PREFIX: &str = "clrscope-agent";
/// The version that both sides must have.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Maximum length of a question in bytes; the runtime's own commands have the same limit.
pub const MAX_QUESTION_BYTES: u64 = 64 << 10;

const WAKE: &str = "clrscope wake ";
const AWAKE: &str = "awake";
const OTHER_VERSION: &str = "version ";
const REFUSED: &str = "refused ";

/// Name of the socket of a process that started at `started`, in ticks since the machine's start.
#[must_use]
pub fn socket_name(pid: u32, started: u64) -> String {
    format!("{PREFIX}-{pid}-{started}-socket")
}

/// Name of the socket if another user has taken the usual name; `word` must be unpredictable.
#[must_use]
pub fn fallback_socket_name(pid: u32, started: u64, word: &str) -> String {
    format!("{PREFIX}-{pid}-{started}-{word}-socket")
}

/// The question that asks the agent to begin the recording of `request`.
#[must_use]
pub fn question(request: &str) -> String {
    format!("{WAKE}{VERSION}\n{request}")
}

/// The request in a question.
///
/// # Errors
/// The answer to a question of another version, or to bytes that are not a question.
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
    /// The agent has this other version, and stays dormant.
    OtherVersion(String),
    /// The agent does not record, for this reason, and stays dormant.
    Refused(String),
}

impl Answer {
    /// Parses an answer; `None` if the text is no valid answer.
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
