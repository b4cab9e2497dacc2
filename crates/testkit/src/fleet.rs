//! The queries of `docs/fleet.md`, and the engines that answer them: DuckDB, and ClickHouse within
//! Python.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pypi::from_pypi;

/// A database that reads data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetEngine {
    /// DuckDB.
    DuckDb,
    /// ClickHouse.
    ClickHouse,
}

/// Runs statements, then queries; prints rows and seconds of each as JSON.
const DUCKDB: &str = "
import duckdb, json, sys, time
db = duckdb.connect()
def rows(query):
    return [list(row) for row in db.execute(query).fetchall()]
def do(statement):
    db.execute(statement)
";

/// The same. The package also wants libraries for tables of its own, which nothing here asks for.
const CHDB: &str = "
import json, sys, time
from unittest.mock import MagicMock
for unused in ['pyarrow', 'pandas', 'numpy']:
    sys.modules[unused] = MagicMock()
import chdb.session
db = chdb.session.Session()
def rows(query):
    found = json.loads(str(db.query(query, 'JSONCompact')))
    kinds = [float if of['type'].startswith('Float') else int if 'Int' in of['type'] else str for of in found['meta']]
    return [[kind(value) for kind, value in zip(kinds, row)] for row in found['data']]
def do(statement):
    db.query(statement)
";

const ASK: &str = "
statements = int(sys.argv[1])
for statement in sys.argv[2:2 + statements]:
    do(statement)
answers = []
for query in sys.argv[2 + statements:]:
    began = time.perf_counter()
    found = rows(query)
    answers.append({'rows': found, 'seconds': time.perf_counter() - began})
print(json.dumps(answers))
";

impl FleetEngine {
    /// Both engines.
    pub const ALL: [Self; 2] = [Self::DuckDb, Self::ClickHouse];

    /// Name of the engine.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuckDb => "DuckDB",
            Self::ClickHouse => "ClickHouse",
        }
    }

    /// The mark of its statements in the document.
    const fn mark(self) -> &'static str {
        match self {
            Self::DuckDb => "```sql duckdb\n",
            Self::ClickHouse => "```sql clickhouse\n",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb==2.0.0",
            // The small build of the package `chdb`.
            Self::ClickHouse => "chdb-core-lite==26.5.0 --no-deps",
        }
    }

    /// Runs the document's statements for this engine, then `queries`, in `folder`, which has the
    /// data set `fleet`. Packages are installed below `place`. Returns a JSON list with `rows` and
    /// `seconds` of each query; `None` where the package is not available.
    ///
    /// # Panics
    /// When Python fails.
    #[must_use]
    pub fn ask(self, document: &str, queries: &[String], folder: &Path, place: &Path) -> Option<String> {
        let packages: PathBuf = from_pypi(self.package(), place)?;
        let block = document.split(self.mark()).nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
        let statements: Vec<&str> = block.split(";\n").filter(|statement| !statement.trim().is_empty()).collect();
        let program = if self == Self::DuckDb { DUCKDB } else { CHDB }.to_owned() + ASK;
        let mut command = Command::new("python3");
        command.arg("-c").arg(program).arg(statements.len().to_string()).args(statements).args(queries);
        let done = command.current_dir(folder).env("PYTHONPATH", packages).output().expect("Python is there");
        assert!(done.status.success(), "{}: {}", self.name(), String::from_utf8_lossy(&done.stderr));
        Some(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

/// The queries of the document.
#[must_use]
pub fn fleet_queries(document: &str) -> Vec<String> {
    let blocks = document.split("```sql\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).map(str::to_owned).collect()
}
