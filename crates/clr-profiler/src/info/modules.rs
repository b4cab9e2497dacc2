//! Modules, assemblies, application domains, and the metadata of a module.

use clr_profiler_sys::metadata::IMetaDataImport2;
use windows_core::Interface;

use super::ProfilerInfo;
use crate::call_context::{outside_collections, outside_hooks};
use crate::error::check;
use crate::metadata::{MetadataImport, image};
use crate::text::read_text;
use crate::unloads::{InModule, ModuleLife};
use crate::{AppDomainId, AssemblyId, Error, Events, HResult, ModuleId, ProcessId, Result, Token};

/// Description of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ModuleInfo {
    /// Address of the module's image; 0 if it has none.
    pub base_address: usize,
    /// Path of the module's file, or a name that the program gave the module; empty for some
    /// in-memory modules.
    pub path: String,
    /// Assembly that the module is part of; null before the module is attached to it.
    pub assembly: AssemblyId,
    /// Kind of module.
    pub flags: ModuleFlags,
}

/// Kind of a module, as flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModuleFlags(pub(crate) u32);

impl ModuleFlags {
    /// The bits, in the runtime's encoding.
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// Whether the module was loaded from a file.
    #[must_use]
    pub const fn is_on_disk(self) -> bool {
        self.0 & 0x1 != 0
    }
    /// Whether the module has precompiled code.
    #[must_use]
    pub const fn is_precompiled(self) -> bool {
        self.0 & 0x2 != 0
    }
    /// Whether the module was made by reflection; its metadata may still grow.
    #[must_use]
    pub const fn is_dynamic(self) -> bool {
        self.0 & 0x4 != 0
    }
    /// Whether the module can be unloaded.
    #[must_use]
    pub const fn is_collectible(self) -> bool {
        self.0 & 0x8 != 0
    }
    /// Whether the module is a resource, without metadata.
    #[must_use]
    pub const fn is_resource(self) -> bool {
        self.0 & 0x10 != 0
    }
    /// Whether the image in memory has the layout of the file, not the layout of loaded sections.
    #[must_use]
    pub const fn is_flat(self) -> bool {
        self.0 & 0x20 != 0
    }
}

/// Description of an assembly.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AssemblyInfo {
    /// Simple name.
    pub name: String,
    /// Application domain into which the assembly is loaded.
    pub app_domain: AppDomainId,
    /// The assembly's manifest module.
    pub module: ModuleId,
}

/// Description of an application domain.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AppDomainInfo {
    /// Name of the application domain.
    pub name: String,
    /// Process of the application domain.
    pub process: ProcessId,
}

