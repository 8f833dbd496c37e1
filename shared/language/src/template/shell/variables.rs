//! Variables that a value must not reach: bash, the loader or a program evaluates or runs what they hold.

/// Variables that decide what is run. Those that end with `*` stand for all that begin so.
const EVALUATED_VARIABLES: &[&str] = &[
    // Of bash and other shells.
    "BASH_ENV",
    "BASH_FUNC_*",
    "BASHOPTS",
    "BASH_LOADABLES_PATH",
    "FPATH",
    "PATH",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "ZDOTDIR",
    // Of the loaders of programs.
    "DYLD_*",
    "GCONV_PATH",
    "LD_*",
    // Of interpreters and compilers.
    "AWKLIBPATH",
    "AWKPATH",
    "BUNDLE_GEMFILE",
    "CLASSPATH",
    "GEM_HOME",
    "GEM_PATH",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_LOAD_PATH",
    "LUA_CPATH*",
    "LUA_INIT*",
    "LUA_PATH*",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "R_ENVIRON*",
    "R_PROFILE*",
    "_JAVA_OPTIONS",
    // Of programs that run others.
    "BROWSER",
    "EDITOR",
    "EXINIT",
    "GIT_ASKPASS",
    "GIT_CONFIG*",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GNUMAKEFLAGS",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "PAGER",
    "PSQLRC",
    "PSQL_EDITOR",
    "PSQL_PAGER",
    "RSYNC_RSH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SYSTEMD_PAGER",
    "TAR_OPTIONS",
    "VIMINIT",
    "VISUAL",
];

/// Variables of bash's own in which it computes what is assigned to them, or to an element of them.
const NUMBERS: [&str; 14] = [
    "BASHPID",
    "BASH_MONOSECONDS",
    "BASH_SUBSHELL",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "UID",
];

/// Whether a variable of this name decides what is run.
pub(in crate::template) fn is_evaluated(name: &str) -> bool {
    EVALUATED_VARIABLES.iter().any(|known| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => *known == name,
    })
}

/// Whether bash computes what is assigned to a variable of this name.
pub(super) fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name)
}
