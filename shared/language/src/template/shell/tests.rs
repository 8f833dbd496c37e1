//! Command lines with one value each, which bash or another interpreter would run, or would not.

mod computed;
mod options;
mod programs;
mod variables;

use super::{Refusal, read};

/// Why the only expression of a command is refused, if it is.
fn refusal(command: &str) -> Option<Refusal> {
    let text = command
        .replace('V', "{{ inputs.v }}")
        .replace("EN{{ inputs.v }}", "ENV")
        .replace("ARG{{ inputs.v }}", "ARGV");
    let found = read(&text).slots;
    assert_eq!(found.len(), 1, "{command}");
    found[0].quoting.err().or(found[0].is_computed.then_some(Refusal::Computed))
}

fn assert_refused(commands: &[&str], reason: Refusal) {
    for command in commands {
        assert_eq!(refusal(command), Some(reason), "{command}");
    }
}

fn assert_accepted(commands: &[&str]) {
    for command in commands {
        assert_eq!(refusal(command), None, "{command}");
    }
}

#[test]
fn text_that_another_interpreter_runs_takes_no_value() {
    assert_refused(
        &[
            "bash -c \"echo V\"",
            "sh -ec 'echo V'",
            "/bin/bash -o pipefail -c \"echo V\"",
            "bash \\\n  -c \"echo V\"",
            "bash -c \"$(printf %s V)\"",
            "bash -c \"$(cat <<EOF\nV\nEOF\n)\"",
            "bash &>/dev/null -c \"V\"",
            "bash 2>&1 -c \"V\"",
            "sudo -u x bash -lc \"echo V\"",
            "python3 -c \"print('V')\"",
            "python3.12 -Ic 'print(V)'",
            "python3 -W ignore -c 'print(V)'",
            "perl -ne 'print V'",
            "ruby -e \"puts V\"",
            "node --eval=V",
            "node --eval V",
            "php -r 'echo V;'",
            "ssh host ls V",
            "su - x -c \"ls V\"",
            "env -S V",
            "env -S \"bash V\"",
            "nohup bash -c V",
            "timeout 5 bash -c V",
            "nice -n 5 sh -c V",
            "ls | xargs sh -c 'echo V'",
            "parallel echo V",
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
        ],
        Refusal::Evaluated,
    );
}

#[test]
fn what_bash_evaluates_takes_no_value() {
    assert_refused(
        &[
            "eval V",
            "eval \"x=V\"",
            "let x=V",
            "trap \"rm V\" EXIT",
            "printf -v V x",
            "printf -vV x",
            "printf -v x -vV y",
            "wait V",
            "wait -n V",
            "wait -fV",
            "jobs V ls",
            "[[ -v V ]]",
            "[ -v V ]",
            "test -v V",
            "unset V",
            "read V",
            "mapfile -C V x",
            "wait -p V",
            "wait -n -pV",
            "jobs -x V",
            "enable -f V x",
            "hash -p V x",
            "alias x=V",
        ],
        Refusal::Evaluated,
    );
    assert_refused(
        &[
            "[[ V -eq 1 ]]",
            "[[\tV -eq 1 ]]",
            "[[ V+1 -eq 1 ]]",
            "[[ 1 -eq 0+V ]]",
            "[[ \"a V\" -lt 1 ]]",
            "[[ \"]]\" == x || V -eq 1 ]]",
            "[[ x == y &&\n V -gt 1 ]]",
            "if ! [[ V -ne 1 ]]; then x; fi",
        ],
        Refusal::Comparison,
    );
    assert_refused(
        &[
            "a=([V]=1)",
            "a=(x [V]=1)",
            "a[V]=1",
            "a[1+\"V\"]=1",
            "echo $((V))",
            "((x = V))",
            "for ((i=V;;)); do x; done",
        ],
        Refusal::Arithmetic,
    );
}

#[test]
fn a_command_is_found_wherever_it_stands() {
    assert_refused(
        &[
            "if true; then eval V; fi",
            "if (true) then eval V; fi",
            "if ((1)) then eval V; fi",
            "if [[ a ]] then eval V; fi",
            "while eval V; do x; done",
            "until false; do eval V; done",
            "for x in a; do eval V; done",
            "for x do eval V; done",
            "for ((;;)) do eval V; done",
            "for x in a; { eval V; }",
            "! eval V",
            "{ eval V; }",
            "(eval V)",
            "x=$(eval V)",
            "case x in full) eval \"echo V\";; esac",
            "case x in\nfull)\neval V\n;; esac",
            "case x in (full) eval V;; esac",
            "case x in a|b) eval V;; esac",
            "case x in a) x;; b) eval V;; esac",
            "x=$(case x in a) eval V;; esac)",
            "f() { eval V; }",
            "f () { eval V; }",
            "f() ( eval V )",
            "function f { eval V; }",
            "function f() { eval V; }",
            "function f if true; then eval V; fi",
            "coproc eval V",
            "coproc N { eval V; }",
            "time -p eval V",
            "command eval V",
            "command -p eval V",
            "command -- eval V",
            "builtin eval V",
            "X=1 eval V",
            "X=1 \\\n  eval V",
            ">log eval V",
            "2>/dev/null eval V",
            "2>&1 eval V",
            "echo x; eval V",
            "echo x & eval V",
            "echo x && eval V",
            "true || eval V",
            "echo x | eval V",
            "echo \"$(eval V)\"",
            "cat <<EOF\n$(eval V)\nEOF",
            "([[ a ]]); eval V",
            "([[ a ]])\neval V",
            "x=$([[ a ]] && echo y) eval V",
            "cat <<EOF\nsay \"x\nEOF\n{ eval V; }",
        ],
        Refusal::Evaluated,
    );
}