impl ProfilerInfo {
    /// Path, address, assembly and kind of a module. Callable from `ModuleLoadFinished` on, but
    /// never in `ModuleUnloadStarted`, where some runtimes crash. Not in hooks, nor during a
    /// collection.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_DATAINCOMPLETE` while the module is still loading.
    pub fn module_info(&self, module: ModuleId) -> Result<ModuleInfo> {
        outside_collections("GetModuleInfo2")?;
        let runtime = self.base("GetModuleInfo2")?;
        let _inside = self.in_module(module, "GetModuleInfo2")?;
        let (mut base, mut assembly, mut flags) = (std::ptr::null(), 0, 0);
        let path = read_text("GetModuleInfo2", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { runtime.GetModuleInfo2(module.0, &mut base, capacity, needed, buffer, &mut assembly, &mut flags) }
        })?;
        let assembly = AssemblyId::received(assembly);
        if let Some(life) = self.connection.modules.life(module) {
            assembly.goes_with(&life);
        }
        Ok(ModuleInfo { base_address: base as usize, path, assembly, flags: ModuleFlags(flags) })
    }

    /// Name, application domain and manifest module of an assembly. Callable from
    /// `AssemblyLoadFinished` on, in the same places as [`module_info`](Self::module_info).
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_DATAINCOMPLETE` while the assembly is still loading.
    pub fn assembly_info(&self, assembly: AssemblyId) -> Result<AssemblyInfo> {
        outside_collections("GetAssemblyInfo")?;
        let runtime = self.base("GetAssemblyInfo")?;
        let _assembly_stays = assembly.enter("GetAssemblyInfo")?;
        let (mut app_domain, mut module) = (0, 0);
        let name = read_text("GetAssemblyInfo", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { runtime.GetAssemblyInfo(assembly.0, capacity, needed, buffer, &mut app_domain, &mut module) }
        })?;
        Ok(AssemblyInfo { name, app_domain: AppDomainId(app_domain), module: ModuleId(module) })
    }

    /// Name and process of an application domain. Callable anywhere but in hooks.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_DATAINCOMPLETE` while the application domain is being
    /// created.
    pub fn app_domain_info(&self, app_domain: AppDomainId) -> Result<AppDomainInfo> {
        outside_hooks("GetAppDomainInfo")?;
        let runtime = self.base("GetAppDomainInfo")?;
        let mut process = 0;
        let name = read_text("GetAppDomainInfo", |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { runtime.GetAppDomainInfo(app_domain.0, capacity, needed, buffer, &mut process) }
        })?;
        Ok(AppDomainInfo { name, process: ProcessId(process) })
    }

    /// The metadata of a module, read from its image. If there is no readable image, as for modules
    /// made by reflection, the [runtime's own metadata](Self::live_metadata). Callable in the same
    /// places as [`module_info`](Self::module_info).
    ///
    /// Opening metadata takes 20 µs each time (.NET 8 to 10);
    /// [`NameCache::metadata`](crate::NameCache::metadata) keeps opened metadata. Unlike
    /// [`live_metadata`](Self::live_metadata), it has no lasting cost.
    ///
    /// For a module that can be unloaded this enables [`Events::MODULE_LOADS`], which notifies the
    /// framework of the unload. After the unload, all methods of the metadata return errors.
    ///
    /// # Errors
    /// The runtime's error; `E_POINTER` for resource modules, for which the runtime returns success
    /// without metadata.
    pub fn module_metadata(&self, module: ModuleId) -> Result<MetadataImport> {
        let has_image = |about: &ModuleInfo| !about.flags.is_dynamic() && !about.flags.is_resource();
        let about = self.module_info(module)?;
        let life = self.life_of_kind(module, about.flags)?;
        let _inside = life.as_ref().map(|life| life.enter("OpenScopeOnMemory")).transpose()?;
        let runtime = self.base("OpenScopeOnMemory")?;
        let opened =
            has_image(&about).then(|| image::open(&runtime, about.base_address, about.flags.is_flat())).flatten();
        match opened {
            Some(opened) => Ok(MetadataImport::new(opened, false, life.clone())),
            None => self.live_metadata(module),
        }
    }

    /// The metadata that the runtime itself uses, with everything added while the program runs
    /// (edits, reflection). This query makes the runtime convert the module's metadata permanently
    /// to a format that it reads more slowly. Callable in the same places as
    /// [`module_metadata`](Self::module_metadata), and with the same errors after an unload.
    ///
    /// # Errors
    /// The runtime's error; `E_POINTER` for resource modules, for which the runtime returns success
    /// without metadata.
    pub fn live_metadata(&self, module: ModuleId) -> Result<MetadataImport> {
        outside_collections("GetModuleMetaData")?;
        let method = "GetModuleMetaData";
        let life = self.life_of(module)?;
        let _inside = life.as_ref().map(|life| life.enter(method)).transpose()?;
        let runtime = self.base(method)?;
        let mut found = std::ptr::null_mut();
        // SAFETY: a valid out-parameter; 0 opens for reading.
        let answer = unsafe { runtime.GetModuleMetaData(module.0, 0, &IMetaDataImport2::IID, &mut found) };
        check(answer, method)?;
        if found.is_null() {
            return Err(Error::new(HResult::POINTER, method));
        }
        // SAFETY: an owned reference of the interface asked for.
        Ok(MetadataImport::new(unsafe { IMetaDataImport2::from_raw(found) }, true, life.clone()))
    }

    /// Header, code and sections of a method's current IL: the body set by
    /// [`set_il_function_body`](Self::set_il_function_body), or else the body in the module. A
    /// profiler that changes this body at each compilation applies its change twice; to avoid this,
    /// start from [`original_il_function_body`](Self::original_il_function_body). Callable in the
    /// same places as [`module_info`](Self::module_info).
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_FUNCTION_NOT_IL` for methods without IL.
    pub fn il_function_body(&self, module: ModuleId, method: Token) -> Result<Vec<u8>> {
        outside_collections("GetILFunctionBody")?;
        let name = "GetILFunctionBody";
        let life = self.life_of(module)?;
        let _inside = life.as_ref().map(|life| life.enter(name)).transpose()?;
        let runtime = self.base(name)?;
        let (mut start, mut size) = (std::ptr::null(), 0);
        // SAFETY: valid out-parameters.
        let answer = unsafe { runtime.GetILFunctionBody(module.0, method.0, &mut start, &mut size) };
        check(answer, name)?;
        if start.is_null() {
            return Err(Error::new(HResult::POINTER, name));
        }
        // SAFETY: the runtime returns a pointer to that many bytes in the module's image or in a
        // body that a profiler set, and the module is not unloaded before `_inside` is dropped.
        Ok(unsafe { std::slice::from_raw_parts(start, size as usize) }.to_vec())
    }

    /// Header, code and sections of a method's IL from the module's image, without changes made
    /// since. Callable in the same places as [`module_info`](Self::module_info).
    ///
    /// # Errors
    /// `CORPROF_E_FUNCTION_NOT_IL` for methods without IL. A refusal with a reason for modules
    /// without an image, made by reflection: for these, keep the result of
    /// [`il_function_body`](Self::il_function_body) before the first change.
    pub fn original_il_function_body(&self, module: ModuleId, method: Token) -> Result<Vec<u8>> {
        let name = "original_il_function_body";
        let about = self.module_info(module)?;
        let metadata = self.module_metadata(module)?;
        let life = self.life_of_kind(module, about.flags)?;
        let _inside = life.as_ref().map(|life| life.enter(name)).transpose()?;
        let address = metadata.method_props(method)?.rva;
        if address == 0 {
            return Err(Error::new(HResult::FUNCTION_NOT_IL, name));
        }
        let image = (about.base_address != 0).then_some((about.base_address, about.flags.is_flat()));
        let body = image.and_then(|(base, is_flat)| image::il_body(base, is_flat, address));
        body.ok_or_else(|| {
            Error::refused(name, "the module has no image that could be read").with_hresult(HResult::DATA_INCOMPLETE)
        })
    }

    /// Begins a query about a module. The module is not unloaded before the returned value is
    /// dropped.
    ///
    /// # Errors
    /// A refusal with a reason for an unloaded module.
    pub(super) fn in_module(&self, module: ModuleId, method: &'static str) -> Result<Option<InModule>> {
        self.connection.modules.enter(module, method)
    }

    /// The life of a module that can be unloaded; `None` for other modules.
    pub(super) fn life_of(&self, module: ModuleId) -> Result<Option<ModuleLife>> {
        let flags = self.module_flags(module)?;
        self.life_of_kind(module, flags)
    }

    fn life_of_kind(&self, module: ModuleId, flags: ModuleFlags) -> Result<Option<ModuleLife>> {
        if !flags.is_collectible() {
            return Ok(None);
        }
        let life = self.connection.modules.keep(module);
        self.hear_of_unloads()?;
        Ok(Some(life))
    }

    /// Enables the event that ends the lives of modules.
    pub(super) fn hear_of_unloads(&self) -> Result<()> {
        let events = self.events()?;
        if events.contains(Events::MODULE_LOADS) { Ok(()) } else { self.set_events(events | Events::MODULE_LOADS) }
    }

    /// Notes whether a module from the runtime's list can be unloaded. Called while unloads wait
    /// for the list.
    pub(super) fn note_listed(&self, module: ModuleId) {
        let modules = &self.connection.modules;
        if modules.life(module).is_none() && self.module_flags(module).is_ok_and(ModuleFlags::is_collectible) {
            modules.keep(module);
        }
    }

    /// Kind of a module; faster than [`module_info`](Self::module_info).
    fn module_flags(&self, module: ModuleId) -> Result<ModuleFlags> {
        let method = "GetModuleInfo2";
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let _inside = self.in_module(module, method)?;
        let (mut base, mut needed, mut assembly, mut flags) = (std::ptr::null(), 0, 0, 0);
        let no_text = std::ptr::null_mut();
        // SAFETY: valid out-parameters, and no buffer for the path, which is not needed.
        let answer =
            unsafe { runtime.GetModuleInfo2(module.0, &mut base, 0, &mut needed, no_text, &mut assembly, &mut flags) };
        check(answer, method)?;
        Ok(ModuleFlags(flags))
    }

    /// The runtime has loaded a module.
    pub(crate) fn module_loaded(&self, module: ModuleId) {
        // Does not call `module_flags`, which would refer to the module that had the identifier
        // before.
        self.connection.modules.loaded(module, false);
        let is_collectible = self.module_flags(module).is_ok_and(ModuleFlags::is_collectible);
        if is_collectible {
            self.connection.modules.loaded(module, true);
        }
    }

    /// The runtime begins to unload a module. Waits for running queries about it.
    pub(crate) fn module_unloading(&self, module: ModuleId) {
        self.connection.modules.unloading(module);
    }
}
