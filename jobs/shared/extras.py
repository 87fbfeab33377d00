"""Which extra brings a Python package that is missing."""

import re
from importlib.metadata import requires

_DISTRIBUTIONS = {
    "ibis": "ibis-framework",
    "opentelemetry": "opentelemetry-api",
    "sklearn": "scikit-learn",
    "stdnum": "python-stdnum",
    "vl_convert": "vl-convert-python",
}
"""By the name under which they are imported, where that is another."""
_OF_AN_EXTRA = re.compile(r"""(?P<name>[\w.-]+).*;.*extra == ['"](?P<extra>[\w-]+)['"]""")


def install_of(module: str | None) -> str:
    """What to install where a module is missing: the smallest extra with its package, else the one with everything.

    >>> install_of("sklearn.cluster")
    '`turntide[mining]`'
    """
    top = (module or "").partition(".")[0]
    wanted = _DISTRIBUTIONS.get(top, top.replace("_", "-"))
    brings: dict[str, set[str]] = {}
    for line in requires("turntide") or []:
        if (found := _OF_AN_EXTRA.match(line)) is not None:
            brings.setdefault(found["extra"], set()).add(found["name"])
    if extras := [extra for extra, names in brings.items() if wanted in names]:
        return f"`turntide[{min(extras, key=lambda extra: len(brings[extra]))}]`"
    return "`turntide[local]`, which has everything"