#[test]
fn what_an_interpreter_reads_takes_no_value() {
    assert_refused(
        &[
            "bash <<< V",
            "bash <<< \"echo V\"",
            "<<< V bash",
            "bash <<EOF\necho V\nEOF",
            "<<EOF bash\necho V\nEOF",
            "bash 2>&1 <<EOF\necho V\nEOF",
            "bash <<EOF\necho $(cat V)\nEOF",
            "bash <<'EOF'\necho V\nEOF",
            "bash /dev/stdin <<< V",
            "source /dev/stdin <<< V",
            "source <(echo V)",
            ". /dev/stdin <<EOF\nV\nEOF",
            "echo V | . /dev/stdin",
            "cat <<EOF | cat\nx\nEOF\npython3 - <<EOF\nprint(V)\nEOF",
            "cat <<EOF | bash\nV\nEOF",
            "cat <<EOF |\nV\nEOF\nbash",
            "echo V | bash",
            "echo V |\n\nbash",
            "echo V |& bash",
            "echo V 2>&1 | bash",
            "echo V | tee log | sudo sh -s",
            "echo V > >(bash)",
            "echo V | tee >(bash)",
            "(echo V) | bash",
            "{ echo V; } | bash",
            "([[ a ]] && echo V) | bash",
            "{ echo V; echo x; } 2>&1 | bash",
            "if true; then echo V; fi | bash",
            "for x in a; do echo V; done | bash",
            "case x in a) echo V;; esac | bash",
            "(cat <<EOF\nV\nEOF\n) | bash",
            "echo V | { bash; }",
            "echo V | (bash)",
            "echo V | while true; do bash; done",
            "{ bash; } <<< V",
            "while true; do bash; done <<EOF\nV\nEOF",
            "echo \"select V\" | psql -h host db",
            "echo V | xargs -I{} sh -c 'echo {}'",
            "xargs env <<< V",
            "bash <(echo V)",
            "bash < <(echo V)",
        ],
        Refusal::Evaluated,
    );
}

#[test]
fn a_value_names_no_command() {
    assert_refused(
        &[
            "V",
            "V x",
            "\"V\" x",
            "if V; then x; fi",
            "x=1 V",
            "true && V",
            "$(V)",
            "! V",
            "sudo V",
            "env V true",
            "env X=1 V",
            "command V",
            "exec V",
            "time -p V",
            "ls | xargs V",
            "timeout 5 V",
            "f() { V; }",
        ],
        Refusal::Name,
    );
}

#[test]
fn arguments_that_stay_data_take_values() {
    assert_accepted(&[
        "echo V",
        "bash script.sh V",
        "bash script.sh -c V",
        "bash -c 'echo \"$1\"' _ V",
        "python3 tool.py -c V",
        "python3 -m tool -c V",
        "python3 -c 'import sys' V",
        "awk -v x=V '{ print x }'",
        "awk '{ print }' V",
        "sed 's/a/b/' -- V",
        "jq --arg x V '.[$x]'",
        "jq . V",
        "psql -h V",
        "psql -c 'select 1' -v x=V",
        "echo bash -c V",
        "grep -c V file",
        "curl -c V https://example.com",
        "tar -cf V .",
        "find . -name V",
        "docker build . -t V",
        "sudo -u V ls",
        "env X=V ls",
        "timeout V ls",
        "nice -n V ls",
        "command -v V",
        "./scripts/V.sh",
        "exit V",
        "cat <<EOF\nV\nEOF",
        "cat <<EOF 2>&1 | grep x\nV\nEOF",
        "bash script.sh <<EOF\nV\nEOF",
        "cat <<< V",
        "read x <<< V",
        "read -r a b <<< V",
        "while read -r line; do echo \"$line\"; done <<< V",
        "echo V | grep bash",
        "echo V | bash script.sh",
        "echo V > file",
        "echo x > V",
        "echo x >| V",
        "eval x; echo V",
        "eval x > log; echo V",
        "bash -c 'echo' && echo V",
        "bash -c 'echo' | tee V",
        "x=V; echo \"$x\"",
        "x=(V y)",
        "x+=(--flag V)",
        "x=(\n  V\n)",
        "export X=V",
        "export X=\"a V\" Y=1",
        "local x=V",
        "readonly X=V",
        "printf '%s' V",
        "[ V = x ]",
        "[ -n V ]",
        "[ V -eq 1 ]",
        "test x = V",
        "[[ V == x ]]",
        "[[ V == x ]] && [[ 1 -eq 1 ]]",
        "[[ $(wc -l < V) -gt 1 ]]",
        "[[ x =~ ^(a|b)$ ]] && echo V",
        "case V in a) x;; esac",
        "case x in V) y;; esac",
        "case x in a) y;;\nV) z;;\nesac",
        "case x in a) echo V;; esac",
        "for x in V; do echo \"$x\"; done",
        "while read line; do echo V; done < file",
        "if [ V = true ]; then x; fi",
        "f() { echo V; }; f",
        "( cd V && ls )",
        "{ echo V; } > log",
        "diff <(echo V) file",
        "# eval\necho V",
        "echo if; echo V",
        "echo } fi done V",
    ]);
}

#[test]
fn groups_that_are_too_deep_take_no_value() {
    for opener in ["{ ", "( ", "if ", "echo $("] {
        assert_eq!(
            refusal(&format!("{}echo V", opener.repeat(100_000))),
            Some(Refusal::Evaluated),
            "{opener}"
        );
        assert_eq!(refusal(&format!("{}echo V", opener.repeat(3))), None, "{opener}");
    }
}
