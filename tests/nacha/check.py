"""The files of the ACH rail's cases, as two readers see them that others wrote.

What the control records say of a file is compared with what its entries add up to; of files that
the rail makes, also with the payments that they were made of.
"""

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import achkit
from achlens.core.parser import parse as parse_by_achlens
from achlens.core.validator import validate as validate_by_achlens

CASES = Path(__file__).resolve().parents[2] / "rails/ach/cases"

# What is wrong with these cannot be seen in their totals: the number of a batch, the format that
# the header names, an entry between batches (achkit takes it for one of the batch before), and
# entries that say nothing.
NOT_BY_ADDING_UP = {"wrong-batch.ach", "wrong-header.ach", "astray.ach", "unreadable.ach"}


@dataclass(frozen=True)
class Entry:
    transaction: int
    routing: str
    account: str
    cents: int
    reference: str
    name: str
    trace: str
    addenda: int


@dataclass(frozen=True)
class Totals:
    """What a control record says, or what entries add up to."""

    records: int
    entry_hash: int
    debit: int
    credit: int


@dataclass(frozen=True)
class File:
    """Entries by batch, and what the control records say of the batches and of the file."""

    batches: list[tuple[list[Entry], Totals]]
    totals: Totals
    batch_count: int
    block_count: int


def read_by_achkit(text):
    def totals(control):
        return Totals(
            control["entry_addenda_count"],
            int(control["entry_hash"]),
            control["total_debit"],
            control["total_credit"],
        )

    def entry(found):
        return Entry(
            found["txn_code"],
            found["routing"],
            found["account"],
            found["amount_cents"],
            found["id_number"],
            found["name"],
            found["trace_number"],
            len(found["addenda"]),
        )

    file = achkit.parse(text)
    batches = [([entry(it) for it in b["entries"]], totals(b["control"])) for b in file["batches"]]
    control = file["control"]
    return File(batches, totals(control), control["batch_count"], control["block_count"])


def read_by_achlens(text):
    def value(record, name):
        return record.fields[name].value

    def totals(control):
        return Totals(
            value(control, "entry_addenda_count"),
            value(control, "entry_hash"),
            value(control, "total_debit_entry_dollar_amount"),
            value(control, "total_credit_entry_dollar_amount"),
        )

    def entry(found):
        detail = found.detail
        raw = {name: field.raw for name, field in detail.fields.items()}
        # Of a business the same two places have other names.
        reference = raw.get("individual_identification_number", raw.get("identification_number"))
        name = raw.get("individual_name", raw.get("receiving_company_name"))
        return Entry(
            value(detail, "transaction_code"),
            raw["receiving_dfi_identification"] + raw["check_digit"],
            raw["dfi_account_number"].strip(),
            value(detail, "amount"),
            reference.strip(),
            name.strip(),
            raw["trace_number"],
            len(found.addenda),
        )

    file = parse_by_achlens(text)
    assert not file.unparsed, f"achlens cannot read {[it.line_number for it in file.unparsed]}"
    batches = [([entry(it) for it in b.entries], totals(b.control)) for b in file.batches]
    control = file.control
    counts = (value(control, "batch_count"), value(control, "block_count"))
    return File(batches, totals(control), *counts)


def entries_of(file):
    return [entry for entries, _ in file.batches for entry in entries]


def added_up(entries):
    """Totals of entries: of transaction codes the second digit tells credits from debits."""
    credits = [it.cents for it in entries if it.transaction % 10 < 5]
    debits = [it.cents for it in entries if it.transaction % 10 >= 5]
    return Totals(
        sum(1 + it.addenda for it in entries),
        sum(int(it.routing[:8]) for it in entries) % 10**10,
        sum(debits),
        sum(credits),
    )


