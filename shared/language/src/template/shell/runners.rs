//! Where the name of a program stands in a command: after assignments, reserved words, and runners such as `sudo`.

use super::interpreters::name;

/// Reserved words after which another command begins.
const RESERVED: [&str; 10] = ["if", "then", "elif", "else", "while", "until", "do", "!", "{", "coproc"];
/// The options of `find` after which a command begins.
const EXECUTING: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// Programs that run a command in a container, after `run` or `exec` and the container or image.
const CONTAINERS: [&str; 6] = ["docker", "podman", "nerdctl", "docker-compose", "kubectl", "oc"];
/// The options of these that take no value.
const CONTAINER_FLAGS: [&str; 11] = [
    "--rm",
    "--init",
    "--detach",
    "--interactive",
    "--tty",
    "--stdin",
    "--privileged",
    "--read-only",
    "--no-deps",
    "--no-TTY",
    "--quiet",
];

/// A program or a word of bash that runs the program which its arguments name.
struct Runner {
    names: &'static [&'static str],
    /// Its short options with a value, which is in the same word or is the next one.
    values: &'static str,
    /// Its long options with a value that is the next word.
    long: &'static [&'static str],
    /// How many arguments come before the name of the program.
    operands: usize,
}

const fn runner(
    names: &'static [&'static str],
    values: &'static str,
    long: &'static [&'static str],
    operands: usize,
) -> Runner {
    Runner { names, values, long, operands }
}

static RUNNERS: [Runner; 17] = [
    runner(&["command", "builtin", "nohup", "setsid", "unbuffer", "busybox", "chronic"], "", &[], 0),
    runner(&["exec"], "a", &[], 0),
    runner(&["time"], "fo", &["--format", "--output"], 0),
    runner(
        &["sudo"],
        "aCDghpRrTtUu",
        &[
            "--user",
            "--group",
            "--host",
            "--prompt",
            "--chdir",
            "--chroot",
            "--role",
            "--type",
            "--close-from",
            "--command-timeout",
            "--other-user",
        ],
        0,
    ),
    runner(&["doas"], "aCu", &[], 0),
    runner(&["env"], "CSu", &["--unset", "--chdir", "--split-string", "--argv0"], 0),
    runner(
        &["xargs"],
        "adEIJLnPRsS",
        &["--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-chars", "--process-slot-var"],
        0,
    ),
    runner(&["nice"], "n", &["--adjustment"], 0),
    runner(&["ionice"], "cnpPu", &["--class", "--classdata", "--pid", "--pgid", "--uid"], 0),
    runner(&["stdbuf"], "ioe", &["--input", "--output", "--error"], 0),
    runner(&["timeout", "gtimeout"], "ks", &["--kill-after", "--signal"], 1),
    runner(&["chroot"], "", &["--userspec", "--groups"], 1),
    runner(&["flock"], "cwE", &["--command", "--timeout", "--wait", "--conflict-exit-code"], 1),
    runner(&["taskset", "chrt"], "TPD", &[], 1),
    runner(&["gosu", "su-exec"], "", &[], 1),
    runner(&["tini", "dumb-init", "catchsegv"], "pre", &[], 0),
    runner(&["strace", "ltrace"], "abeEIoOpPsSuX", &[], 0),
];

impl Runner {
    /// The index of the program that it runs, which may be yet to come; none if it only looks one up.
    fn program(&self, words: &[String], at: usize) -> Option<usize> {
        let mut next = at + 1;
        while let Some(word) = words.get(next).filter(|word| word.starts_with('-')) {
            if words[at] == "command" && word.contains(['v', 'V']) {
                return None;
            }
            next += 1;
            if word == "--" {
                break;
            }
            next += usize::from(self.takes_next(word));
        }
        Some(next + self.operands)
    }

    /// Whether the word after an option is its value.
    fn takes_next(&self, option: &str) -> bool {
        if option.starts_with("--") {
            return self.long.contains(&option);
        }
        // What follows the letter in the same word would be the value.
        let letters = option.get(1..).unwrap_or_default();
        letters.find(|c| self.values.contains(c)).is_some_and(|found| found + 1 == letters.len())
    }
}

/// The index of the word that names a command. It may be yet to come, also after other words that are yet to come.
pub(super) fn name_at(words: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let runner = || RUNNERS.iter().find(|runner| runner.names.contains(&name(word)));
        at = match word.as_str() {
            "function" => at + 2,
            word if RESERVED.contains(&word) || word.contains('=') => at + 1,
            _ => match runner().and_then(|runner| runner.program(words, at)) {
                Some(next) => next,
                None => break,
            },
        };
    }
    at
}

/// Whether the word after these names a program to run.
pub(super) fn is_name(words: &[String]) -> bool {
    let at = name_at(words);
    match words.get(at) {
        None => at == words.len(),
        Some(word) if name(word) == "find" => {
            let executing = words.iter().rposition(|word| EXECUTING.contains(&word.as_str()));
            executing.is_some_and(|executing| is_name(&words[executing + 1..]))
        }
        Some(_) => false,
    }
}

/// Whether the word after these names a program to run, here or in a container. A value may stand there in the latter
/// case: it may as well be an argument of the container's own program.
pub(super) fn is_program(words: &[String]) -> bool {
    let contained = || {
        let words = words.get(name_at(words)..)?;
        let is_container = CONTAINERS.contains(&name(words.first()?));
        words.get(container_command(words)?..).filter(|_| is_container)
    };
    is_name(words) || contained().is_some_and(is_name)
}

/// The index at which the command for a container begins.
fn container_command(words: &[String]) -> Option<usize> {
    if let Some(end) = words.iter().position(|word| word == "--") {
        return Some(end + 1);
    }
    let verb = words.iter().position(|word| matches!(word.as_str(), "run" | "exec"))?;
    let mut at = verb + 1;
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        let is_flag = option.contains('=')
            || CONTAINER_FLAGS.contains(&option.as_str())
            || option[1..].chars().all(|letter| "ditTP".contains(letter));
        at += if is_flag { 1 } else { 2 };
    }
    Some(at + 1)
}
