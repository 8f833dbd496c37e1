#!/usr/bin/env python3
"""Checks a JSON or YAML file against a schema of a Google API's discovery document: unknown and output-only fields,
wrong enum values, wrong shapes. The documents come with the Python package google-api-python-client.

usage: discovery.py API SCHEMA FILE      e.g. discovery.py cloudbuild.v1 Build cloudbuild.yaml"""
import json
import pathlib
import sys

import googleapiclient
import yaml


def problems(value, schema, path, schemas):
    if "$ref" in schema:
        schema = schemas[schema["$ref"]]
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        if not isinstance(value, dict):
            yield f"{path}: expected an object"
            return
        for name, field in value.items():
            known = schema["properties"].get(name)
            if known is None:
                yield f"{path}.{name}: unknown field"
            elif known.get("readOnly"):
                yield f"{path}.{name}: output only"
            else:
                yield from problems(field, known, f"{path}.{name}", schemas)
    elif kind == "array":
        if not isinstance(value, list):
            yield f"{path}: expected a list"
            return
        for index, element in enumerate(value):
            yield from problems(element, schema["items"], f"{path}[{index}]", schemas)
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    elif kind == "string" and not isinstance(value, str):
        yield f"{path}: expected a string, got {type(value).__name__}"


api, name, file = sys.argv[1:4]
documents = pathlib.Path(googleapiclient.__path__[0], "discovery_cache", "documents")
schemas = json.loads((documents / f"{api}.json").read_text())["schemas"]
# JSON is YAML, too.
found = list(problems(yaml.safe_load(pathlib.Path(file).read_text()), {"$ref": name}, name, schemas))
print("\n".join(found) or "ok")
sys.exit(bool(found))
