//! Command lines for recordings that leave arguments out.

/// Replaces the arguments.
const LEFT_OUT: &str = "[arguments left out]";

/// The program of a command line (for `dotnet` also the assembly), and a note that the arguments
/// were left out: they may be secrets, and recordings are shared.
#[must_use]
pub fn without_arguments(words: &[String]) -> Vec<String> {
    let Some(program) = words.first() else { return Vec::new() };
    let mut kept = vec![program.clone()];
    if program.rsplit('/').next() == Some("dotnet") {
        kept.extend(words[1..].iter().find(|word| word.ends_with(".dll")).cloned());
    }
    kept.push(LEFT_OUT.to_owned());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_stays_and_its_arguments_do_not() {
        let kept = |line: &str| without_arguments(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).join(" ");
        assert_eq!(kept("dotnet exec app.dll --password=x"), "dotnet app.dll [arguments left out]");
        assert_eq!(kept("/opt/app secret.dll"), "/opt/app [arguments left out]");
        assert_eq!(kept("/usr/bin/dotnet run --key x"), "/usr/bin/dotnet [arguments left out]");
        assert_eq!(without_arguments(&[]), [""; 0]);
    }
}
