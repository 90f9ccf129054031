"""The ISO 20022 messages of the SEPA and Fedwire rails, held against schemas that others wrote.

Every message that stands in the folders of the two rails must be valid, whoever sends it, but for
those that are wrong on purpose: these must be invalid, and for nothing else than their purpose.
"""

import sys
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import schwifty

from schemas import NAMESPACE, schemas_of, version

RAILS = Path(__file__).resolve().parents[2] / "rails"

DOCUMENT_TYPE = "it has a document type"
NO_DOCUMENT = "it holds no document"
NO_XML = "no XML"

# Cases that are wrong on purpose, by rail, with what must stand in whatever is found in them.
WRONG = {
    "sepa": {
        "an amount that is none": "/Amt",
        "came back, an amount that is none: a person looks": "/RtrdIntrBkSttlmAmt",
        "neither a credit nor a debit": "/CdtDbtInd",
        "no message: a message that no bank sends here": "FIToFICstmrCdtTrf",
        "no message: cut off": NO_XML,
        "no message: no payment": "PmtRtr",
        "no notification: a statement": "BkToCstmrDbtCdtNtfctn",
        "no notification: cut off": NO_XML,
        "no notification: two messages": "'X'",
        "no report: a count that is none": "/OrgnlNbOfTxs",
        "no report: a status twice": "'GrpSts'",
        "no report: an element of another namespace": "'{urn:x}GrpSts'",
        "no report: cut off": NO_XML,
        "no report: no file": "'OtherId'",
        "no report: two groups": "'OrgnlGrpInfAndSts'",
        "no report: with a document type": DOCUMENT_TYPE,
        "no report: with an entity": NO_XML,
        "nobody knows: a status twice": "'TxSts'",
        "nobody knows: an amount that is none": "/IntrBkSttlmAmt",
        "nobody knows: cut off": NO_XML,
        "nobody knows: with a document type": DOCUMENT_TYPE,
        "return information twice": "'RtrInf'",
    },
    "fedwire": {
        "a bank about what is no UETR": "/OrgnlUETR",
        "a payment to us": "FIToFICstmrCdtTrf",
        "a return of an unreadable amount": "/RtrdIntrBkSttlmAmt",
        "a return of two amounts": "'RtrdIntrBkSttlmAmt'",
        "a status that proves nothing: SETTLED": "/TxSts",
        "cut off": NO_XML,
        "rejected for a reason that is both": "'Prtry'",
        "settled and rejected in one message": "'TxSts'",
        "settled, and rejected besides": "'TxSts'",
        "settled, cut off": NO_XML,
        "settled, in no namespace": NO_DOCUMENT,
        "settled, no UETR": "/OrgnlUETR",
        "settled, of an amount that is none": "/IntrBkSttlmAmt",
        "settled, of two amounts": "'OrgnlTxRef'",
        "settled, with a document type": DOCUMENT_TYPE,
        "settled, with an entity of its own": NO_XML,
        "settled, with elements of another namespace": "'{urn:other}TxSts'",
        "with a document type": DOCUMENT_TYPE,
    },
}

# SEPA reaches these countries, and schwifty does not know it.
NEW_IN_SEPA = {"AL", "RS"}


@dataclass(frozen=True)
class Message:
    rail: str
    place: str
    # What the case is called; nothing of a file.
    case: str | None
    text: str

    def __str__(self):
        return f"{self.place}, {self.case}" if self.case else self.place


def texts(value):
    """The messages in whatever a case says, but for the parts of messages that it expects."""
    if isinstance(value, str):
        if NAMESPACE in value:
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name != "expects":
                yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def cases(rail, path):
    place = str(path.relative_to(RAILS))
    found = tomllib.loads(path.read_text())
    # One message for each code, in each place where the bank may say it.
    for call, template in found.get("code_templates", {}).items():
        for it in found["codes"]:
            text = template.replace("{code}", it["code"])
            text = text.replace("{reference}", found["code_payment"]["reference"])
            yield Message(rail, place, f"{it['code']} ({call})", text)
    for listed in found.values():
        for case in listed if isinstance(listed, list) else []:
            for text in texts(case):
                yield Message(rail, place, case["name"], text)


def messages(folder):
    for rail in WRONG:
        for path in sorted((RAILS / rail).rglob("*.xml")):
            # The file of no payments has nothing in it.
            if text := path.read_text():
                yield Message(rail, str(path.relative_to(RAILS)), None, text)
        for path in sorted((RAILS / rail / "cases").rglob("*.toml")):
            yield from cases(rail, path)
    if folder:
        written = sorted(Path(folder).glob("*.xml"))
        if not written:
            sys.exit(f"iso20022: no messages in {folder}")
        for path in written:
            yield Message("fedwire", path.name, None, path.read_text())


def kind_of(element):
    """Which message of ISO 20022 an element is of."""
    namespace = element.tag[1:].partition("}")[0]
    return namespace.removeprefix(NAMESPACE) if namespace.startswith(NAMESPACE) else None


