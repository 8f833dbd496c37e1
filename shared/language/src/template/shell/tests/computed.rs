//! Variables that hold a value and that bash computes, or does not.

use super::{Refusal, assert_accepted, read};

/// Commands that bash would run a stored value in.
const COMPUTING: &[&str] = &[
    "n=V; (( n > 3 ))",
    "n=V; [[ $n -gt 3 ]]",
    "n=V; [[ n -gt 3 ]]",
    "n=V; [[ 3 -lt \"$n\" ]]",
    "n=V; echo $((n))",
    "n=V; echo $(($n + 1))",
    "n=V; echo $[n]",
    "n=V; a=(1 2); echo ${a[n]}",
    "n=V; a=(1 2); echo \"${a[$n]}\"",
    "n=V; a[n]=1",
    "n=V; x=abc; echo ${x:n}",
    "n=V; x=abc; echo ${x:0:$n}",
    "n=V; echo ${!n}",
    "n=V; echo \"${n@P}\"",
    "n=V; for ((i=0; i<n; i++)); do echo; done",
    "n=V; let x=n",
    "n=V; let \"x = $n\"",
    "n=V; declare -i m=$n",
    "n=V; declare -i m=n",
    "n=V; declare -i m; m=$n",
    "n=V; declare -n r=n; (( r > 3 ))",
    "n=V; eval \"x=$n\"",
    "n=V; test -v \"$n\"",
    "n=V; unset \"$n\"",
    "n=V; read \"$n\" < /dev/null",
    "n=V; printf -v \"$n\" x",
    "n=V; RANDOM=$n",
    "n=V; m=$n; (( m > 3 ))",
    "n=V; m=n; (( m > 3 ))",
    "n=V; m=$(echo \"$n\"); (( m > 3 ))",
    "n=V; echo $(( $(echo $n) ))",
    "echo $(( $(echo V) ))",
    "[[ $(echo V) -gt 3 ]]",
    "n=$(echo V); (( n > 3 ))",
    "for x in V; do ((x>1)); done",
    "n=V; for x in $n; do ((x>1)); done",
    "n=V; for x in n; do ((x>1)); done",
    "read n <<< V; ((n))",
    "read -r a n <<< \"1 V\"; ((n))",
    "echo V | while read -r n; do ((n > 1)); done",
    "n=V; echo $n | while read -r m; do ((m > 1)); done",
    "while read -r n; do ((n > 1)); done < <(echo V)",
    "while read -r n; do ((n > 1)); done <<EOF\nV\nEOF",
    "mapfile -t n <<< V; ((n[0]))",
    "a=(V 1); ((a[0] > 3))",
    "a=(V 1); echo $(( ${a[0]} ))",
    "set -- V; (( $1 ))",
    "set -- V; (( ${1} > 3 ))",
    "set -- 1 V; for x; do ((x)); done",
    "set -- V; for x in \"$@\"; do ((x)); done",
    "f() { (( $1 > 3 )); }; f V",
    "f() { local n=$1; (( n > 3 )); }; f V",
    "[[ V =~ (.*) ]]; (( BASH_REMATCH[1] ))",
    "printf -v n %s V; ((n))",
    "export n=V; ((n))",
    "export n=V; bash -c '(( n > 3 ))'",
    "n=V bash -c '[[ $n -gt 3 ]]'",
    "bash -c '(( $1 > 3 ))' _ V",
    "export n=V; bash <<'EOF'\n(( n > 3 ))\nEOF",
    "n=V; eval '(( n > 3 ))'",
    "n=V; case x in x) (( n > 3 ));; esac",
    "n=V; if (( n > 3 )); then echo; fi",
    "n=V; { (( n > 3 )); }",
    "n=V; ( (( n > 3 )) )",
    "n=V; (( \"$n\" > 3 ))",
    "n=V; (( x = n ))",
    "n=V; echo \"$(( n ))\"",
    "n=V; cat <<EOF\n$(( n ))\nEOF",
    ": V; (( _ ))",
    "cd /; : V; echo $(( $_ ))",
];

#[test]
fn a_value_that_bash_would_compute_later_must_be_a_number() {
    for command in COMPUTING {
        assert_eq!(super::refusal(command), Some(Refusal::Computed), "{command}");
    }
}

#[test]
fn values_that_bash_never_computes_are_any_text() {
    assert_accepted(&[
        "n=V; [ \"$n\" -gt 3 ]",
        "n=V; test $n -gt 3",
        "n=V; [[ $n == x ]]",
        "n=V; [[ $n == x && 3 -gt 2 ]]",
        "n=V; i=0; (( i++ ))",
        "n=V; for ((i=0; i<3; i++)); do echo \"$n\"; done",
        "n=V; case $n in *[!0-9]*|'') exit 2;; esac",
        "n=$(wc -l < V); (( n > 3 ))",
        "(( $(wc -l < V) > 3 ))",
        "while read -r line; do ((count++)); done < V",
        "a=(V 1); echo \"${#a[@]}\" \"${a[0]}\" $(( ${#a[@]} ))",
        "a=(V 1); for i in \"${!a[@]}\"; do echo \"${a[$i]}\"; done",
        "n=V; echo \"${n:-none}\" \"${n#x}\" \"${n/x/y}\" \"${n:+x}\"",
        "set -- V; (( $# > 1 ))",
        "count=0; for file in V; do count=$((count + 1)); done",
        "n=V; awk '{ if (($1 > 3)) print }' \"$n\"",
        "n=V; grep '[[:space:]]' \"$n\"",
        "n=V; trap 'rm \"$n\"' EXIT",
        "n=V; echo $? $$ $!; (( $? ))",
        "start=$SECONDS; echo V; (( SECONDS - start > 3 ))",
        "n=V; bash -c 'echo \"$1\"' _ \"$n\"",
        "# (( n ))\nn=V; echo \"$n\"",
    ]);
}

#[test]
fn the_variables_that_bash_computes_are_known_by_name() {
    let computed = |text: &str| read(text).computed.into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(computed("(( N > 3 ))"), "N");
    assert_eq!(computed("m=$N; [[ $m -gt 3 ]]"), "N m");
    assert_eq!(computed("[ \"$N\" -gt 3 ]"), "");
    assert_eq!(computed("bash -c '(( N > 3 ))'"), "N");
}
