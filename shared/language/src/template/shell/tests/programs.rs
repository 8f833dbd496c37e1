//! Programs that run text or other programs, by the options they have.

use super::{Refusal, assert_accepted, assert_refused};

#[test]
fn an_option_of_a_shell_is_no_code_of_another() {
    assert_refused(
        &[
            "bash -e <<EOF\necho V\nEOF",
            "bash -euo pipefail <<EOF\necho V\nEOF",
            "bash -ex <<< \"V\"",
            "echo V | bash -e",
            "echo V | sh -e -",
            "cat <<EOF | sudo bash -ex\nV\nEOF",
            "ssh host bash -e <<EOF\nV\nEOF",
            "ssh -o BatchMode=yes host <<EOF\nV\nEOF",
            "python3 -E <<EOF\nV\nEOF",
            "python3 - x <<EOF\nV\nEOF",
            "bash -s x <<EOF\nV\nEOF",
            "bash -s -- x <<< V",
            "su - x <<EOF\nV\nEOF",
            "cat V | xargs sh -c",
            "cat V | xargs -i sh -c 'echo {}'",
            "cat V | xargs -0 -I% sh -c 'echo %'",
            "cat V | xargs --replace=% sh -c 'echo %'",
            "cat V | xargs perl -e 'print'",
            "cat V | xargs -rI{} bash -c 'echo {}'",
            "ssh host <<EOF\nV\nEOF",
            "ssh -p 22 host -l x <<EOF\nV\nEOF",
            "ssh host 'bash -s' <<EOF\nV\nEOF",
            "ssh host 'cd x && sudo sh' <<EOF\nV\nEOF",
            "ssh host 'cd x; \"$SHELL\"' <<EOF\nV\nEOF",
            "ssh host sudo -i <<EOF\nV\nEOF",
            "ssh host ssh other <<EOF\nV\nEOF",
            "cat V | ssh host \"psql db\"",
            "sudo -iu x <<EOF\nV\nEOF",
            "psql -e db <<EOF\nselect V\nEOF",
            "echo \"select V\" | psql -e db",
            "psql -f - <<EOF\nselect V\nEOF",
            "perl -MTime::Piece <<EOF\nV\nEOF",
            "R --vanilla <<EOF\nV\nEOF",
        ],
        Refusal::Evaluated,
    );
}

#[test]
fn the_value_of_an_option_is_no_script() {
    assert_refused(
        &[
            "bash -euo pipefail -c \"echo V\"",
            "bash -eo pipefail -c \"echo V\"",
            "bash -co pipefail \"echo V\"",
            "bash +o posix -c V",
            "bash -O extglob -c V",
            "bash --rcfile x -c V",
            "bash --norc -c V",
            "bash -c -- V",
            "docker exec c sh -euxo pipefail -c \"echo V\"",
            "php -d memory_limit=-1 -r \"V\"",
            "julia -t 4 -e \"V\"",
            "node --import x -e \"V\"",
            "node --unheard-of x -e \"V\"",
            "deno eval \"V\"",
            "ruby -r json -E UTF-8 -e \"V\"",
            "perl -0777pe \"s/a/V/\"",
            "perl -i.bak -pe \"s/a/V/\"",
            "python3 -cV",
            "pwsh -NoProfile -Command \"V\"",
            "sqlite3 -cmd \"V\" db",
            "mysql -h host -u root -psecret -e \"select V\"",
        ],
        Refusal::Evaluated,
    );
}

#[test]
fn each_of_several_codes_is_found() {
    assert_refused(
        &[
            "perl -e 'a' -e \"V\"",
            "sed -e p -eV file",
            "sed -e p --expression=V file",
            "sed -e p --expr=V file",
            "sed -re 's/a/b/' -re \"s/c/V/\"",
            "sed -ne 's/a/b/p;V'",
            "sed s/a/b/ -e V",
            "sed -i '' \"s/a/V/\" file",
            "jq --arg x 1 \"V\"",
            "jq --slurpfile x f.json --indent 2 \"V\"",
            "gawk -i inplace \"V\"",
            "gawk -f a.awk --source V",
            "awk -F , -v x=1 \"V\"",
            "yq eval \".a = V\" file",
            "sudo sed \"s/a/V/\" file",
            "xargs -0 sed -i \"s/a/V/\"",
            "find . -name x -exec sed -i \"s/a/V/\" {} +",
            "find . -exec sudo -u x awk \"V\" {} +",
            "docker exec c sed -i \"s/a/V/\" file",
            "docker run --rm -it -v a:b --name x image awk \"V\" file",
            "kubectl exec -it pod -- sed \"V\"",
            "busybox awk \"V\"",
            "rsync -e \"ssh V\" a b",
            "sudo -u x make target=V",
            "watch -n 5 ls V",
            "gcloud compute ssh vm --command=\"ls V\"",
        ],
        Refusal::Evaluated,
    );
}

#[test]
fn code_is_found_behind_redirections() {
    assert_refused(
        &[
            "{fd}>f eval V",
            "{fd}<&0 bash -c V",
            ". <(cat <<EOF\nV\nEOF\n)",
            "source <(cat <<EOF | sort\nV\nEOF\n)",
            "bash <(cat <<EOF\nV\nEOF\n)",
            "bash <<< \"$(cat <<EOF\nV\nEOF\n)\"",
        ],
        Refusal::Evaluated,
    );
}

