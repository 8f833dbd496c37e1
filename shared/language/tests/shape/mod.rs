//! What is a matter of shape, and what is not.

/// Files whose fault is not their shape, by what it is instead. What else the language refuses, an editor underlines.
pub(crate) const NOT_BY_SHAPE: [(&str, &[&str]); 8] = [
    (
        "no YAML, which editors say themselves",
        &[
            "duplicate-key",
            "schedule-unquoted-alias",
            "schedule-unquoted-star",
            "yaml-syntax",
            "yaml-tab",
            "yaml-unclosed",
        ],
    ),
    ("the name of the file", &["other-name"]),
    ("the queues that there are", &["queues"]),
    (
        "tasks beside each other",
        &[
            "cycle",
            "duplicate-tasks",
            "fan-in-without-fan-out",
            "self-dependency",
            "switch-cycle",
            "switch-cycle-next",
            "two-cycles",
        ],
    ),
    (
        "what a template makes of it",
        &[
            "extends-given-twice",
            "extends-inherited-value",
            "extends-missing-parameter",
            "extends-own-marker",
            "extends-removed-dependency",
            "extends-template-in-value",
            "extends-types",
            "extends-unknown",
            "extends-unknown-parameter",
            "extends-values",
        ],
    ),
    ("cases beside each other", &["switch-two-defaults", "switch-unreachable"]),
    ("the meaning of a cron pattern", &["cron-alias", "cron-fields", "cron-seconds"]),
    (
        "the inside of templates and expressions",
        &[
            "callbacks-names",
            "concurrency-names",
            "input-template",
            "item-elsewhere",
            "reference-names",
            "secrets-elsewhere",
            "secrets-names",
            "switch-conditions",
            "switch-outputs",
            "template-filters",
            "computed-values",
            "evaluated-values",
            "template-in-program",
            "template-names",
            "template-outputs",
            "template-syntax",
            "when-braces",
            "when-names",
            "when-outputs",
            "when-syntax",
        ],
    ),
];

/// How the language says that a shape is wrong.
pub(crate) const OF_SHAPE: [&str; 13] = [
    "unknown field",
    ": expected ",
    "must be a mapping",
    "` is missing",
    "has no setting",
    "needs the setting",
    "needs exactly one of",
    "is not one of the values",
    "unknown task type",
    "only a task of type",
    "is not a valid name",
    "needs at least one",
    "` only with `",
];

/// The same of what is laid over something else: what it lacks, that may have.
pub(crate) const OF_SHAPE_OF_PARTS: [&str; 6] = [
    "unknown field",
    ": expected ",
    "must be a mapping",
    "is not one of the values",
    "unknown task type",
    "is not a valid name",
];
