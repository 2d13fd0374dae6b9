#!/usr/bin/env bash
# The body of the action: one audit as SARIF, one as a job summary, annotations on the log; the exit code is an output.
# Reads SOURCE, FAIL_ON, ARGUMENTS (one a line), BASELINE; RUNNER_TEMP, GITHUB_OUTPUT, GITHUB_STEP_SUMMARY as on a runner.
set -uo pipefail
exhume=${EXHUME:-$RUNNER_TEMP/exhume/bin/exhume}
sarif=$RUNNER_TEMP/exhume.sarif
options=(--fail-on "$FAIL_ON")
[ -n "${BASELINE:-}" ] && options+=(--baseline "$BASELINE")
while IFS= read -r line; do
  [ -n "$line" ] && options+=("$line")
done <<<"${ARGUMENTS:-}"

"$exhume" audit "${options[@]}" --format sarif --output "$sarif" -- "$SOURCE"
code=$?
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
# other codes mean that there was no audit: then there is nothing to upload or to summarise
if [ "$code" -eq 0 ] || [ "$code" -eq 1 ]; then
  echo "sarif=$sarif" >>"$GITHUB_OUTPUT"
  "$exhume" audit "${options[@]}" --format markdown -- "$SOURCE" >>"$GITHUB_STEP_SUMMARY"
  "$exhume" audit "${options[@]}" --format github -- "$SOURCE"
fi
exit 0
