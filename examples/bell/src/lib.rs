//! Makes a program audible: a double beep when the runtime loads this library and when it ends, a
//! short tone per class load.
//!
//! The sound goes into a WAV file, whose name comes from `BELL_PROFILER_OUTPUT`; if that is
//! `/dev/tty`, the terminal's bell rings instead, as the classes are loaded. Sound that can't be
//! written is dropped, because a profiler must not write to the program's own output. The tones are
//! random, but the same for the same `BELL_PROFILER_SEED` (a number).

use std::f64::consts::TAU;
use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::{Callbacks, ClassId, Events, Profiler, ProfilerInfo, Result, Setup};

clr_profiler::export_profiler!(Bell, "{3D9C7A54-9B0E-4A0B-8E55-7B1A2C6D4E43}");

/// Samples per second; one channel, 16 bits.
const RATE: u32 = 8000;
/// Maximum number of samples, ten minutes; later tones are left out.
const LIMIT: usize = RATE as usize * 600;
const TERMINAL: &str = "/dev/tty";
/// Steps of the pentatonic scale above the lowest tone; any two of them sound well together.
const STEPS: [i32; 10] = [0, 2, 4, 7, 9, 12, 14, 16, 19, 21];

/// The profiler the runtime makes when it loads this library.
struct Bell(Mutex<Sound>);

struct Sound {
    samples: Vec<i16>,
    random: u64,
    rings: bool,
}

impl Sound {
    fn tone(&mut self, hertz: f64, ms: u32) {
        if self.rings && hertz > 0.0 {
            drop(std::fs::write(TERMINAL, "\x07"));
        }
        let samples = RATE * ms / 1000;
        self.samples.extend((0..samples).map(|n| {
            // Faded in and out: a wave that is cut off clicks.
            let fade = f64::from(n.min(samples - n)) / f64::from(samples) * 2.0;
            ((f64::from(n) * hertz / f64::from(RATE) * TAU).sin() * fade * 12_000.0) as i16
        }));
    }

    fn double_beep(&mut self) {
        for _ in 0..2 {
            self.tone(880.0, 150);
            self.tone(0.0, 50);
        }
    }

    fn random_tone(&mut self) {
        // A linear congruential generator's upper bits: random enough for music.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let step = STEPS[(self.random >> 33) as usize % STEPS.len()];
        self.tone(261.63 * 2_f64.powf(f64::from(step) / 12.0), 20);
    }

    /// Head and samples: plain numbers, one channel, two bytes each.
    fn wav(&self) -> Vec<u8> {
        let data = self.samples.len() as u32 * 2;
        let mut file = b"RIFF".to_vec();
        file.extend((36 + data).to_le_bytes());
        file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
        file.extend([RATE, RATE * 2].map(u32::to_le_bytes).as_flattened());
        file.extend(b"\x02\0\x10\0data");
        file.extend(data.to_le_bytes());
        file.extend(self.samples.iter().flat_map(|sample| sample.to_le_bytes()));
        file
    }
}

impl Bell {
    fn output() -> OsString {
        std::env::var_os("BELL_PROFILER_OUTPUT").unwrap_or_else(|| "bell.wav".into())
    }

    fn sound(&self) -> MutexGuard<'_, Sound> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Profiler for Bell {
    fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let seed = std::env::var("BELL_PROFILER_SEED").ok().and_then(|seed| seed.parse().ok());
        let rings = Self::output() == TERMINAL;
        let mut sound = Sound { samples: Vec::new(), random: seed.unwrap_or(1), rings };
        sound.double_beep();
        Ok((Self(Mutex::new(sound)), Setup::new(Events::CLASS_LOADS)))
    }
}

impl Callbacks for Bell {
    fn class_load_finished(&self, _class: ClassId, status: Result<()>) {
        let mut sound = self.sound();
        if status.is_ok() && sound.samples.len() < LIMIT {
            sound.random_tone();
        }
    }

    fn shutdown(&self) {
        let mut sound = self.sound();
        sound.double_beep();
        if !sound.rings {
            drop(std::fs::write(Self::output(), sound.wav()));
        }
    }
}
