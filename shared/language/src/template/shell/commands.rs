//! Which words of a command line another interpreter reads as code, as in `bash -c "…"` or `awk '…'`.
//!
//! It knows programs by their names, so it has limits: a program that it does not know, a name behind a variable, or a
//! value that a command stores first and evaluates later.

/// A program that evaluates text.
struct Interpreter {
    names: &'static [&'static str],
    code: Code,
    input: Input,
}

/// Which of its arguments a program evaluates.
enum Code {
    /// The one after a short option with one of these letters, if no script comes before it.
    BeforeScript(&'static str),
    /// The one after one of these options: short ones by their letter, and long ones.
    Option(&'static str, &'static [&'static str]),
    /// The first, unless it belongs to one of these options; also one after `-e`.
    First(&'static [&'static str]),
    /// Every one after the first.
    Rest,
    Any,
}

/// Whether a program evaluates its standard input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Never,
    /// Unless an argument is a script or code.
    WithoutScript,
    /// Unless an argument is code.
    WithoutCode,
}

const fn program(names: &'static [&'static str], code: Code, input: Input) -> Interpreter {
    Interpreter { names, code, input }
}

static INTERPRETERS: [Interpreter; 13] = [
    program(
        &["bash", "sh", "dash", "zsh", "ksh", "ash", "fish", "busybox"],
        Code::BeforeScript("c"),
        Input::WithoutScript,
    ),
    program(&["python", "python2", "python3", "pypy3"], Code::BeforeScript("c"), Input::WithoutScript),
    program(
        &["perl", "ruby", "lua", "julia", "R", "Rscript"],
        Code::BeforeScript("eE"),
        Input::WithoutScript,
    ),
    program(&["node", "nodejs", "bun", "deno"], Code::BeforeScript("ep"), Input::WithoutScript),
    program(&["php"], Code::BeforeScript("rBRE"), Input::WithoutScript),
    program(&["su", "runuser", "script", "flock"], Code::Option("c", &["--command"]), Input::Never),
    program(&["psql", "duckdb"], Code::Option("c", &["--command"]), Input::WithoutCode),
    program(&["mysql", "mariadb"], Code::Option("e", &["--execute"]), Input::WithoutCode),
    program(&["awk", "gawk", "mawk", "nawk"], Code::First(&["-v", "-F", "-f", "--assign"]), Input::Never),
    program(&["sed", "gsed"], Code::First(&["-f", "--file", "-l"]), Input::Never),
    program(
        &["jq", "yq"],
        Code::First(&["--arg", "--argjson", "--slurpfile", "--indent", "-f"]),
        Input::Never,
    ),
    program(&["sqlite3"], Code::Rest, Input::WithoutCode),
    program(
        &["ssh", "parallel", "watch", "make", "gmake", "bc", "at", "batch"],
        Code::Any,
        Input::WithoutCode,
    ),
];

/// Long options of the interpreters whose scripts are arguments too.
const LONG_OPTIONS: [&str; 5] = ["--command", "--eval", "--print", "--run", "eval"];
/// Options of interpreters that take a value, which is not a script.
const WITH_VALUE: [&str; 12] =
    ["-o", "+o", "-O", "+O", "-W", "-X", "-I", "-r", "-M", "--rcfile", "--init-file", "--require"];
/// Words of bash that read their arguments as code, or as names that bash evaluates.
const BUILTINS: [&str; 12] = [
    "eval",
    "let",
    "trap",
    "source",
    ".",
    "alias",
    "compgen",
    "unset",
    "read",
    "getopts",
    "mapfile",
    "readarray",
];
/// Words after which another command begins.
const PREFIXES: [&str; 17] = [
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "command", "builtin",
    "nohup", "sudo", "env", "coproc",
];
/// Programs that run none of their arguments, so that the name of an interpreter among these means nothing.
const INERT: [&str; 14] = [
    "echo", "printf", "grep", "egrep", "fgrep", "rg", "tee", "cat", "ls", "cp", "mv", "which", "type", "test",
];
/// The maximum number of words of a command that are checked. No value may follow an interpreter in a longer command.
const MAX_WORDS: usize = 200;

/// A simple command, as far as it was read.
#[derive(Default)]
pub(super) struct Command {
    words: Vec<String>,
    /// The interpreters among the words: they may stand behind `xargs`, `sudo` or `docker run`.
    interpreters: Vec<(usize, &'static Interpreter)>,
    /// The word that is being read.
    word: Option<String>,
    /// Whether that word is a here-string.
    here: bool,
    /// The expressions in the command.
    slots: Vec<usize>,
    /// The expressions in the commands before it whose output it reads.
    piped: Vec<usize>,
}

impl Command {
    /// Adds to the present word, which may be empty and still be a word.
    pub(super) fn push(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    /// Adds an expression to the present word.
    pub(super) fn push_slot(&mut self, slot: usize) {
        self.slots.push(slot);
        self.push("");
    }

    pub(super) fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !std::mem::take(&mut self.here) {
            let known = INTERPRETERS.iter().find(|known| known.is_called(&word));
            self.interpreters.extend(known.map(|known| (self.words.len().min(MAX_WORDS), known)));
            if self.words.len() <= MAX_WORDS {
                self.words.push(word);
            }
        }
    }

