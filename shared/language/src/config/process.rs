//! The settings of the types that start a process.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Text;

/// What to run, and with what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// A command, a script or code.
    pub program: Program,
    /// The arguments after the program.
    pub args: Vec<String>,
    /// Environment variables for it.
    pub env: BTreeMap<String, String>,
}

/// What a process runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Program {
    /// A command line for the shell.
    Command(String),
    /// The path of a script file.
    Script(String),
    /// Code in the language of the task type.
    Code(String),
}

/// Settings of `bash`: exactly one of `command` and `script`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "BashFields")]
pub struct Bash(pub Process);

/// Settings of `python`: exactly one of `command`, `script` and `code`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "PythonFields")]
pub struct Python(pub Process);

/// The settings of `bash`, as written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["command"]}, {"required": ["script"]}]))]
pub(crate) struct BashFields {
    /// A command line for bash; values in `{{ … }}` reach it as environment variables.
    command: Option<String>,
    /// A script file, relative to the folder for scripts; without `..`.
    #[schemars(extend("format" = "script-path"))]
    script: Option<String>,
    /// Arguments after the command or script.
    #[serde(default)]
    args: Vec<Text>,
    /// Environment variables, to pass values by name.
    #[serde(default)]
    env: BTreeMap<String, Text>,
}

/// The settings of `python`, as written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["command"]}, {"required": ["script"]}, {"required": ["code"]}]))]
pub(crate) struct PythonFields {
    /// A command line for bash that starts Python; values reach it as environment, as for `bash`.
    command: Option<String>,
    /// A script file, relative to the folder for scripts; without `..`.
    #[schemars(extend("format" = "script-path"))]
    script: Option<String>,
    /// Python code. It is not a template; it reads values from its environment or from the file that `EBB_INPUT` names.
    code: Option<String>,
    /// Arguments after the command or script.
    #[serde(default)]
    args: Vec<Text>,
    /// Environment variables, to pass values by name.
    #[serde(default)]
    env: BTreeMap<String, Text>,
}

impl TryFrom<BashFields> for Bash {
    type Error = &'static str;

    fn try_from(fields: BashFields) -> Result<Self, Self::Error> {
        let program = match (fields.command, fields.script) {
            (Some(command), None) => Program::Command(command),
            (None, Some(script)) => Program::Script(script),
            _ => return Err("give exactly one of `command` and `script`"),
        };
        Ok(Self(Process::new(program, fields.args, fields.env)))
    }
}

impl TryFrom<PythonFields> for Python {
    type Error = &'static str;

    fn try_from(fields: PythonFields) -> Result<Self, Self::Error> {
        let program = match (fields.command, fields.script, fields.code) {
            (Some(command), None, None) => Program::Command(command),
            (None, Some(script), None) => Program::Script(script),
            (None, None, Some(code)) => Program::Code(code),
            _ => return Err("give exactly one of `command`, `script` and `code`"),
        };
        Ok(Self(Process::new(program, fields.args, fields.env)))
    }
}

impl Process {
    fn new(program: Program, args: Vec<Text>, env: BTreeMap<String, Text>) -> Self {
        let env = env.into_iter().map(|(name, value)| (name, value.0)).collect();
        Self { program, args: args.into_iter().map(|arg| arg.0).collect(), env }
    }
}
