//! Values that a program may take for an option, or for more than a file.

use super::{Refusal, assert_accepted, assert_refused};

#[test]
fn a_value_begins_no_format() {
    assert_refused(
        &["printf V x", "printf \"V\" x", "printf 'V' x", "printf -V x", "printf -v x V", "command printf V"],
        Refusal::Format,
    );
    assert_accepted(&["printf -- V x", "printf '%s' V", "printf \"day: V\"", "printf '%s' -V", "echo V"]);
}

#[test]
fn a_value_is_no_option_of_an_interpreter() {
    assert_refused(
        &[
            "python3 V",
            "python3 -u V",
            "python3 \"V\"",
            "python3 -V",
            "python3 --V",
            "sudo -u x python3 V",
            "bash V",
            "bash -s V",
            "bash -x V",
            "perl -e 'print' V",
            "node V",
            "node --no-warnings V",
            "sed 's/a/b/' V",
            "sed 's/a/b/' file V",
            "sed -nV file",
            "sed -n 5p \"V\"",
            "awk -f a.awk V",
            "psql db V",
            "psql V",
            "mysql V",
            "rsync -av V host:/x",
            "vim V",
            "mongosh V",
            "find . -exec sed p V {} +",
            "docker exec c sed p V",
        ],
        Refusal::Option,
    );
    assert_accepted(&[
        "python3 tool.py V",
        "python3 tool.py --V",
        "python3 scripts/V.py",
        "sed -n 5p < V",
        "awk '{ print }' V",
        "jq . V",
        "gcloud run jobs execute V",
        "apt-get install -y python3 V",
    ]);
}

#[test]
fn the_usual_commands_of_a_pipeline_take_values() {
    assert_accepted(&[
        "python3 scripts/load.py --day \"V\" --full",
        "python3 -m etl.load \"V\"",
        "python scripts/load.py \"gs://bucket/V/orders.csv\" orders",
        "bash scripts/load.sh \"V\"",
        "set -euo pipefail\ncd \"data/V\"\npython3 load.py",
        "Rscript report.R \"V\"",
        "dbt run --select orders --vars \"{day: V}\"",
        "psql \"$DATABASE_URL\" -v ON_ERROR_STOP=1 -v day=\"V\" -f load.sql",
        "psql -h \"V\" -U etl -d warehouse -f load.sql",
        "psql -h db -d \"V\" -c 'select 1'",
        "psql \"postgresql://db/V\" -f load.sql",
        "mysql -h \"V\" -u etl warehouse < load.sql",
        "snowsql -a acme -w \"V\" -f load.sql",
        "trino --server trino:8080 --catalog \"V\" -f load.sql",
        "clickhouse-client --host \"V\" --query 'select 1'",
        "clickhouse-client --param_day=\"V\" --queries-file load.sql",
        "duckdb \"data/V.db\" -c 'select 1'",
        "spark-submit --master yarn job.py \"V\"",
        "spark-sql --hivevar \"day=V\" -f load.sql",
        "bq query --parameter=\"day:DATE:V\" < load.sql",
        "bq load orders \"gs://bucket/V/*.csv\"",
        "gsutil -m cp -r \"gs://bucket/V\" data/",
        "gcloud storage cp \"V\" data/",
        "aws s3 sync \"s3://bucket/V\" data/",
        "curl -fsS -o orders.csv \"https://example.com/orders?day=V\"",
        "sed -i 's/;/,/g' \"data/V.csv\"",
        "awk -F, '{ print $1 }' \"V\" > ids.txt",
        "jq -c '.[]' \"V\" > rows.jsonl",
        "rsync -av \"data/V/\" host:/backup/",
        "tar -czf \"V.tar.gz\" data",
        "for table in orders items; do python3 load.py $table \"V\"; done",
        "if [ \"V\" = full ]; then python3 load.py --full; fi",
        "case \"V\" in full) python3 load.py;; esac",
        "export DAY=\"V\"; python3 load.py",
        "DAY=\"V\" python3 load.py",
        "printf '%s\\n' \"V\" > day.txt",
        "echo \"Loaded V\" >> log.txt",
        "cat > day.json <<EOF\n{\"day\": \"V\"}\nEOF",
        "docker run --rm -e DAY=\"V\" image python3 load.py",
    ]);
}

#[test]
fn what_becomes_arguments_of_an_interpreter_takes_no_value() {
    assert_refused(
        &[
            "echo V | xargs sed p",
            "echo V | xargs sed",
            "echo V | xargs -I{} sed {} file",
            "echo V | xargs make",
            "echo V | xargs ssh host ls",
            "echo V | xargs perl -ne 'print' --",
            "echo V | xargs psql",
        ],
        Refusal::Evaluated,
    );
    assert_accepted(&[
        "echo V | xargs sed p --",
        "echo V | xargs awk '{ print }'",
        "echo V | xargs jq .",
        "echo V | xargs perl -e 'print' --",
    ]);
}

#[test]
fn perl_opens_no_value() {
    assert_refused(
        &[
            "perl -ne 'print' V",
            "perl -pe 's/a/b/' V",
            "perl -pe 's/a/b/' -- V",
            "perl -pe 's/a/b/' x V",
            "perl -pe 's/a/b/' dir/V",
            "perl -nale 'print' V",
            "perl -i.bak -pe 's/a/b/' V",
            "perl -F: -e 'print' V",
            "perl -e 'while (<>) { print }' V",
            "perl -e 'print <ARGV>' -- V",
            "perl -n script.pl V",
        ],
        Refusal::Opened,
    );
}
