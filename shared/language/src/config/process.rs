//! The settings of the types that start a process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Text;

/// What to run, and with what.
#[derive(Clone, PartialEq, Debug)]
pub struct Process {
    /// A command, a script, code or a function.
    pub program: Program,
    /// The arguments after the program.
    pub args: Vec<String>,
    /// Environment variables for it.
    pub env: BTreeMap<String, String>,
    /// Text files that the version brings along, by their path.
    pub files: BTreeMap<String, String>,
}

/// What a process runs.
#[derive(Clone, PartialEq, Debug)]
pub enum Program {
    /// A command line for the shell.
    Command(String),
    /// The path of a script file.
    Script(String),
    /// Code in the language of the task type.
    Code(String),
    /// A function of a Python module, and values for its parameters.
    Function(String, Map<String, Value>),
}

/// Settings of `bash`: exactly one of `command` and `script`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(try_from = "BashFields")]
pub struct Bash(pub Process);

/// Settings of `python`: exactly one of `command`, `script`, `code` and `function`, and the packages that it needs.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(try_from = "PythonFields")]
pub struct Python {
    /// The program to run.
    pub process: Process,
    /// The Python that it runs with.
    pub environment: PythonEnvironment,
}

/// The version and packages of Python that a program needs. By default, those of the worker.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PythonEnvironment {
    /// The packages, each as a line of a requirements file.
    pub requirements: Vec<String>,
    /// The path of a requirements file.
    pub requirements_file: Option<String>,
    /// The version, such as `3.12`.
    pub version: Option<String>,
}

/// The settings of `bash`, as written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["command"]}, {"required": ["script"]}]))]
pub(crate) struct BashFields {
    /// A command line for bash; values in `{{ … }}` reach it as environment variables.
    command: Option<String>,
    /// A script file beside the workflow, such as `scripts/load.sh`; without `..`. Its content becomes part of the version.
    #[schemars(extend("format" = "script-path"))]
    script: Option<String>,
    /// Arguments after the command or script.
    #[serde(default)]
    args: Vec<Text>,
    /// Environment variables, to pass values by name. Those that decide what is run, such as `PATH`, take no templates.
    #[serde(default)]
    #[schemars(extend("format" = "fixed"))]
    env: BTreeMap<String, Text>,
    /// Text files for the program, by path. Its script is added at registration.
    #[serde(default)]
    #[schemars(extend("propertyNames" = {"format": "script-path"}))]
    files: BTreeMap<String, String>,
}

/// The settings of `python`, as written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    {"required": ["command"]}, {"required": ["script"]}, {"required": ["code"]}, {"required": ["function"]}
], "dependentRequired" = {"kwargs": ["function"]}))]
pub(crate) struct PythonFields {
    /// A command line for bash that starts Python; values reach it as environment, as for `bash`.
    command: Option<String>,
    /// A script file beside the workflow, such as `scripts/load.py`; without `..`. Its content becomes part of the version.
    #[schemars(extend("format" = "script-path"))]
    script: Option<String>,
    /// Python code. It is not a template; it reads values from its environment or from the file that `EBB_INPUT` names.
    code: Option<String>,
    /// A function, as `module:function`. Its parameters are filled by name, and what it returns is the output.
    #[schemars(extend("format" = "function"))]
    function: Option<String>,
    /// Values for parameters of `function`, by name.
    #[serde(default)]
    kwargs: Map<String, Value>,
    /// Packages, such as `pandas==2.2`. The worker installs them with `uv` or pip into an environment that it keeps.
    #[serde(default)]
    #[schemars(extend("format" = "fixed", "items" = {"type": "string", "format": "package"}))]
    requirements: Vec<String>,
    /// A requirements file beside the workflow, with pip's usual options, instead of or beside `requirements`.
    #[schemars(extend("format" = "requirements-path"))]
    requirements_file: Option<String>,
    /// The version of Python, such as `3.12`, in quotes. `uv` installs it; without uv, the worker needs a `python3.12`.
    #[schemars(extend("format" = "python-version"))]
    python_version: Option<String>,
    /// Arguments after the command or script.
    #[serde(default)]
    args: Vec<Text>,
    /// Environment variables, to pass values by name. Those that decide what is run, such as `PATH`, take no templates.
    #[serde(default)]
    #[schemars(extend("format" = "fixed"))]
    env: BTreeMap<String, Text>,
    /// Text files for the program, by path. Its script, module and requirements file are added at registration.
    #[serde(default)]
    #[schemars(extend("propertyNames" = {"format": "script-path"}))]
    files: BTreeMap<String, String>,
}

impl TryFrom<BashFields> for Bash {
    type Error = &'static str;

    fn try_from(fields: BashFields) -> Result<Self, Self::Error> {
        let program = match (fields.command, fields.script) {
            (Some(command), None) => Program::Command(command),
            (None, Some(script)) => Program::Script(script),
            _ => return Err("give exactly one of `command` and `script`"),
        };
        Ok(Self(Process::new(program, fields.args, fields.env, fields.files)))
    }
}

impl TryFrom<PythonFields> for Python {
    type Error = &'static str;

    fn try_from(fields: PythonFields) -> Result<Self, Self::Error> {
        let program = match (fields.command, fields.script, fields.code, fields.function) {
            (Some(command), None, None, None) => Program::Command(command),
            (None, Some(script), None, None) => Program::Script(script),
            (None, None, Some(code), None) => Program::Code(code),
            (None, None, None, Some(function)) => Program::Function(function, fields.kwargs),
            _ => return Err("give exactly one of `command`, `script`, `code` and `function`"),
        };
        let environment = PythonEnvironment {
            requirements: fields.requirements,
            requirements_file: fields.requirements_file,
            version: fields.python_version,
        };
        Ok(Self { process: Process::new(program, fields.args, fields.env, fields.files), environment })
    }
}

impl Process {
    fn new(
        program: Program,
        args: Vec<Text>,
        env: BTreeMap<String, Text>,
        files: BTreeMap<String, String>,
    ) -> Self {
        let env = env.into_iter().map(|(name, value)| (name, value.0)).collect();
        Self { program, args: args.into_iter().map(|arg| arg.0).collect(), env, files }
    }
}