def faults(file, lines):
    """Whatever the control records say otherwise than the entries."""
    found = []
    for number, (entries, totals) in enumerate(file.batches, 1):
        if totals != added_up(entries):
            found.append(f"batch {number} says {totals}, and has {added_up(entries)}")
    everything = added_up(entries_of(file))
    if file.totals != everything:
        found.append(f"the file says {file.totals}, and has {everything}")
    if file.batch_count != len(file.batches):
        found.append(f"the file says {file.batch_count} batches, and has {len(file.batches)}")
    blocks = -(-len(lines) // 10)
    if file.block_count != blocks:
        found.append(f"the file says {file.block_count} blocks, and has {blocks}")
    return found


def check_made(case, text):
    """A file that the rail makes: both readers, and the payments of the case."""
    lines = text.removesuffix("\n").split("\n")
    assert all(len(line) == 94 for line in lines), "a record has not 94 characters"
    assert len(lines) % 10 == 0, "a block is not full"
    file = read_by_achkit(text)
    assert file == read_by_achlens(text), "the two readers see different files"
    assert not faults(file, lines), faults(file, lines)
    verdict = achkit.validate(text)
    assert verdict["ok"], f"achkit: {verdict['errors']}"
    report = validate_by_achlens(text)
    assert report.valid and not report.findings, f"achlens: {report.findings}"

    entries = entries_of(file)
    assert {it.reference: it.trace for it in entries} == case["placed"], "other traces"
    paid = {it["reference"]: it for it in case["payments"] if it["reference"] in case["placed"]}
    assert len(entries) == len(paid), f"{len(entries)} entries of {len(paid)} payments"
    for entry in entries:
        payment = paid[entry.reference]
        recipient = payment["recipient"]
        wanted = (payment["amount_minor"], recipient["account_number"], recipient["routing_number"])
        assert (entry.cents, entry.account, entry.routing) == wanted, f"{entry} is not {wanted}"
        wanted = {"checking": 22, "savings": 32}[recipient["account_type"]]
        assert entry.transaction == wanted, f"{entry} is not {wanted}"
    total = sum(payment["amount_minor"] for payment in paid.values())
    assert (file.totals.debit, file.totals.credit) == (0, total), f"{file.totals} is not {total}"


def check_told(case, name, text):
    """A file of the bank's: achkit alone, for achlens reads only what is originated."""
    # Banks leave blanks out at the ends of lines, and achkit wants them.
    lines = [line.ljust(94) for line in text.splitlines()]
    if name in NOT_BY_ADDING_UP:
        assert case.get("error"), "nothing is wrong with it"
        return
    try:
        file = read_by_achkit("\n".join(lines))
        found = faults(file, lines)
    except (KeyError, TypeError) as cause:
        found = [f"a control record is missing: {cause!r}"]
    assert bool(found) == case.get("error", False), found or "it adds up, and should not"
    for notice in case.get("notices", []):
        if notice["kind"] == "returned":
            own = [entry for entry in entries_of(file) if entry.trace == notice["network_id"]]
            cents = [entry.cents for entry in own]
            assert cents == [notice["amount_minor"]], f"{notice} is told by {own}"


def cases():
    """Every file of the cases with what is to be checked of it."""
    for path in sorted(CASES.glob("*.toml")):
        found = tomllib.loads(path.read_text())
        for case in found.get("assemblies", []):
            yield case["file"], case, check_made
        for case in found.get("readings", []):
            if "file" in case:
                name = Path(case["file"]).name
                yield case["file"], case, lambda case, text, name=name: check_told(case, name, text)


def main():
    passed, failed, seen = 0, 0, set()
    for file, case, check in cases():
        seen.add(Path(file).name)
        text = (CASES / file).read_bytes().decode("ascii")
        if not text:
            continue
        try:
            check(case, text)
            passed += 1
        except AssertionError as fault:
            failed += 1
            print(f"nacha: {file}: {fault}", file=sys.stderr)
    unused = {path.name for path in (CASES / "golden").iterdir()} - seen
    if unused:
        failed += 1
        print(f"nacha: in no case: {sorted(unused)}", file=sys.stderr)
    print(f"nacha: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
