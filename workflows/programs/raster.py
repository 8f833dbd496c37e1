#!/usr/bin/env python3
"""Three custom task types for grids in Esri's ASCII format: raster.validate, raster.split and raster.merge."""

import json
import os
from pathlib import Path


def fail(message):
    """Fails the task for good: another attempt would find the same."""
    Path(os.environ["EBB_FAILURE"]).write_text(json.dumps({"class": "permanent", "message": message}))
    raise SystemExit(message)


def read(path):
    """The header of a grid and its rows, from north to south."""
    if not Path(path).is_file():
        fail(f"there is no grid {path}; are rasters in a folder that this worker's tasks may read?")
    header, rows = {}, []
    for words in map(str.split, Path(path).read_text().splitlines()):
        if words and words[0][0].isalpha():
            header[words[0].lower()] = float(words[1])
        elif words:
            rows.append([float(word) for word in words])
    width, height = int(header["ncols"]), int(header["nrows"])
    if [len(row) for row in rows] != [width] * height:
        fail(f"{path} does not have {height} rows of {width} values")
    return header, rows


def write(path, header, rows):
    """Writes a grid, all of it or nothing. The next task may run as another user, and replaces it."""
    header = {**header, "ncols": len(rows[0]), "nrows": len(rows)}
    lines = [f"{name} {value:.12g}" for name, value in header.items()]
    lines += [" ".join(f"{value:.12g}" for value in row) for row in rows]
    draft = Path(f"{path}.{os.environ['EBB_ATTEMPT']}")
    draft.write_text("\n".join(lines) + "\n")
    draft.replace(path)


def validate(config):
    header, rows = read(config["source"])
    bands = config.get("bands", 1)
    if bands != 1:
        fail(f"{config['source']} has 1 band, not {bands}")
    projection = Path(config["source"]).with_suffix(".prj")
    crs = projection.read_text().strip() if projection.is_file() else "unknown"
    return {"width": len(rows[0]), "height": len(rows), "crs": crs}


def split(config):
    header, rows = read(config["source"])
    size, folder, tiles = config["tile_size"], Path(config["folder"]), []
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    for y in range(0, len(rows), size):
        for x in range(0, len(rows[0]), size):
            tile = [row[x : x + size] for row in rows[y : y + size]]
            below = len(rows) - y - len(tile)
            corner = {
                "xllcorner": header["xllcorner"] + x * header["cellsize"],
                "yllcorner": header["yllcorner"] + below * header["cellsize"],
            }
            path = folder / f"{x}-{y}.asc"
            write(path, {**header, **corner}, tile)
            tiles.append({"x": x, "y": y, "path": str(path)})
    return {"tiles": tiles}


def merge(config):
    tiles = [read(path) for path in config["tiles"]]
    first = tiles[0][0]
    west, south = (min(header[name] for header, _ in tiles) for name in ("xllcorner", "yllcorner"))
    cells = {}
    for header, rows in tiles:
        left = round((header["xllcorner"] - west) / first["cellsize"])
        bottom = round((header["yllcorner"] - south) / first["cellsize"])
        for row, values in enumerate(reversed(rows)):
            cells.update({(bottom + row, left + column): value for column, value in enumerate(values)})
    height, width = (1 + max(axis) for axis in zip(*cells))
    if len(cells) != width * height:
        fail(f"the tiles leave {width * height - len(cells)} cells open")
    rows = [[cells[row, column] for column in range(width)] for row in reversed(range(height))]
    write(config["target"], {**first, "xllcorner": west, "yllcorner": south}, rows)
    return {"path": config["target"], "pixels": len(cells)}


with open(os.environ["EBB_INPUT"]) as file:
    task = json.load(file)
steps = {"raster.validate": validate, "raster.split": split, "raster.merge": merge}
with open(os.environ["EBB_OUTPUT"], "w") as file:
    json.dump(steps[task["type"]](task["config"]), file)
