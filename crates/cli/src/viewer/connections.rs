//! Connections to the page: how many are open at a time, and for how long.
//!
//! Every user of this machine can connect. A connection that has not sent the token is a stranger.
//! Strangers have a time limit, however slowly they send or read, and a new stranger displaces the
//! oldest one when all their places are taken. So slow connections never block the user's browser,
//! whose requests arrive at once.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::door::Door;
use super::http::{self, Answer, Status, TimedConnection};
use super::{Room, spawn};

/// Maximum number of open connections with the token, and also of those without it. Browsers open
/// six.
const MOST: usize = 64;

/// Connections of one page.
#[derive(Debug)]
pub(super) struct Connections {
    door: Door,
    room: Room,
    strangers: Strangers,
    /// Number of connections that have sent the token and are being answered.
    guests: AtomicUsize,
    was_entered: EntrySignal,
}

impl Connections {
    /// Accepts connections from now on, until this process ends.
    ///
    /// # Errors
    /// No thread can be started.
    pub(super) fn accept(listener: TcpListener, door: Door, room: Room) -> io::Result<Arc<Self>> {
        let guests = AtomicUsize::new(0);
        let was_entered = EntrySignal::default();
        let connections = Arc::new(Self { door, room, strangers: Strangers::default(), guests, was_entered });
        let accepting = Arc::clone(&connections);
        spawn("connections", move || listener.incoming().flatten().for_each(|stream| accepting.begin(stream)))?;
        Ok(connections)
    }

    /// Waits for the first request with the token, at most for `patience`.
    pub(super) fn wait_for_entry(&self, patience: Duration) {
        self.was_entered.wait(patience);
    }

    /// Answers a connection on a thread of its own.
    fn begin(self: &Arc<Self>, stream: TcpStream) {
        let Ok(stranger) = self.strangers.enter(&stream) else { return };
        let connections = Arc::clone(self);
        let work = move || {
            // The client may have disconnected.
            let _ = connections.converse(stream, stranger);
            connections.strangers.leave(stranger);
        };
        if spawn("connection", work).is_err() {
            self.strangers.leave(stranger);
        }
    }

    /// Reads and answers a connection's single request.
    fn converse(&self, mut stream: TcpStream, stranger: u64) -> io::Result<()> {
        http::set_limits(&stream)?;
        let mut timed = TimedConnection::from_now(&mut stream);
        let asked = http::read(&mut timed);
        let is_head = asked.as_ref().is_ok_and(|asked| asked.method == "HEAD");
        let judged = asked.as_ref().map_err(|status| *status).and_then(|asked| self.door.judge(asked));
        let inside = match judged {
            Ok(inside) => inside,
            Err(status) => {
                write(timed.stream(), &Answer::refusal(status), is_head)?;
                timed.linger();
                return Ok(());
            }
        };
        self.was_entered.tell();
        self.strangers.leave(stranger);
        let is_full = self.guests.fetch_add(1, Ordering::Relaxed) >= MOST;
        let answer = if is_full { Answer::refusal(Status::Busy) } else { self.room.answer(inside) };
        let written = write(timed.stream(), &answer, is_head);
        self.guests.fetch_sub(1, Ordering::Relaxed);
        written?;
        TimedConnection::from_now(timed.stream()).linger();
        Ok(())
    }
}

fn write(stream: &mut TcpStream, answer: &Answer, is_head: bool) -> io::Result<()> {
    answer.write(stream, !is_head)?;
    stream.flush()
}

/// Signals that a request with the token has arrived.
#[derive(Debug, Default)]
struct EntrySignal {
    is_so: Mutex<bool>,
    changed: Condvar,
}

impl EntrySignal {
    fn tell(&self) {
        *self.is_so.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for the signal, at most for `patience`. Returns whether it came.
    fn wait(&self, patience: Duration) -> bool {
        let is_so = self.is_so.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_so, patience, |is_so| !*is_so);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Connections that have not sent the token, the oldest first.
#[derive(Debug, Default)]
struct Strangers(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    last: u64,
    held: VecDeque<(u64, TcpStream)>,
}

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a connection a place. If none is free, the oldest connection loses its place.
    ///
    /// # Errors
    /// Errors of the system: there are too many file descriptors.
    fn enter(&self, stream: &TcpStream) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut places = self.lock();
        if places.held.len() >= MOST
            && let Some((_, oldest)) = places.held.pop_front()
        {
            // This ends the connection's thread, which reads or writes on it. An error means that
            // the connection is already closed.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        places.last += 1;
        let number = places.last;
        places.held.push_back((number, stream));
        Ok(number)
    }

    /// Frees the place of a connection, if it still has one.
    fn leave(&self, number: u64) {
        self.lock().held.retain(|(other, _)| *other != number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Before there was this signal, the redirecting file's owner polled ten times a second for up
    /// to a minute.
    #[test]
    fn whoever_waits_for_the_first_request_is_woken_by_it_and_not_before() {
        const LONG: Duration = Duration::from_secs(600);
        let entered = Arc::new(EntrySignal::default());
        assert!(!entered.wait(Duration::from_millis(1)), "nobody has come");
        let (began, waiting) = (Instant::now(), Arc::clone(&entered));
        let waiter = std::thread::spawn(move || waiting.wait(LONG));
        entered.tell();
        assert!(waiter.join().expect("no panic") && began.elapsed() < LONG);
        assert!(entered.wait(LONG), "who comes later does not wait");
    }
}
