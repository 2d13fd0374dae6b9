"""Reads event logs as an investigator would: pairing, rules, findings, the timeline and the ledger of approvals."""
