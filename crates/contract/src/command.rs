//! Command lines of .NET programs, read as the `dotnet` host reads them.

/// Options of the `dotnet` host that take the word after them.
const WITH_VALUE: [&str; 7] = [
    "--additional-deps",
    "--additionalprobingpath",
    "--depsfile",
    "--fx-version",
    "--roll-forward",
    "--roll-forward-on-no-candidate-fx",
    "--runtimeconfig",
];

/// Index of the assembly that `dotnet` will run, in a command line that starts with `dotnet`;
/// `None` for a command of the SDK, such as `dotnet build`.
#[must_use]
pub fn entry_assembly(command_line: &[String]) -> Option<usize> {
    let mut words = command_line.iter().map(String::as_str).enumerate().skip(1).peekable();
    // `dotnet exec` accepts a file with any name.
    let any = words.next_if(|&(_, word)| word == "exec").is_some();
    loop {
        let (index, word) = words.next()?;
        if WITH_VALUE.contains(&word) {
            words.next();
            continue;
        }
        let lower = word.to_ascii_lowercase();
        return (any || lower.ends_with(".dll") || lower.ends_with(".exe")).then_some(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_host_are_passed_over() {
        for (line, found) in [
            ("dotnet app.dll --fx-version other.dll", Some("app.dll")),
            ("dotnet exec --depsfile x.dll --runtimeconfig y.json /a/App", Some("/a/App")),
            ("dotnet --fx-version 9.0.1 --roll-forward Major b.DLL x", Some("b.DLL")),
            ("dotnet build app.dll", None),
            ("dotnet --fx-version", None),
            ("dotnet", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(entry_assembly(&words).map(|index| words[index].as_str()), found, "{line}");
        }
        assert_eq!(entry_assembly(&[]), None);
    }
}
