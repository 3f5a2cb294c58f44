# SPDX-License-Identifier: MIT
"""svg.py - reads charts of tools/common/svg.c, for tests.

charts(path) gives {id: Chart} of a document that is parsed as XML; nothing in
it may come from elsewhere or run.
"""
import math
import re
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


class Chart:
    def __init__(self, area):
        a = area.attrib
        self.x = (float(a["data-left"]), float(a["data-right"]),
                  *self.axis(a["data-x"]))
        self.y = (float(a["data-bottom"]), float(a["data-top"]),
                  *self.axis(a["data-y"]))
        self.lines = {}
        self.dots = {}
        for e in area.iter():
            if "data-name" in e.attrib and "d" in e.attrib:
                self.lines[e.get("data-name")] = self.points(e.get("d"))
            if e.tag.endswith("circle"):
                self.dots[e.get("data-name")] = (
                    self.value(self.x, float(e.get("cx"))),
                    self.value(self.y, float(e.get("cy"))))

    @staticmethod
    def axis(text):
        low, high, *log = text.split()
        return float(low), float(high), bool(log)

    @staticmethod
    def value(axis, pixel):
        a, b, low, high, log = axis
        t = (pixel - a) / (b - a)
        if log:
            return math.exp(math.log(low) + t * math.log(high / low))
        return low + t * (high - low)

    def resolution(self, y):
        """Value at height y, in hundredths of a pixel."""
        a, b, low, high, log = self.y
        one = (math.log(high / low) * y if log else high - low) / abs(b - a)
        return one * 0.011

    def points(self, d):
        """Values at the corners of a path of M, L, H and V."""
        out, x, y = [], 0, 0
        for op, args in re.findall(r"([MLHVZ])([-0-9. ]*)", d):
            v = [float(s) for s in args.split()]
            if op in "ML":
                x, y = v
            elif op == "H":
                x = v[0]
            elif op == "V":
                y = v[0]
            out.append((self.value(self.x, x), self.value(self.y, y)))
        return out


def check(root):
    """The page loads nothing, runs nothing, and every id is unique."""
    ids = []
    for e in root.iter():
        tag = e.tag.split("}")[-1]
        assert tag not in ("script", "image", "use", "a", "iframe", "object",
                           "foreignObject", "link", "img"), tag
        for k, v in e.attrib.items():
            k = k.split("}")[-1]
            assert not k.startswith("on") and k not in ("href", "src"), k
            assert "url(" not in v or v.startswith("url(#"), v
            if k == "id":
                ids.append(v)
        if tag == "style":
            assert "@import" not in e.text and "url(" not in e.text
    assert len(ids) == len(set(ids))
    for e in root.iter():
        for k in e.get("aria-labelledby", "").split():
            assert k in ids, k


def charts_of(root):
    out = {}
    for e in root.iter():
        for area in e:
            if area.get("class") == "area":
                out[e.get("aria-labelledby").split()[0][:-2]] = Chart(area)
    return out


def charts(path):
    root = ET.parse(path).getroot()
    assert root.tag == SVG + "svg" and root.get("viewBox")
    check(root)
    return root, charts_of(root)