def documents(element):
    """Documents and headers, whatever envelope they stand in."""
    if kind_of(element):
        yield element
    else:
        for inner in element:
            yield from documents(inner)


class Check:
    def __init__(self):
        self.passed = self.failed = 0
        # Documents that are valid and what was not looked at, by kind; cases wrong on purpose.
        self.valid = Counter()
        self.left_out = Counter()
        self.wrong = Counter()
        # One valid document of each kind.
        self.samples = {}
        # Where each fault was found.
        self.faults = defaultdict(list)

    def count(self, place, faults):
        if faults:
            self.failed += 1
        else:
            self.passed += 1
        for fault in faults:
            self.faults[fault].append(str(place))

    def read(self, message):
        """The documents of a message that have schemas, and what is wrong with it."""
        if "<!DOCTYPE" in message.text:
            return [], [DOCUMENT_TYPE]
        try:
            root = ElementTree.fromstring(message.text.encode())
        except ElementTree.ParseError as cause:
            return [], [f"{NO_XML}: {cause}"]
        found = list(documents(root))
        if all(kind_of(it).startswith("head.") for it in found):
            return [], [NO_DOCUMENT]
        checked, wrong = [], []
        for document in found:
            kind = kind_of(document)
            inner = [it.tag.rpartition("}")[2] for it in document]
            # The rail reads no headers, and its cases have no more of them than this.
            if message.case and kind.startswith("head.") and inner == ["BizMsgIdr"]:
                self.left_out["headers of cases, which have no more than BizMsgIdr"] += 1
                continue
            if not (schemas := schemas_of(kind)):
                self.left_out[f"documents of {kind}, of which no package has a schema"] += 1
                continue
            checked.append(document)
            for package, schema in schemas.items():
                for error in schema.iter_errors(document):
                    fault = f"{kind} by {package}: {error.path}: {error.reason}"
                    wrong.append(fault.replace(f"{{{NAMESPACE}{kind}}}", ""))
        return checked, wrong

    def look_at(self, message):
        checked, wrong = self.read(message)
        if purpose := WRONG[message.rail].get(message.case):
            self.wrong[message.rail, message.case] += 1
            others = [it for it in wrong if purpose not in it]
            self.count(message, others if wrong else ["nothing is wrong with it"])
            return
        self.count(message, wrong)
        for document in [] if wrong else checked:
            self.valid[kind_of(document)] += 1
            self.samples.setdefault(kind_of(document), document)

    def look_at_list(self):
        """Whatever is listed as wrong must be there."""
        for rail, listed in WRONG.items():
            for case in listed:
                if not self.wrong[rail, case]:
                    self.count(rail, [f"there is no case '{case}'"])

    def look_at_schemas(self):
        """A schema must mind that an element has another name."""
        for kind, document in self.samples.items():
            *_, last = document.iter()
            last.tag += "x"
            for package, schema in schemas_of(kind).items():
                if schema.is_valid(document):
                    self.count(package, [f"{kind}: the schema takes whatever it is given"])

    def look_at_ibans(self):
        """Recipients whose IBAN is taken or refused, as schwifty would."""
        path = RAILS / "sepa/cases/recipients.toml"
        cases = tomllib.loads(path.read_text())["recipients"]
        cases = [it for it in cases if "iban" in it["fields"]]
        for case in cases:
            taken = all(it["field"] != "iban" for it in case.get("violations", []))
            iban = schwifty.IBAN(case["fields"]["iban"], allow_invalid=True)
            reached = iban.is_valid and (iban.in_sepa_zone or iban.country_code in NEW_IN_SEPA)
            faults = [] if taken == reached else [f"schwifty says otherwise of {iban}"]
            self.count(f"recipients.toml, {case['name']}", faults)
        return len(cases)


def main(folder=None):
    check = Check()
    for message in messages(folder):
        check.look_at(message)
    check.look_at_list()
    check.look_at_schemas()
    ibans = check.look_at_ibans()

    for fault, (place, *others) in check.faults.items():
        more = f" (and {len(others)} more)" if others else ""
        print(f"iso20022: {place}{more}: {fault}", file=sys.stderr)
    for kind, count in sorted(check.valid.items()):
        by = " and ".join(version(it) for it in schemas_of(kind))
        print(f"iso20022: {count} of {kind} by {by}")
    print(f"iso20022: {check.wrong.total()} messages wrong on purpose")
    print(f"iso20022: {ibans} IBANs by {version('schwifty')}")
    for what, count in sorted(check.left_out.items()):
        print(f"iso20022: not checked: {count} {what}")
    if not folder:
        print("iso20022: not checked: what the Fedwire rail writes: no folder was given")
    print(f"iso20022: {check.passed} passed, {check.failed} failed")
    return 1 if check.failed or not check.valid else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
