//! Texts that are short to write and long to work on.

use crate::harness::MAX_BYTES;
use crate::random::Random;

/// What is repeated, before and after a middle: `((((1))))`.
const PAIRS: &[(&str, &str, &str)] = &[
    ("(", "1", ")"),
    ("[", "1", "]"),
    ("{'a': ", "1", "}"),
    ("not ", "1", ""),
    ("- ", "1", ""),
    ("1 + ", "1", ""),
    ("1 ~ ", "1", ""),
    ("2 ** ", "1", ""),
    ("1 if 1 else ", "1", ""),
    ("", "1", " if 1"),
    ("1 == ", "1", ""),
    ("1 and ", "1", ""),
    ("'' or ", "1", ""),
    ("", "inputs", ".a"),
    ("", "inputs.many", "[0]"),
    ("", "inputs.many", "[:]"),
    ("inputs.many[", "0", "]"),
    ("", "inputs.long", " | upper"),
    ("", "inputs.many", " | list"),
    ("", "inputs.many", " | map('string')"),
    ("", "1", " is number"),
    ("", "range", "(1)"),
    ("range(", "1", ")"),
    ("1,", "1", ""),
    ("[inputs.many, ", "1", "]"),
];

const STATEMENTS: &[(&str, &str, &str)] = &[
    ("{{ 1 }}", "x", ""),
    ("{{ ", "x", ""),
    ("{% if 1 %}", "x", "{% endif %}"),
    ("{% if 1 %}{% elif ", "1", " %}{% endif %}"),
    ("{% for x in inputs.many %}", "{{ x }}", "{% endfor %}"),
    ("{% for x in range(100) %}", "", "{% endfor %}"),
    ("{% for x in [inputs.long ~ x] %}", "", "{% endfor %}"),
    ("{# ", "", " #}"),
    ("{% raw %}", "", "{% endraw %}"),
];

const YAML: &[(&str, &str, &str)] = &[
    ("[", "", "]"),
    ("{a: ", "", "}"),
    ("- ", "x", ""),
    ("? ", "x", ""),
    ("a: &a ", "x", ""),
    ("!!str ", "x", ""),
    ("&a ", "x", ""),
    ("*a", "", ""),
    ("#", "", "\n"),
    ("- {name: a}\n", "", ""),
    ("- \"{{ a }}\"\n", "", ""),
    ("---\n", "", ""),
    (" ", "a: 1", ""),
    ("\"", "", "\""),
    ("x", "", ""),
    ("0", "", ""),
    ("é", "", ""),
];

const COMMANDS: &[(&str, &str, &str)] = &[
    ("{{", "", ""),
    ("{{ (", "inputs.v", ") }}"),
    ("{{ '", "", ""),
    ("{{ inputs.v }}", "", ""),
    ("{{ inputs.v }} -eq ", "", ""),
    ("$(", "{{ inputs.v }}", ")"),
    ("\"$(", "{{ inputs.v }}", ")\""),
    ("${", "{{ inputs.v }}", "}"),
    ("((", "{{ inputs.v }}", "))"),
    ("<<E ", "\n{{ inputs.v }}", "\nE\n"),
    ("a[", "{{ inputs.v }}", "]"),
    ("\\", "{{ inputs.v }}", ""),
    ("'\"", "{{ inputs.v }}", "\"'"),
    ("`", "{{ inputs.v }}", "`"),
    ("RANDOM=", "{{ inputs.v }}", " "),
    ("RANDOM[", "0]={{ inputs.v }}", "]"),
    ("for PATH in ", "{{ inputs.v }}", "; do ls; done"),
    ("printf -v OPTIND ", "{{ inputs.v }}", " x"),
    ("printf ", "{{ inputs.v }}", " x"),
    ("perl -ne print ", "{{ inputs.v }}", " |"),
    ("perl -e '<>' -- ", "{{ inputs.v }}", "\n"),
    ("sed p ", "{{ inputs.v }}", " -- "),
    ("echo {{ inputs.v }} | xargs -I{} sed ", "", " {}"),
];

pub(crate) fn expression(random: &mut Random) -> String {
    nested(PAIRS, random)
}

pub(crate) fn template(random: &mut Random) -> String {
    match random.below(5) {
        0 => format!("{{{{ {} }}}}", expression(random)),
        1 => growing(random),
        2 => looping(random),
        3 => format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(random.size(5_000))),
        _ => nested(STATEMENTS, random),
    }
}

pub(crate) fn yaml(random: &mut Random) -> String {
    match random.below(4) {
        0 => aliases(random),
        1 => format!("name: {}\ntasks:\n{}", nested(YAML, random), nested(YAML, random)),
        2 => format!("name: a\ninputs:\n  {}: {{type: string}}\ntasks: []\n", nested(YAML, random)),
        _ => nested(YAML, random),
    }
}

pub(crate) fn command(random: &mut Random) -> String {
    nested(COMMANDS, random)
}

fn nested(pairs: &[(&str, &str, &str)], random: &mut Random) -> String {
    let (before, middle, after) = pairs[random.below(pairs.len())];
    let most = MAX_BYTES / (before.len() + after.len()).max(1);
    let times = random.size(most).min(most.saturating_sub(8));
    format!("{}{middle}{}", before.repeat(times), after.repeat(times))
}

