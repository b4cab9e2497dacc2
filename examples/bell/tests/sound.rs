//! The sound is a WAV file with the tones it should have, the same for the same seed, or the
//! terminal's bell; on every runtime at hand.

use clrscope_testkit as testkit;

/// Samples of a double beep (150 ms, 50 ms of silence, twice) and of one class's tone (20 ms), at
/// 8,000 a second.
const DOUBLE_BEEP: usize = 3200;
const TONE: usize = 160;

fn number(file: &[u8], at: usize) -> usize {
    u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes")) as usize
}

fn samples(file: &[u8]) -> Vec<i16> {
    assert_eq!((&file[..4], &file[8..16], &file[36..40]), (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..]));
    assert_eq!((number(file, 4), number(file, 40), number(file, 24)), (file.len() - 8, file.len() - 44, 8000));
    file[44..].as_chunks::<2>().0.iter().map(|bytes| i16::from_le_bytes(*bytes)).collect()
}

/// A beep of 880 Hz for 150 ms has 132 waves; each rises through zero once.
fn is_double_beep(samples: &[i16]) -> bool {
    let waves = |part: &[i16]| part.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
    let [first, second] = [&samples[..1600], &samples[1600..]];
    [first, second].iter().all(|beep| waves(&beep[..1200]).abs_diff(132) <= 1 && beep[1200..].iter().all(|s| *s == 0))
}

#[test]
fn a_program_sounds_and_is_unchanged() {
    let library = testkit::example("bell");
    testkit::each_runtime(|runtime| {
        let fixture = testkit::fixture("Hello");
        let bare = testkit::run(runtime.command(&fixture)).expect_success();
        let listen = |seed: &str| {
            let folder = testkit::scratch();
            let output = folder.path().join("bell.wav");
            let mut command = runtime.command(&fixture);
            testkit::load_profiler(&mut command, &library, "{3D9C7A54-9B0E-4A0B-8E55-7B1A2C6D4E43}");
            command.env("BELL_PROFILER_OUTPUT", &output).env("BELL_PROFILER_SEED", seed);
            let profiled = testkit::run(command).expect_success();
            assert_eq!((&profiled.stdout, &profiled.stderr), (&bare.stdout, &bare.stderr));
            samples(&std::fs::read(&output).expect("the profiler writes at the end"))
        };
        let (once, again, other) = (listen("7"), listen("7"), listen("8"));
        assert!(is_double_beep(&once[..DOUBLE_BEEP]), "at load, on .NET {}", runtime.version);
        assert!(is_double_beep(&once[once.len() - DOUBLE_BEEP..]), "at the end, on .NET {}", runtime.version);
        let tones = once.len() - 2 * DOUBLE_BEEP;
        assert_eq!(tones % TONE, 0);
        assert!(tones / TONE > 100, "{} classes on .NET {}", tones / TONE, runtime.version);

        // How many classes are loaded may differ a little between runs; the tones don't.
        let same = DOUBLE_BEEP + 100 * TONE;
        assert_eq!(once[..same], again[..same], "on .NET {}", runtime.version);
        assert_ne!(once[..same], other[..same], "on .NET {}", runtime.version);
    });
}

/// Runs its arguments with a terminal of their own and copies to the output what appears there.
const IN_A_TERMINAL: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

#[test]
fn the_terminal_rings_while_the_program_runs() {
    let library = testkit::example("bell");
    testkit::each_runtime(|runtime| {
        let mut command = std::process::Command::new("python3");
        command.args(["-c", IN_A_TERMINAL]).args(runtime.words(&testkit::fixture("Hello")));
        runtime.prepare(&mut command);
        testkit::load_profiler(&mut command, &library, "{3D9C7A54-9B0E-4A0B-8E55-7B1A2C6D4E43}");
        // A dumb terminal gets no sequences of control characters besides the bells.
        command.env("BELL_PROFILER_OUTPUT", "/dev/tty").env("TERM", "dumb");
        let shown = testkit::run(command).expect_success().stdout_text();
        let (before, after) = shown.split_once("Hello, World!").expect("the program's own output");
        // Two at load, one a class; two at the end.
        let bells = |text: &str| text.matches('\x07').count();
        assert!(bells(before) > 100 && bells(after) >= 2, "{shown:?} on .NET {}", runtime.version);
        assert_eq!(shown.replace('\x07', ""), "Hello, World!\r\n", "on .NET {}", runtime.version);
    });
}