    pub(super) fn begin_here_string(&mut self) {
        self.end_word();
        self.here = true;
    }

    /// Ends the command; the next one reads its output if it is in a pipe. Returns the expressions whose values reach
    /// this command's standard input, if it evaluates that.
    pub(super) fn end(&mut self, in_pipe: bool) -> Vec<usize> {
        self.end_word();
        let done = std::mem::take(self);
        if in_pipe {
            self.piped = done.piped.iter().chain(&done.slots).copied().collect();
        }
        if done.evaluates_input() { done.piped } else { Vec::new() }
    }

    /// Whether a value in the present word would be evaluated.
    pub(super) fn evaluates(&self) -> bool {
        if self.here {
            return self.evaluates_input();
        }
        let is_code = |(index, known): &(usize, &'static Interpreter)| {
            self.words.len() > MAX_WORDS || self.is_code(&known.code, &self.words[index + 1..])
        };
        self.is_builtin() || self.interpreters().any(is_code)
    }

    /// Whether the command evaluates its standard input.
    pub(super) fn evaluates_input(&self) -> bool {
        let runs_each = self.words.iter().any(|word| matches!(name(word), "xargs" | "parallel"));
        self.interpreters().any(|(index, known)| {
            let arguments = self.words.get(index + 1..).unwrap_or_default();
            let has_code = arguments.iter().any(|word| is_option(word, "ceE"));
            match known.input {
                Input::Never => false,
                // `xargs` makes the input part of the code.
                _ if runs_each && has_code => true,
                Input::WithoutScript => !has_code && script(arguments).is_none(),
                Input::WithoutCode => !has_code,
            }
        })
    }

    fn interpreters(&self) -> impl Iterator<Item = &(usize, &'static Interpreter)> {
        let is_inert = self.words.first().is_some_and(|word| INERT.contains(&name(word)));
        self.interpreters.iter().filter(move |_| !is_inert)
    }

    fn is_code(&self, code: &Code, arguments: &[String]) -> bool {
        let present = self.word.as_deref().unwrap_or_default();
        // The options after it belong to the interpreter too; the first other word is the code.
        let follows = |is_code: &dyn Fn(&str) -> bool, end: usize| {
            let last = arguments[..end].iter().rposition(|word| is_code(word));
            last.is_some_and(|last| arguments[last + 1..].iter().all(|word| word.starts_with('-')))
                || end == arguments.len() && present.starts_with('-') && is_code(present)
        };
        match code {
            Code::Any => true,
            Code::Rest => arguments.iter().any(|word| !word.starts_with('-')),
            Code::Option(letters, long) => {
                follows(&|word| is_option(word, letters) || is_long(word, long), arguments.len())
            }
            Code::BeforeScript(letters) => {
                let end = script(arguments).unwrap_or(arguments.len());
                let end = if arguments.get(end).is_some_and(|word| word == "eval") { end + 1 } else { end };
                // The code itself looks like a script.
                let end = if end < arguments.len() && !follows(&|word| is_option(word, letters), end) {
                    end
                } else {
                    arguments.len()
                };
                follows(&|word| is_option(word, letters) || is_long(word, &LONG_OPTIONS), end)
            }
            Code::First(with_value) => {
                let before = |back: usize| arguments.len().checked_sub(back).map(|at| arguments[at].as_str());
                match (before(1), before(2)) {
                    (Some("-e" | "--expression" | "--source"), _) => true,
                    (Some(last), _) if with_value.contains(&last) => false,
                    // The second value of `--arg NAME VALUE`.
                    (_, Some("--arg" | "--argjson" | "--slurpfile")) => false,
                    _ => positional(arguments, with_value).is_none(),
                }
            }
        }
    }

