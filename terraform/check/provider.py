#!/usr/bin/env python3
"""A stand-in for the provider hashicorp/google that has its schema and nothing else. Terraform drives it over version 5 of
its plugin protocol, so `validate` and `test` work without the provider and without Google Cloud.

usage: provider.py SCHEMA.json -- COMMAND ...      runs COMMAND with the stand-in attached"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import uuid
from concurrent import futures

import grpc
import msgpack
from grpc_tools import protoc

from rules import violations

HERE = pathlib.Path(__file__).resolve().parent
WORK = tempfile.TemporaryDirectory()
protoc.main(["", f"-I{HERE}", f"--python_out={WORK.name}", f"--grpc_python_out={WORK.name}", f"{HERE}/tfplugin5.proto"])
sys.path.insert(0, WORK.name)
import tfplugin5_pb2 as pb  # noqa: E402
import tfplugin5_pb2_grpc as rpc  # noqa: E402

NESTING = {"single": 1, "list": 2, "set": 3, "map": 4, "group": 5}
UNKNOWN = msgpack.ExtType(0, b"\0")
FLAGS = ["required", "optional", "computed", "sensitive", "write_only"]


def unpack(value):
    if value.msgpack:
        return msgpack.unpackb(value.msgpack, raw=False, strict_map_key=False)
    return json.loads(value.json) if value.json else None


def pack(value):
    return pb.DynamicValue(msgpack=msgpack.packb(value, use_bin_type=True))


def to_block(block):
    message = pb.Schema.Block()
    for name, attribute in sorted(block.get("attributes", {}).items()):
        flags = {flag: attribute.get(flag, False) for flag in FLAGS}
        message.attributes.add(name=name, type=json.dumps(attribute["type"]).encode(), **flags)
    for name, nested in sorted(block.get("block_types", {}).items()):
        limits = {limit: nested.get(limit, 0) for limit in ["min_items", "max_items"]}
        nesting = NESTING[nested["nesting_mode"]]
        message.block_types.add(type_name=name, block=to_block(nested["block"]), nesting=nesting, **limits)
    return message


def to_schema(schema):
    return pb.Schema(version=schema["version"], block=to_block(schema["block"]))


def fill(block, value, computed):
    """Returns the value with each computed attribute replaced by `computed(name, attribute, value)`."""
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, attribute in block.get("attributes", {}).items():
        if attribute.get("computed"):
            filled[name] = computed(name, attribute, filled.get(name))
    for name, nested in block.get("block_types", {}).items():
        inner = filled.get(name)
        if isinstance(inner, list):
            filled[name] = [fill(nested["block"], element, computed) for element in inner]
        elif isinstance(inner, dict) and nested["nesting_mode"] in ("single", "group"):
            filled[name] = fill(nested["block"], inner, computed)
        elif isinstance(inner, dict):
            filled[name] = {key: fill(nested["block"], element, computed) for key, element in inner.items()}
    return filled


def unknown_until_applied(_name, _attribute, value):
    return UNKNOWN if value is None else value


def invented(type_name):
    """Gives computed attributes a value of their type, as an apply would."""

    def invent(name, attribute, value):
        if not isinstance(value, msgpack.ExtType):
            return value
        kind = attribute["type"]
        if isinstance(kind, str):
            return {"string": f"{type_name}-{name}-{uuid.uuid4().hex[:6]}", "number": 0, "bool": False}.get(kind)
        return {"list": [], "set": [], "map": {}}.get(kind[0])

    return invent


class Provider(rpc.ProviderServicer):
    def __init__(self, document):
        self.provider, self.rules = document["provider"], document["rules"]
        self.resources, self.data_sources = document["resources"], document["data_sources"]

    def GetSchema(self, request, context):
        return pb.SchemaResponse(
            provider=to_schema(self.provider),
            resource_schemas={name: to_schema(schema) for name, schema in self.resources.items()},
            data_source_schemas={name: to_schema(schema) for name, schema in self.data_sources.items()},
        )

    def PrepareProviderConfig(self, request, context):
        return pb.PrepareResponse(prepared_config=request.config)

    def ValidateResourceTypeConfig(self, request, context):
        found = violations(request.name, unpack(request.config) or {}, self.rules)
        summary = "Invalid value (provider rule)"
        return pb.DiagResponse(diagnostics=[pb.Diagnostic(severity=1, summary=summary, detail=each) for each in found])

    def ValidateDataSourceConfig(self, request, context):
        return pb.DiagResponse()

    def Configure(self, request, context):
        return pb.DiagResponse()

    def UpgradeResourceState(self, request, context):
        return pb.StateResponse(state=pb.DynamicValue(json=request.raw_state.json))

    def ReadResource(self, request, context):
        return pb.StateResponse(state=request.current_state)

    def PlanResourceChange(self, request, context):
        value = unpack(request.proposed_new_state)
        if value is None:
            return pb.PlanResponse(planned_state=request.proposed_new_state)
        planned = fill(self.resources[request.type_name]["block"], value, unknown_until_applied)
        return pb.PlanResponse(planned_state=pack(planned), legacy_type_system=True)

    def ApplyResourceChange(self, request, context):
        value = unpack(request.planned_state)
        if value is None:
            return pb.ApplyResponse(new_state=request.planned_state)
        applied = fill(self.resources[request.type_name]["block"], value, invented(request.type_name))
        return pb.ApplyResponse(new_state=pack(applied), legacy_type_system=True)

    def ReadDataSource(self, request, context):
        block = self.data_sources[request.name]["block"]
        value = fill(block, unpack(request.config), unknown_until_applied)
        return pb.StateResponse(state=pack(fill(block, value, invented("data"))))

    def Stop(self, request, context):
        return pb.StopResponse()


def attached(source, socket):
    address = {"Network": "unix", "String": socket}
    reattach = {source: {"Protocol": "grpc", "ProtocolVersion": 5, "Pid": os.getpid(), "Test": True, "Addr": address}}
    environment = dict(os.environ, TF_REATTACH_PROVIDERS=json.dumps(reattach))
    # A machine's own configuration may name mirrors and overrides, which have no part in this.
    environment.pop("TF_CLI_CONFIG_FILE", None)
    return environment


def main():
    document = json.loads(pathlib.Path(sys.argv[1]).read_text())
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(8), options=unlimited)
    rpc.add_ProviderServicer_to_server(Provider(document), server)
    socket = f"{WORK.name}/socket"
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    command = sys.argv[sys.argv.index("--") + 1 :]
    code = subprocess.call(command, env=attached(document["source"], socket))
    server.stop(0).wait()
    return code


if __name__ == "__main__":
    sys.exit(main())
