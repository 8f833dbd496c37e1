"""Start a run, follow it, and print what its tasks returned. It reads EBB_URL and EBB_TOKEN."""

import json
import sys

from ebbflow import Client, RunFailed


def main(workflow: str, inputs: str = "{}") -> int:
    with Client() as client:
        run = client.trigger(workflow, json.loads(inputs))
        print(f"run {run.id} of {workflow} has started")
        try:
            client.wait(run).raise_for_state()
        except RunFailed as error:
            print(error, file=sys.stderr)
            return 1
        print(json.dumps(client.outputs(run), indent=2))
        return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
