"""The part of gcloud's language of filters and formats that this repository uses. `sdk.py` compares it with gcloud itself."""
import re

from project import Refused

# What each format prints of a resource.
FORMATS = {
    "value(metadata.name)": lambda resource: resource["metadata"]["name"],
    "value(email)": lambda resource: resource["email"],
    "value(id)": lambda resource: resource["id"],
    "value(name)": lambda resource: resource["name"],
    "value(state)": lambda resource: resource["state"],
    "value(ipAddresses[0].ipAddress)": lambda resource: resource["ipAddresses"][0]["ipAddress"],
    "value(spec.template.spec.containers[0].image)": lambda resource: resource["spec"]["template"]["spec"]["containers"][0]["image"],
    "value(status.latestCreatedRevisionName)": lambda resource: resource["status"]["latestCreatedRevisionName"],
    "value(status.traffic[].tag)": lambda resource: ";".join(target.get("tag", "") for target in resource["status"]["traffic"]),
    'value(status.traffic.map().format("{0}={1}",revisionName,tag).flatten())': lambda resource: ",".join(
        f"{target['revisionName']}={target.get('tag')}" for target in resource["status"]["traffic"]
    ),
}


def printed(resource, form):
    """What `--format` prints of a resource."""
    if form not in FORMATS:
        raise Refused(f"the test does not know the format {form}")
    return FORMATS[form](resource)


def kept(resource, condition):
    """Whether `--filter` keeps a resource. gcloud 528 announces that `=` will soon keep values that contain the text as whole
    words, such as `ebbflow-test` for `ebbflow`: so it does here."""
    path, operator, text = re.fullmatch(r"([A-Za-z.]+)([=~])(.+)", condition).groups()
    value = resource
    for name in path.split("."):
        value = (value or {}).get(name)
    text = text.strip('"')
    pattern = text if operator == "~" else rf"\b{re.escape(text)}\b"
    return value is not None and re.search(pattern, value) is not None