#[test]
fn a_value_names_no_program_behind_a_runner() {
    assert_refused(
        &[
            "ls | xargs -0 V",
            "ls | xargs -r V",
            "ls | xargs -n 1 -P 4 V",
            "ls | xargs --max-args 1 V",
            "nice -n 5 V",
            "nice -n5 V",
            "sudo -n V",
            "sudo -u x V",
            "sudo -Eu x V",
            "sudo --user x V",
            "sudo -u x -- V",
            "/usr/bin/sudo V",
            "timeout -k 5 10 V",
            "timeout --foreground 5 V",
            "timeout 5 nice -n 5 V",
            "env --ignore-environment V",
            "env -v V",
            "env - V",
            "env -u x Y=1 V",
            "stdbuf -oL V",
            "stdbuf -o L V",
            "exec -a x V",
            "find . -exec V \\;",
            "find . -execdir V {} +",
            "find . -ok V \\;",
            "find . -exec sudo V \\;",
        ],
        Refusal::Name,
    );
    assert_accepted(&[
        "sudo -u V ls",
        "sudo --user V ls",
        "timeout -k V 10 ls",
        "timeout -k 5 V ls",
        "nice -n V ls",
        "env -u V ls",
        "xargs -n V ls",
        "ls | xargs -n 1 echo V",
        "command -v V",
        "find V -exec ls {} +",
        "find . -name V -exec rm {} \\;",
        "find . -exec grep V {} +",
        "docker run V",
        "docker run image V",
        "time ls V",
    ]);
}

#[test]
fn names_that_programs_share_with_words_take_values() {
    assert_accepted(&[
        "python3 load.py --mode batch --date V",
        "docker run image python3 load.py --mode batch --date V",
        "gcloud batch jobs submit V",
        "gcloud compute ssh V",
        "aws batch submit-job --job-name V",
        "gsutil cp /data/batch V",
        "npm run watch -- V",
        "apt-get install -y make V",
        "apt-get install -y jq V",
        "apt-get install -y sqlite3 ssh V",
        "./tool script -c V",
        "kubectl get node V",
        "rsync -e ssh -- V host:/x",
        "rsync -av -e 'ssh -p 22' ./V host:/x",
    ]);
}

#[test]
fn arguments_after_code_and_scripts_take_values() {
    assert_accepted(&[
        "awk -f a.awk -- V",
        "sed -f a.sed -- V",
        "sed -f a.sed x/V",
        "jq -f a.jq V",
        "jq --from-file a.jq V",
        "awk -vx=V '{ print x }'",
        "awk -FV '{ print $1 }'",
        "awk -F V '{ print $1 }'",
        "awk -v x=V -f a.awk file",
        "awk -f a.awk file V",
        "sed -e p -e d -- V",
        "sed -n 5p -- V",
        "sed -i.bak 's/a/b/' -- V",
        "sed -i 's/a/b/' ./V",
        "jq -r --arg x V '.[$x]' file",
        "jq -r '.[$x]' --arg x V",
        "jq --arg a 1 --arg b V .",
        "jq -n --argjson x V '$x'",
        "jq \"$(cat a.jq)\" V",
        "yq eval .a V",
        "perl -e 'print @ARGV' -- V",
        "perl -e 'print @ARGV' x V",
        "perl script.pl V",
        "perl -pe 's/a/b/' < V",
        "perl -e 'while (<<>>) { print }' -- V",
        "perl -e 'print <STDIN>' -- V",
        "python3 -u tool.py -c V",
        "python3 -c 'import sys' -c V",
        "bash -x script.sh -c V",
        "bash -euo pipefail script.sh V",
        "bash -s -- V",
        "bash -s -- V <<'EOF'\necho \"$1\"\nEOF",
        "psql -d V -c 'select 1'",
        "psql --dbname=V -c 'select 1'",
        "mysql -pV db",
        "python3 -- V",
        "python3 -WV tool.py",
        "node -- V",
        "node --enable-source-maps server.js -p V",
        "node --no-warnings deploy -e V",
        "php -d memory_limit=-1 artisan load -r V",
        "psql -h V -c 'select 1'",
        "psql -v day=V -f load.sql",
        "mysql -h V db",
        "sqlite3 -separator , V 'select 1'",
        "make -C V all",
    ]);
}

#[test]
fn what_a_program_with_code_reads_takes_values() {
    assert_accepted(&[
        "cat V | clickhouse-client --query \"insert into t format Native\"",
        "cat V | psql --command=\"copy t from stdin\"",
        "cat V | psql -c \"copy t from stdin\"",
        "cat V | psql -f load.sql",
        "cat V | trino --execute 'select 1'",
        "cat V | php -r 'echo 1;'",
        "cat V | mongosh --eval 'x'",
        "cat V | mysql -e 'load data'",
        "cat V | perl -ne 'print'",
        "cat V | python3 -c 'import sys'",
        "cat V | python3 -m tool",
        "cat V | bash -e script.sh",
        "cat V | bash -euo pipefail script.sh",
        "cat V | node --no-warnings script.js",
        "cat V | make load",
        "cat V | jq .x",
        "cat V | sqlite3 db '.import /dev/stdin t'",
        "cat V | xargs -n 1 rm",
        "cat V | xargs",
        "cat V | xargs -n 1 sh -c 'echo \"$1\"' _",
        "cat V | xargs python3 -c 'import sys'",
        "tar c V | ssh host tar x",
        "tar cz V | ssh -p 22 host 'tar xz -C /x'",
        "cat V | ssh host 'cat > f'",
        "cat V | ssh host 'python3 load.py'",
    ]);
}