/// Each loop binds a name to twice what the loop around it had.
fn growing(random: &mut Random) -> String {
    let twice =
        random.pick(&["[X ~ X]", "[[X, X]]", "[X + X]", "[{'a': X, 'b': X}]", "[(X, X)]", "[X | join(X)]"]);
    let end = random.pick(&["{{ X }}", "{{ X == X }}", "{{ X | length }}", "{{ X in X }}", "{{ X | sort }}"]);
    let levels = random.below(60);
    let name = |level: usize| format!("x{level}");
    let mut text =
        format!("{{% for x0 in [{}] %}}", random.pick(&["'abc'", "[1]", "inputs.long", "inputs.many"]));
    for level in 1..=levels {
        text += &format!("{{% for x{level} in {} %}}", twice.replace('X', &name(level - 1)));
    }
    text + &end.replace('X', &name(levels)) + &"{% endfor %}".repeat(levels + 1)
}

/// One thing that is quick, very often.
fn looping(random: &mut Random) -> String {
    let work = random.pick(&[
        "{{ inputs.long == inputs.twin }}",
        "{{ 'zz' in inputs.long }}",
        "{{ -1 in inputs.many }}",
        "{{ (inputs.many + inputs.many) == inputs.many }}",
        "{{ inputs.many[1:] | first }}",
        "{{ inputs.long[1:] | length }}",
        "{{ inputs.long ~ inputs.long is string }}",
        "{{ inputs.many ~ '' is string }}",
        "{{ inputs.many is eq(inputs.others) }}",
        "{{ inputs.many | length }}",
        "{{ inputs.many < inputs.others }}",
        "{{ inputs.deep == outputs.deep }}",
        "{{ inputs.long | trim | first }}",
    ]);
    format!("{{% for x in range({}) %}}{work}{{% endfor %}}", random.pick(&["10", "1000", "10000", "99999"]))
}

/// Files that share something large, or much that is short. The first line of each is its path.
pub(crate) fn shared(random: &mut Random) -> Vec<String> {
    let (bytes, uses) = (random.size(MAX_BYTES - 200), random.size(2_500));
    let value = match random.below(4) {
        0 => format!("[{}]", "1,".repeat(bytes / 2)),
        1 => format!("[{}]", "{a: 1},".repeat(bytes / 7)),
        2 => format!("'{}'", "{{ inputs.v }} ".repeat(bytes / 15)),
        _ => "x".repeat(bytes),
    };
    let kind = if value.starts_with('[') { "list" } else { "string" };
    let echo = format!("type: echo, config: {{value: {value}}}");
    let workflow = |name: &str, rest: &str| format!("# graphs/{name}.yaml\n{{name: {name}, {rest}}}\n");
    let one = |entry: &dyn Fn(usize) -> String| {
        let entries: Vec<String> = (0..uses).map(entry).collect();
        workflow("a", &format!("inputs: {{v: {{type: string}}}}, tasks: [{}]", entries.join(",")))
    };
    // All files together are about as long as the longest single one.
    let files = uses.min(600);
    let many = |rest: &str| (0..files).map(|n| workflow(&format!("w{n}"), rest)).collect::<Vec<_>>();
    let with = |first: String, others: Vec<String>| [vec![first], others].concat();
    match random.below(7) {
        0 => with(
            format!("# tasks/s.yaml\n{{name: s, {echo}}}\n"),
            vec![one(&|n| format!("{{task: s,name: t{n}}}"))],
        ),
        1 => with(
            format!(
                "# tasks/s.yaml\n{{name: s, {echo}, on_failure: {{notify: {{webhook: {{url: 'http://x', body: {value}}}}}}}}}\n"
            ),
            many("tasks: [{name: f, type: fan_out, for_each: '[1]', task: s}, {task: s}]"),
        ),
        2 => with(
            format!("# scripts/s.py\n{value}\n"),
            vec![one(&|n| format!("{{name: t{n},type: python,config: {{script: scripts/s.py}}}}"))],
        ),
        3 => with(
            format!("# templates/s.yaml\n{{name: s, tasks: [{{name: t, {echo}}}]}}\n"),
            many("extends: s"),
        ),
        4 => with(
            format!(
                "# templates/s.yaml\n{{name: s, parameters: {{p: {{type: {kind}, default: {value}}}}}, tasks: [{{name: t, type: echo, config: {{a: '${{{{ parameters.p }}}}', b: 'x ${{{{ parameters.p }}}}'}}}}]}}\n"
            ),
            many("extends: s"),
        ),
        5 => with(
            format!(
                "# types/s.t.yaml\n{{name: s.t, queue: pool, config: {{type: object, examples: [{value}]}}}}\n"
            ),
            with(
                "# queues/pool.yaml\n{name: pool, kind: pool}\n".to_owned(),
                many("tasks: [{name: t, type: s.t}]"),
            ),
        ),
        _ => {
            let others: String = (0..=uses / 10).map(|n| format!("&b{n} x,")).collect();
            let aliases = others + &"*a,".repeat(uses);
            (0..1 + random.below(20))
                .map(|n| {
                    workflow(
                        &format!("w{n}"),
                        &format!(
                            "tasks: [{{name: t, type: echo, config: {{value: [&a {value},{aliases}]}}}}]"
                        ),
                    )
                })
                .collect()
        }
    }
}

fn aliases(random: &mut Random) -> String {
    let (levels, width) = (random.below(30), random.below(30));
    let form = random.pick(&["[X]", "{<<: [X]}", "{a: [X]}"]);
    let mut text = "a0: &a0 {k: v}\n".to_owned();
    for level in 0..levels {
        let inner = vec![format!("*a{level}"); width].join(", ");
        text += &format!("a{0}: &a{0} {1}\n", level + 1, form.replace('X', &inner));
    }
    text
}
