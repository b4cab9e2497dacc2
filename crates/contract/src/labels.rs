//! Labels of a recording: key-value pairs that distinguish the recordings of many programs. They
//! come from the command line and from OpenTelemetry's environment variables.
//!
//! Keys follow OpenTelemetry's resource attributes: `service.name`, `deployment.environment.name`.

use std::fmt;

/// OpenTelemetry's variable with the service name. An empty value counts as not set.
pub const SERVICE_NAME_VARIABLE: &str = "OTEL_SERVICE_NAME";
/// OpenTelemetry's variable with resource attributes: `KEY=VALUE,...`, both percent-encoded.
pub const RESOURCE_VARIABLE: &str = "OTEL_RESOURCE_ATTRIBUTES";
/// Key of the service name.
pub const SERVICE_NAME: &str = "service.name";

/// Maximum length of a key in bytes.
pub const LONGEST_KEY: usize = 255;
/// Maximum length of a value in bytes.
pub const LONGEST_VALUE: usize = 2048;
/// Maximum number of labels of a recording. Receivers of profiles accept only a few more labels,
/// and they add their own.
pub const MOST_LABELS: usize = 30;

/// Prefixes of keys that clrscope sets itself; a user's label can't use them.
const OF_FACTS: [&str; 2] = ["process.", "clrscope."];

/// A label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// The key, such as `service.name`.
    pub key: String,
    /// The value.
    pub value: String,
}

/// Reason why a text is not a label, or why labels can't be used together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelError(pub String);

impl fmt::Display for LabelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LabelError {}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// Whether only clrscope itself sets labels with this key.
#[must_use]
pub fn is_fact(key: &str) -> bool {
    OF_FACTS.iter().any(|facts| key.starts_with(facts))
}

impl Label {
    /// Reads `KEY=VALUE` from the command line. Blanks around the key are ignored; the value is
    /// taken as written and may be empty.
    ///
    /// # Errors
    /// The reason why the text is not a label.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(LabelError("it has no '='".to_owned()));
        };
        let label = Self { key: key.trim().to_owned(), value: value.to_owned() };
        if is_fact(&label.key) {
            let [first, second] = OF_FACTS;
            return Err(LabelError(format!("clrscope sets keys with {first} and {second} itself")));
        }
        label.check().map(|()| label)
    }

    /// Checks lengths and characters.
    fn check(&self) -> Result<(), LabelError> {
        let why = if self.key.is_empty() {
            "the key is empty".to_owned()
        } else if self.key.len() > LONGEST_KEY {
            format!("the key has more than {LONGEST_KEY} bytes")
        } else if self.value.len() > LONGEST_VALUE {
            format!("the value has more than {LONGEST_VALUE} bytes")
        } else if self.key.chars().chain(self.value.chars()).any(char::is_control) {
            "it has a control character".to_owned()
        } else {
            return Ok(());
        };
        Err(LabelError(why))
    }
}

/// Checks labels of one command together.
///
/// # Errors
/// When there are too many labels, or two with the same key.
pub fn check_together(labels: &[Label]) -> Result<(), LabelError> {
    if labels.len() > MOST_LABELS {
        return Err(LabelError(format!("there are {} labels, but at most {MOST_LABELS} are kept", labels.len())));
    }
    for (at, label) in labels.iter().enumerate() {
        if labels[..at].iter().any(|other| other.key == label.key) {
            return Err(LabelError(format!("the key {} is given twice", label.key)));
        }
    }
    Ok(())
}

/// Reads the value of [`RESOURCE_VARIABLE`] as OpenTelemetry's resource specification defines it:
/// pairs separated by commas, keys and values percent-encoded, blanks around them ignored. If a key
/// occurs several times, the last value is valid. Values are kept unchanged, even secrets.
///
/// # Errors
/// A sentence about what is wrong. The specification says that the caller must then discard the
/// whole value.
pub fn parse_resource_attributes(text: &str) -> Result<Vec<Label>, LabelError> {
    let mut labels: Vec<Label> = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| LabelError("a pair has no '='".to_owned()))?;
        let label = Label { key: decoded(key.trim())?, value: decoded(value.trim())? };
        label.check()?;
        labels.retain(|other| other.key != label.key);
        labels.push(label);
    }
    check_together(&labels).map(|()| labels)
}

/// The labels of a process: the labels in `given`, then those of the process's environment whose
/// keys are not in `given`. The service name is given, or else comes from
/// [`SERVICE_NAME_VARIABLE`], or else from [`RESOURCE_VARIABLE`].
///
/// The second value lists what was ignored in the environment, one sentence each.
#[must_use]
pub fn labels_of_process(
    given: &[Label],
    service_name: Option<&str>,
    attributes: Option<&str>,
) -> (Vec<Label>, Vec<String>) {
    let mut problems = Vec::new();
    let mut labels = given.to_vec();
    let mut found = Vec::new();
    if let Some(name) = service_name.filter(|name| !name.is_empty()) {
        let label = Label { key: SERVICE_NAME.to_owned(), value: name.to_owned() };
        match label.check() {
            Ok(()) => found.push(label),
            Err(why) => problems.push(format!("{SERVICE_NAME_VARIABLE} is not used: {why}")),
        }
    }
    match attributes.map_or(Ok(Vec::new()), parse_resource_attributes) {
        Ok(all) => found.extend(all),
        Err(why) => problems.push(format!("{RESOURCE_VARIABLE} is not used: {why}")),
    }
    for label in found {
        if labels.iter().any(|other| other.key == label.key) {
            continue;
        }
        if labels.len() == MOST_LABELS {
            problems.push(format!("{RESOURCE_VARIABLE}: labels after the first {MOST_LABELS} are left out"));
            break;
        }
        labels.push(label);
    }
    (labels, problems)
}

