//! The queries of `docs/fleet.md`, and the engines that answer them: DuckDB, ClickHouse within
//! Python, and Spark.

use std::env;
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
    /// Spark in local cluster mode: a driver and two executors, each a process of its own.
    Spark,
}

/// Beginning of the Python program for DuckDB; `ASK` is its end. The program runs statements, then
/// queries; it prints rows and seconds of each query as JSON.
const DUCKDB: &str = "
import duckdb, json, sys, time
db = duckdb.connect()
def rows(query):
    return [list(row) for row in db.execute(query).fetchall()]
def do(statement):
    db.execute(statement)
def finish():
    pass
";

/// Like [`DUCKDB`], for ClickHouse. The package also imports libraries for kinds of tables that
/// this program does not use; mocks replace these libraries.
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
def finish():
    pass
";

/// Like [`DUCKDB`], for Spark. Both executors must be there before the first query, and must have
/// had work after the last one.
const SPARK: &str = "
import json, os, sys, time
import pyspark
own = os.path.abspath('spark')
os.environ.update(SPARK_HOME=os.path.dirname(pyspark.__file__), SPARK_LOCAL_IP='127.0.0.1', SPARK_LOCAL_DIRS=own, SPARK_WORKER_DIR=own)
from pyspark.sql import SparkSession
builder = SparkSession.builder.master('local-cluster[2,1,1024]')
for key, value in [('ui.enabled', 'false'), ('ui.showConsoleProgress', 'false'),
                   ('scheduler.minRegisteredResourcesRatio', '1'), ('scheduler.maxRegisteredResourcesWaitingTime', '300s')]:
    builder = builder.config('spark.' + key, value)
db = builder.getOrCreate()
def rows(query):
    return [list(row) for row in db.sql(query).collect()]
def do(statement):
    db.sql(statement)
def finish():
    listed = db.sparkContext._jsc.sc().statusStore().executorList(False)
    all = [listed.apply(at) for at in range(listed.size())]
    tasks = [one.totalTasks() for one in all if one.id() != 'driver']
    assert len(tasks) == 2 and min(tasks) > 0, f'tasks of each executor: {tasks}'
    db.stop()
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
finish()
print(json.dumps(answers))
";

/// The oldest Java with which Spark starts.
const JAVA: u32 = 17;

impl FleetEngine {
    /// All engines.
    pub const ALL: [Self; 3] = [Self::DuckDb, Self::ClickHouse, Self::Spark];
    /// The engines that need nothing but Python, and only take seconds.
    pub const SMALL: [Self; 2] = [Self::DuckDb, Self::ClickHouse];

    /// Name of the engine.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DuckDb => "DuckDB",
            Self::ClickHouse => "ClickHouse",
            Self::Spark => "Spark",
        }
    }

    /// Text that marks the engine's statements in the document.
    const fn mark(self) -> &'static str {
        match self {
            Self::DuckDb => "```sql duckdb\n",
            Self::ClickHouse => "```sql clickhouse\n",
            Self::Spark => "```sql spark\n",
        }
    }

    const fn package(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb==2.0.0",
            // The small build of the package `chdb`.
            Self::ClickHouse => "chdb-core-lite==26.5.0 --no-deps",
            Self::Spark => "pyspark==4.3.0",
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Self::DuckDb => DUCKDB,
            Self::ClickHouse => CHDB,
            Self::Spark => SPARK,
        }
    }

    /// Installs the engine's packages below `place`, once. Returns their folder.
    ///
    /// # Errors
    /// What is missing here, in one line.
    pub fn install(self, place: &Path) -> Result<PathBuf, String> {
        if self == Self::Spark && java().is_none_or(|version| version < JAVA) {
            let package = format!("openjdk-{JAVA}-jre-headless");
            return Err(format!(
                "Spark needs Java {JAVA} or later: apt-get install -y --no-install-recommends {package}"
            ));
        }
        let missing = || format!("{} is missing: python3 -m pip can't install {} here", self.name(), self.package());
        from_pypi(self.package(), place).ok_or_else(missing)
    }

    /// Runs the document's statements for this engine, then `queries`, in `folder`, which has the
    /// data set `fleet`. Packages are installed below `place`. Returns a JSON list with `rows` and
    /// `seconds` of each query.
    ///
    /// # Errors
    /// What is missing here, in one line.
    ///
    /// # Panics
    /// When Python fails.
    pub fn ask(self, document: &str, queries: &[String], folder: &Path, place: &Path) -> Result<String, String> {
        let packages = self.install(place)?;
        let block = document.split(self.mark()).nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
        let statements: Vec<&str> = block.split(";\n").filter(|statement| !statement.trim().is_empty()).collect();
        let mut command = Command::new("python3");
        command.arg("-c").arg(self.program().to_owned() + ASK);
        command.arg(statements.len().to_string()).args(statements).args(queries);
        let done = command.current_dir(folder).env("PYTHONPATH", packages).output().expect("Python is there");
        assert!(done.status.success(), "{}: {}", self.name(), String::from_utf8_lossy(&done.stderr));
        // Java may have printed lines before.
        let said = String::from_utf8_lossy(&done.stdout);
        Ok(said.lines().last().unwrap_or_default().to_owned())
    }
}

/// The version of the Java that Spark finds.
fn java() -> Option<u32> {
    let own = env::var_os("JAVA_HOME").map(|home| Path::new(&home).join("bin/java"));
    let done = Command::new(own.unwrap_or_else(|| "java".into())).arg("-version").output().ok()?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    said.split('"').nth(1)?.split('.').next()?.parse().ok()
}

/// The queries of the document.
#[must_use]
pub fn fleet_queries(document: &str) -> Vec<String> {
    let blocks = document.split("```sql\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).map(str::to_owned).collect()
}
