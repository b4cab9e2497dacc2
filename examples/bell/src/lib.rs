//! Makes a program audible: a double beep when the runtime loads this library and when it ends, a short tone per class load.
//!
//! The sound goes into a WAV file, whose name comes from `BELL_PROFILER_OUTPUT`. The tones are random but the same for the
//! same `BELL_PROFILER_SEED` (a number, 1 if not given).

use std::f64::consts::TAU;
use std::sync::{Mutex, PoisonError};

use clr_profiler::{ClassId, Events, Profiler, ProfilerInfo, Result, Setup};

clr_profiler::export_profiler!(Bell, "{3D9C7A54-9B0E-4A0B-8E55-7B1A2C6D4E43}");

/// Samples per second; one channel, 16 bits.
const RATE: u32 = 8000;
/// Ten minutes: later tones are left out.
const LIMIT: usize = RATE as usize * 600;
const BEEP_HZ: f64 = 880.0;
const BEEP_MS: u32 = 150;
const PAUSE_MS: u32 = 50;
const TONE_MS: u32 = 20;

/// The profiler the runtime makes when it loads this library.
#[derive(Default)]
struct Bell(Mutex<Sound>);

#[derive(Default)]
struct Sound {
    samples: Vec<i16>,
    random: u64,
}

impl Sound {
    fn tone(&mut self, hertz: f64, ms: u32) {
        let samples = RATE * ms / 1000;
        self.samples.extend((0..samples).map(|n| {
            // Faded in and out: a wave that is cut off clicks.
            let fade = f64::from(n.min(samples - n)) / f64::from(samples) * 2.0;
            ((f64::from(n) * hertz / f64::from(RATE) * TAU).sin() * fade * 12_000.0) as i16
        }));
    }

    fn double_beep(&mut self) {
        for _ in 0..2 {
            self.tone(BEEP_HZ, BEEP_MS);
            self.tone(0.0, PAUSE_MS);
        }
    }

    /// A tone of the pentatonic scale, where no two sound bad together.
    fn random_tone(&mut self) {
        // Xorshift: enough for music.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let steps = [0, 2, 4, 7, 9, 12, 14, 16, 19, 21];
        let step = steps[(self.random % steps.len() as u64) as usize];
        self.tone(261.63 * 2_f64.powf(f64::from(step) / 12.0), TONE_MS);
    }

    fn wav(&self) -> Vec<u8> {
        let data = self.samples.len() as u32 * 2;
        let mut file = Vec::with_capacity(44 + data as usize);
        file.extend(b"RIFF");
        file.extend((36 + data).to_le_bytes());
        file.extend(b"WAVEfmt ");
        file.extend(16_u32.to_le_bytes());
        // Plain samples, one channel.
        file.extend([1, 0, 1, 0]);
        file.extend(RATE.to_le_bytes());
        file.extend((RATE * 2).to_le_bytes());
        // Two bytes per sample, 16 bits.
        file.extend([2, 0, 16, 0]);
        file.extend(b"data");
        file.extend(data.to_le_bytes());
        file.extend(self.samples.iter().flat_map(|sample| sample.to_le_bytes()));
        file
    }
}

impl Bell {
    fn play(&self, act: impl FnOnce(&mut Sound)) {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Profiler for Bell {
    fn initialize(&self, _info: &ProfilerInfo) -> Result<Setup> {
        let seed = std::env::var("BELL_PROFILER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        self.play(|sound| {
            // Xorshift never leaves zero.
            sound.random = u64::max(seed, 1);
            sound.double_beep();
        });
        Ok(Setup::new(Events::CLASS_LOADS))
    }

    fn class_load_finished(&self, _class: ClassId, status: Result<()>) {
        self.play(|sound| {
            if status.is_ok() && sound.samples.len() < LIMIT {
                sound.random_tone();
            }
        });
    }

    fn shutdown(&self) {
        let path = std::env::var_os("BELL_PROFILER_OUTPUT").unwrap_or_else(|| "bell.wav".into());
        self.play(|sound| {
            sound.double_beep();
            // There is nobody to tell about a failure: the program's output is not ours.
            drop(std::fs::write(path, sound.wav()));
        });
    }
}
