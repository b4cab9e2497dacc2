//! Source names behind the names that compilers generate for fields, parameters and methods.
//!
//! Names of tuple elements can't be found, since values don't have these names: `(string user,
//! string password)` has the fields `Item1` and `Item2`.

/// Name under which a field is shown: fields of auto-properties and of anonymous types have the
/// name of the property.
pub(super) fn shown(field: &str) -> &str {
    let inside = field.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match inside {
        Some((property, "k__BackingField" | "i__Field")) if !property.is_empty() => property,
        _ => field,
    }
}

/// All names that a field or a parameter may have in the source. A user may mean any of these
/// names.
pub(super) fn all(name: &str) -> impl Iterator<Item = &str> {
    // `<Password>k__BackingField`, `<Password>i__Field`, `<password>5__2` (a local), `<password>P`
    // (of a constructor).
    let inside = name.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(inside, _)| inside);
    // `<>3__password`, the copy that an iterator starts again from; `<>8__1` has no name.
    let copy = name.strip_prefix("<>").and_then(|rest| rest.split_once("__")).map(|(_, copy)| copy);
    let basic = ["$VB$Local_", "$VB$ResumableLocal_", "$STATIC$", "$"];
    let basic =
        basic.into_iter().find_map(|prefix| name.strip_prefix(prefix)).map(|rest| match rest.rsplit_once('$') {
            Some((local, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => local,
            _ => rest,
        });
    // Fields that the source itself names after a property, including `Password@` of a record in
    // F#.
    let plain = name.trim_start_matches("m_").trim_start_matches('_').trim_end_matches('@');
    [Some(name), inside, copy, basic, Some(plain)].into_iter().flatten().filter(|name| !name.is_empty())
}

/// The property whose accessor this method is, also for explicit implementations of interfaces;
/// `None` for other methods.
pub(super) fn property(method: &str) -> Option<&str> {
    let name = method.rsplit('.').next().unwrap_or(method);
    name.strip_prefix("get_").or_else(|| name.strip_prefix("set_"))
}

/// Method in the source that a local function, or the type of an iterator or `async` method,
/// belongs to.
pub(super) fn method(name: &str) -> &str {
    if let Some((_, rest)) = name.split_once(">g__") {
        return rest.split('|').next().unwrap_or(rest);
    }
    name.strip_prefix('<').and_then(|rest| rest.split_once(">d")).map_or(name, |(source, _)| source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_shown_by_their_property() {
        assert_eq!(shown("<Password>k__BackingField"), "Password");
        assert_eq!(shown("<Password>i__Field"), "Password");
        for other in ["<password>5__2", "<>3__password", "password", "<>i__Field"] {
            assert_eq!(shown(other), other);
        }
    }

    #[test]
    fn every_name_that_compilers_make_of_a_name_leads_back_to_it() {
        for made in [
            "password",
            "<password>k__BackingField",
            "<password>i__Field",
            "<password>5__2",
            "<password>P",
            "<>3__password",
            "$VB$Local_password",
            "$VB$ResumableLocal_password$3",
            "$password",
            "_password",
            "m_password",
            "password@",
        ] {
            assert!(all(made).any(|name| name == "password"), "{made}");
        }
        assert!(!all("<>t__builder").any(|name| name.is_empty()));
    }

    #[test]
    fn accessors_and_local_functions_lead_to_what_they_are_of() {
        assert_eq!(property("get_Password"), Some("Password"));
        assert_eq!(property("Shop.IUser.set_Password"), Some("Password"));
        assert_eq!(property("GetPassword"), None);
        assert_eq!(method("<Main>g__ReadPassword|0_1"), "ReadPassword");
        assert_eq!(method("<GetPassword>d__3"), "GetPassword");
        assert_eq!(method("GetPassword"), "GetPassword");
    }
}
