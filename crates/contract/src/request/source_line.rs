//! Lines of source files, as `--probe-at` names them: `Cart.cs:42`.

use std::fmt;
use std::str::FromStr;

use super::error::RequestError;

/// A line of every source file whose path ends with `file`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The end of the file's path, for instance `Cart.cs` or `src/Cart.cs`.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
}

impl SourceLine {
    /// Whether `path` is a file of this line: `path` must end with the components of
    /// [`file`](Self::file). Folders may be separated by `/` or `\`.
    #[must_use]
    pub fn is_of(&self, path: &str) -> bool {
        let mut parts = parts(path);
        self::parts(&self.file).all(|wanted| parts.next() == Some(wanted))
    }

    /// Whether `line` of the file `path` is this line.
    #[must_use]
    pub fn is_meant(&self, path: &str, line: u32) -> bool {
        self.line == line && self.is_of(path)
    }
}

/// The components of a path, the file name first.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.rsplit(['/', '\\']).filter(|part| !part.is_empty() && *part != ".")
}

/// Name of the file at the end of a path.
#[must_use]
pub fn file_name(path: &str) -> &str {
    parts(path).next().unwrap_or(path)
}

impl FromStr for SourceLine {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let split = text.trim().rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        match split {
            Some((file, line)) if line > 0 && parts(file).next().is_some() => Ok(Self { file: file.to_owned(), line }),
            _ => Err(RequestError(format!("'{text}' is not a line of a source file such as Cart.cs:42"))),
        }
    }
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> SourceLine {
        text.parse().expect("a line")
    }

    #[test]
    fn files_are_meant_by_the_end_of_their_paths() {
        for (wanted, path, is_meant) in [
            ("Cart.cs:42", "/srv/shop/src/Cart.cs", true),
            ("src/Cart.cs:42", "/srv/shop/src/Cart.cs", true),
            ("./src/Cart.cs:42", "C:\\shop\\src\\Cart.cs", true),
            ("src\\Cart.cs:42", "/_/src/Cart.cs", true),
            ("/srv/shop/src/Cart.cs:42", "/srv/shop/src/Cart.cs", true),
            ("Cart.cs:42", "/srv/shop/src/ShoppingCart.cs", false),
            ("other/Cart.cs:42", "/srv/shop/src/Cart.cs", false),
            ("src/Cart.cs:42", "Cart.cs", false),
            ("cart.cs:42", "/srv/shop/src/Cart.cs", false),
        ] {
            assert_eq!(line(wanted).is_of(path), is_meant, "{wanted} {path}");
            assert_eq!(line(wanted).is_meant(path, 42), is_meant, "{wanted} {path}");
            assert!(!line(wanted).is_meant(path, 43));
        }
        assert_eq!(line(" C:\\shop\\Cart.cs:7 "), SourceLine { file: "C:\\shop\\Cart.cs".to_owned(), line: 7 });
        assert_eq!(file_name("C:\\shop\\Cart.cs"), "Cart.cs");
    }

    #[test]
    fn what_names_no_line_is_refused() {
        for bad in ["", "Cart.cs", "Cart.cs:", "Cart.cs:0", "Cart.cs:-1", ":42", "/:42", "Cart.cs:4x", "Shop.Cart::Add"]
        {
            let error = bad.parse::<SourceLine>().expect_err("no line");
            assert!(error.0.contains(&format!("'{bad}'")) && error.0.contains("Cart.cs:42"), "{error}");
        }
    }
}
