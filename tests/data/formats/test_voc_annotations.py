"""Pascal VOC's annotations, as its development kit describes them."""

from __future__ import annotations

import pytest

from partly import Labels
from partly.data import read_labels, write_labels
from partly.errors import DataError

ONE = """<annotation><folder>VOC2012</folder><filename>2007_000027.jpg</filename>
  <size><width>486</width><height>500</height><depth>3</depth></size>
  <object><name>person</name><difficult>0</difficult><bndbox><xmin>174</xmin></bndbox>
    <part><name>head</name></part></object>
  <object><name>dog</name><difficult>1</difficult></object></annotation>"""


@pytest.mark.parametrize("below", ["", "Annotations"])
def test_objects_are_there_and_parts_are_no_objects(tmp_path, below):
    folder = tmp_path / "VOC" / below
    folder.mkdir(parents=True)
    (folder / "2007_000027.xml").write_text(ONE)
    (folder / "2007_000032.xml").write_text("<annotation><object><name>boat</name></object></annotation>")
    with pytest.raises(DataError, match=r"VOC annotations: labels that are not annotated.*--absent"):
        read_labels(tmp_path / "VOC")
    labels = read_labels(tmp_path / "VOC", absent="no")
    assert (labels.ids, labels.names) == (("2007_000027.jpg", "2007_000032"), ("person", "dog", "boat"))
    assert labels.ternary().tolist() == [[1, 1, -1], [-1, -1, 1]]


def test_entities_are_refused(tmp_path):
    bomb = '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><annotation><filename>&y;</filename></annotation>'
    (tmp_path / "a.xml").write_text("<annotation/>")
    (tmp_path / "b.xml").write_text(bomb)
    with pytest.raises(DataError, match=r"b\.xml: declares the entity 'x'"):
        read_labels(tmp_path, absent="no")
    (tmp_path / "b.xml").write_text("<annotation>")
    with pytest.raises(DataError, match=r"b\.xml: cannot be read"):
        read_labels(tmp_path, absent="no")


def test_nothing_is_written_outside_or_over_something(tmp_path):
    labels = Labels.from_positives([[1], [1]], names=["a"], ids=["../../x.jpg", "/etc/x.jpg"])
    write_labels(labels, tmp_path / "new", form="voc-annotations")
    assert sorted(file.name for file in tmp_path.rglob("*.xml")) == ["00000000.xml", "00000001.xml"]
    assert read_labels(tmp_path / "new", absent="unknown") == labels
    with pytest.raises(DataError, match="this folder is not empty"):
        write_labels(labels, tmp_path / "new", form="voc-annotations")