/// Decodes a percent-encoded text.
fn decoded(text: &str) -> Result<String, LabelError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match byte {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                _ => return Err(LabelError("a '%' is not followed by two hexadecimal digits".to_owned())),
            },
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| LabelError("it is not UTF-8 once decoded".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(key: &str, value: &str) -> Label {
        Label { key: key.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn labels_of_the_command_line_are_taken_or_refused_with_a_reason() {
        assert_eq!(Label::parse("team=shop"), Ok(label("team", "shop")));
        assert_eq!(Label::parse(" a =b=c, 100%;d "), Ok(label("a", "b=c, 100%;d ")));
        assert_eq!(Label::parse("empty="), Ok(label("empty", "")));
        let longest = [format!("{}=x", "k".repeat(LONGEST_KEY)), format!("k={}", "v".repeat(LONGEST_VALUE))];
        longest.iter().for_each(|text| assert!(Label::parse(text).is_ok()));
        for (text, part) in [
            ("team", "no '='"),
            ("=x", "key is empty"),
            (" =x", "key is empty"),
            (&format!("k{}", longest[0]), "more than 255 bytes"),
            (&format!("{}v", longest[1]), "more than 2048 bytes"),
            ("a=b\nc", "control character"),
            ("a\u{7f}=b", "control character"),
            ("process.pid=1", "clrscope sets keys"),
            ("clrscope.recording.id=1", "clrscope sets keys"),
        ] {
            let why = Label::parse(text).expect_err("no label").0;
            assert!(why.contains(part), "{text:?}: {why}");
        }
        let many: Vec<Label> = (0..=MOST_LABELS).map(|number| label(&format!("k{number}"), "")).collect();
        assert_eq!(check_together(&many[1..]), Ok(()));
        assert!(check_together(&many).expect_err("too many").0.contains("31 labels"));
        let twice = [label("a", "1"), label("b", "2"), label("a", "1")];
        assert!(check_together(&twice).expect_err("twice").0.contains("key a is given twice"));
    }

    #[test]
    fn attributes_are_read_as_the_specification_has_them() {
        let read = parse_resource_attributes;
        assert_eq!(
            read("service.name=shop, deployment.environment.name = prod ,k%2C1=a%3Db%20%C3%A9,,empty="),
            Ok(vec![
                label("service.name", "shop"),
                label("deployment.environment.name", "prod"),
                label("k,1", "a=b é"),
                label("empty", ""),
            ])
        );
        assert_eq!(read(""), Ok(Vec::new()));
        assert_eq!(read("a=1,b=2,a=3"), Ok(vec![label("b", "2"), label("a", "3")]), "the last value counts");
        assert_eq!(read("password=hunter2"), Ok(vec![label("password", "hunter2")]), "kept as it is");
        for bad in ["a", "a=1,b", "=1", "a=%", "a=%4", "a=%zz", "a=%FF", "a=%0A"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_name_of_the_service_has_its_precedence() {
        let name = |given: &[Label], service: Option<&str>, attributes: Option<&str>| {
            let (labels, problems) = labels_of_process(given, service, attributes);
            assert_eq!(problems, Vec::<String>::new());
            labels.into_iter().find(|label| label.key == SERVICE_NAME).map(|label| label.value)
        };
        let given = [label(SERVICE_NAME, "given")];
        let attributes = Some("service.name=attribute,x=y");
        assert_eq!(name(&given, Some("variable"), attributes).as_deref(), Some("given"));
        assert_eq!(name(&[], Some("variable"), attributes).as_deref(), Some("variable"));
        assert_eq!(name(&[], Some(""), attributes).as_deref(), Some("attribute"), "an empty one is none");
        assert_eq!(name(&[], None, Some("x=y")), None);
        let (labels, problems) = labels_of_process(&given, Some("a\u{1}b"), Some("x=y,z"));
        assert_eq!((labels.len(), problems.len()), (1, 2), "{problems:?}");
        let many: String = (0..40).map(|number| format!("k{number}=v,")).collect();
        let (labels, problems) = labels_of_process(&[], None, Some(&many));
        assert_eq!((labels.len(), problems.len()), (0, 1), "{problems:?}");
        let some: String = (0..30).map(|number| format!("k{number}=v,")).collect();
        let (labels, problems) = labels_of_process(&given, None, Some(&some));
        assert_eq!((labels.len(), problems.len()), (30, 1), "{problems:?}");
    }
}
