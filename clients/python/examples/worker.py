"""A worker: validates rasters, band by band. A task that was interrupted continues where it stopped."""

import ebbflow

worker = ebbflow.Worker(queue="geo", slots=4, labels={"gdal": True})


@worker.task("raster.validate")
def validate(task: ebbflow.Task) -> dict[str, object]:
    bands = task.config["bands"]
    for band in range(task.checkpoint.state.get("bands", 0), bands):
        task.check()
        task.log.info("band %s of %s is valid", band, task.config["source"])
        task.progress((band + 1) / bands, f"band {band}")
        task.checkpoint("bands", {"bands": band + 1})
    return {"width": 512, "height": 512, "crs": "EPSG:4326"}


worker.run()
