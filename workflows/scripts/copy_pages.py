"""Copies pages, and tells after each one how far it has come."""

import json
import os

ROWS_OF_A_PAGE = 100

with open(os.environ["EBB_INPUT"]) as file:
    document = json.load(file)
messages = open(os.environ["EBB_MESSAGES"], "a", buffering=1)


def tell(**message):
    print(json.dumps(message), file=messages)


pages, interrupt_at = document["inputs"]["pages"], document["inputs"]["interrupt_at"]
# What an earlier attempt has done, if there was one.
checkpoint = document["checkpoint"] or {"state": {"page": 0, "rows": 0}}
state = checkpoint["state"]
first_page = state["page"] + 1

for page in range(first_page, pages + 1):
    if page == interrupt_at and document["task"]["attempt"] == 1:
        raise SystemExit(f"the connection was lost at page {page}")
    state = {"page": page, "rows": state["rows"] + ROWS_OF_A_PAGE}
    tell(progress=page / pages, message=f"page {page} of {pages}", metric={"rows": state["rows"]})
    tell(checkpoint={"phase": f"page {page}", "state": state})

with open(os.environ["EBB_OUTPUT"], "w") as file:
    json.dump({"rows": state["rows"], "first_page": first_page}, file)
