//! An assembly with its PDB: the input for plans.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use clr_il::Body;
use clr_metadata::{Assembly, Files, Obstacle, Pdb, SequencePoint, Table};
use clrscope_recording::model::{PlannedBranch, PlannedPoint};

use crate::auto_props::Initializers;
use crate::branches::{branches, is_unreachable};
use crate::code::{Code, Machine};
use crate::counters::{CounterPlan, counters, has_values};
use crate::excluded::{Excluded, is_test_project};
use crate::libraries::{Libraries, framework_folders};
use crate::options::PlanOptions;
use crate::plan::MethodPlan;
use crate::reach::behind_no_return;
use crate::source::{Source, source, source_row};

/// Reason why an assembly has no plan.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum NoPlan {
    /// The file can't be read, or is too large.
    Unreadable,
    /// The bytes are no assembly.
    NotManaged,
    /// The assembly has no matching portable PDB.
    NoSymbols(Obstacle),
    /// An attribute of the assembly excludes all of it.
    Excluded,
}

impl fmt::Display for NoPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("its file can't be read"),
            Self::NotManaged => f.write_str("its file is not an assembly"),
            Self::NoSymbols(obstacle) => obstacle.fmt(f),
            Self::Excluded => f.write_str("an attribute excludes it from coverage"),
        }
    }
}

impl std::error::Error for NoPlan {}

/// An assembly with its PDB. Safe to share between threads; every method allocates, so none may be
/// called in hooks.
#[derive(Debug)]
pub struct Module {
    assembly: Assembly,
    pdb: Pdb,
    excluded: Excluded,
    /// Tokens of methods that do not return.
    no_return: HashSet<u32>,
    /// Backing fields of the properties whose initial values are left out.
    initializers: Initializers,
}

/// Opens assemblies with the same options. Keeps the facts that it reads from referenced
/// assemblies.
#[derive(Debug, Default)]
pub struct Opener {
    options: PlanOptions,
    files: Files,
    libraries: Libraries,
    /// Framework folders, by the file of the core library.
    frameworks: HashMap<PathBuf, Vec<PathBuf>>,
}

impl Opener {
    /// An opener for plans with these options.
    #[must_use]
    pub fn new(options: PlanOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The files that were opened, for other queries.
    pub fn files(&mut self) -> &mut Files {
        &mut self.files
    }

    /// Reads an assembly and its PDB from their files, or from the single-file program that
    /// contains them. `core` is the file of the runtime's core library; it is required if
    /// [`PlanOptions::needs_framework`] is true.
    ///
    /// # Errors
    /// [`NoPlan`].
    pub fn open(&mut self, path: &Path, core: Option<&Path>) -> Result<Module, NoPlan> {
        let Self { options, files, libraries, frameworks } = self;
        let image = files.read(path).ok_or(NoPlan::Unreadable)?;
        let assembly = Assembly::read(image).map_err(|_| NoPlan::NotManaged)?;
        let pdb = files.pdb_of(&assembly, path).map_err(NoPlan::NoSymbols)?;
        let mut folders: Vec<PathBuf> = path.parent().map(Path::to_owned).into_iter().collect();
        if let Some(core) = core {
            folders.extend_from_slice(frameworks.entry(core.to_owned()).or_insert_with(|| framework_folders(core)));
        }
        let no_return = libraries.no_return(&assembly, options, &folders, files);
        Module::with(assembly, pdb, options, no_return)
    }
}

impl Module {
    /// Creates the module from an assembly and its PDB, with default options.
    ///
    /// # Errors
    /// [`NoPlan::Excluded`].
    pub fn new(assembly: Assembly, pdb: Pdb) -> Result<Self, NoPlan> {
        Self::with(assembly, pdb, &PlanOptions::default(), HashSet::new())
    }

    fn with(assembly: Assembly, pdb: Pdb, options: &PlanOptions, no_return: HashSet<u32>) -> Result<Self, NoPlan> {
        let excluded = Excluded::read(&assembly, &pdb, options);
        if excluded.everything {
            return Err(NoPlan::Excluded);
        }
        let initializers =
            if options.skips_auto_props { Initializers::in_assembly(&assembly) } else { Initializers::default() };
        Ok(Self { assembly, pdb, excluded, no_return, initializers })
    }

    /// Id of this build of the assembly (MVID); zeros if the assembly has none.
    #[must_use]
    pub fn mvid(&self) -> [u8; 16] {
        self.assembly.mvid().unwrap_or_default()
    }

    /// Simple name of the assembly.
    #[must_use]
    pub fn name(&self) -> &str {
        self.assembly.name()
    }

