//! Names of static fields, by the places of their values.

use crate::{AppDomainId, ClassId, NameCache, ProfilerInfo, Result, StaticAddress, StaticKind};

impl NameCache {
    /// The static fields that a class declares and has set up, each with the place of its value, as
    /// `Shop.Program.orders`. Not those of each thread, nor constants; none before the class is
    /// initialized.
    ///
    /// So a picture of the heap can name what static fields keep: the runtime keeps the objects of
    /// static fields in arrays that handles hold, and such an element lies at the place of its
    /// field. Those arrays don't move while their module is loaded, except for modules that can be
    /// unloaded.
    ///
    /// Where names may be looked up.
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
            // Before the class is initialized there is no place.
            if let Ok(place) = info.static_address(class, token, domain) {
                let name = super::members::field_name(&field.name);
                found.push((place, format!("{}.{name}", self.class(info, class))));
            }
        }
        Ok(found)
    }
}
