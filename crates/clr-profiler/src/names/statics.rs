//! Names of static fields, by the addresses of their values.

use crate::{AppDomainId, ClassId, NameCache, ProfilerInfo, Result, StaticAddress, StaticKind};

impl NameCache {
    /// The static fields that a class declares, each with the address of its value and its name,
    /// such as `Shop.Program.orders`. Leaves out thread-static fields and constants. Empty before
    /// the class is initialized.
    ///
    /// With this list a heap snapshot can name the objects that static fields keep alive. The
    /// runtime keeps the references of static fields in arrays that are held by handles, and the
    /// address of a field is the address of its array element. These arrays don't move while their
    /// module is loaded, except for modules that can be unloaded.
    ///
    /// Callable in the same places as other name look-ups.
    #[must_use]
    pub fn static_fields(&self, info: &ProfilerInfo, class: ClassId) -> Vec<(StaticAddress, String)> {
        self.statics(info, class).unwrap_or_default()
    }

    fn statics(&self, info: &ProfilerInfo, class: ClassId) -> Result<Vec<(StaticAddress, String)>> {
        let declared = info.class_info(class)?;
        let metadata = self.metadata(info, declared.module)?;
        let domains = info.app_domains_of_module(declared.module)?;
        let domain = domains.first().copied().unwrap_or(AppDomainId::NULL);
        let mut found = Vec::new();
        for token in metadata.fields(declared.token)? {
            let field = metadata.field(token)?;
            if !field.is_static() || field.is_literal() || info.static_kind(class, token)? != StaticKind::AppDomain {
                continue;
            }
            // Before the class is initialized, the field has no address.
            if let Ok(place) = info.static_address(class, token, domain) {
                let name = super::members::field_name(&field.name);
                found.push((place, format!("{}.{name}", self.class(info, class))));
            }
        }
        Ok(found)
    }
}
