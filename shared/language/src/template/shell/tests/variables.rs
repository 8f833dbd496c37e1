//! Variables that bash, the loader or a program runs, and those that bash computes.

use super::{Refusal, assert_accepted, assert_refused};

#[test]
fn variables_that_are_run_take_no_value() {
    assert_refused(
        &[
            "PATH=V",
            "PATH=V:/bin ls",
            "export PATH=V/bin:$PATH",
            "PS4=V",
            "BASH_ENV=V bash script.sh",
            "env BASH_ENV=V bash script.sh",
            "env -i X=1 PATH=V ls",
            "sudo LD_PRELOAD=V ls",
            "export LD_PRELOAD=V",
            "declare PATH=V",
            "PATH[0]=V",
            "PATH+=V",
            "for PATH in V; do ls; done",
            "read PATH <<< V",
            "printf -v PATH %s V",
            "command printf -v PATH %s V",
            "GIT_EXTERNAL_DIFF=V git diff",
            "export GIT_CONFIG_KEY_0=V",
            "PERL5LIB=V perl x.pl",
            "env LD_AUDIT=V ls",
        ],
        Refusal::Variable,
    );
    assert_refused(
        &[
            "RANDOM=V",
            "RANDOM=\"V\" ls",
            "RANDOM+=V",
            "RANDOM[0]=V",
            "SECONDS[0]=V",
            "SRANDOM=V",
            "HISTCMD=V",
            "OPTIND=V",
            "x=1 OPTIND=V",
            "export RANDOM=V",
            "readonly RANDOM=V",
            "for RANDOM in V; do ls; done",
            "select RANDOM in V; do ls; done",
            "read RANDOM <<< V",
            "read -r OPTIND <<EOF\nV\nEOF",
            "echo V | while read -r RANDOM; do ls; done",
            "printf -v RANDOM %s V",
            "printf -vOPTIND %s V",
            "builtin printf -v SRANDOM %s V",
            "RANDOM=$(echo V)",
            "RANDOM=(V)",
            "f() { RANDOM=V; }",
            "if true; then OPTIND=V; fi",
        ],
        Refusal::Number,
    );
    assert_accepted(&[
        "docker run -e RANDOM=V image",
        "./seed.sh RANDOM=V",
        "echo \"RANDOM=V\"",
        "printf '%s' PATH=V",
        "export ENV=V",
        "ENV=V python3 main.py",
        "docker run -e ENV=V image",
        "docker run -e PATH=V image",
        "./deploy.sh ENV=V",
        "./deploy.sh PATH=V",
        "echo PATH=V",
        "declare -p x; x=V",
    ]);
}

#[test]
fn declared_variables_take_no_value() {
    assert_refused(
        &[
            "declare V",
            "declare \"V\"",
            "declare x=V",
            "declare day=V",
            "declare -i x=V",
            "typeset V=1",
            "local V=1",
            "local -a x=V",
            "readonly -a x=V",
            "export -n V",
            "declare -i x; x=V",
            "x=V; declare -i x",
            "declare -i n=0 x=1; x=V",
            "declare -i \"$x\"; y=V",
            "declare -n x; for x in V; do echo; done",
            "typeset -i x; read x <<< V",
            "typeset -i x; read x <<EOF\nV\nEOF",
            "typeset -i x; while read -r x; do y; done <<EOF\nV\nEOF",
            "typeset -i x; echo V | while read -r x; do y; done",
            "typeset -i x; read \"$y\" <<< V",
            "declare -i x; printf -v x %s V",
            "declare -i x; x=(V)",
            "declare -i x; x=\"$(cat <<EOF\nV\nEOF\n)\"",
            "local -i x; x+=V",
            "declare -i x; x[0]=V",
            "declare -i x; x[1]+=V",
            "declare -i x; command printf -v x %s V",
            "declare -i x; printf -v x[0] %s V",
        ],
        Refusal::Declared,
    );
    assert_accepted(&[
        "declare -i n=0; x=V",
        "declare -i n=0; cat > f <<EOF\nV\nEOF",
        "declare -i n=0; for x in V; do n+=1; done",
        "declare -i n=0; while read -r line; do n+=1; done <<EOF\nV\nEOF",
        "declare -i n=0; read -r -d '' x <<< V",
        "declare -i n=0; read n < file; echo V",
        "declare -i n=0; echo V | grep x",
    ]);
}
