"""Calls the function of a task: its parameters are filled by name, and what it returns is the task's output."""

import asyncio
import importlib
import inspect
import json
import os
import sys


def arguments(function, given, document):
    """The positional and keyword arguments for a function: from the task, the run's inputs, then the document."""
    known = {**document, **document.get("inputs", {}), "document": document, **given}
    positional, keywords, missing, takes_any = [], {}, [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind is parameter.VAR_POSITIONAL:
            continue
        elif name in known and parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(known[name])
        elif name in known:
            keywords[name] = known[name]
        elif parameter.default is parameter.empty:
            missing.append(name)
    if missing:
        names = ", ".join(sorted(known))
        raise TypeError(f"no value for the parameter {', '.join(missing)}: name it in kwargs; there are {names}")
    names = inspect.signature(function).parameters
    extra = {name: value for name, value in given.items() if name not in names}
    if extra and not takes_any:
        raise TypeError(f"the function has no parameter {', '.join(extra)}, which kwargs name")
    return positional, {**keywords, **extra}


def main(folder, name, kwargs):
    # Modules lie beside the workflow; this file's own folder holds none.
    sys.path[0] = folder
    sys.argv = [name]
    with open(os.environ["EBB_INPUT"], encoding="utf-8") as file:
        document = json.load(file)
    with open(kwargs, encoding="utf-8") as file:
        given = json.load(file)
    module, _, path = name.partition(":")
    function = importlib.import_module(module)
    for part in path.split("."):
        function = getattr(function, part)
    positional, keywords = arguments(function, given, document)
    output = function(*positional, **keywords)
    if inspect.iscoroutine(output):
        output = asyncio.run(output)
    text = json.dumps(output, allow_nan=False)
    with open(os.environ["EBB_OUTPUT"], "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