    fn is_builtin(&self) -> bool {
        let is_before = |word: &String| PREFIXES.contains(&word.as_str()) || word.contains('=');
        let Some(first) = self.words.iter().position(|word| !is_before(word)) else { return false };
        let (first, arguments) = (self.words[first].as_str(), &self.words[first + 1..]);
        let has = |letters: &str| arguments.iter().any(|word| is_option(word, letters));
        match first {
            "declare" | "typeset" | "local" | "export" | "readonly" => has("in"),
            "printf" | "test" | "[" | "[[" => arguments.last().is_some_and(|word| word == "-v"),
            _ => BUILTINS.contains(&first),
        }
    }
}

impl Interpreter {
    /// Whether a word names it, with or without a folder; `python3.12` is `python3`.
    fn is_called(&self, word: &str) -> bool {
        let name = name(word);
        let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
        self.names.contains(&name) || stem.starts_with("python") && self.names.contains(&stem)
    }
}

/// The name of a program without its folder.
fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The index of the script among the arguments of an interpreter; `-m` names a module of Python.
fn script(arguments: &[String]) -> Option<usize> {
    let module = arguments.iter().position(|word| word == "-m");
    positional(arguments, &WITH_VALUE).into_iter().chain(module).min()
}

/// The index of the first argument that is neither an option nor the value of one.
fn positional(arguments: &[String], with_value: &[&str]) -> Option<usize> {
    (0..arguments.len()).find(|index| {
        let is_value = *index > 0 && with_value.contains(&arguments[index - 1].as_str());
        !is_value && !arguments[*index].starts_with(['-', '+'])
    })
}

fn is_long(word: &str, options: &[&str]) -> bool {
    let option = word.split('=').next().unwrap_or(word);
    options.contains(&option)
}

/// Whether a word is a short option with one of these letters, such as `-lc`.
fn is_option(word: &str, letters: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| {
        let flags = rest.find(|c: char| !c.is_ascii_alphabetic()).map_or(rest, |end| &rest[..end]);
        flags.contains(|c| letters.contains(c))
    })
}

#[cfg(test)]
mod tests {
    use crate::template::shell::{Refusal, slots};

    /// Whether the only expression of a command is refused because another interpreter would run its value.
    fn is_evaluated(command: &str) -> bool {
        let found = slots(&command.replace('V', "{{ inputs.v }}"));
        assert_eq!(found.len(), 1, "{command}");
        found[0].quoting == Err(Refusal::Evaluated)
    }

    #[test]
    fn text_that_another_interpreter_runs_takes_no_value() {
        for command in [
            "bash -c \"echo V\"",
            "sh -ec 'echo V'",
            "/bin/bash -o pipefail -c \"echo V\"",
            "bash -c \"$(printf %s V)\"",
            "sudo -u x bash -lc \"echo V\"",
            "eval V",
            "eval \"x=V\"",
            "if true; then eval \"echo V\"; fi",
            "let x=V",
            "trap \"rm V\" EXIT",
            "declare -i x=V",
            "printf -v V x",
            "[[ -v V ]]",
            "unset V",
            "python3 -c \"print('V')\"",
            "python3.12 -Ic 'print(V)'",
            "python3 -W ignore -c 'print(V)'",
            "perl -ne 'print V'",
            "ruby -e \"puts V\"",
            "node --eval=V",
            "node --eval V",
            "php -r 'echo V;'",
            "ssh host ls V",
            "ls | xargs sh -c 'echo V'",
            "find . -exec sh -c 'echo V' \\;",
            "docker run image sh -c \"echo V\"",
            "awk '{ print V }' file",
            "awk -v x=1 'V'",
            "sed \"s/a/V/\" file",
            "sed -e 's/a/b/' -e 's/c/V/'",
            "jq \".[V]\"",
            "psql -h host -c \"select V\"",
            "psql --command=\"select V\"",
            "mysql -e 'select V'",
            "sqlite3 db \"select V\"",
            "make X=V",
            "bash <<< V",
            "bash <<< \"echo V\"",
            "bash <<EOF\necho V\nEOF",
            "cat <<EOF | cat\nx\nEOF\npython3 - <<EOF\nprint(V)\nEOF",
            "echo V | bash",
            "echo V | tee log | sudo sh -s",
            "(echo V) | bash",
            "echo \"select V\" | psql -h host db",
            "echo V | xargs -I{} sh -c 'echo {}'",
            "bash <(echo V)",
        ] {
            assert!(is_evaluated(command), "{command}");
        }
    }

    #[test]
    fn arguments_that_stay_data_take_values() {
        for command in [
            "echo V",
            "bash script.sh V",
            "bash script.sh -c V",
            "bash -c 'echo \"$1\"' _ V",
            "python3 tool.py -c V",
            "python3 -m tool -c V",
            "python3 -c 'import sys' V",
            "awk -v x=V '{ print x }'",
            "awk '{ print }' V",
            "sed 's/a/b/' V",
            "jq --arg x V '.[$x]'",
            "jq . V",
            "psql -h V",
            "psql -c 'select 1' -v x=V",
            "echo bash -c V",
            "grep -c V file",
            "curl -c V https://example.com",
            "tar -cf V .",
            "cat <<EOF\nV\nEOF",
            "bash script.sh <<EOF\nV\nEOF",
            "cat <<< V",
            "read x <<< V",
            "echo V | grep bash",
            "echo V | bash script.sh",
            "eval x; echo V",
            "bash -c 'echo' && echo V",
            "x=V; echo \"$x\"",
            "while read line; do echo V; done < file",
            "# eval\necho V",
        ] {
            assert!(!is_evaluated(command), "{command}");
        }
    }
}
