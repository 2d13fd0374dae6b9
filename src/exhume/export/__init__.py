"""`export`: sessions as JSON Lines, as ADK session JSON, or as an eval set, so that an incident becomes a test case."""
