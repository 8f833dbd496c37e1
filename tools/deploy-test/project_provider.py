"""The terraform provider of the test: the stand-in of terraform/check, with a project behind it."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "terraform" / "check"))
from provider import UNKNOWN, Provider, fill, invented, pack, pb, rpc, unpack  # noqa: E402

import behaviour  # noqa: E402
from project import NUMBER, Refused  # noqa: E402

# Attributes that cannot be changed in place.
REPLACED = {"name", "account_id", "location", "region", "project", "instance", "topic", "repository_id", "secret_id", "bucket"}


def without(block, value, flag):
    """The value with every attribute that has the flag set to null."""
    if not isinstance(value, dict):
        return value
    cleared = {name: None if block.get("attributes", {}).get(name, {}).get(flag) else inner for name, inner in value.items()}
    for name, nested in block.get("block_types", {}).items():
        if isinstance(cleared.get(name), list):
            cleared[name] = [without(nested["block"], element, flag) for element in cleared[name]]
    return cleared


def known(value):
    return json.loads(json.dumps(value, default=lambda _: None))


class ProjectProvider(Provider):
    def __init__(self, document, project):
        super().__init__(document)
        self.project = project

    def block(self, type_name):
        return self.resources[type_name]["block"]

    def ReadResource(self, request, context):
        state = unpack(request.current_state)
        stored = self.project.seen().get(state["id"])
        if stored is None:
            return pb.StateResponse(state=pack(None))
        seen = behaviour.seen(request.type_name, stored)
        # Only terraform's state knows which version was written of what nobody can read.
        return pb.StateResponse(state=pack({name: state[name] if name.endswith("_wo_version") else seen.get(name) for name in state}))

    def PlanResourceChange(self, request, context):
        value, prior = unpack(request.proposed_new_state), unpack(request.prior_state)
        if value is None:
            return pb.PlanResponse(planned_state=request.proposed_new_state)
        block = self.block(request.type_name)
        value = without(block, value, "write_only")
        if prior is None:
            value = fill(block, value, lambda _name, _attribute, given: UNKNOWN if given is None else given)
            return pb.PlanResponse(planned_state=pack(value), legacy_type_system=True)
        value = behaviour.planned(request.type_name, prior, value)
        replaced = [name for name in REPLACED & value.keys() if isinstance(value[name], str) and value[name] != prior.get(name)]
        paths = [pb.AttributePath(steps=[pb.AttributePath.Step(attribute_name=name)]) for name in replaced]
        return pb.PlanResponse(planned_state=pack(value), requires_replace=paths, legacy_type_system=True)

    def ApplyResourceChange(self, request, context):
        planned, prior, type_name = unpack(request.planned_state), unpack(request.prior_state), request.type_name
        try:
            with self.project.opened() as project:
                return self.apply(project, type_name, prior, planned)
        except Refused as refusal:
            problem = pb.Diagnostic(severity=1, summary=f"{type_name}: {refusal}")
            return pb.ApplyResponse(new_state=request.prior_state, diagnostics=[problem], legacy_type_system=True)

    def apply(self, project, type_name, prior, planned):
        if planned is None:
            behaviour.delete(project, type_name, prior)
            project.remove(prior["id"])
            return pb.ApplyResponse(new_state=pack(None), legacy_type_system=True)
        if prior is None:
            project.require_api_of(type_name)
            planned = fill(self.block(type_name), planned, invented(type_name))
            behaviour.name(type_name, planned)
        stored = {**(project.get(planned["id"]) or {}), **known(planned)}
        behaviour.write(project, type_name, prior, stored)
        project.put(planned["id"], type_name, stored)
        seen = behaviour.seen(type_name, stored)
        # What is only computed comes from the API, the rest is as planned: terraform compares the two.
        return pb.ApplyResponse(new_state=pack({name: seen.get(name) for name in planned}), legacy_type_system=True)

    def ImportResourceState(self, request, context):
        with self.project.opened() as project:
            stored = behaviour.imported(project, request.type_name, request.id)
        if stored is None:
            problem = pb.Diagnostic(severity=1, summary=f"Cannot import non-existent remote object {request.id}")
            return pb.ImportResponse(diagnostics=[problem])
        block = self.block(request.type_name)
        names = [*block.get("attributes", {}), *block.get("block_types", {})]
        state = without(block, {name: stored.get(name) for name in names}, "write_only")
        return pb.ImportResponse(imported_resources=[pb.ImportResponse.Resource(type_name=request.type_name, state=pack(state))])

    def ReadDataSource(self, request, context):
        value = unpack(request.config)
        try:
            with self.project.opened() as project:
                project.require_api_of(request.name)
        except Refused as refusal:
            return pb.StateResponse(state=request.config, diagnostics=[pb.Diagnostic(severity=1, summary=f"{request.name}: {refusal}")])
        block = self.data_sources[request.name]["block"]
        filled = fill(block, fill(block, value, lambda _n, _a, given: UNKNOWN if given is None else given), invented("data"))
        return pb.StateResponse(state=pack({**filled, "number": NUMBER}))