    /// Whether the assembly contains tests: its entry point comes from a test framework.
    #[must_use]
    pub fn is_test_project(&self) -> bool {
        is_test_project(&self.assembly)
    }

    /// Whether any source file of the assembly is on this machine. If not, the assembly was built
    /// elsewhere.
    #[must_use]
    pub fn has_sources(&self) -> bool {
        self.documents().iter().any(|document| Path::new(document).is_file())
    }

    /// Paths of the source files as passed to the compiler, indexed by file number in plans.
    #[must_use]
    pub fn documents(&self) -> Vec<String> {
        (1..=self.pdb.documents()).map(|row| self.pdb.document(row).unwrap_or_default()).collect()
    }

    /// Tokens of the methods that may have a plan, in ascending order.
    pub fn methods(&self) -> impl Iterator<Item = u32> {
        (1..=self.assembly.count(Table::METHOD_DEF)).map(|row| Table::METHOD_DEF.token(row))
    }

    /// The source method of a method's code: the method itself, the method around a lambda or local
    /// function, or the method of a state machine.
    #[must_use]
    pub fn source(&self, token: u32) -> Source {
        source(&self.assembly, source_row(&self.assembly, &self.pdb, token & 0x00ff_ffff))
    }

    /// Name of the method that [`source`](Self::source) returns, in the form that function patterns
    /// use: `Shop.Cart+Line::Add`.
    #[must_use]
    pub fn pattern_name(&self, source: &Source) -> String {
        let owner = self.assembly.type_of_method(source.token & 0x00ff_ffff);
        let class = owner.map(|owner| self.assembly.display_type_with(owner, '+')).unwrap_or_default();
        format!("{class}::{}", source.name)
    }

    /// Lines and branches of the method with this token; `None` if the method has no line, is
    /// excluded, or is damaged.
    #[must_use]
    pub fn plan(&self, token: u32) -> Option<MethodPlan> {
        let row = token & 0x00ff_ffff;
        let mut points = self.pdb.sequence_points(row);
        points.retain(|point| !point.is_hidden());
        points.first()?;
        let owner = self.assembly.type_of_method(row)?;
        if self.excluded.method(&self.assembly, &self.pdb, row, owner) {
            return None;
        }
        let body = self.body(row)?;
        let code = Code::new(&body, &self.assembly, &self.excluded.generated_types);
        points.retain(|point| code.at(point.il_offset).is_some());
        let behind = behind_no_return(&code, &self.no_return);
        let initial = self.initializers.within(&code, &self.assembly, row, owner, &points);
        let stays = |offset: u32| !behind.contains(&offset) && !initial.iter().any(|range| range.contains(&offset));
        let is_generated = self.excluded.is_generated(&self.assembly, owner);
        let machine = Machine::of_method(&self.assembly, row, owner, is_generated);
        let mut plan = plan(token, &code, machine, &points);
        plan.points.retain(|point| stays(point.il_offset));
        plan.branches.retain(|branch| stays(branch.il_offset));
        (!plan.points.is_empty()).then_some(plan)
    }

    /// Counters for a plan from [`plan`](Self::plan): where to place them, and how to compute the
    /// hits of points and branches.
    #[must_use]
    pub fn counters(&self, plan: &MethodPlan) -> CounterPlan {
        let Some(body) = self.body(plan.token & 0x00ff_ffff) else { return CounterPlan::default() };
        let counters = counters(plan, &body);
        CounterPlan { has_values: has_values(&counters.places, &body, &self.assembly), ..counters }
    }

    fn body(&self, row: u32) -> Option<Body> {
        let bytes = self.assembly.code_from(row)?;
        Body::read(bytes.get(..clr_il::length(bytes).ok()?)?).ok()
    }
}

fn plan(token: u32, code: &Code<'_>, machine: Machine, visible: &[SequencePoint]) -> MethodPlan {
    let is_reachable = |offset: u32| !is_unreachable(code, machine, offset);
    let points = visible.iter().filter(|point| is_reachable(point.il_offset)).map(|point| PlannedPoint {
        il_offset: point.il_offset,
        file: point.document.saturating_sub(1),
        start_line: point.start_line,
        start_column: point.start_column,
        end_line: point.end_line,
        end_column: point.end_column,
    });
    let branches = branches(code, machine, visible).into_iter().filter(|branch| is_reachable(branch.target_offset));
    MethodPlan {
        token,
        points: points.collect(),
        branches: branches.map(|branch| PlannedBranch { file: branch.file.saturating_sub(1), ..branch }).collect(),
    }
}
