"""The program of a `python` task: it counts rows, and an interrupted attempt continues where it stopped."""

from ebbflow import PermanentError, task

rows = task.inputs.get("rows", 1000)
if rows < 0:
    raise PermanentError(f"there cannot be {rows} rows", {"rows": rows})
for row in range(task.checkpoint.state.get("row", 0), rows):
    if row % 100 == 0:
        task.progress(row / rows, f"row {row}")
        task.checkpoint("counting", {"row": row})
task.metric("rows", rows)
task.output({"rows": rows})
