"""Schemas of ISO 20022 from packages of others: as published, and made again from classes.

pyiso20022 has no schemas. It has classes that were made from them, which say of every element its
name, place, type, length, pattern and how often it stands: all that a schema says but which types
are a choice. Those are told by their names, which in ISO 20022 say so.
"""

import enum
import functools
import importlib
import importlib.metadata
import typing
from dataclasses import fields, is_dataclass
from decimal import Decimal
from xml.etree import ElementTree

import xmlschema
from xsdata.models.datatype import XmlDate, XmlDateTime, XmlPeriod, XmlTime

NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:"

# Packages that carry the published schema.
PUBLISHED = {
    "pain.001.001.09": "sepaxml",
    "camt.054.001.08": "camt053",
    "pacs.008.001.08": "iso-tollgate",
}
CLASSES = "pyiso20022"

XS = "{http://www.w3.org/2001/XMLSchema}"
SIMPLE = {
    str: "string",
    bool: "boolean",
    bytes: "base64Binary",
    Decimal: "decimal",
    XmlDate: "date",
    XmlDateTime: "dateTime",
    XmlTime: "time",
    # A year or a month, which the classes do not tell apart.
    XmlPeriod: "string",
}
FACETS = {
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "min_inclusive": "minInclusive",
    "total_digits": "totalDigits",
    "fraction_digits": "fractionDigits",
}


def add(parent, element, **attributes):
    written = {name: str(value) for name, value in attributes.items()}
    return ElementTree.SubElement(parent, XS + element, written)


def restrict(parent, kind, limits):
    """The type of a text, within these limits."""
    values = [it.value for it in kind] if issubclass(kind, enum.Enum) else []
    base = "string" if values else SIMPLE[kind]
    restriction = add(parent, "restriction", base=f"xs:{base}")
    for value in values:
        add(restriction, "enumeration", value=value)
    for name, facet in FACETS.items():
        if name in limits:
            add(restriction, facet, value=limits[name])


def describe(schema, kind):
    """Adds the type that a class was made from, and returns the classes that it refers to."""
    name = kind.__name__
    hints = typing.get_type_hints(kind)
    described = add(schema, "complexType", name=name)
    text = next((it for it in fields(kind) if "type" not in it.metadata), None)
    choice = "Choice" in name
    if text:
        restrict(add(schema, "simpleType", name=f"{name}_text"), hints[text.name], text.metadata)
        content = add(add(described, "simpleContent"), "extension", base=f"{name}_text")
    else:
        content = add(described, "choice" if choice else "sequence")

    referred = []
    for field in fields(kind):
        limits = field.metadata
        inner = [it for it in typing.get_args(hints[field.name]) if it is not type(None)]
        of = inner[0] if inner else hints[field.name]
        match limits.get("type"):
            case "Attribute":
                use = "required" if limits.get("required") else "optional"
                attribute = add(content, "attribute", name=limits["name"], use=use)
                restrict(add(attribute, "simpleType"), of, limits)
            case "Element" | "Wildcard" as place:
                many = typing.get_origin(hints[field.name]) is list
                needed = limits.get("required") or choice
                often = {
                    "minOccurs": 1 if needed else limits.get("min_occurs", 0),
                    "maxOccurs": limits.get("max_occurs", "unbounded") if many else 1,
                }
                if place == "Wildcard":
                    add(content, "any", processContents="skip", **often)
                elif is_dataclass(of):
                    add(content, "element", name=limits["name"], type=of.__name__, **often)
                    referred.append(of)
                else:
                    element = add(content, "element", name=limits["name"], **often)
                    restrict(add(element, "simpleType"), of, limits)
    return referred


def from_classes(kind):
    """The schema that the classes of a kind were made from, or nothing, if there are none."""
    try:
        module = importlib.import_module(f"{CLASSES}.{kind[:4]}.{kind.replace('.', '_')}")
    except ModuleNotFoundError:
        return None
    root = module.AppHdr if kind.startswith("head.") else module.Document
    ElementTree.register_namespace("xs", XS.strip("{}"))
    own = {"xmlns": NAMESPACE + kind, "targetNamespace": NAMESPACE + kind}
    schema = ElementTree.Element(f"{XS}schema", own, elementFormDefault="qualified")
    add(schema, "element", name=root.__name__, type=root.__name__)
    waiting, described = [root], set()
    while waiting:
        if (it := waiting.pop()) not in described:
            described.add(it)
            waiting += describe(schema, it)
    return xmlschema.XMLSchema(ElementTree.tostring(schema, encoding="unicode"))


def published(kind):
    files = importlib.metadata.files(PUBLISHED[kind])
    path = next(it.locate() for it in files if it.name == f"{kind}.xsd")
    return xmlschema.XMLSchema(str(path))


@functools.cache
def schemas_of(kind):
    """The schemas of a kind of message, by the package that each is from."""
    found = {PUBLISHED[kind]: published(kind)} if kind in PUBLISHED else {}
    if made := from_classes(kind):
        found[CLASSES] = made
    return found


def version(package):
    return f"{package} {importlib.metadata.version(package)}"
