//! Connections to the page: who may hold a place, and for how long.
//!
//! Every user of this machine can connect. A connection that has not shown the token is a
//! stranger's: it has an end, however slowly it sends or reads, and when all places of strangers
//! are held the oldest loses its own. So slow connections never keep the user's browser away, whose
//! requests arrive at once.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::door::Door;
use super::http::{self, Answer, Status, TimedConnection};
use super::{Room, spawn};

/// Connections at one time of those that have shown the token, and as many of those that have not;
/// browsers open six.
const MOST: usize = 64;

/// Connections of one page.
#[derive(Debug)]
pub(super) struct Connections {
    door: Door,
    room: Room,
    strangers: Strangers,
    /// Connections that have shown the token and are being answered.
    guests: AtomicUsize,
    was_entered: EntrySignal,
}

impl Connections {
    /// Accepts connections from now on, until this process ends.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn accept(listener: TcpListener, door: Door, room: Room) -> io::Result<Arc<Self>> {
        let guests = AtomicUsize::new(0);
        let was_entered = EntrySignal::default();
        let connections = Arc::new(Self { door, room, strangers: Strangers::default(), guests, was_entered });
        let accepting = Arc::clone(&connections);
        spawn("connections", move || listener.incoming().flatten().for_each(|stream| accepting.begin(stream)))?;
        Ok(connections)
    }

    /// Waits for the first request with the token, but no longer than this.
    pub(super) fn wait_for_entry(&self, patience: Duration) {
        self.was_entered.wait(patience);
    }

    /// Answers a connection on a thread of its own.
    fn begin(self: &Arc<Self>, stream: TcpStream) {
        let Ok(stranger) = self.strangers.enter(&stream) else { return };
        let connections = Arc::clone(self);
        let work = move || {
            // The client may have gone.
            let _ = connections.converse(stream, stranger);
            connections.strangers.leave(stranger);
        };
        if spawn("connection", work).is_err() {
            self.strangers.leave(stranger);
        }
    }

    /// Answers the one request of a connection.
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

/// Whether a request with the token has come, for those who wait for it.
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

    /// Whether it is so, at the latest after this time.
    fn wait(&self, patience: Duration) -> bool {
        let is_so = self.is_so.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_so, patience, |is_so| !*is_so);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Connections that have not shown the token, the oldest first.
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

    /// Gives a connection a place, the oldest one's where there is no other.
    ///
    /// # Errors
    /// Errors of the system: there are too many descriptors.
    fn enter(&self, stream: &TcpStream) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut places = self.lock();
        if places.held.len() >= MOST
            && let Some((_, oldest)) = places.held.pop_front()
        {
            // It ends its thread, which reads or writes there. One that is gone already needs no
            // end.
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

    /// The file that led the browser here was looked after ten times a second, for up to a minute.
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
