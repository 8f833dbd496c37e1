"""Checks what a provider's schema cannot express. A rule belongs to an attribute, `google_type.block.attribute`:
{"enum": [...], "ConflictsWith": [...], "ExactlyOneOf": [...], "RequiredWith": [...]}."""


def violations(resource_type, config, rules):
    """Returns a message for each rule that this resource's configuration breaks."""
    found = set()
    for path, rule in rules.items():
        rule_type, *attribute = path.split(".")
        if rule_type == resource_type:
            found.update(f"{path}: {problem}" for problem in broken(config, attribute, rule))
    return sorted(found)


def broken(config, attribute, rule):
    values = [value for value in lookup(config, attribute) if is_set(value)]
    for value in values:
        if isinstance(value, str) and value not in rule.get("enum", [value]):
            yield f"expected one of {rule['enum']}, got {value!r}"
    if values:
        yield from (f"conflicts with {other}" for other in rule.get("ConflictsWith", []) if has(config, other))
        yield from (f"requires {other}" for other in rule.get("RequiredWith", []) if not has(config, other))
    parents = lookup(config, attribute[:-1])
    if "ExactlyOneOf" in rule and any(is_set(parent) for parent in parents):
        count = sum(has(config, other) for other in rule["ExactlyOneOf"])
        if count != 1:
            yield f"exactly one of {rule['ExactlyOneOf']} must be set ({count} are)"


def has(config, path):
    # The provider writes `template.0.containers`: the position in a list of one does not matter here.
    return any(is_set(value) for value in lookup(config, [part for part in path.split(".") if not part.isdigit()]))


def lookup(value, path):
    """Returns all values at a path; a list on the way contributes each of its elements."""
    if not path:
        return [value]
    if isinstance(value, list):
        return [found for element in value for found in lookup(element, path)]
    if isinstance(value, dict) and path[0] in value:
        return lookup(value[path[0]], path[1:])
    return []


def is_set(value):
    return value is not None and value != [] and value != {}
