# SPDX-License-Identifier: MIT
"""schema.py SCHEMA [DOCUMENT]...: do JSON documents (or standard input) match SCHEMA?

It knows the part of JSON Schema that share/*.schema.json use: an unknown
keyword is an error, so that everything is checked. A $ref may begin with the
name of a file beside SCHEMA.
"""
import json
import os
import sys

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float))
    and not isinstance(v, bool),
}


def load(name):
    path = os.path.join(os.path.dirname(sys.argv[1]), name)
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def problems(schema, value, root, where):
    for key, arg in schema.items():
        if key in ("$schema", "$id", "$defs", "title", "description"):
            continue
        if key == "$ref":
            path, _, inside = arg.partition("#/")
            base = load(path) if path else root
            target = base
            for part in inside.split("/"):
                target = target[part]
            yield from problems(target, value, base, where)
        elif key in ("oneOf", "anyOf"):
            fits = sum(not any(True for _ in problems(s, value, root, where))
                       for s in arg)
            if fits == 0 or (key == "oneOf" and fits > 1):
                yield f"{where}: {fits} of {key} fit"
        elif key == "type":
            types = arg if isinstance(arg, list) else [arg]
            if not any(TYPES[t](value) for t in types):
                yield f"{where}: is no {arg}"
        elif key == "enum":
            if value not in arg:
                yield f"{where}: {value!r} is not one of {arg}"
        elif key == "const":
            if value != arg:
                yield f"{where}: {value!r} is not {arg!r}"
        elif key == "minimum":
            if not value >= arg:
                yield f"{where}: {value} is less than {arg}"
        elif key in ("minItems", "minLength"):
            if len(value) < arg:
                yield f"{where}: is too short"
        elif key == "required":
            for name in arg:
                if name not in value:
                    yield f"{where}: {name} is missing"
        elif key == "items":
            if isinstance(value, list):
                for i, v in enumerate(value):
                    yield from problems(arg, v, root, f"{where}[{i}]")
        elif key == "properties":
            for name, sub in arg.items():
                if isinstance(value, dict) and name in value:
                    yield from problems(sub, value[name], root,
                                        f"{where}.{name}")
        elif key == "additionalProperties":
            for name, v in value.items() if isinstance(value, dict) else ():
                if name in schema.get("properties", {}):
                    continue
                if arg is False:
                    yield f"{where}: unexpected {name}"
                else:
                    yield from problems(arg, v, root, f"{where}.{name}")
        else:
            raise SystemExit(f"schema.py: keyword {key} is not known")


schema = load(os.path.basename(sys.argv[1]))
bad = 0
for path in sys.argv[2:] or ["/dev/stdin"]:
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    for line in problems(schema, document, schema, "$"):
        print(f"{path}: {line}", file=sys.stderr)
        bad = 1
sys.exit(bad)
