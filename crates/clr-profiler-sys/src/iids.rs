//! Interface ids with their usual names (`IID_...`), and a table of the names.

use windows_core::{GUID, IUnknown, Interface};

use crate::{callback, class_factory, control, enumerators, info, metadata};

/// Declares `IID_` constants and the table of their names.
macro_rules! interface_ids {
    ($( $const:ident = $interface:ty; )*) => {
        $(
            #[doc = concat!("Id of [`", stringify!($interface), "`].")]
            pub const $const: GUID = <$interface as Interface>::IID;
        )*

        /// Every id of this module with its constant's name.
        pub const INTERFACES: &[(GUID, &str)] = &[ $( ($const, stringify!($const)), )* ];
    };
}

interface_ids! {
    IID_IUnknown = IUnknown;
    IID_IClassFactory = class_factory::IClassFactory;
    IID_ICorProfilerCallback = callback::ICorProfilerCallback;
    IID_ICorProfilerCallback2 = callback::ICorProfilerCallback2;
    IID_ICorProfilerCallback3 = callback::ICorProfilerCallback3;
    IID_ICorProfilerCallback4 = callback::ICorProfilerCallback4;
    IID_ICorProfilerCallback5 = callback::ICorProfilerCallback5;
    IID_ICorProfilerCallback6 = callback::ICorProfilerCallback6;
    IID_ICorProfilerCallback7 = callback::ICorProfilerCallback7;
    IID_ICorProfilerCallback8 = callback::ICorProfilerCallback8;
    IID_ICorProfilerCallback9 = callback::ICorProfilerCallback9;
    IID_ICorProfilerCallback10 = callback::ICorProfilerCallback10;
    IID_ICorProfilerCallback11 = callback::ICorProfilerCallback11;
    IID_ICorProfilerInfo = info::ICorProfilerInfo;
    IID_ICorProfilerInfo2 = info::ICorProfilerInfo2;
    IID_ICorProfilerInfo3 = info::ICorProfilerInfo3;
    IID_ICorProfilerInfo4 = info::ICorProfilerInfo4;
    IID_ICorProfilerInfo5 = info::ICorProfilerInfo5;
    IID_ICorProfilerInfo6 = info::ICorProfilerInfo6;
    IID_ICorProfilerInfo7 = info::ICorProfilerInfo7;
    IID_ICorProfilerInfo8 = info::ICorProfilerInfo8;
    IID_ICorProfilerInfo9 = info::ICorProfilerInfo9;
    IID_ICorProfilerInfo10 = info::ICorProfilerInfo10;
    IID_ICorProfilerInfo11 = info::ICorProfilerInfo11;
    IID_ICorProfilerInfo12 = info::ICorProfilerInfo12;
    IID_ICorProfilerInfo13 = info::ICorProfilerInfo13;
    IID_ICorProfilerInfo14 = info::ICorProfilerInfo14;
    IID_ICorProfilerInfo15 = info::ICorProfilerInfo15;
    IID_IMethodMalloc = control::IMethodMalloc;
    IID_ICorProfilerFunctionControl = control::ICorProfilerFunctionControl;
    IID_ICorProfilerAssemblyReferenceProvider = control::ICorProfilerAssemblyReferenceProvider;
    IID_ICorProfilerObjectEnum = enumerators::ICorProfilerObjectEnum;
    IID_ICorProfilerFunctionEnum = enumerators::ICorProfilerFunctionEnum;
    IID_ICorProfilerModuleEnum = enumerators::ICorProfilerModuleEnum;
    IID_ICorProfilerThreadEnum = enumerators::ICorProfilerThreadEnum;
    IID_ICorProfilerMethodEnum = enumerators::ICorProfilerMethodEnum;
    IID_IMetaDataImport = metadata::IMetaDataImport;
    IID_IMetaDataImport2 = metadata::IMetaDataImport2;
    IID_IMetaDataEmit = metadata::IMetaDataEmit;
    IID_IMetaDataEmit2 = metadata::IMetaDataEmit2;
    IID_IMetaDataAssemblyImport = metadata::IMetaDataAssemblyImport;
    IID_IMetaDataAssemblyEmit = metadata::IMetaDataAssemblyEmit;
    IID_IMetaDataDispenser = metadata::IMetaDataDispenser;
    IID_IMetaDataDispenserEx = metadata::IMetaDataDispenserEx;
    IID_IMetaDataTables = metadata::IMetaDataTables;
    IID_IMetaDataTables2 = metadata::IMetaDataTables2;
}

/// Class id of the metadata dispenser (cor.h).
pub const CLSID_CorMetaDataDispenser: GUID = GUID::from_u128(0xE5CB7A31_7512_11D2_89CE_0080C792E5D8);

/// Name of an interface without its `IID_` prefix, `None` for an unknown id.
#[must_use]
pub fn interface_name(iid: &GUID) -> Option<&'static str> {
    let (_, name) = INTERFACES.iter().find(|(known, _)| known == iid)?;
    name.strip_prefix("IID_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct_and_have_names() {
        for (index, (iid, name)) in INTERFACES.iter().enumerate() {
            assert_eq!(interface_name(iid), name.strip_prefix("IID_"), "{name}");
            assert!(INTERFACES[..index].iter().all(|(other, _)| other != iid), "{name} repeats an id");
        }
        assert_eq!(interface_name(&CLSID_CorMetaDataDispenser), None);
    }
}
