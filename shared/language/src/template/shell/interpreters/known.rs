//! The interpreters that are known, with the options that matter.

use super::{Input, Interpreter, Operands, Options, Until};

const fn options(short: &'static str, long: &'static [&'static str]) -> Options {
    Options { short, long }
}

/// What most programs have in common; each entry of the table says the rest.
const PROGRAM: Interpreter = Interpreter {
    names: &[],
    code: options("", &[]),
    script: options("", &[]),
    values: options("", &[]),
    pairs: &[],
    attached: "",
    verbs: &[],
    operands: Operands::Data,
    opening: "",
    options_until: Until::Unchecked,
    input: Input::Never,
    is_distinct: false,
};
const SHELL: Interpreter = Interpreter {
    code: options("c", &[]),
    operands: Operands::Shell,
    options_until: Until::Operand,
    input: Input::Otherwise,
    is_distinct: true,
    ..PROGRAM
};
const LANGUAGE: Interpreter =
    Interpreter { code: options("e", &["--eval"]), operands: Operands::Script { repeats: true }, ..SHELL };
const CLIENT: Interpreter = Interpreter {
    script: options("f", &["--file"]),
    operands: Operands::Data,
    options_until: Until::Separator,
    ..SHELL
};
const JQ: Interpreter = Interpreter {
    script: options("f", &["--from-file"]),
    values: options("L", &["--indent"]),
    pairs: &["--arg", "--argjson", "--argfile", "--slurpfile", "--rawfile"],
    operands: Operands::Code,
    ..PROGRAM
};

pub(super) static INTERPRETERS: [Interpreter; 41] = [
    Interpreter {
        names: &["bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash"],
        values: options("oO", &["--rcfile", "--init-file"]),
        ..SHELL
    },
    Interpreter { names: &["csh", "tcsh", "xonsh", "expect"], ..SHELL },
    Interpreter {
        names: &["fish", "nu"],
        code: options("cC", &["--command", "--commands", "--init-command"]),
        values: options("", &["--config", "--env-config"]),
        ..LANGUAGE
    },
    Interpreter {
        names: &["pwsh", "powershell"],
        code: options("", &["-c", "-C", "-Command", "-command", "-EncodedCommand", "-e", "-ec"]),
        values: options(
            "",
            &["-ExecutionPolicy", "-executionpolicy", "-ep", "-WorkingDirectory", "-OutputFormat"],
        ),
        ..LANGUAGE
    },
    Interpreter {
        names: &["python", "python2", "python3", "pypy", "pypy3", "ipython"],
        code: options("c", &[]),
        script: options("m", &[]),
        values: options("WXQ", &["--check-hash-based-pycs"]),
        operands: Operands::Script { repeats: false },
        ..SHELL
    },
    Interpreter {
        names: &["perl"],
        code: options("eE", &[]),
        values: options("IMm", &[]),
        attached: "iFxDdVC",
        opening: "npaF",
        ..LANGUAGE
    },
    Interpreter {
        names: &["ruby"],
        code: options("e", &[]),
        values: options("CEIr", &["--encoding", "--external-encoding", "--internal-encoding"]),
        attached: "iFxKTW",
        ..LANGUAGE
    },
    Interpreter { names: &["lua", "luajit"], values: options("lj", &[]), ..LANGUAGE },
    Interpreter {
        names: &["julia"],
        code: options("eE", &["--eval", "--print"]),
        values: options("tpLJCH", &["--threads", "--procs", "--load", "--sysimage", "--machine-file"]),
        ..LANGUAGE
    },
    Interpreter { names: &["R", "Rscript"], script: options("f", &["--file"]), ..LANGUAGE },
    Interpreter {
        names: &["elixir"],
        values: options("rS", &["-pa", "-pz", "-pr", "--name", "--sname", "--cookie", "--erl"]),
        ..LANGUAGE
    },
    Interpreter {
        names: &["groovy", "scala", "clojure", "clj"],
        values: options("i", &["-cp", "-classpath", "--classpath", "-Sdeps", "--init"]),
        attached: "DMXAST",
        ..LANGUAGE
    },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno", "tsx", "ts-node"],
        code: options("ep", &["--eval", "--print", "eval"]),
        values: options(
            "rCPO",
            &[
                "--import",
                "--require",
                "--loader",
                "--experimental-loader",
                "--conditions",
                "--input-type",
                "--env-file",
                "--title",
                "--project",
                "--preload",
                "--config",
            ],
        ),
        ..LANGUAGE
    },
    Interpreter {
        names: &["php"],
        code: options("rBRE", &["--run", "--process-begin", "--process-code", "--process-end"]),
        script: options("fF", &["--file", "--process-file"]),
        values: options("cdStz", &["--define", "--php-ini", "--server", "--docroot"]),
        ..LANGUAGE
    },
    Interpreter { names: &["tclsh"], code: options("", &[]), ..LANGUAGE },
    Interpreter { names: &["octave"], code: options("", &["--eval"]), values: options("p", &[]), ..LANGUAGE },
    Interpreter {
        names: &["su", "runuser"],
        code: options("c", &["--command", "--session-command"]),
        values: options("gGsuwT", &["--group", "--supp-group", "--shell", "--user"]),
        input: Input::Otherwise,
        options_until: Until::Separator,
        ..PROGRAM
    },
    Interpreter {
        names: &["script", "flock", "sg", "gcloud"],
        code: options("c", &["--command"]),
        ..PROGRAM
    },
    Interpreter {
        names: &["env"],
        code: options("S", &["--split-string"]),
        values: options("Cu", &["--unset", "--chdir"]),
        ..PROGRAM
    },
    Interpreter {
        names: &["rsync"],
        code: options("e", &["--rsh", "--rsync-path"]),
        values: options("fBTM", &[]),
        options_until: Until::Separator,
        ..PROGRAM
    },
    Interpreter {
        names: &["psql"],
        code: options("c", &["--command"]),
        values: options(
            "dhpUvoFPRTL",
            &["--dbname", "--host", "--port", "--username", "--set", "--variable"],
        ),
        ..CLIENT
    },
    Interpreter { names: &["duckdb"], code: options("c", &["-cmd", "--command", "-s"]), ..CLIENT },
    Interpreter {
        names: &["mysql", "mariadb"],
        code: options("e", &["--execute", "--init-command"]),
        script: options("", &[]),
        values: options("hPuDS", &["--host", "--port", "--user", "--database", "--socket"]),
        attached: "p",
        ..CLIENT
    },
    Interpreter {
        names: &["hive", "beeline", "spark-sql", "cqlsh"],
        code: options("e", &["--execute"]),
        values: options("iunpdwk", &["--hiveconf", "--hivevar", "--conf", "--database", "--master"]),
        ..CLIENT
    },
    Interpreter { names: &["mongosh", "mongo"], code: options("", &["--eval"]), ..CLIENT },
    Interpreter { names: &["gnuplot"], code: options("e", &[]), ..LANGUAGE },
    Interpreter { names: &["dc"], code: options("e", &["--expression"]), is_distinct: false, ..CLIENT },
    Interpreter {
        names: &["clickhouse-client", "clickhouse-local", "clickhouse", "trino", "presto"],
        code: options("q", &["--query", "--execute"]),
        script: options("f", &["--file", "--queries-file"]),
        values: options(
            "hud",
            &["--host", "--port", "--user", "--password", "--database", "--server", "--catalog", "--schema"],
        ),
        ..CLIENT
    },
    Interpreter {
        names: &["snowsql"],
        code: options("q", &["--query"]),
        script: options("f", &["--filename"]),
        values: options("acdDhorsuw", &[]),
        ..CLIENT
    },
    Interpreter {
        names: &["sqlcmd"],
        code: options("qQ", &["--query"]),
        script: options("i", &["--input-file"]),
        values: options("SUPdvostwhH", &[]),
        ..CLIENT
    },
    Interpreter {
        names: &["vi", "vim", "nvim", "ex", "ed"],
        code: options("c", &["--cmd"]),
        input: Input::Otherwise,
        options_until: Until::Separator,
        ..PROGRAM
    },
    Interpreter {
        names: &["crontab"],
        values: options("u", &[]),
        operands: Operands::Script { repeats: false },
        input: Input::Otherwise,
        ..PROGRAM
    },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        code: options("e", &["--source"]),
        script: options("fE", &["--file", "--exec"]),
        values: options("vFilW", &["--assign", "--field-separator", "--include", "--load"]),
        operands: Operands::Code,
        options_until: Until::Operand,
        ..PROGRAM
    },
    Interpreter {
        names: &["sed", "gsed"],
        code: options("e", &["--expression"]),
        script: options("f", &["--file"]),
        values: options("l", &["--line-length"]),
        attached: "i",
        operands: Operands::Code,
        options_until: Until::Separator,
        ..PROGRAM
    },
    Interpreter { names: &["jq", "gojq", "jaq"], ..JQ },
    Interpreter {
        names: &["yq"],
        values: options(
            "poIL",
            &["--indent", "--input-format", "--output-format", "--front-matter", "--split-exp"],
        ),
        verbs: &["eval", "e", "eval-all", "ea"],
        ..JQ
    },
    Interpreter {
        names: &["sqlite3"],
        code: options("", &["-cmd", "--cmd"]),
        values: options("", &["-separator", "-init", "-newline", "-nullvalue", "-vfs"]),
        operands: Operands::CodeAfterFirst,
        input: Input::Otherwise,
        ..PROGRAM
    },
    Interpreter {
        names: &["ssh", "rsh"],
        code: options("o", &[]),
        values: options("BbcDEeFIiJLlmOPpQRSWw", &[]),
        operands: Operands::AllCode,
        input: Input::Remote,
        ..PROGRAM
    },
    Interpreter {
        names: &["mosh", "parallel", "bc", "at", "batch"],
        operands: Operands::AllCode,
        input: Input::Always,
        ..PROGRAM
    },
    Interpreter {
        names: &["make", "gmake", "just"],
        values: options("CfIjlod", &["--directory", "--file", "--jobs", "--justfile"]),
        operands: Operands::AllCode,
        ..PROGRAM
    },
    Interpreter {
        names: &["watch", "systemd-run"],
        values: options("nu", &["--interval", "--unit"]),
        operands: Operands::AllCode,
        ..PROGRAM
    },
];
